//! Stacks that are unwound while recording (`record --unwind live`): the frames are those of the copies.

use std::io;
use std::path::Path;

use rperf_perfdata::PerfData;
use rperf_replay::{Growing, Replay};
use rperf_resolve::{LiveOptions, LiveStacks, StackOptions};
use rperf_symbol::{FileBytes, Files, SearchPaths};
use rperf_testkit::{real_perf, skip};
use rperf_wire::{Endian, RawRecord, RecordKind};

use super::programs::{Bench, DEBUG_FRAME, FRAME_POINTERS, OPTIMISED, Program, RECURSION};
use super::stacks::read;

/// Where `struct perf_file_header` has `data.size` and the bits of its feature sections.
const SIZE: usize = 48;
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

/// What unwinds while recording, for the events of a file.
fn unwinder(file: &PerfData<'_>, jobs: usize) -> LiveStacks {
    let options = LiveOptions {
        files: &Disk,
        paths: SearchPaths::new(None),
        vdso: rperf_sys::vdso_image().ok().map(FileBytes::from),
        stacks: StackOptions {
            machine: std::env::consts::ARCH.to_owned(),
            endian: Endian::NATIVE,
            limit: Some(127),
            outermost: false,
            calls: false,
        },
        jobs,
    };
    LiveStacks::new(Growing::new(Endian::NATIVE, file.events()), options)
}

/// The data of a recording in pieces that each end with a round.
fn rounds(data: &[u8]) -> Vec<&[u8]> {
    let (mut rounds, mut rest, mut length) = (Vec::new(), data, 0);
    for (raw, record) in RawRecord::all(data, Endian::NATIVE) {
        length += record.len();
        if raw.kind == RecordKind::FINISHED_ROUND || length == rest.len() {
            let (round, behind) = rest.split_at(length);
            rounds.push(round);
            (rest, length) = (behind, 0);
        }
    }
    rounds
}

/// The data as it would be written if each round came by itself, and where all came at once.
fn rewritten(file: &PerfData<'_>) -> Vec<u8> {
    let mut stacks = unwinder(file, 1);
    let (mut one_by_one, mut waiting) = (Vec::new(), None);
    for round in rounds(file.data()) {
        stacks.note(round);
        if let Some(before) = waiting.replace(round) {
            stacks.rewrite(before, &mut one_by_one);
        }
    }
    stacks.note_end();
    stacks.rewrite(waiting.unwrap_or_default(), &mut one_by_one);

    let mut stacks = unwinder(file, 3);
    let mut at_once = Vec::new();
    stacks.note(file.data());
    stacks.note_end();
    stacks.rewrite(file.data(), &mut at_once);
    assert!(
        one_by_one == at_once,
        "rounds and workers make a difference"
    );
    one_by_one
}

/// A file with the head of `recording`, but without feature sections, and this data.
fn with_data(recording: &[u8], data: &[u8]) -> Vec<u8> {
    let start = PerfData::parse(recording).unwrap().data_offset();
    let mut file = recording[..usize::try_from(start).unwrap()].to_vec();
    file[SIZE..SIZE + 8].copy_from_slice(&(data.len() as u64).to_ne_bytes());
    file[FEATURES].fill(0);
    file.extend_from_slice(data);
    file
}

fn compare(bench: &Bench, program: &Program) -> Result<(), String> {
    let name = bench.record(program)?;
    let recording = std::fs::read(bench.scratch.path().join(name)).unwrap();
    let file = PerfData::parse(&recording).unwrap();
    let live = rewritten(&file);
    let mut printed = Vec::new();
    for (name, data) in [("copies.data", file.data()), ("live.data", &live)] {
        let bytes = with_data(&recording, data);
        let path = bench.scratch.path().join(name);
        std::fs::write(path, bytes).unwrap();
        let script = bench.rperf(&["script", "--no-inline", "-i", name]);
        assert_eq!(script.status, 0, "{}", script.stderr);
        printed.push(script.stdout);
    }
    let (copies, live_text) = (read(&printed[0]), read(&printed[1]));
    assert!(copies.len() > 50, "{}: too few samples", program.name);
    for (copy, live) in copies.iter().zip(&live_text) {
        assert_eq!(copy, live, "{}", program.name);
    }
    assert_eq!(copies.len(), live_text.len(), "{}", program.name);
    assert!(live.len() * 10 < file.data().len(), "{}", program.name);
    Ok(())
}

#[test]
fn frames_are_those_of_the_copies() {
    let bench = Bench::new();
    for program in [&OPTIMISED, &DEBUG_FRAME, &FRAME_POINTERS] {
        if let Err(reason) = compare(&bench, program) {
            return skip("frames_are_those_of_the_copies", &reason);
        }
    }
}

#[test]
fn stored_samples_are_as_they_were() {
    let bench = Bench::new();
    let name = match bench.record(&OPTIMISED) {
        Ok(name) => name,
        Err(reason) => return skip("stored_samples_are_as_they_were", &reason),
    };
    let recording = std::fs::read(bench.scratch.path().join(name)).unwrap();
    let file = PerfData::parse(&recording).unwrap();
    let samples = Replay::open(&file)
        .unwrap()
        .sample_counts()
        .iter()
        .sum::<u64>();
    // Every other round in haste: the World goes on, and so do the stacks that are unwound.
    let rounds = rounds(file.data());
    let mut stacks = unwinder(&file, 1);
    stacks.note(file.data());
    stacks.note_end();
    let mut mixed = Vec::new();
    for (index, round) in rounds.iter().enumerate() {
        let before = mixed.len();
        match index % 2 {
            0 => stacks.rewrite(round, &mut mixed),
            _ => {
                stacks.store(round, &mut mixed);
                assert!(mixed[before..] == **round);
            }
        }
    }
    assert_eq!(stacks.stored() + stacks.summary().stacks, samples);
    std::fs::write(
        bench.scratch.path().join("mixed.data"),
        with_data(&recording, &mixed),
    )
    .unwrap();
    let script = |name: &str| bench.rperf(&["script", "--no-inline", "-i", name]).stdout;
    let whole = with_data(&recording, file.data());
    std::fs::write(bench.scratch.path().join("copies.data"), whole).unwrap();
    assert_eq!(script("mixed.data"), script("copies.data"));
}

#[test]
fn perf_reads_what_is_unwound_while_recording() {
    const NAME: &str = "perf_reads_what_is_unwound_while_recording";
    let Some(perf) = real_perf() else {
        return skip(NAME, "there is no perf");
    };
    let bench = Bench::new();
    let file = match bench.record_with(&OPTIMISED, "dwarf,16384", &["--unwind", "live"]) {
        Ok(file) => file,
        Err(reason) => return skip(NAME, &reason),
    };
    let line = ["script", "--no-inline", "-i", &file];
    let (theirs, ours) = (bench.with(&perf, &line), bench.rperf(&line));
    assert_eq!((theirs.status, ours.status), (0, 0), "{}", ours.stderr);
    assert_eq!(theirs.stdout, ours.stdout);
    let samples = read(&ours.stdout);
    let whole = samples.iter().filter(|sample| {
        let outermost = sample.frames.last();
        outermost.is_some_and(|frame| frame.contains("_start+") || frame.contains("clone"))
    });
    assert!(whole.count() * 4 > samples.len(), "{}", ours.stdout);
    let size = bench.scratch.path().join(&file).metadata().unwrap().len();
    assert!(size < samples.len() as u64 * 2000 + 200_000, "{size} bytes");
}

#[test]
fn stacks_that_are_too_deep_are_told() {
    let bench = Bench::new();
    if let Err(reason) = bench.compile(&RECURSION) {
        return skip("stacks_that_are_too_deep_are_told", &reason);
    }
    let event = ["record", "-o", "deep.data", "-e", "cpu-clock:u"];
    let live = ["--call-graph", "dwarf,65528", "--unwind", "live", "--"];
    let allowed = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
    let allowed = allowed.ok().and_then(|text| text.trim().parse().ok());
    let deep = allowed.unwrap_or(0).clamp(127, 2048) + 10;
    for (depth, is_deep) in [(20, false), (deep, true)] {
        let depth = depth.to_string();
        let words = [&event[..], &live, &["./recursion", &depth]].concat();
        let recorded = bench.rperf(&words);
        assert_eq!(recorded.status, 0, "{}", recorded.stderr);
        let said = recorded.stderr.contains(" user stacks have ");
        assert_eq!(said, is_deep, "{}", recorded.stderr);
        let script = bench.rperf(&["script", "-i", "deep.data", "--max-stack", "100000"]);
        let samples = read(&script.stdout);
        let deepest = samples.iter().map(|sample| sample.frames.len()).max();
        let kept = deepest.expect("there are samples");
        assert_eq!(kept > 100, is_deep, "{kept}");
        let told = format!("have {kept} frames or more, of which {kept} were kept");
        assert_eq!(
            recorded.stderr.contains(&told),
            is_deep,
            "{}",
            recorded.stderr
        );
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let bench = Bench::new();
    for (words, line) in [
        (&["--unwind", "live"][..], "--call-graph dwarf"),
        (&["--unwind", "soon"], "live and later"),
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
        let refused = bench.rperf(&[&["record"], words, &["--", "true"]].concat());
        assert_eq!(refused.status, 129, "{words:?}");
        assert!(refused.stderr.contains(line), "{}", refused.stderr);
    }
}
