//! The same recordings read by perf and by rperf: perf's stacks are ours, or the inner part of ours.

use rperf_testkit::{real_perf, skip};

use super::programs::{Bench, CPLUSPLUS, OPTIMISED, PANICS, PLAIN, Program, STRIPPED};
use super::stacks::{Printed, read};

/// perf goes on with what it takes for the caller where it can't read the stack: zeros, or what a frame pointer that is
/// none points to. Such frames are at the end and lie in nothing that is mapped.
fn is_made_up(frame: &str) -> bool {
    frame.ends_with("[unknown] ([unknown])") || frame.ends_with("(//anon)")
}

/// How perf's stack stands to ours.
#[derive(Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    /// Ours has more frames.
    Inner,
    Other,
}

fn relation(perf: &Printed<'_>, ours: &Printed<'_>) -> Relation {
    assert_eq!(perf.head, ours.head, "samples are the same");
    if perf.frames == ours.frames {
        return Relation::Equal;
    }
    let made_up = perf
        .frames
        .iter()
        .rev()
        .take_while(|frame| is_made_up(frame));
    let real = &perf.frames[..perf.frames.len() - made_up.count()];
    match ours.frames.starts_with(real) {
        true if real.len() == ours.frames.len() => Relation::Equal,
        true => Relation::Inner,
        false => Relation::Other,
    }
}

fn compare(bench: &Bench, perf: &std::path::Path, program: &Program) -> Result<(), String> {
    let file = bench.record(program)?;
    for words in [&[][..], &["--max-stack", "3"], &["-F", "ip,sym,dso,event"]] {
        let line = [&["script", "--no-inline", "-i", &file], words].concat();
        let expected = bench.with(perf, &line);
        let actual = bench.rperf(&line);
        assert_eq!(
            (expected.status, actual.status),
            (0, 0),
            "{}",
            actual.stderr
        );
        let (theirs, ours) = (read(&expected.stdout), read(&actual.stdout));
        assert!(ours.len() > 50, "{}: too few samples", program.name);
        assert_eq!(theirs.len(), ours.len(), "{}", program.name);
        let (mut equal, mut inner) = (0, 0);
        for (theirs, ours) in theirs.iter().zip(&ours) {
            match relation(theirs, ours) {
                Relation::Equal => equal += 1,
                Relation::Inner => inner += 1,
                Relation::Other => panic!(
                    "{} {words:?}: {}\nperf: {:#?}\nrperf: {:#?}",
                    program.name, theirs.head, theirs.frames, ours.frames
                ),
            }
        }
        // In programs with full frame information perf stops early in next to none.
        let all = equal + inner;
        assert!(
            inner * 50 <= all,
            "{}: {inner} of {all} are longer",
            program.name
        );
    }
    Ok(())
}

#[test]
fn stacks_are_those_of_perf() {
    const NAME: &str = "stacks_are_those_of_perf";
    let Some(perf) = real_perf() else {
        return skip(NAME, "there is no perf");
    };
    let bench = Bench::new();
    for program in [&OPTIMISED, &PLAIN, &STRIPPED, &PANICS, &CPLUSPLUS] {
        if let Err(reason) = compare(&bench, &perf, program) {
            return skip(NAME, &reason);
        }
    }
}

#[test]
fn what_perf_makes_up_is_told_from_what_it_finds() {
    let sample = |frames: &[&'static str]| Printed {
        head: "t",
        frames: frames.to_vec(),
    };
    let ours = sample(&["1 a (/x)", "2 b (/x)"]);
    let of = |frames: &[&'static str]| relation(&sample(frames), &ours);
    let zeros = "ffffffffffffffff [unknown] ([unknown])";
    assert_eq!(of(&["1 a (/x)", "2 b (/x)"]), Relation::Equal);
    assert_eq!(of(&["1 a (/x)", "2 b (/x)", zeros]), Relation::Equal);
    assert_eq!(of(&["1 a (/x)", zeros]), Relation::Inner);
    assert_eq!(of(&["1 a (/x)", zeros, "2 b (/x)"]), Relation::Other);
    assert_eq!(of(&["1 a (/x)", "2 b (/x)", "3 c (/x)"]), Relation::Other);
}
