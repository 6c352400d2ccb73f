//! Stacks unwound while recording (`record --unwind live`): the frames equal those from stack copies.

use std::io;
use std::path::Path;

use rperf_perfdata::{PerfData, Rewriter as _};
use rperf_replay::{LiveWorld, Replay};
use rperf_resolve::StackOptions;
use rperf_rewrite::{LiveUnwinder, UnwindOptions};
use rperf_symbol::{FileBytes, Files, SearchPaths};
use rperf_testkit::{real_perf, skip};
use rperf_wire::{Endian, RawRecord, RecordKind};

use super::programs::{DEBUG_FRAME, FRAME_POINTERS, OPTIMISED, Program, ProgramFolder, RECURSION};
use super::stacks::read;

/// The offset of `data.size` in `struct perf_file_header`.
const DATA_SIZE: usize = 48;
/// The offsets of the feature bits in `struct perf_file_header`.
const FEATURES: std::ops::Range<usize> = 72..104;

struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<FileBytes> {
        if !path.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        std::fs::read(path).map(FileBytes::from)
    }
}

/// The live unwinder for the events of a file.
fn unwinder(file: &PerfData<'_>, jobs: usize) -> LiveUnwinder {
    let options = UnwindOptions {
        files: &Disk,
        // Without a build-id cache.
        paths: SearchPaths::new(None),
        vdso: rperf_sys::vdso_image().ok().map(FileBytes::from),
        stacks: StackOptions {
            machine: std::env::consts::ARCH.to_owned(),
            endian: Endian::NATIVE,
            // The default maximum of frames.
            limit: Some(127),
            // Neither for reports that start with callers, nor for `--call-graph lbr`.
            keeps_outermost: false,
            has_lbr_call_stacks: false,
        },
        jobs,
    };
    // The World: the processes and mappings at a time, filled as records are noted.
    LiveUnwinder::new(LiveWorld::new(Endian::NATIVE, file.events()), options)
}

/// Splits the data of a recording after each FINISHED_ROUND record.
fn rounds(data: &[u8]) -> Vec<&[u8]> {
    let (mut rounds, mut rest, mut length) = (Vec::new(), data, 0);
    for (record, bytes) in RawRecord::all(data, Endian::NATIVE) {
        length += bytes.len();
        if record.kind == RecordKind::FINISHED_ROUND || length == rest.len() {
            let (round, after) = rest.split_at(length);
            rounds.push(round);
            (rest, length) = (after, 0);
        }
    }
    rounds
}

// Whether unwinding is behind the recording: stack copies are then stored unchanged.
const ON_TIME: bool = false;
const BEHIND: bool = true;

/// Returns the rewritten data; asserts that it is the same for separate rounds with one worker and for all data at once with
/// three workers.
fn rewritten(file: &PerfData<'_>) -> Vec<u8> {
    let mut live_unwinder = unwinder(file, 1);
    // Before a round is rewritten, the next round is noted (its mappings are read): it may have records older than some samples
    // of the round to rewrite.
    let (mut one_by_one, mut waiting) = (Vec::new(), None);
    for round in rounds(file.data()) {
        live_unwinder.note(round);
        if let Some(before) = waiting.replace(round) {
            live_unwinder.rewrite(before, ON_TIME, &mut one_by_one);
        }
    }
    live_unwinder.note_end();
    live_unwinder.rewrite(waiting.unwrap_or_default(), ON_TIME, &mut one_by_one);

    let mut live_unwinder = unwinder(file, 3);
    let mut at_once = Vec::new();
    live_unwinder.note(file.data());
    live_unwinder.note_end();
    live_unwinder.rewrite(file.data(), ON_TIME, &mut at_once);
    assert!(
        one_by_one == at_once,
        "the output depends on rounds or workers"
    );
    one_by_one
}

/// A file with the header of `recording`, but without feature sections, and this data.
fn with_data(recording: &[u8], data: &[u8]) -> Vec<u8> {
    let start = PerfData::parse(recording).unwrap().data_offset();
    let mut file = recording[..usize::try_from(start).unwrap()].to_vec();
    file[DATA_SIZE..DATA_SIZE + 8].copy_from_slice(&(data.len() as u64).to_ne_bytes());
    file[FEATURES].fill(0);
    file.extend_from_slice(data);
    file
}

/// Asserts that `script` prints the same for a recording of `program` with stack copies and for the same recording rewritten by
/// the live unwinder, and that the rewritten data is less than a tenth as large. The error says why nothing was recorded.
fn compare(folder: &ProgramFolder, program: &Program) -> Result<(), String> {
    let name = folder.record(program)?;
    let recording = std::fs::read(folder.scratch.path().join(name)).unwrap();
    let file = PerfData::parse(&recording).unwrap();
    let live_data = rewritten(&file);
    let mut printed = Vec::new();
    for (name, data) in [("copies.data", file.data()), ("live.data", &live_data)] {
        let bytes = with_data(&recording, data);
        let path = folder.scratch.path().join(name);
        std::fs::write(path, bytes).unwrap();
        let script = folder.rperf(&["script", "--no-inline", "-i", name]);
        assert_eq!(script.status, 0, "{}", script.stderr);
        printed.push(script.stdout);
    }
    let (copies, live_text) = (read(&printed[0]), read(&printed[1]));
    assert!(copies.len() > 50, "{}: too few samples", program.name);
    for (copy, live) in copies.iter().zip(&live_text) {
        assert_eq!(copy, live, "{}", program.name);
    }
    assert_eq!(copies.len(), live_text.len(), "{}", program.name);
    assert!(live_data.len() * 10 < file.data().len(), "{}", program.name);
    Ok(())
}

#[test]
fn frames_match_the_stack_copies() {
    let folder = ProgramFolder::new();
    for program in [&OPTIMISED, &DEBUG_FRAME, &FRAME_POINTERS] {
        if let Err(reason) = compare(&folder, program) {
            return skip("frames_match_the_stack_copies", &reason);
        }
    }
}

#[test]
fn stored_samples_are_unchanged() {
    let folder = ProgramFolder::new();
    let name = match folder.record(&OPTIMISED) {
        Ok(name) => name,
        Err(reason) => return skip("stored_samples_are_unchanged", &reason),
    };
    let recording = std::fs::read(folder.scratch.path().join(name)).unwrap();
    let file = PerfData::parse(&recording).unwrap();
    let samples = Replay::open(&file)
        .unwrap()
        .sample_counts()
        .iter()
        .sum::<u64>();
    // All data is noted (its mappings are read). Every other round is then stored unchanged, and the stacks of the
    // others are unwound correctly.
    let rounds = rounds(file.data());
    assert!(rounds.len() > 1, "no round would be stored");
    let mut live_unwinder = unwinder(&file, 1);
    live_unwinder.note(file.data());
    live_unwinder.note_end();
    let mut mixed = Vec::new();
    for (index, round) in rounds.iter().enumerate() {
        let before = mixed.len();
        match index % 2 {
            0 => live_unwinder.rewrite(round, ON_TIME, &mut mixed),
            _ => {
                live_unwinder.rewrite(round, BEHIND, &mut mixed);
                assert!(mixed[before..] == **round);
            }
        }
    }
    assert_eq!(
        live_unwinder.samples_not_unwound() + live_unwinder.summary().stacks,
        samples
    );
    std::fs::write(
        folder.scratch.path().join("mixed.data"),
        with_data(&recording, &mixed),
    )
    .unwrap();
    let script = |name: &str| folder.rperf(&["script", "--no-inline", "-i", name]).stdout;
    let copies = with_data(&recording, file.data());
    std::fs::write(folder.scratch.path().join("copies.data"), copies).unwrap();
    assert_eq!(script("mixed.data"), script("copies.data"));
}

#[test]
fn perf_reads_live_unwound_recordings() {
    const NAME: &str = "perf_reads_live_unwound_recordings";
    let Some(perf) = real_perf() else {
        return skip(NAME, "there is no perf");
    };
    let folder = ProgramFolder::new();
    let file = match folder.record_with(&OPTIMISED, "dwarf,16384", &["--unwind", "live"]) {
        Ok(file) => file,
        Err(reason) => return skip(NAME, &reason),
    };
    let line = ["script", "--no-inline", "-i", &file];
    let (theirs, ours) = (folder.run(&perf, &line), folder.rperf(&line));
    assert_eq!((theirs.status, ours.status), (0, 0), "{}", ours.stderr);
    assert_eq!(theirs.stdout, ours.stdout);
    let samples = read(&ours.stdout);
    // A quarter is enough to show that whole stacks were unwound: those on a signal stack or of a coroutine do not lead to these
    // functions.
    let complete = samples.iter().filter(|sample| {
        let outermost = sample.frames.last();
        outermost.is_some_and(|frame| frame.contains("_start+") || frame.contains("clone"))
    });
    assert!(complete.count() * 4 > samples.len(), "{}", ours.stdout);
    // Stored stack copies would take up to 16384 bytes for each sample.
    let size = folder.scratch.path().join(&file).metadata().unwrap().len();
    assert!(size < samples.len() as u64 * 2000 + 200_000, "{size} bytes");
}

#[test]
fn too_deep_stacks_are_reported() {
    let folder = ProgramFolder::new();
    if let Err(reason) = folder.compile(&RECURSION) {
        return skip("too_deep_stacks_are_reported", &reason);
    }
    let event = ["record", "-o", "deep.data", "-e", "cpu-clock:u"];
    let live = ["--call-graph", "dwarf,65528", "--unwind", "live", "--"];
    // More frames than are stored: kernel.perf_event_max_stack, but at least 127 and at most 2048.
    let allowed = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
    let allowed = allowed.ok().and_then(|text| text.trim().parse().ok());
    let deep = allowed.unwrap_or(0).clamp(127, 2048) + 10;
    for (depth, is_deep) in [(20, false), (deep, true)] {
        let depth = depth.to_string();
        let words = [&event[..], &live, &["./recursion", &depth]].concat();
        let recorded = folder.rperf(&words);
        assert_eq!(recorded.status, 0, "{}", recorded.stderr);
        let is_reported = recorded.stderr.contains(" truncated to ");
        assert_eq!(is_reported, is_deep, "{}", recorded.stderr);
        let script = folder.rperf(&["script", "-i", "deep.data", "--max-stack", "100000"]);
        let samples = read(&script.stdout);
        let deepest = samples.iter().map(|sample| sample.frames.len()).max();
        let most_frames = deepest.expect("there are samples");
        assert_eq!(most_frames > 100, is_deep, "{most_frames}");
        let message = format!("were truncated to {most_frames} frames");
        assert_eq!(
            recorded.stderr.contains(&message),
            is_deep,
            "{}",
            recorded.stderr
        );
    }
}

#[test]
fn invalid_and_conflicting_options_are_refused() {
    let folder = ProgramFolder::new();
    for (words, part) in [
        (&["--unwind", "soon"][..], "live and later"),
        (
            &["--unwind", "live", "--call-graph", "dwarf", "--overwrite"],
            "--overwrite",
        ),
        (
            &[
                "--unwind",
                "live",
                "--call-graph",
                "dwarf",
                "--user-regs=ip",
            ],
            "--user-regs",
        ),
    ] {
        let refused = folder.rperf(&[&["record"], words, &["--", "true"]].concat());
        assert_eq!(refused.status, 129, "{words:?}");
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
}
