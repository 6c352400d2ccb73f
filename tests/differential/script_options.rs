//! Options of `script` that select the samples from one event to another (`--switch-on`, `--switch-off`), write a file for each
//! event, dump records, or compute metrics of groups.

use std::fs;
use std::path::Path;

use rperf_perfdata::PerfData;
use rperf_testkit::skip;
use rperf_wire::TextPoke;

use super::recordings::{Recording, Target};
use super::workloads::Workloads;
use super::{Tool, Tools, assert_alike, compare_script, difference, settled};
use crate::text_pokes::{samples, with_text_poke};
use crate::tidy::root;

const RECORDING: Recording = Recording {
    name: "three events",
    options: &[
        "-e",
        "cpu-clock,page-faults,context-switches",
        "-F",
        "999",
        "--sample-cpu",
    ],
    // On one CPU, so that records are in time order in the file.
    target: Target::Command(&[
        "taskset",
        "-c",
        "0",
        "sh",
        "-c",
        "for i in 1 2 3; do sleep 0.002; done; ls / > /dev/null",
    ]),
};

/// Options of `script` for [`RECORDING`].
const LINES: &[&[&str]] = &[
    &["--switch-on", "context-switches"],
    &[
        "--switch-on",
        "context-switches",
        "--show-on-off-events",
        "--reltime",
    ],
    &[
        "--switch-on",
        "context-switches",
        "--switch-off",
        "page-faults",
        "--deltatime",
    ],
    &[
        "--switch-on",
        "context-switches",
        "--switch-off",
        "page-faults",
        "--show-on-off-events",
        "--show-task-events",
    ],
    &["-L"],
    &["-S", "0xffffffff81000000", "--addr-range", "4194304"],
    &["-F", "+metric,+insn"],
];

#[test]
fn script_options_print_the_same() {
    const NAME: &str = "script_options_print_the_same";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    // Differences count only if each of several attempts, with a new recording each, has some.
    assert_alike(&settled(|| differences(&tools)));
    assert_checks_and_refusals(&tools);
}

/// The differences between both tools' output on a new recording.
fn differences(tools: &Tools) -> Vec<String> {
    let file = RECORDING.make(tools, &Workloads::none(), Tool::Perf);
    let file = file.expect("perf records a shell");
    let lines = LINES.iter();
    let mut differences: Vec<_> = lines
        .filter_map(|words| compare_script(tools, &file, words))
        .collect();
    differences.extend(compare_files(tools, &file));
    differences.extend(compare_unsorted(tools, &file));
    let folder = tools.path();
    let recording = fs::read(folder.join(&file)).expect("the recording");
    fs::write(folder.join("poked.data"), with_kernel_text_poke(&recording)).expect("scratch");
    let words = [
        "--show-text-poke-events",
        "-F",
        "comm,tid,time,event,ip,sym",
    ];
    differences.extend(compare_script(tools, "poked.data", &words));
    differences
}

/// Asserts that both tools count misordered timestamps with `-d`, and refuse to switch at unknown events.
fn assert_checks_and_refusals(tools: &Tools) {
    let file = RECORDING.make(tools, &Workloads::none(), Tool::Perf);
    let file = file.expect("perf records a shell");
    let [perf, rperf] = tools.outcomes(&["script", "-i", &file, "-d"], &[]);
    assert_eq!((perf.status, rperf.status), (0, 0), "{rperf:?}");
    assert_eq!((perf.stdout, rperf.stdout), (String::new(), String::new()));
    for stderr in [perf.stderr, rperf.stderr] {
        assert!(stderr.ends_with("Misordered timestamps: 0\n"), "{stderr}");
    }

    for words in [&["--switch-on", "nosuch"][..], &["--switch-off", "nosuch"]] {
        let line = [&["script", "-i", &file], words].concat();
        let [perf, rperf] = tools.outcomes(&line, &[]);
        assert!(perf.status != 0 && rperf.status != 0, "{line:?}");
        for stderr in [perf.stderr, rperf.stderr] {
            assert!(stderr.contains("event not found (nosuch)"), "{stderr}");
        }
    }
}

/// Compares `--per-event-dump`: stdout and the files.
fn compare_files(tools: &Tools, file: &str) -> Vec<String> {
    let line = [
        "script",
        "-i",
        file,
        "--per-event-dump",
        "--show-task-events",
        "--ns",
    ];
    let texts = [Tool::Perf, Tool::Rperf].map(|tool| {
        // Called as perf, rperf uses that name in its messages.
        let outcome = tools
            .run(tool, &line)
            .arg0("perf")
            .finish()
            .expect("it starts");
        assert_eq!(outcome.status, 0, "{outcome:?}");
        // The size is not compared: perf prints it before everything is written.
        let mut stdout_and_files: Vec<_> = vec![without_part(&outcome.stdout, "Wrote ", " MB")];
        for event in ["cpu-clock", "page-faults", "context-switches"] {
            let path = tools.path().join(format!("{file}.{event}.dump"));
            stdout_and_files.push(fs::read_to_string(&path).expect("a dump"));
            fs::remove_file(path).expect("a dump");
        }
        stdout_and_files
    });
    assert!(texts[0].iter().all(|text| !text.is_empty()), "{texts:?}");
    let pairs = texts[0].iter().zip(&texts[1]);
    let mismatches = pairs.filter_map(|(perf, rperf)| difference(perf, rperf));
    mismatches
        .map(|mismatch| format!("{line:?}\n{mismatch}"))
        .collect()
}

/// Removes from each line the part from the first `from` up to and including the next `to`.
fn without_part(text: &str, from: &str, to: &str) -> String {
    let shortened = |line: &str| {
        let (before, rest) = line.split_once(from)?;
        Some(format!("{before}{}\n", rest.split_once(to)?.1))
    };
    let lines = text.lines();
    lines
        .map(|line| shortened(line).unwrap_or(format!("{line}\n")))
        .collect()
}

/// Compares the records dumped in file order.
fn compare_unsorted(tools: &Tools, file: &str) -> Option<String> {
    let line = [
        "script",
        "-i",
        file,
        "--dump-unsorted-raw-trace",
        "-F",
        "comm,event",
    ];
    let [perf, rperf] = tools.outcomes(&line, &[]);
    assert_eq!((perf.status, rperf.status), (0, 0), "{rperf:?}");
    // perf does not handle FINISHED_ROUND records with this option, and says so.
    let perf = perf
        .stdout
        .replace("FINISHED_ROUND: unhandled!", "FINISHED_ROUND");
    // Names of threads and objects are not compared: perf takes them from the records that come first in the file, regardless of
    // their time, and until `taskset` runs, the command may be on another CPU, whose records are elsewhere in the file.
    let [perf, rperf] = [&perf, &rperf.stdout].map(|text| nameless(text));
    let mismatch = difference(&perf, &rperf)?;
    Some(format!("{line:?}\n{mismatch}"))
}

/// A dump without the names of objects and of threads (in `... thread: NAME:TID`, and in `NAME EVENT:` of samples).
pub(super) fn nameless(text: &str) -> String {
    let events = ["cpu-clock:", "page-faults:", "context-switches:"];
    let line = |line: &str| {
        if let Some((before, thread)) = line.split_once("... thread: ") {
            let tid = thread.rsplit(':').next().unwrap_or_default();
            return format!("{before}... thread: {tid}\n");
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["......", "dso:", ..] => "...... dso\n".to_owned(),
            [_, event] if events.contains(&event) => format!("{event}\n"),
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// Inserts, before all samples, a TEXT_POKE record with the address of the recording's first kernel sample.
fn with_kernel_text_poke(recording: &[u8]) -> Vec<u8> {
    let data = PerfData::parse(recording).expect("a recording");
    let samples = samples(&data);
    let mut addresses = samples.iter().filter_map(|(_, sample)| sample.ip);
    let addr = addresses.find(|ip| *ip > 1 << 63);
    let poke = TextPoke {
        addr: addr.expect("a sample in the kernel"),
        old: &[0xe8, 1, 2, 3, 4],
        // More bytes than the 16 in one line of the output.
        new: &[0x90; 17],
    };
    let first_sample = 0;
    with_text_poke(recording, first_sample, poke)
}

/// Types and configs of pairs of counters. Hardware events (type 0): cycles (0), instructions (1), cache references (2) and cache
/// misses (3), branches (4), branch misses (5), stalled cycles of the frontend (7) and backend (8). Cache events (type 3): reads
/// of L1d, L1i, LL, dTLB and iTLB (0 to 4), with 0x1_0000 for misses.
const PAIRS: &[[(u32, u64); 2]] = &[
    [(0, 0), (0, 1)],
    [(0, 4), (0, 5)],
    [(0, 2), (0, 3)],
    [(0, 0), (0, 7)],
    [(0, 0), (0, 8)],
    [(0, 7), (0, 1)],
    [(0, 1), (0, 0)],
    [(3, 0), (3, 0x1_0000)],
    [(3, 1), (3, 0x1_0001)],
    [(3, 2), (3, 0x1_0002)],
    [(3, 3), (3, 0x1_0003)],
    [(3, 4), (3, 0x1_0004)],
    [(0, 5), (0, 4)],
];

/// The recording `fixture` with its first two events replaced by the counters of `pair` (type and config).
fn with_counters(fixture: &Path, pair: &[(u32, u64); 2]) -> Vec<u8> {
    let mut bytes = fs::read(fixture).expect("a fixture");
    let data = PerfData::parse(&bytes).expect("a recording");
    let (start, size) = (data.header().attrs.offset, data.header().attr_size);
    for (index, (kind, config)) in pair.iter().enumerate() {
        let at = usize::try_from(start + size * index as u64).expect("a small file");
        // An attr begins with its type; its config is at byte 8.
        bytes[at..at + 4].copy_from_slice(&kind.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&config.to_le_bytes());
    }
    bytes
}

#[test]
fn script_shows_the_same_metrics() {
    let Some(tools) = Tools::find() else {
        return skip("script_shows_the_same_metrics", "there is no perf");
    };
    let mut differences = Vec::new();
    for name in ["group", "leader"] {
        let fixture = root().join(format!("tests/fixtures/x86_64/{name}.data"));
        for pair in PAIRS {
            let changed = with_counters(&fixture, pair);
            fs::write(tools.path().join("counters.data"), changed).expect("scratch");
            let words = ["-F", "comm,time,period,event,metric", "--deltatime"];
            let mismatch = compare_script(&tools, "counters.data", &words);
            differences.extend(mismatch.map(|mismatch| format!("{name} {pair:?} {mismatch}")));
        }
    }
    assert_alike(&differences);
}
