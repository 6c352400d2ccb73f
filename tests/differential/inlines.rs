//! Inlined functions and source lines in stacks that both tools unwind; symbols and source lines in frame-pointer stacks of a Go
//! program.

use std::process::Command;

use rperf_testkit::skip;

use super::{Tool, Tools, assert_alike, settled};
use crate::tidy::root;

/// A program, and how its stacks are recorded.
struct Program {
    compiler: &'static str,
    flags: &'static [&'static str],
    source: &'static str,
    call_graph: &'static str,
}

const C: Program = Program {
    compiler: "cc",
    flags: &["-O2", "-g"],
    source: "tests/workloads/inlines.c",
    call_graph: "dwarf,16384",
};

const PROGRAMS: &[Program] = &[
    C,
    Program {
        compiler: "c++",
        source: "src/symbol/tests/workloads/inlines.cpp",
        ..C
    },
    Program {
        compiler: "rustc",
        flags: &["--edition=2024", "-O", "-g"],
        source: "tests/workloads/inlines.rs",
        ..C
    },
];

/// perf finds no unwind information of Go programs, and shows inlined functions only in unwound stacks.
const GO: Program = Program {
    compiler: "go",
    flags: &["build"],
    source: "tests/workloads/stacks.go",
    call_graph: "fp",
};

/// One in this many frames may differ without a known reason.
const ONE_OF: usize = 1000;

/// A frame of `script`: its line, and the source line (`place`) below it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    address: String,
    symbol: String,
    inlined: bool,
    place: String,
}

/// The frames of each sample.
fn samples(text: &str) -> Vec<Vec<Frame>> {
    text.split("\n\n").map(frames).collect()
}

fn frames(sample: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in sample.lines() {
        if let Some(place) = line.strip_prefix("  ") {
            let last = frames.last_mut();
            let last = last.unwrap_or_else(|| panic!("no frame above {line}"));
            last.place = place.trim_end_matches(" (inlined)").to_owned();
            last.inlined |= place.ends_with(" (inlined)");
        } else if let Some(frame) = line.strip_prefix('\t') {
            let (address, symbol) = frame.trim_start().split_once(' ').unwrap_or((frame, ""));
            frames.push(Frame {
                address: address.to_owned(),
                symbol: symbol.trim_end_matches(" (inlined)").to_owned(),
                inlined: symbol.ends_with(" (inlined)"),
                place: String::new(),
            });
        }
    }
    frames
}

/// Whether the difference is described in docs/compatibility.md. `around` is the function that ours may be inlined
/// into.
fn is_known(ours: &Frame, theirs: &Frame, around: &Frame) -> bool {
    // perf considers a function inlined if its symbol's name differs from that in its debug information.
    let is_alias = theirs.inlined && !ours.inlined;
    // When binutils first looks up an inlined function without a linkage name, it returns the surrounding symbol's name.
    let lacks_linkage_name = ours.inlined && !theirs.inlined && theirs.symbol == around.symbol;
    let line = |frame: &Frame| {
        frame
            .place
            .rsplit_once(':')
            .map(|(_, line)| line.to_owned())
    };
    // binutils shows another file for rows before the first file change of a line table, and for code without lines. Only the
    // file differs then: the lines are compared below.
    let is_other_file = ours.symbol == theirs.symbol && ours.inlined == theirs.inlined;
    ours.address == theirs.address
        && line(ours) == line(theirs)
        && (is_alias || lacks_linkage_name || is_other_file)
}

/// Compares the frames of a recording. Returns the number of our frames, the number of inlined ones, and the frames that differ
/// without a known reason. If a sample's frames cannot be compared, each of ours counts as one that differs.
fn compare(tools: &Tools, recording: &str) -> (usize, usize, Vec<String>) {
    let words = ["script", "-i", recording, "-F", "ip,sym,srcline"];
    let [theirs, ours] = tools.outcomes(&words, &[]);
    assert_eq!(ours.status, 0, "{}", ours.stderr);
    let (ours, theirs) = (samples(&ours.stdout), samples(&theirs.stdout));
    assert_eq!(ours.len(), theirs.len(), "{recording}: as many samples");
    let mut different = Vec::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let comparable = match ours.len() == theirs.len() {
            true => Some(&theirs[..]),
            false => reliable_frames(ours, theirs),
        };
        if let Some(theirs) = comparable {
            different.extend(differing(ours, theirs));
        } else {
            let frames = ours
                .iter()
                .map(|_| format!("ours {ours:?}\n  theirs {theirs:?}"));
            different.extend(frames);
        }
    }
    let inlined = ours.iter().flatten().filter(|frame| frame.inlined);
    (ours.iter().flatten().count(), inlined.count(), different)
}

/// perf's frames, except the outermost if it is unknown; `None` if their addresses differ from those of our innermost frames.
/// In code without unwind information, such as `_init` and `_fini`, perf follows a frame pointer that may not be one, and ends at
/// an arbitrary address.
fn reliable_frames<'t>(ours: &[Frame], theirs: &'t [Frame]) -> Option<&'t [Frame]> {
    let (last, inner) = theirs.split_last()?;
    let theirs = match last.symbol.as_str() {
        "[unknown]" => inner,
        _ => theirs,
    };
    let mut pairs = ours.iter().zip(theirs);
    let are_inner = pairs.all(|(ours, theirs)| ours.address == theirs.address);
    (theirs.len() <= ours.len() && are_inner).then_some(theirs)
}

/// The frames of a sample that differ without a known reason from perf's at the same depth. Our frames beyond perf's outermost
/// one are ignored.
fn differing(ours: &[Frame], theirs: &[Frame]) -> Vec<String> {
    let mut different = Vec::new();
    for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
        let mut outwards = ours[index..].iter();
        let around = outwards.find(|frame| !frame.inlined).unwrap_or(our);
        if our != their && !is_known(our, their, around) {
            different.push(format!("ours {our:?}\n  theirs {their:?}"));
        }
    }
    different
}

/// Records the program at `binary` and returns the differences, if more than one frame in [`ONE_OF`] differs.
fn differing_frames(tools: &Tools, program: &Program, binary: &str) -> Vec<String> {
    let recording = format!("{}.data", program.compiler);
    let record = [
        "record",
        "-q",
        "-F",
        "499",
        "--call-graph",
        program.call_graph,
    ];
    // The C++ program runs longer with more arguments; the others ignore them.
    let words = [&record[..], &["-o", &recording, binary], &["word"; 45]].concat();
    assert_eq!(tools.outcome(Tool::Perf, &words).status, 0, "{binary}");
    let (frames, inlined, different) = compare(tools, &recording);
    assert!(
        frames > 200 && (inlined > 20 || program.call_graph == "fp"),
        "{binary}: {inlined} inlined of {frames} frames"
    );
    if different.len() * ONE_OF > frames {
        different
    } else {
        Vec::new()
    }
}

/// Compiles `program` and compares the frames of its recording. An error says that the compiler does not start.
fn compare_program(tools: &Tools, program: &Program) -> Result<(), String> {
    let folder = tools.path();
    let binary = folder.join(program.compiler).with_extension("program");
    let mut command = Command::new(program.compiler);
    command.args(program.flags).arg("-o").arg(&binary);
    command.env("GOCACHE", folder.join("go-cache"));
    let built = command.arg(root().join(program.source)).status();
    let built = built.map_err(|error| format!("{} does not start: {error}", program.compiler))?;
    assert!(built.success(), "{} {}", program.compiler, program.source);
    let binary = binary.to_str().expect("a printable path");
    assert_alike(&settled(|| differing_frames(tools, program, binary)));
    Ok(())
}

#[test]
fn inlined_functions_and_lines_match_perf() {
    const NAME: &str = "differential::inlines::inlined_functions_and_lines_match_perf";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    for program in PROGRAMS {
        if let Err(reason) = compare_program(&tools, program) {
            skip(NAME, &reason);
        }
    }
}

#[test]
fn symbols_and_lines_of_go_match_perf() {
    const NAME: &str = "differential::inlines::symbols_and_lines_of_go_match_perf";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    if let Err(reason) = compare_program(&tools, &GO) {
        skip(NAME, &reason);
    }
}
