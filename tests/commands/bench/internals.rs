//! `bench internals`: benchmarks of parts of rperf itself.

use super::{assert_same_shape, json, outcome};
use crate::tools::Tools;

#[test]
fn text_of_internals_has_the_shape_of_perfs() {
    const NAME: &str = "commands::bench::internals::text_of_internals_has_the_shape_of_perfs";
    let Some(tools) = Tools::find_for(NAME) else {
        return;
    };
    for words in [
        "inject-build-id -i 2 -m 3 -n 4",
        "evlist-open-close -i 2 -n 3",
        "evlist-open-close -i 2 -a",
        "evlist-open-close -i 2 -e cpu-clock,page-faults -n 2 -C 0",
        "evlist-open-close -i 2 -t 1",
    ] {
        let words: Vec<&str> = ["bench", "internals"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        assert_same_shape(&tools, &words);
    }
}

#[test]
fn build_ids_are_injected_into_a_generated_recording() {
    let report = json(&[
        "internals",
        "inject-build-id",
        "-i",
        "2",
        "-m",
        "5",
        "-n",
        "7",
    ]);
    let results = report["benchmarks"][0]["results"].as_array();
    let names: Vec<&str> = results
        .into_iter()
        .flatten()
        .filter_map(|result| result["variant"].as_str())
        .collect();
    assert_eq!(names, ["build-id", "build-id-all"], "{report}");
    let words = "bench internals inject-build-id -v -i 1 -m 5 -n 7";
    let words: Vec<&str> = words.split(' ').collect();
    let text = outcome(&words).stdout;
    assert!(text.contains("  Recording: 5 mappings of "), "{text}");
}

#[test]
fn tasks_of_a_user_are_observed() {
    // Tasks that exit before their events are opened are skipped.
    let report = json(&["internals", "evlist-open-close", "-i", "3", "-u", "root"]);
    let mean = report["benchmarks"][0]["results"][0]["mean"].as_f64();
    assert!(mean > Some(0.0), "{report}");
}

#[test]
fn invalid_targets_and_events_are_refused() {
    // Statuses: 2 for a benchmark that cannot run; 244, as in perf, for a process that does not exist. 4194305 is above the
    // largest pid.
    for (words, status, message) in [
        (
            "evlist-open-close -a -t 1",
            129,
            "--all-cpus and --tid exclude each other\n",
        ),
        (
            "evlist-open-close -C 0 --per-thread",
            129,
            "--cpu and --per-thread exclude each other\n",
        ),
        ("evlist-open-close -C x", 129, "-C: "),
        (
            "evlist-open-close -e nosuch",
            129,
            "event syntax error: 'nosuch'\n",
        ),
        (
            "evlist-open-close -e duration_time",
            2,
            "duration_time: not an event of the kernel\n",
        ),
        ("evlist-open-close -p 4194305", 244, "no process 4194305\n"),
        (
            "inject-build-id -m 0",
            129,
            " Error: option `nr-mmaps' expects a number above 0",
        ),
    ] {
        let words: Vec<&str> = ["bench", "internals"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        let outcome = outcome(&words);
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {outcome:?}"
        );
    }
}
