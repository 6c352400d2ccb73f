//! BPF programs that are loaded before or during a recording are described in it, unless `--no-bpf-event` is given.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};

use rperf_bpf::{Condition, Operation, ProgramBuilder, Register};
use rperf_sys::{BpfLink, RawTracepointProgram, syscall_number};
use rperf_testkit::{Outcome, Scratch, real_perf, skip};

use crate::kernel::{perf_in, record_in, rperf_in};

/// A loaded program.
struct LoadedProgram {
    program: RawTracepointProgram,
    id: String,
    /// Its name in symbol tables.
    symbol: String,
}

impl LoadedProgram {
    /// `None`, with a printed reason, if the program cannot be loaded.
    fn load(test: &str, program: &ProgramBuilder) -> Option<Self> {
        let maps: [i32; 0] = [];
        let code = program.encode(&maps).expect("a program");
        let Ok(program) = RawTracepointProgram::load("described", &code) else {
            skip(test, "needs root and BPF");
            return None;
        };
        let info = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
        let info = fs::read_to_string(info).expect("own descriptor");
        let field = |name: &str| {
            let mut lines = info.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
            value.expect("a field").to_owned()
        };
        Some(Self {
            id: field("prog_id"),
            symbol: format!("bpf_prog_{}_described", field("prog_tag")),
            program,
        })
    }

    fn attach(&self, tracepoint: &str) -> BpfLink {
        self.program.attach(tracepoint).expect("a tracepoint")
    }
}

/// A program that only returns 0.
fn short() -> ProgramBuilder {
    let mut program = ProgramBuilder::new();
    program.exit();
    program
}

/// A program for `sys_enter` that takes some microseconds for calls of getppid(2).
fn long() -> ProgramBuilder {
    let mut program = ProgramBuilder::new();
    let out = program.label();
    let number = syscall_number("getppid").expect("a number");
    // The second argument of the tracepoint is the number of the system call.
    program.load(rperf_bpf::Width::Double, Register::R2, Register::R1, 8);
    let number = i32::try_from(number).expect("a small number");
    program.jump_if(Condition::NotEqual, Register::R2, number, out);
    for _ in 0..20_000 {
        program.operate(Operation::Add, Register::R2, 1);
    }
    program.place(out);
    program.exit();
    program
}

fn rperf(scratch: &Scratch, words: &[&str]) -> Outcome {
    let done = rperf_in(scratch, words).finish().expect("rperf starts");
    assert_eq!(done.status, 0, "{words:?}: {}", done.stderr);
    done
}

/// The lines of a text that contain at least one of these parts.
fn lines_with(text: &str, parts: &[&str]) -> Vec<String> {
    let has = |line: &&str| parts.iter().any(|part| line.contains(part));
    text.lines().filter(has).map(str::to_owned).collect()
}

const HEADER: [&str; 3] = ["report", "--header-only", "-i"];
const EVENTS: [&str; 5] = ["script", "--show-bpf-events", "-F", "event", "-i"];

#[test]
fn loaded_programs_are_described_as_by_perf() {
    let test = "loaded_programs_are_described_as_by_perf";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let Some(loaded) = LoadedProgram::load(test, &short()) else {
        return;
    };
    let scratch = Scratch::new();
    let words = ["record", "-o", "perf's", "-e", "cpu-clock", "--", "true"];
    assert_eq!(perf_in(&perf, &scratch, &words).status, 0);
    assert_eq!(
        record_in(&scratch, &["-e", "cpu-clock"], &["true"]).status,
        0
    );
    let description_part = format!("bpf_prog_info {}: {} ", loaded.id, loaded.symbol);
    let id_part = format!(" id {}", loaded.id);
    let symbol_part = format!(" name {}", loaded.symbol);
    // The description and the events of the program in a recording, which both tools must print alike.
    let compared = |file: &str| {
        let header = rperf(&scratch, &[&HEADER[..], &[file]].concat()).stdout;
        let theirs = perf_in(&perf, &scratch, &[&HEADER[..], &[file]].concat()).stdout;
        let description = lines_with(&header, &[&description_part]);
        let their_description = lines_with(&theirs, &[&description_part]);
        assert_eq!(description, their_description, "{header}");
        let events = rperf(&scratch, &[&EVENTS[..], &[file]].concat()).stdout;
        let theirs = perf_in(&perf, &scratch, &[&EVENTS[..], &[file]].concat()).stdout;
        let parts = [id_part.as_str(), &symbol_part];
        // Other tests may load the same program: there may be more records of its symbol.
        let mut events = lines_with(&events, &parts);
        assert_eq!(events, lines_with(&theirs, &parts));
        events.sort();
        events.dedup();
        (description, events)
    };
    let (our_description, our_events) = compared("perf.data");
    let (their_description, their_events) = compared("perf's");
    assert_eq!(our_description, their_description);
    assert_eq!(our_description.len(), 1, "{our_description:?}");
    let is_bpf_event = |line: &&String| line.ends_with(&id_part);
    let bpf_event = |events: &[String]| events.iter().find(is_bpf_event).cloned();
    assert_eq!(our_events.iter().filter(is_bpf_event).count(), 1);
    assert_eq!(bpf_event(&our_events), bpf_event(&their_events));
    // The KSYMBOL record; others may be of the same program, loaded by other tests at other addresses.
    let is_symbol = |line: &String| line.contains(&symbol_part);
    assert!(our_events.iter().any(is_symbol), "{our_events:?}");
}

#[test]
fn programs_have_their_names_after_they_are_unloaded() {
    let test = "programs_have_their_names_after_they_are_unloaded";
    let Some(loaded) = LoadedProgram::load(test, &long()) else {
        return;
    };
    let scratch = Scratch::new();
    let link = loaded.attach("sys_enter");
    let rperf_path = env!("CARGO_BIN_EXE_rperf");
    let work = [rperf_path, "bench", "syscall", "basic", "-l", "20000"];
    let recorded = record_in(&scratch, &["-e", "cpu-clock:k"], &work);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let symbol = loaded.symbol.clone();
    drop((link, loaded));
    let words = ["report", "--stdio", "-s", "dso,sym", "-i", "perf.data"];
    let report = rperf(&scratch, &words).stdout;
    // The dso of a BPF program has the name of its symbol.
    let line = report
        .lines()
        .find(|line| line.matches(&*symbol).count() == 2);
    let percent = line.and_then(|line| line.trim_start().split_once('%'));
    let percent: f64 = percent.expect("a row").0.parse().expect("a number");
    // The program takes most of the time of each getppid call of the benchmark; 20 % is a low limit.
    assert!(percent > 20.0, "{report}");
}

#[test]
fn programs_loaded_during_a_recording_are_described() {
    let test = "programs_loaded_during_a_recording_are_described";
    // Only checks that programs can be loaded; this one is unloaded at once.
    if LoadedProgram::load(test, &short()).is_none() {
        return;
    }
    let scratch = Scratch::new();
    let rperf_path = env!("CARGO_BIN_EXE_rperf");
    // `trace -s` loads BPF programs; one of them has the symbol `bpf_prog_TAG_rperf_enter`.
    let work = [
        rperf_path, "trace", "-s", "-o", "calls", "--", "sleep", "0.2",
    ];
    let recorded = record_in(&scratch, &["-e", "cpu-clock"], &work);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let header = rperf(&scratch, &[&HEADER[..], &["perf.data"]].concat()).stdout;
    let described = lines_with(&header, &["bpf_prog_info"]);
    assert!(
        described
            .iter()
            .any(|line| line.contains("_rperf_enter addr ")),
        "{header}"
    );
    assert!(header.contains("# btf info of id "), "{header}");
}

#[test]
fn without_bpf_events_there_are_only_symbols() {
    let test = "without_bpf_events_there_are_only_symbols";
    let Some(loaded) = LoadedProgram::load(test, &short()) else {
        return;
    };
    let scratch = Scratch::new();
    let options = ["-e", "cpu-clock", "--no-bpf-event"];
    assert_eq!(record_in(&scratch, &options, &["true"]).status, 0);
    let events = rperf(&scratch, &[&EVENTS[..], &["perf.data"]].concat()).stdout;
    assert!(
        events.contains(&format!(" name {}", loaded.symbol)),
        "{events}"
    );
    assert!(!events.contains("PERF_RECORD_BPF_EVENT"), "{events}");
    let header = rperf(&scratch, &[&HEADER[..], &["perf.data"]].concat()).stdout;
    assert!(!header.contains("bpf_prog_info"), "{header}");
    let missing = lines_with(&header, &["missing features"]).concat();
    assert!(missing.contains(" BPF_PROG_INFO "), "{missing}");
}
