//! `rperf config`: settings are shown and changed, in files that both tools read.

use std::fs;

use rperf_testkit::{Outcome, Scratch};

use super::rperf;
use crate::tools::{BOTH, Tool, Tools};

/// Runs `config` of a tool, which reads and writes `.perfconfig` in its home, since `PERF_CONFIG` names no other file.
fn outcome(tools: &Tools, tool: Tool, words: &[&str]) -> Outcome {
    let words = [&["config"], words].concat();
    let run = tools.run(tool, &words).env_remove("PERF_CONFIG");
    run.finish().expect("it starts")
}

#[test]
fn both_tools_write_and_read_the_same_file() {
    let Some(tools) = Tools::find_for("both_tools_write_and_read_the_same_file") else {
        return;
    };
    let file = tools.path().join(".perfconfig");
    let steps: [&[&str]; 5] = [
        &["annotate.disassembler_style=intel", "top.children=true"],
        &["top.children=false", "annotate.x=1"],
        &["ui.query=red, default"],
        &["--user", "report.sort_order=comm,dso"],
        &["top.children=true"],
    ];
    let written = BOTH.map(|tool| {
        let _ = fs::remove_file(&file);
        let texts = steps.map(|words| {
            let changed = outcome(&tools, tool, words);
            assert_eq!((changed.status, &*changed.stdout), (0, ""));
            fs::read_to_string(&file).expect("it is written")
        });
        texts.to_vec()
    });
    assert_eq!(written[0], written[1]);
    let unknown = outcome(&tools, Tool::Rperf, &["top.nosuch", "top.childre=1"]);
    let warnings = "Warning: unknown setting top.nosuch\n\
        Warning: unknown setting top.childre: did you mean 'top.children'?\n";
    assert_eq!((unknown.status, &*unknown.stderr), (0, warnings));
    for words in [
        &[][..],
        &["-l"],
        &["--user", "-l"],
        &["top.children", "annotate.x"],
    ] {
        let [perf, rperf] = BOTH.map(|tool| outcome(&tools, tool, words));
        assert_eq!(perf, rperf, "{words:?}");
    }
    for words in [&["nosection"][..], &["=3"], &["a=3"], &["top.x="]] {
        let [perf, rperf] = BOTH.map(|tool| outcome(&tools, tool, words));
        assert_eq!(
            (rperf.status, &rperf.stdout),
            (255, &perf.stdout),
            "{words:?}"
        );
        assert_eq!(perf.stderr, rperf.stderr, "{words:?}");
    }
}

#[test]
fn comments_are_preserved_and_errors_change_nothing() {
    let scratch = Scratch::new();
    let text = "# mine\n[report]\n  children = true ; yes\n";
    let file = scratch.write("settings", text).expect("a file");
    let run = |words: &[&str]| {
        let run = rperf(&[&["config"], words].concat()).env("PERF_CONFIG", &file);
        run.finish().expect("rperf starts")
    };
    assert_eq!(run(&["report.percent-limit=3"]).status, 0);
    let expected = format!("{text}\tpercent-limit = 3\n");
    assert_eq!(fs::read_to_string(&file).ok().as_ref(), Some(&expected));
    let refused = run(&["report.children=false", "report.percent-limit=x"]);
    let stderr = "report.percent-limit = x: expected a percentage\n";
    assert_eq!((refused.status, &*refused.stderr), (255, stderr));
    let both = run(&["--user", "--system"]);
    assert_eq!(both.status, 129, "{both:?}");
    assert_eq!(run(&["-l", "report.children"]).status, 129);
    assert_eq!(fs::read_to_string(&file).ok().as_ref(), Some(&expected));
    scratch.write("settings", "[report\n").expect("a file");
    let damaged = run(&["report.children=false"]);
    assert_eq!(damaged.status, 255);
    assert!(
        damaged
            .stderr
            .ends_with("hint: nothing was written; correct this line first\n"),
        "{damaged:?}"
    );
    assert_eq!(fs::read_to_string(&file).ok().as_deref(), Some("[report\n"));
    // No temporary file is left behind.
    assert_eq!(
        fs::read_dir(scratch.path()).map(Iterator::count).ok(),
        Some(1)
    );
}
