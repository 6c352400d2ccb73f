//! Compares the stacks that perf and rperf print for the same recordings: they are equal, or in a few cases perf's stack ends
//! earlier.

use rperf_testkit::{real_perf, skip};

use super::programs::{CPLUSPLUS, OPTIMISED, PANICS, PLAIN, Program, ProgramFolder, STRIPPED};
use super::stacks::{Printed, read};

/// Whether a frame is like those that perf appends after it failed to read the stack: an unmapped address, zeros (printed as
/// `ffffffffffffffff`, as 1 is subtracted from return addresses), or the target of an invalid frame pointer, which may be data of
/// the program.
fn is_invalid(frame: &str) -> bool {
    let data = [" vtable for ", " typeinfo for ", " typeinfo name for "];
    frame.ends_with("[unknown] ([unknown])")
        || frame.ends_with("(//anon)")
        || data.iter().any(|name| frame.contains(name))
}

/// How perf's stack compares to ours.
#[derive(Debug, PartialEq, Eq)]
enum Relation {
    /// The frames are equal, apart from invalid ones at the end of perf's.
    Equal,
    /// perf's valid frames are the innermost of ours; perf lacks the outer ones.
    Prefix,
    Other,
}

fn relation(perf: &Printed<'_>, ours: &Printed<'_>) -> Relation {
    assert_eq!(perf.head, ours.head, "samples are the same");
    if perf.frames == ours.frames {
        return Relation::Equal;
    }
    let invalid = perf
        .frames
        .iter()
        .rev()
        .take_while(|frame| is_invalid(frame));
    let real = &perf.frames[..perf.frames.len() - invalid.count()];
    match ours.frames.starts_with(real) {
        true if real.len() == ours.frames.len() => Relation::Equal,
        true => Relation::Prefix,
        false => Relation::Other,
    }
}

fn compare(
    folder: &ProgramFolder,
    perf: &std::path::Path,
    program: &Program,
) -> Result<(), String> {
    let file = folder.record(program)?;
    for words in [&[][..], &["--max-stack", "3"], &["-F", "ip,sym,dso,event"]] {
        let line = [&["script", "--no-inline", "-i", &file], words].concat();
        let expected = folder.run(perf, &line);
        let actual = folder.rperf(&line);
        assert_eq!(
            (expected.status, actual.status),
            (0, 0),
            "{}",
            actual.stderr
        );
        let (theirs, ours) = (read(&expected.stdout), read(&actual.stdout));
        assert!(ours.len() > 50, "{}: too few samples", program.name);
        assert_eq!(theirs.len(), ours.len(), "{}", program.name);
        let (mut equal, mut shorter) = (0, 0);
        for (theirs, ours) in theirs.iter().zip(&ours) {
            match relation(theirs, ours) {
                Relation::Equal => equal += 1,
                Relation::Prefix => shorter += 1,
                Relation::Other => panic!(
                    "{} {words:?}: {}\nperf: {:#?}\nrperf: {:#?}",
                    program.name, theirs.head, theirs.frames, ours.frames
                ),
            }
        }
        // At most 2%: in programs with full unwind information perf hardly ever stops early.
        let compared = equal + shorter;
        assert!(
            shorter * 50 <= compared,
            "{}: {shorter} of {compared} stacks of perf are shorter",
            program.name
        );
    }
    Ok(())
}

#[test]
fn stacks_match_perf() {
    const NAME: &str = "stacks_match_perf";
    let Some(perf) = real_perf() else {
        return skip(NAME, "there is no perf");
    };
    let folder = ProgramFolder::new();
    for program in [&OPTIMISED, &PLAIN, &STRIPPED, &PANICS, &CPLUSPLUS] {
        if let Err(reason) = compare(&folder, &perf, program) {
            return skip(NAME, &reason);
        }
    }
}

#[test]
fn frames_invented_by_perf_are_recognised() {
    let sample = |frames: &[&'static str]| Printed {
        head: "t",
        frames: frames.to_vec(),
    };
    let ours = sample(&["1 a (/x)", "2 b (/x)"]);
    let relation_of = |frames: &[&'static str]| relation(&sample(frames), &ours);
    let zeros = "ffffffffffffffff [unknown] ([unknown])";
    assert_eq!(relation_of(&["1 a (/x)", "2 b (/x)"]), Relation::Equal);
    assert_eq!(
        relation_of(&["1 a (/x)", "2 b (/x)", zeros]),
        Relation::Equal
    );
    assert_eq!(relation_of(&["1 a (/x)", zeros]), Relation::Prefix);
    let data = "3 vtable for C+0xf (/x)";
    assert_eq!(relation_of(&["1 a (/x)", data]), Relation::Prefix);
    assert_eq!(
        relation_of(&["1 a (/x)", zeros, "2 b (/x)"]),
        Relation::Other
    );
    assert_eq!(
        relation_of(&["1 a (/x)", "2 b (/x)", "3 c (/x)"]),
        Relation::Other
    );
}
