//! JIT-compiled code: jitdump files and perf maps.

use std::sync::atomic::{AtomicU32, Ordering};

use super::handmade::Process;
use crate::case::{Case, CaseInputs};
use crate::mutate::{self, Field, number};
use crate::random::Random;

const COMMANDS: &[&str] = &[
    "report --stdio -s sym,symoff,dso,srcline,symbol_size -i perf.data",
    "report --stdio -g --inline -v -i perf.data",
    "script -F ip,sym,symoff,dso,srcline,insn,disasm,srccode -i perf.data",
    "script -v -i perf.data",
    "annotate --stdio -l -i perf.data",
    "annotate --stdio2 --asm-raw -i perf.data",
    "annotate -o annotated -i perf.data",
    "flamegraph --folded -o out.folded -i perf.data",
    "data convert --to-pprof out.pprof -i perf.data",
    "data convert --to-json out.json -i perf.data",
    "buildid-list -H -v -i perf.data",
    "archive perf.data",
];

/// The address of the code in perf maps.
const CODE: u64 = 0x7f00_0000_0000;

/// A pid that no kernel assigns: the maximum is 2^22.
fn unused_pid() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let test_pid = std::process::id() % 100_000;
    5_000_000 + test_pid * 1000 + NEXT.fetch_add(1, Ordering::Relaxed) % 1000
}

/// A recording with a mutated perf map or jitdump.
pub(crate) fn code(inputs: &mut CaseInputs<'_>) -> Case {
    let command = *inputs.random.pick(COMMANDS);
    let mut case = Case::new("run-time code", command);
    let output = case.words.iter().find(|word| word.starts_with("out."));
    case.outputs = output.cloned().into_iter().collect();
    case.may_be_silent = true;
    let dumps = &inputs.seeds.dumps;
    let dump = inputs.random.try_pick(dumps);
    match dump.filter(|_| inputs.random.one_in(2)) {
        Some(dump) => write_jitdump(&dump.bytes, &mut case, inputs),
        None => write_perf_map(&mut case, inputs),
    }
    case
}

/// Writes a recording and the mutated perf map of its process.
fn write_perf_map(case: &mut Case, inputs: &mut CaseInputs<'_>) {
    let random = &mut *inputs.random;
    let pid = unused_pid();
    let addresses: Vec<u64> = (0..40).map(|index| CODE + index * 24).collect();
    let maps = [(CODE, 0x1000, "//anon")];
    let process = Process {
        pid,
        maps: &maps,
        addresses: &addresses,
    };
    inputs.sandbox.write("perf.data", process.recording());
    let path = format!("/tmp/perf-{pid}.map");
    let mut text = perf_map(random);
    if random.one_in(10) {
        text.extend(b"\nneither address nor size\n");
        case.must_report_error = Some("a line without address and size");
    }
    std::fs::write(&path, text).expect("a file can be written");
    case.outside_files.push(path);
}

/// Writes a recording and the mutated jitdump of its process. The samples are in functions of `dump`.
fn write_jitdump(dump: &[u8], case: &mut Case, inputs: &mut CaseInputs<'_>) {
    let (sandbox, random) = (inputs.sandbox, &mut *inputs.random);
    let mut addresses = function_addresses(dump);
    addresses.truncate(200);
    let path = sandbox
        .working_directory()
        .join("jit-77.dump")
        .display()
        .to_string();
    let start = addresses
        .iter()
        .min()
        .map_or(CODE, |lowest| lowest & !0xfff);
    // Readers find the jitdump by its own mapping, which the mapping of the code then replaces.
    let maps = [
        (start, 0x10_0000, path.as_str()),
        (start, 0x10_0000, "//anon"),
    ];
    let process = Process {
        pid: 77,
        maps: &maps,
        addresses: &addresses,
    };
    sandbox.write("perf.data", process.recording());
    let mut bytes = mutate_dump(dump, random);
    if random.one_in(10) {
        bytes = dump.to_vec();
        bytes[random.below(4)] ^= 1 << random.below(8);
        case.must_report_error = Some("another magic number");
    }
    sandbox.write("jit-77.dump", bytes);
}

/// A mutated perf map.
fn perf_map(random: &mut Random) -> Vec<u8> {
    let line = |index: u64| {
        format!(
            "{:x} {:x} function {index}\n",
            CODE + index * 32,
            32 - index % 3
        )
    };
    let valid: String = (0..30).map(line).collect();
    let mut text = valid.clone().into_bytes();
    for _ in 0..1 + random.below(4) {
        mutate::text(&mut text, valid.as_bytes(), random);
    }
    text
}

/// Offset and size of each record of a jitdump (jitdump-specification.txt).
fn records(dump: &[u8]) -> Vec<(usize, usize)> {
    let header_size = number(dump, 8, 4) as usize;
    let mut at = header_size;
    let mut records = Vec::new();
    while at + 16 <= dump.len() {
        let size = (number(dump, at + 4, 4) as usize).max(16);
        records.push((at, size.min(dump.len() - at)));
        at += size;
    }
    records
}

/// Addresses inside the functions of a jitdump: the first byte and the fourth of each.
fn function_addresses(dump: &[u8]) -> Vec<u64> {
    const CODE_LOAD: u64 = 0;
    /// The offset of the code's address in the record.
    const CODE_ADDRESS: usize = 32;
    let loaded = records(dump)
        .into_iter()
        .filter(|(at, _)| number(dump, *at, 4) == CODE_LOAD);
    loaded
        .flat_map(|(at, _)| [0, 3].map(|offset| number(dump, at + CODE_ADDRESS, 8) + offset))
        .collect()
}

fn mutate_dump(dump: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = dump.to_vec();
    let records = records(dump);
    for _ in 0..1 + random.below(4) {
        let (at, size) = random.try_pick(&records).copied().unwrap_or_default();
        let end = (at + size).min(bytes.len());
        match random.below(6) {
            // A field of the file header.
            0 => random
                .pick(&Field::all(0, 40, 4).collect::<Vec<_>>())
                .corrupt(&mut bytes, random),
            // The type or the size of the record.
            1 => random
                .pick(&[Field::new(at, 4), Field::new(at + 4, 4)])
                .corrupt(&mut bytes, random),
            // A field of its body.
            2 | 3 => {
                let fields: Vec<Field> = Field::all(at + 16, end, *random.pick(&[4, 8])).collect();
                if let Some(field) = random.try_pick(&fields) {
                    field.corrupt(&mut bytes, random);
                }
            }
            4 => {
                let repeated = bytes
                    .get(at..end)
                    .unwrap_or_default()
                    .repeat(1 + random.below(50));
                bytes.extend(repeated);
            }
            _ => mutate::bytes(&mut bytes, dump, random),
        }
    }
    if random.one_in(12) {
        mutate::truncate(&mut bytes, random);
    }
    bytes
}
