//! Code that the kernel announces by KSYMBOL records during a recording: BPF programs and trampolines, at addresses outside the
//! mappings of the kernel and its modules, and at addresses inside these mappings.

use std::fs;

use rperf_testkit::{Bytes, Scratch};

use super::generated_files::{Attr, file, record};
use super::rperf;
use crate::tools::Tools;

const KERNEL: u64 = 0xffff_ffff_8100_0000;
const MODULE: u64 = 0xffff_ffff_c010_0000;
/// An address outside the kernel's mapping and the module.
const FREE: u64 = 0xffff_ffff_c020_0000;
/// `PERF_SAMPLE_IP`, `_TID`, `_TIME`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2;
const KERNEL_MODE: u16 = 1;
/// `PERF_RECORD_MMAP`, `_SAMPLE`, `_KSYMBOL`.
const MMAP: u32 = 1;
const SAMPLE: u32 = 9;
const KSYMBOL: u32 = 17;
/// `PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`.
const UNREGISTER: u16 = 1;

/// An event during a recording, one nanosecond after the previous one.
enum Step {
    /// Code is announced: its address, length in bytes and name.
    Announced(u64, u32, &'static str),
    /// The code at this address is removed.
    Gone(u64),
    /// A sample is taken at this address.
    Sampled(u64),
}

use Step::{Announced, Gone, Sampled};

/// Adds the fields of `sample_id_all`: TID and TIME.
fn trailer(body: Bytes, time: u64) -> Bytes {
    body.u32(0).u32(0).u64(time)
}

/// Returns an MMAP record of the kernel or a module.
fn mapped(start: u64, len: u64, pgoff: u64, name: &str) -> Vec<u8> {
    let body = Bytes::new().u32(u32::MAX).u32(0).u64(start).u64(len);
    let body = body.u64(pgoff).text(name, 8);
    record(MMAP, KERNEL_MODE, trailer(body, 1))
}

/// Returns a KSYMBOL record of a BPF program.
fn symbol(time: u64, start: u64, len: u32, flags: u16, name: &str) -> Vec<u8> {
    const BPF: u16 = 1;
    let body = Bytes::new().u64(start).u32(len).u16(BPF).u16(flags);
    record(KSYMBOL, 0, trailer(body.text(name, 8), time))
}

/// Returns a recording with a kernel and one module.
fn recording(steps: &[Step]) -> Vec<u8> {
    let mut records = mapped(KERNEL, 0x120_0000, KERNEL, "[kernel.kallsyms]_text");
    records.extend(mapped(MODULE, 0x5000, 0, "[modfoo]"));
    for (time, step) in (10..).zip(steps) {
        records.extend(match *step {
            Announced(start, len, name) => symbol(time, start, len, 0, name),
            // The code is found by its address: the length (1) and the name are not used.
            Gone(start) => symbol(time, start, 1, UNREGISTER, ""),
            Sampled(ip) => {
                let body = Bytes::new().u64(ip).u32(0).u32(0).u64(time);
                record(SAMPLE, KERNEL_MODE, body)
            }
        });
    }
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    file(&attr, "x86_64", &records)
}

const SCRIPT: [&str; 5] = ["script", "-i", "perf.data", "-F", "ip,sym,symoff,dso"];

/// Checks that rperf and perf print the same for `script` and for `report`; returns the output of `script`.
fn compared_script(tools: &Tools, steps: &[Step]) -> String {
    let path = tools.path().join("perf.data");
    fs::write(path, recording(steps)).expect("a recording");
    let text = tools.assert_same(&SCRIPT);
    let report = [
        "report",
        "-q",
        "-i",
        "perf.data",
        "--stdio",
        "-s",
        "dso,sym",
    ];
    tools.assert_same(&report);
    text
}

#[test]
fn code_has_its_announced_name_except_inside_other_code() {
    let test = "commands::ksymbols::code_has_its_announced_name_except_inside_other_code";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    let text = compared_script(
        &tools,
        &[
            Announced(FREE, 0x100, "bpf_first"),
            Sampled(FREE + 8),
            Gone(FREE),
            Sampled(FREE + 8),
            Announced(FREE, 0x80, "bpf_second"),
            Sampled(FREE + 8),
            Announced(FREE + 0x1000, 0x80, "bpf_trampoline_7"),
            Sampled(FREE + 0x1010),
        ],
    );
    for name in [
        "bpf_first+0x8 (",
        "bpf_second+0x8 (",
        "bpf_trampoline_7+0x10 (",
    ] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("[unknown]"), "{text}");
    // A KSYMBOL record inside the kernel or a module does not name the code there.
    let in_kernel = KERNEL + 0x10_0000;
    let text = compared_script(
        &tools,
        &[
            Sampled(in_kernel + 8),
            Announced(in_kernel, 0x40, "bpf_in_kernel"),
            Sampled(in_kernel + 8),
            Gone(in_kernel),
            Sampled(in_kernel + 8),
        ],
    );
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("[kernel.kallsyms]"), "{text}");
    assert!(lines.iter().all(|line| *line == lines[0]), "{text}");
    let inside = MODULE + 0x1000;
    let text = compared_script(
        &tools,
        &[
            Announced(inside, 0x40, "bpf_in_module"),
            Sampled(inside + 8),
            Sampled(MODULE + 0x100),
            Gone(inside),
            Sampled(inside + 8),
        ],
    );
    // As in perf, removing code in a module also removes the module; removing code in the kernel, as above, has no effect.
    assert_eq!(text.matches("[unknown] ([modfoo])").count(), 2, "{text}");
    assert_eq!(text.matches("[unknown] ([unknown])").count(), 1, "{text}");
}

/// Not compared with perf, which names such code differently (docs/compatibility.md, "A KSYMBOL record for the start of an
/// earlier one").
#[test]
fn code_that_replaces_announced_code_has_its_own_name() {
    let scratch = Scratch::new();
    let steps = [
        Announced(FREE, 0x100, "bpf_first"),
        Sampled(FREE + 8),
        Announced(FREE, 0x80, "bpf_second"),
        Sampled(FREE + 8),
        Sampled(FREE + 0x90),
    ];
    fs::write(scratch.path().join("perf.data"), recording(&steps)).expect("a recording");
    let script = rperf(&SCRIPT).within(scratch.path()).finish();
    let script = script.expect("rperf starts");
    let names = script
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    let names: Vec<&str> = names.collect();
    assert_eq!(
        names,
        ["bpf_first+0x8", "bpf_second+0x8", "[unknown]"],
        "{script:?}"
    );
}

#[test]
fn each_offset_in_a_function_has_a_row_with_symoff() {
    let steps = [
        Announced(FREE, 0x100, "bpf_first"),
        Sampled(FREE + 8),
        Sampled(FREE + 0x1c),
        Sampled(FREE + 8),
        Sampled(FREE),
        Sampled(FREE + 0x5000),
    ];
    let scratch = Scratch::new();
    fs::write(scratch.path().join("perf.data"), recording(&steps)).expect("a recording");
    let report = ["report", "-q", "--stdio", "-s", "symoff"];
    let outcome = rperf(&report).within(scratch.path()).finish();
    let outcome = outcome.expect("rperf starts");
    let rows: Vec<&str> = outcome.stdout.lines().map(str::trim).collect();
    let expected = [
        "40.00%  [k] bpf_first+0x8",
        "20.00%  [k] bpf_first+0x0",
        "20.00%  [k] bpf_first+0x1c",
        "20.00%  [k] 0xffffffffc0205000",
    ];
    assert_eq!(rows[..4], expected, "{outcome:?}");
}
