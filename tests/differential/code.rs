//! Printed instructions: `insn`, `insnlen`, and `brstackinsn` on recordings with generated branches.
//!
//! Few test machines have branch stacks. Each sample of an ordinary recording gets a generated branch stack: the program's
//! code is followed from branch to branch. The branch stacks or addresses of most samples are changed to impossible or rare ones.

use std::fs;

use rperf_insn::{Isa, Printer, Syntax, decode};
use rperf_perfdata::{EventDesc, FeatureSet, PerfData, Writer};
use rperf_testkit::{Bytes, skip};
use rperf_wire::{
    Attr, BranchSampleType, Encoder, RawRecord, Record, RecordKind, SampleLayout, SampleRecord,
    SampleType,
};

use super::recordings::{Recording, Target};
use super::workloads::Workloads;
use super::{Tool, Tools, assert_alike, compare_script, settled};
use crate::tidy::root;

/// Branches per sample.
const BRANCHES: usize = 12;
/// Variants of [`corrupt`]; variant 0 changes nothing.
const VARIANTS: usize = 12;
/// A kernel address.
const KERNEL: u64 = 0xffff_ffff_8100_0040;

/// Code in an executable mapping.
struct CodeMapping {
    start: u64,
    bytes: Vec<u8>,
    isa: Isa,
}

impl CodeMapping {
    /// The code that a MMAP2 record maps from the program, whose path ends with `program`; `None` for other records.
    fn of(record: &Record<'_>, program: &str) -> Option<Self> {
        let Record::Mmap2(mapped) = record else {
            return None;
        };
        let name = std::str::from_utf8(mapped.mmap.filename).ok()?;
        if !name.ends_with(program) {
            return None;
        }
        let file = fs::read(name).ok()?;
        let from = usize::try_from(mapped.mmap.pgoff).ok()?;
        let length = usize::try_from(mapped.mmap.len).ok()?;
        let bytes = file.get(from..(from + length).min(file.len()))?;
        Some(Self {
            start: mapped.mmap.start,
            bytes: bytes.to_vec(),
            isa: Isa::of_elf(&file)?,
        })
    }

    /// The code from `ip` to the end of the mapping; `None` if `ip` is not in it.
    fn at(&self, ip: u64) -> Option<&[u8]> {
        let offset = usize::try_from(ip.checked_sub(self.start)?).ok()?;
        self.bytes.get(offset..).filter(|rest| !rest.is_empty())
    }

    /// The address of the first branch from `ip` on, and its target if it is direct; `None` if there is no branch.
    fn branch(&self, mut ip: u64) -> Option<(u64, Option<u64>)> {
        loop {
            let insn = decode(self.isa, self.at(ip)?)?;
            if insn.is_branch {
                let to = |by: i64| ip.wrapping_add_signed(by);
                return Some((ip, insn.target_offset.map(to)));
            }
            ip += insn.len as u64;
        }
    }
}

/// From, to and flags.
type Branch = [u64; 3];

/// At most [`BRANCHES`] branches on a path that starts at one of `sample_ips`, selected by `number`; newest first. Branches
/// without a target in `mappings` lead to one of `sample_ips`. The path ends early if no branch follows in the mapping.
fn branches(mappings: &[CodeMapping], sample_ips: &[u64], number: usize) -> Vec<Branch> {
    let mut path = Vec::new();
    let mut at = sample_ips[number % sample_ips.len()];
    while path.len() < BRANCHES {
        let code_at = |ip: u64| mappings.iter().rev().find(|code| code.at(ip).is_some());
        let Some((from, to)) = code_at(at).and_then(|code| code.branch(at)) else {
            break;
        };
        let fallback = sample_ips[(number + path.len() * 7) % sample_ips.len()];
        // After a branch that is not taken, the path continues with the next instruction.
        let taken = !(number + path.len()).is_multiple_of(3) || to.is_none();
        let step = code_at(from).and_then(|code| Some(decode(code.isa, code.at(from)?)?.len));
        if !taken && let Some(step) = step {
            at = from + step as u64;
            continue;
        }
        let to = to.filter(|to| code_at(*to).is_some()).unwrap_or(fallback);
        // Of four branches, one is mispredicted (1) and three are predicted (2), one of these in a transaction (4). The number
        // of cycles, which is arbitrary, begins at bit 4.
        let cycles = (number + path.len()) as u64 * 5 % 23;
        path.push([from, to, [1, 2, 2, 6][path.len() % 4] | cycles << 4]);
        at = to;
    }
    path.reverse();
    path
}

/// Changes the branches or the address of the sample with this number, unless the number is a multiple of [`VARIANTS`]. Returns
/// the address: by default, the target of the newest branch.
fn corrupt(branches: &mut [Branch], number: usize) -> u64 {
    let from_lowest = branches.iter().map(|branch| branch[0]).min();
    let from_highest = branches.iter().map(|branch| branch[0]).max();
    let [from, to, flags] = &mut branches[0];
    let mut ip = *to;
    match number % VARIANTS {
        1 => ip = *from,
        // Aborted transaction.
        2 => *flags |= 8,
        3 => ip = from_lowest.unwrap_or(ip),
        4 => ip = from_highest.unwrap_or(ip),
        5 => ip = KERNEL,
        6 => *to = KERNEL,
        7 => branches[4][0] += 1,
        8 => branches[4][0] -= 1,
        // A branch into the kernel, and the next one out of it.
        9 => (branches[4][1], branches[3][0]) = (KERNEL, KERNEL + 16),
        10 => branches[5] = [0, 0, 0],
        // A block of more than 16 KiB, which is too long to be printed.
        11 => branches[3][0] += 0x10_0000,
        _ => {}
    }
    ip
}

/// Adds branches to all samples of the recording, and applies [`corrupt`] to each.
fn with_branches(recording: &[u8], program: &str) -> Vec<u8> {
    let data = PerfData::parse(recording).expect("a recording");
    let endian = data.endian();
    let event = &data.events()[0];
    let attr = Attr {
        sample_type: event.attr.sample_type | SampleType::BRANCH_STACK,
        branch_sample_type: BranchSampleType::ANY,
        ..event.attr.clone()
    };
    let (old, new) = (SampleLayout::new(&event.attr), SampleLayout::new(&attr));
    let records = || {
        data.records()
            .filter_map(Result::ok)
            .map(|record| record.raw)
    };
    let mappings: Vec<CodeMapping> = records()
        .filter_map(|raw| CodeMapping::of(&Record::decode(&raw, endian).ok()?, program))
        .collect();
    let sample_ip = |raw: &RawRecord<'_>| -> Option<u64> {
        let is_sample = raw.kind == RecordKind::SAMPLE;
        is_sample.then(|| old.decode(raw.body, endian).expect("a sample").ip)?
    };
    let sample_ips = records().filter_map(|raw| sample_ip(&raw));
    let sample_ips: Vec<u64> = sample_ips
        .filter(|ip| mappings.iter().any(|code| code.at(*ip).is_some()))
        .collect();
    assert!(
        sample_ips.len() > 2,
        "{} samples in {program}",
        sample_ips.len()
    );
    let events = [EventDesc {
        attr: attr.clone(),
        ..event.clone()
    }];
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &events).expect("memory");
    let mut number = 0;
    for raw in records() {
        let mut out = Vec::new();
        if raw.kind == RecordKind::SAMPLE {
            // From some addresses, the path ends before it has enough branches.
            let mut paths =
                (number..number + 100).map(|start| branches(&mappings, &sample_ips, start));
            let path = paths.find(|path| path.len() == BRANCHES);
            let mut path = path.expect("a path of enough branches");
            let mut sample = old.decode(raw.body, endian).expect("a sample");
            sample.ip = Some(corrupt(&mut path, number));
            let body = sample_with(&new, &sample, &path, endian);
            number += 1;
            RawRecord { body: &body, ..raw }.encode(endian, &mut out);
        } else {
            raw.encode(endian, &mut out);
        }
        writer.write_data(&out).expect("memory");
    }
    let mut features = FeatureSet::new(endian);
    features.arch(std::env::consts::ARCH).event_desc(&events);
    let (_, file) = writer.finish(&features).expect("memory");
    file.into_inner()
}

/// A sample's body with branches at its end: samples of these recordings have no later fields.
fn sample_with(
    layout: &SampleLayout,
    sample: &SampleRecord<'_>,
    branches: &[Branch],
    endian: rperf_wire::Endian,
) -> Vec<u8> {
    let mut body = Vec::new();
    layout.encode(sample, &mut Encoder::new(&mut body, endian));
    // The encoded sample ends with a count of branches: 0.
    body.truncate(body.len() - 8);
    let stack = Bytes::new().u64(branches.len() as u64);
    let stack = branches
        .iter()
        .flatten()
        .fold(stack, |stack, word| stack.u64(*word));
    body.extend(stack.done());
    body
}

/// Options used on generated branches.
const BRANCHED: &[&[&str]] = &[
    &["-F", "+brstackinsn"],
    &["-F", "ip,brstackinsnlen"],
    &["-F", "comm,tid,ip,sym,brstackinsn,srccode"],
    &["-F", "ip,brstackinsn", "--max-blocks", "3"],
    &["-F", "+insn,+insnlen,+brstack"],
];

/// Options used on ordinary recordings.
const SAMPLED: &[&[&str]] = &[
    &["-F", "+insn,+insnlen"],
    &["-F", "comm,insn"],
    &["-F", "ip,sym,srccode", "-S", "leaf,middle,outer"],
    &["-G", "-F", "+srccode,+insnlen", "--ns"],
];

#[test]
fn script_shows_the_same_instructions() {
    const NAME: &str = "script_shows_the_same_instructions";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    if !cfg!(target_arch = "x86_64") {
        return skip(NAME, "perf decodes x86 only");
    }
    let workloads = Workloads::build(tools.path());
    for (name, options) in [
        ("counted", &["-e", "cpu-clock:u", "-c", "50000"][..]),
        // Only user space: perf ends with SIGPIPE if a kernel stack has frames of BPF programs, which other tests load.
        ("chains", &["-g", "-F", "999", "-e", "cpu-clock:u"]),
    ] {
        let recording = Recording {
            name,
            options,
            target: Target::Command(&["frames", "150"]),
        };
        assert_alike(&settled(|| differing_lines(&tools, &workloads, &recording)));
    }
}

/// The differences between both tools' output on a new recording.
fn differing_lines(tools: &Tools, workloads: &Workloads, recording: &Recording) -> Vec<String> {
    let file = recording.make(tools, workloads, Tool::Perf);
    let file = file.expect("perf records a program");
    let compare = |file: &str, words: &&[&str]| compare_script(tools, file, words);
    let mut differences: Vec<String> = SAMPLED
        .iter()
        .filter_map(|words| compare(&file, words))
        .collect();
    if !recording.options.contains(&"-g") {
        let path = tools.path().join(&file);
        let branched = with_branches(&fs::read(&path).expect("the recording"), "/frames");
        fs::write(tools.path().join("branched.data"), branched).expect("a file can be written");
        let lines = BRANCHED.iter();
        differences.extend(lines.filter_map(|words| compare("branched.data", words)));
        assert_disassembly_of_bytes(tools, "branched.data");
    }
    differences
}

/// Checks that `brstackdisasm` is `brstackinsn` with the bytes disassembled.
fn assert_disassembly_of_bytes(tools: &Tools, file: &str) {
    let [bytes, disassembly] = ["ip,brstackinsn", "ip,brstackdisasm"].map(|fields| {
        let printed = tools.outcome(Tool::Rperf, &["script", "-i", file, "-F", fields]);
        assert_eq!(printed.status, 0, "{}", printed.stderr);
        printed.stdout
    });
    let mut printer = Printer::new(Isa::X86_64, Syntax::Att);
    let mut compared = 0;
    for (line, disassembled) in bytes.lines().zip(disassembly.lines()) {
        let Some((start, digits)) = line.split_once("\tinsn: ") else {
            assert_eq!(line, disassembled);
            continue;
        };
        let digits = digits.split('\t').next().unwrap_or_default();
        let code: Vec<u8> = digits
            .split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).expect("a byte"))
            .collect();
        let ip = u64::from_str_radix(start.trim(), 16).expect("an address");
        let mut text = String::new();
        let target = printer
            .print(ip, &code, &mut text)
            .and_then(|printed| printed.target);
        let symbol_start = if target.is_some() { " <" } else { "" };
        assert!(
            disassembled.starts_with(&format!("{start}\t{text}{symbol_start}")),
            "{disassembled}\n{line}"
        );
        compared += 1;
    }
    assert_eq!(bytes.lines().count(), disassembly.lines().count());
    assert!(compared > 1000, "{compared} instructions");
}

#[test]
fn fields_without_their_data_are_refused() {
    let Some(tools) = Tools::find() else {
        return skip("fields_without_their_data_are_refused", "there is no perf");
    };
    let file = root().join("tests/fixtures/x86_64/cycles.data");
    let file = file.to_str().expect("a path in UTF-8");
    // Older releases of perf do not have this field: only rperf is run.
    let words = ["script", "-f", "-i", file, "-F", "brstackdisasm"];
    let refused = tools.outcome(Tool::Rperf, &words);
    assert_eq!(refused.status, 255, "{refused:?}");
    let message = "non all-branch filter set";
    assert!(refused.stderr.contains(message), "{refused:?}");
    for field in ["brstackinsn", "brstackinsnlen", "comm,srccode"] {
        let [perf, rperf] = tools.outcomes(&["script", "-f", "-i", file, "-F", field], &[]);
        assert_eq!((perf.status, rperf.status), (255, 255), "{rperf:?}");
        let message = perf.stderr.lines().next().expect("an error");
        assert!(rperf.stderr.contains(message), "{}", rperf.stderr);
    }
}
