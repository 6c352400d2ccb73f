//! Line-by-line comparison of two texts.

use std::collections::HashSet;
use std::fmt::Write as _;

/// The maximum number of differing lines to show.
const MAX_SHOWN: usize = 10;

/// Whether the lines differ only in a symbol that perf does not find. In some objects (docs/compatibility.md says which), perf
/// resolves all addresses but the first. So one line is accepted for each object, which is then added to `objects`.
fn is_unnamed_first(perf: &str, rperf: &str, objects: &mut HashSet<String>) -> bool {
    // `object` includes the closing bracket.
    let Some((start, object)) = perf.split_once(" [unknown] (") else {
        return false;
    };
    let is_named = rperf
        .strip_prefix(start)
        .is_some_and(|rest| rest.ends_with(&format!(" ({object}")));
    is_named && objects.insert(object.to_owned())
}

/// perf may have lost the mapping of one in this many lines.
const LINES_PER_LOST_MAPPING: usize = 500;

/// Whether perf knows no mapping where rperf knows one: docs/compatibility.md describes when.
fn is_lost_mapping(perf: &str, rperf: &str) -> bool {
    const UNKNOWN: &str = " [unknown] ([unknown])";
    perf.ends_with(UNKNOWN) && rperf.ends_with(')') && !rperf.ends_with(UNKNOWN)
}

/// Our lines of `script` on a system-wide recording, replaced by perf's wherever perf has lost the mappings of a
/// process other than `steady`, which runs throughout the recording (`None`: no process does).
///
/// Processes come and go during such a recording, more of them on a busy machine, and perf knows no mapping of many
/// that start while perf itself starts. The lines of `steady` must be equal.
pub(crate) fn with_lost_mappings(perf: &str, rperf: &str, steady: Option<u32>) -> String {
    let steady = steady.map(|pid| pid.to_string());
    let mut perf_lines = perf.lines();
    let mut is_steady = false;
    let mut text = String::new();
    for ours in rperf.lines() {
        let theirs = perf_lines.next().unwrap_or_default();
        if !theirs.starts_with('\t') && !theirs.is_empty() {
            // NAME TID or NAME PID/TID; frames follow after tabs.
            let mut words = theirs.split_whitespace().map(|word| word.split('/').next());
            is_steady = steady.is_some() && words.any(|word| word == steady.as_deref());
        }
        let is_lost = !is_steady && is_lost_mapping(theirs, ours);
        text.push_str(if is_lost { theirs } else { ours });
        text.push('\n');
    }
    text
}

/// The first differing lines of both texts, each with perf's line before it (`expected` is perf's text); `None` if the texts are
/// equal apart from accepted differences.
pub(crate) fn difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (expected, actual): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), actual.lines().collect());
    let longest = expected.len().max(actual.len());
    let mut text = String::new();
    let mut differing = 0;
    let mut unnamed = HashSet::new();
    let mut acceptable_lost = longest / LINES_PER_LOST_MAPPING;
    for number in 0..longest {
        let (perf, rperf) = (expected.get(number), actual.get(number));
        if perf == rperf {
            continue;
        }
        if let (Some(perf), Some(rperf)) = (perf, rperf)
            && is_unnamed_first(perf, rperf, &mut unnamed)
        {
            continue;
        }
        if let (Some(perf), Some(rperf)) = (perf, rperf)
            && acceptable_lost > 0
            && is_lost_mapping(perf, rperf)
        {
            acceptable_lost -= 1;
            continue;
        }
        differing += 1;
        if differing > MAX_SHOWN {
            continue;
        }
        if let Some(before) = number
            .checked_sub(1)
            .and_then(|before| expected.get(before))
        {
            // `number` counts from 0: it is the number of the line before, counted from 1.
            let _ = writeln!(text, "  line {number}:  {before}");
        }
        let _ = writeln!(text, "     perf: {}", perf.unwrap_or(&"(the end)"));
        let _ = writeln!(text, "    rperf: {}", rperf.unwrap_or(&"(the end)"));
    }
    if differing == 0 {
        return None;
    }
    let _ = writeln!(
        text,
        "  {differing} of {longest} lines differ ({} of perf, {} of rperf)",
        expected.len(),
        actual.len()
    );
    Some(text)
}

#[test]
fn shows_and_counts_differing_lines() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    let text = difference("a\nb\nc\n", "a\nx\n").expect("they differ");
    assert!(
        text.contains("line 1:  a\n     perf: b\n    rperf: x\n"),
        "{text}"
    );
    assert!(text.contains("perf: c\n    rperf: (the end)"), "{text}");
    assert!(text.contains("2 of 3 lines differ"), "{text}");
}

#[test]
fn accepts_few_lost_mappings() {
    let same = "\t10 f (/a.so)\n".repeat(LINES_PER_LOST_MAPPING - 1);
    let lost = "\t7f00 [unknown] ([unknown])\n";
    let known = "\td0 g+0x7 (/a.so)\n";
    let text = |odd: &str| format!("{same}{odd}");
    assert_eq!(difference(&text(lost), &text(known)), None);
    assert!(difference(&text(known), &text(lost)).is_some());
    assert!(difference(lost, known).is_some(), "one of fewer lines");
    let twice = |odd: &str| format!("{same}{odd}{odd}");
    assert!(difference(&twice(lost), &twice(known)).is_some());
}

#[test]
fn accepts_lost_mappings_of_all_but_the_steady_process() {
    let text = |frame: &str, tid: u32| format!("a b {tid} 1.0: 1 cpu-clock:\n\t{frame}\n\n");
    let (lost, known) = ("7f00 [unknown] ([unknown])", "d0 g+0x7 (/a.so)");
    let accepted = |perf: &str, rperf: &str, steady| {
        let [perf, rperf] = [perf, rperf].map(|frame| text(frame, 7) + &text("10 f (/a)", 8));
        perf == with_lost_mappings(&perf, &rperf, steady)
    };
    let no_process = None;
    assert!(accepted(lost, known, no_process) && accepted(lost, known, Some(8)));
    assert!(!accepted(lost, known, Some(7)));
    for rperf in [lost, "d0 h+0x7 (/a.so)"] {
        assert!(!accepted(known, rperf, no_process), "{rperf}");
    }
}

#[test]
fn accepts_one_unnamed_address_for_each_object() {
    let perf = "t 10 [unknown] (/a.so)\nt 20 [unknown] (/a.so)\n";
    assert_eq!(
        difference(perf, "t 10 f+0x1 (/a.so)\nt 20 [unknown] (/a.so)\n"),
        None
    );
    for rperf in [
        "t 10 f+0x1 (/a.so)\nt 20 f+0x11 (/a.so)\n",
        "t 10 f+0x1 (/b.so)\nt 20 [unknown] (/a.so)\n",
        "t 11 f+0x1 (/a.so)\nt 20 [unknown] (/a.so)\n",
    ] {
        assert!(difference(perf, rperf).is_some(), "{rperf}");
    }
}
