//! Option names, compared with the real perf: abbreviations are resolved alike, and every option of perf's `record`, `report`
//! and `script` is known.

use std::path::Path;

use rperf_testkit::{Run, real_perf, skip};

use super::rperf;

/// The answer to a command line with an option.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The option was recognised: the command looked for its input file or printed its help, or it refused the option by name.
    Understood,
    /// The first line of the message, which names the candidates.
    Ambiguous(String),
    Unknown,
}

fn answer(stderr: &str) -> Answer {
    let first = stderr
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    if first.contains("Ambiguous option") {
        Answer::Ambiguous(first.to_owned())
    } else if first.contains("unknown option") {
        Answer::Unknown
    } else {
        Answer::Understood
    }
}

/// Passes `--PREFIX` to both tools, for every second prefix of these options and of their negatives.
fn compare(perf: &Path, command: &str, options: &[&str]) {
    for option in options {
        for full in [(*option).to_owned(), format!("no-{option}")] {
            // Prefixes of negatives are compared from one letter after `no-` on: `n` and `no` match every negative in perf, but
            // none in rperf.
            let shortest = if full.starts_with('n') { 4 } else { 1 };
            for end in (shortest..=full.len()).step_by(2) {
                let word = format!("--{}", &full[..end]);
                let words = [command, &word, "-i", "/nonexistent/file"];
                let theirs = Run::new(perf).args(words).finish().expect("perf starts");
                let ours = rperf(&words).finish().expect("the binary starts");
                assert_eq!(
                    answer(&ours.stderr),
                    answer(&theirs.stderr),
                    "{command} {word}"
                );
            }
        }
    }
}

#[test]
fn prefixes_match_perf() {
    let Some(perf) = real_perf() else {
        skip("prefixes_match_perf", "there is no perf here");
        return;
    };
    compare(
        &perf,
        "report",
        &[
            "header-only",
            "show-nr-samples",
            "children",
            "stdio",
            "inverted",
        ],
    );
    compare(
        &perf,
        "script",
        &["show-kernel-path", "header", "force", "demangle"],
    );
}

#[test]
fn every_option_of_record_report_and_script_is_known_by_name() {
    let Some(perf) = real_perf() else {
        skip(
            "every_option_of_record_report_and_script_is_known_by_name",
            "there is no perf here",
        );
        return;
    };
    for command in ["record", "report", "script"] {
        let listed = Run::new(&perf)
            .args([command, "--list-opts"])
            .finish()
            .expect("perf starts")
            .stdout;
        let mut known = 0;
        for option in listed.split_whitespace() {
            // The `=1` gives a value to an option that takes one; a switch refuses it by name.
            let word = format!("{option}=1");
            let ours = rperf(&[command, &word, "-h"])
                .finish()
                .expect("the binary starts");
            assert_ne!(
                answer(&ours.stderr),
                Answer::Unknown,
                "{command} {option}: {}",
                ours.stderr
            );
            known += 1;
        }
        assert!(known > 30, "{command}: {listed}");
    }
}
