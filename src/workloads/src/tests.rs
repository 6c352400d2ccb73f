//! Tests of the table, of arguments and of runs.

use super::*;

/// The message for arguments that are invalid.
fn error(name: &str, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    let workload = find(name).expect("a workload");
    let error = workload.run(&words).expect_err("an invalid argument");
    error.to_string()
}

#[test]
fn each_workload_is_found_by_its_name() {
    for workload in WORKLOADS {
        let found = find(workload.name).expect("a name of the table");
        assert_eq!(found.summary, workload.summary);
    }
    assert!(find("nosuch").is_none());
}

#[test]
fn invalid_arguments_are_named() {
    assert_eq!(
        error("noploop", &["x"]),
        "noploop: <seconds> 'x': expected seconds, 0.001 to 1000000"
    );
    assert_eq!(
        error("leafloop", &["0"]),
        "leafloop: <seconds> '0': expected seconds, 0.001 to 1000000"
    );
    assert_eq!(
        error("thloop", &["1", "0"]),
        "thloop: <threads> '0': expected a number from 1 to 4096"
    );
    assert_eq!(
        error("named_threads", &["26"]),
        "named_threads: <threads> '26': expected a number from 1 to 25"
    );
    assert_eq!(
        error("landlock", &["5"]),
        "landlock: unexpected argument '5'"
    );
    assert_eq!(
        error("brstack", &["5", "6"]),
        "brstack: unexpected argument '6'"
    );
}

#[test]
fn a_loop_ends_after_its_time() {
    let started = std::time::Instant::now();
    let workload = find("noploop").expect("a workload");
    workload
        .run(&["0.05".to_owned()])
        .expect("a valid argument");
    assert!(started.elapsed() >= std::time::Duration::from_millis(50));
}

#[test]
fn processes_that_take_turns_end() {
    let workload = find("context_switch_loop").expect("a workload");
    workload.run(&["20".to_owned()]).expect("both ended");
}
