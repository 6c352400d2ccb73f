//! `rperf config`: settings shown and changed, in files that both tools read.

use std::fs;

use rperf_testkit::{Outcome, Scratch};

use super::beside::{BOTH, Beside, Tool};
use super::rperf;

/// Both tools with `.perfconfig` in their home.
fn outcome(beside: &Beside, tool: Tool, words: &[&str]) -> Outcome {
    let words = [&["config"], words].concat();
    let run = beside.run(tool, &words).env_remove("PERF_CONFIG");
    run.finish().expect("it starts")
}

#[test]
fn both_tools_write_and_read_the_same_file() {
    let Some(beside) = Beside::find("both_tools_write_and_read_the_same_file") else {
        return;
    };
    let file = beside.path().join(".perfconfig");
    let steps: [&[&str]; 5] = [
        &["annotate.disassembler_style=intel", "top.children=true"],
        &["top.children=false", "annotate.x=1"],
        &["colors.top=red, default"],
        &["--user", "report.sort_order=comm,dso"],
        &["top.children=true"],
    ];
    let written = BOTH.map(|tool| {
        let _ = fs::remove_file(&file);
        let texts = steps.map(|words| {
            let changed = outcome(&beside, tool, words);
            assert_eq!(
                (changed.status, &*changed.stdout, &*changed.stderr),
                (0, "", "")
            );
            fs::read_to_string(&file).expect("it is written")
        });
        texts.to_vec()
    });
    assert_eq!(written[0], written[1]);
    for words in [
        &[][..],
        &["-l"],
        &["--user", "-l"],
        &["top.children", "annotate.x"],
        &["top.nosuch"],
    ] {
        let [perf, rperf] = BOTH.map(|tool| outcome(&beside, tool, words));
        assert_eq!(perf, rperf, "{words:?}");
    }
    for words in [&["nosection"][..], &["=3"], &["a=3"], &["top.x="]] {
        let [perf, rperf] = BOTH.map(|tool| outcome(&beside, tool, words));
        assert_eq!(
            (rperf.status, &rperf.stdout),
            (255, &perf.stdout),
            "{words:?}"
        );
        assert_eq!(perf.stderr, rperf.stderr, "{words:?}");
    }
}

#[test]
fn comments_stay_and_faults_change_nothing() {
    let scratch = Scratch::new();
    let text = "# mine\n[report]\n  children = true ; yes\n";
    let file = scratch.write("settings", text).expect("a file");
    let run = |words: &[&str]| {
        let run = rperf(&[&["config"], words].concat()).env("PERF_CONFIG", &file);
        run.finish().expect("rperf starts")
    };
    assert_eq!(run(&["report.percent-limit=3"]).status, 0);
    let kept = format!("{text}\tpercent-limit = 3\n");
    assert_eq!(fs::read_to_string(&file).ok().as_ref(), Some(&kept));
    let refused = run(&["report.children=false", "report.percent-limit=x"]);
    let stderr = "report.percent-limit = x: expected a percentage\n";
    assert_eq!((refused.status, &*refused.stderr), (255, stderr));
    let both = run(&["--user", "--system"]);
    assert_eq!(both.status, 129, "{both:?}");
    assert_eq!(run(&["-l", "report.children"]).status, 129);
    assert_eq!(fs::read_to_string(&file).ok().as_ref(), Some(&kept));
    scratch.write("settings", "[report\n").expect("a file");
    let damaged = run(&["report.children=false"]);
    assert_eq!(damaged.status, 255);
    assert!(
        damaged.stderr.ends_with("hint: nothing was changed\n"),
        "{damaged:?}"
    );
    assert_eq!(fs::read_to_string(&file).ok().as_deref(), Some("[report\n"));
    assert_eq!(
        fs::read_dir(scratch.path()).map(Iterator::count).ok(),
        Some(1)
    );
}
