//! Functions that compilers inlined, and places in the source, in stacks that both tools unwind.

use std::process::Command;

use rperf_testkit::skip;

use super::{Tool, Tools};
use crate::tidy::root;

/// Compiler, flags and source.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("cc", &["-O2", "-g"], "tests/workloads/inlines.c"),
    (
        "c++",
        &["-O2", "-g"],
        "src/symbol/tests/workloads/inlines.cpp",
    ),
    (
        "rustc",
        &["--edition=2024", "-O", "-g"],
        "tests/workloads/inlines.rs",
    ),
];

/// Of so many frames one may differ without a reason that is known here.
const ONE_OF: usize = 1000;

/// A frame as script shows it: its line, and the place in the source below it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    address: String,
    symbol: String,
    inlined: bool,
    place: String,
}

/// The frames of all samples, with empty lines between these.
fn frames(text: &str) -> Vec<Option<Frame>> {
    let mut frames: Vec<Option<Frame>> = Vec::new();
    for line in text.lines() {
        if let Some(place) = line.strip_prefix("  ") {
            let last = frames.last_mut().and_then(Option::as_mut);
            let last = last.unwrap_or_else(|| panic!("no frame above {line}"));
            last.place = place.trim_end_matches(" (inlined)").to_owned();
            last.inlined |= place.ends_with(" (inlined)");
            continue;
        }
        let Some(frame) = line.strip_prefix('\t') else {
            frames.push(None);
            continue;
        };
        let (address, symbol) = frame.trim_start().split_once(' ').unwrap_or((frame, ""));
        frames.push(Some(Frame {
            address: address.to_owned(),
            symbol: symbol.trim_end_matches(" (inlined)").to_owned(),
            inlined: symbol.ends_with(" (inlined)"),
            place: String::new(),
        }));
    }
    frames
}

/// What differs for a reason that docs/compatibility.md tells. `around` is the function that ours may be inlined into.
fn is_known(ours: &Frame, theirs: &Frame, around: &Frame) -> bool {
    // perf takes a function for inlined whose symbol has another name than its debug information.
    let is_alias = theirs.inlined && !ours.inlined;
    // binutils calls an inlined function without linkage name, when asked first, by the symbol around it.
    let is_unlinked = ours.inlined && !theirs.inlined && theirs.symbol == around.symbol;
    // binutils takes files before the first that a line table sets, and of code without lines, from elsewhere.
    let line = |frame: &Frame| {
        frame
            .place
            .rsplit_once(':')
            .map(|(_, line)| line.to_owned())
    };
    let is_place = ours.symbol == theirs.symbol && ours.inlined == theirs.inlined;
    ours.address == theirs.address
        && line(ours) == line(theirs)
        && (is_alias || is_unlinked || is_place)
}

/// The frames of one recording: how many, how many of them inlined, and those that differ without a known reason.
fn compare(tools: &Tools, recording: &str) -> (usize, usize, Vec<String>) {
    let words = ["script", "-i", recording, "-F", "ip,sym,srcline"];
    let [theirs, ours] = tools.outcomes(&words, &[]);
    assert_eq!(ours.status, 0, "{}", ours.stderr);
    let (ours, theirs) = (frames(&ours.stdout), frames(&theirs.stdout));
    assert_eq!(ours.len(), theirs.len(), "{recording}: as many frames");
    let mut different = Vec::new();
    let mut inlined = 0;
    for (index, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        let (Some(our), Some(their)) = (our, their) else {
            assert_eq!(our.is_some(), their.is_some(), "{recording}");
            continue;
        };
        inlined += usize::from(our.inlined);
        let mut outwards = ours[index..].iter().flatten();
        let around = outwards.find(|frame| !frame.inlined).unwrap_or(our);
        if our != their && !is_known(our, their, around) {
            different.push(format!("ours {our:?}\n  theirs {their:?}"));
        }
    }
    (ours.iter().flatten().count(), inlined, different)
}

#[test]
fn inlined_functions_and_lines_are_perf_s() {
    let Some(tools) = Tools::find() else {
        return skip(
            "differential::inlines::inlined_functions_and_lines_are_perf_s",
            "there is no perf",
        );
    };
    let folder = tools.scratch.path();
    for (compiler, flags, source) in PROGRAMS {
        let program = folder.join(compiler).with_extension("program");
        let mut command = Command::new(compiler);
        command.args(*flags).arg("-o").arg(&program);
        let built = command.arg(root().join(source)).status();
        assert!(
            built.is_ok_and(|status| status.success()),
            "{compiler} {source}"
        );
        let recording = format!("{compiler}.data");
        let program = program.to_str().expect("a printable path");
        let record = ["record", "-q", "-F", "499", "--call-graph", "dwarf,16384"];
        // The more words, the longer the C++ program runs.
        let words = [&record[..], &["-o", &recording, program], &["word"; 30]].concat();
        assert_eq!(tools.outcome(Tool::Perf, &words).status, 0, "{source}");
        let (frames, inlined, different) = compare(&tools, &recording);
        assert!(
            frames > 200 && inlined > 20,
            "{source}: {inlined} inlined of {frames} frames"
        );
        assert!(
            different.len() * ONE_OF <= frames,
            "{source}: {} of {frames} frames differ:\n{}",
            different.len(),
            different.join("\n")
        );
    }
}
