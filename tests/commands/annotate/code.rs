//! Where code is read from: JIT dumps and kernel memory.

use std::fs;
use std::process::Command;

use rperf_testkit::{Bytes, PerfFile, Scratch, skip};

use super::super::generated_files::{Attr, file, kcore, record};
use crate::kernel::{record_in, rperf_in};
use crate::tidy::root;

/// `PERF_SAMPLE_IP`, `_TID`, `_TIME`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2;
/// The address of the generated kernel's text, which begins with its function `turn`.
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const BUILD_ID: [u8; 20] = [0x5a; 20];

#[test]
fn functions_in_jit_dumps_are_annotated() {
    let scratch = Scratch::new();
    let program = scratch.path().join("jitdump");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-o"]).arg(&program);
    let built = compiler
        .arg(root().join("tests/workloads/jitdump.c"))
        .status();
    assert!(built.expect("a C compiler").success());
    let program = program.to_str().expect("a printable path");
    let folder = scratch.path().to_str().expect("a printable path");
    let options = ["-q", "-e", "cpu-clock:u", "-k", "mono", "-F", "999"];
    // 40: the CPU time of each phase of the program, in milliseconds.
    let recorded = record_in(&scratch, &options, &[program, folder, "40"]);
    if recorded.status != 0 {
        return skip(
            "commands::annotate::code::functions_in_jit_dumps_are_annotated",
            &recorded.stderr,
        );
    }
    // A function that the program generates.
    let words = ["annotate", "--stdio2", "-s", "looping"];
    let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let expected: Vec<&str> = ["push", "mov", "mov", "dec", "jne", "pop", "ret"].into();
    let mnemonics = outcome.stdout.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.find(|word| expected.contains(word))
    });
    assert_eq!(
        mnemonics.collect::<Vec<_>>(),
        expected,
        "{}",
        outcome.stdout
    );
    // The target of the jump, as an offset in the function.
    assert!(outcome.stdout.contains("↑ jne  6 "), "{}", outcome.stdout);
}

/// Writes a recording with samples at the addresses `ips` of a generated kernel, and a copy of the kernel's symbols and memory in
/// the build-id cache. The kernel has the function `turn`, which consists of `code`, and after it the function `next`.
fn write_kernel_files(scratch: &Scratch, code: &[u8], ips: &[u64]) {
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    let name = "[kernel.kallsyms]_text";
    let mapped = Bytes::new().u32(u32::MAX).u32(0).u64(KERNEL).u64(0x20_0000);
    // The offset in the file, for the kernel its address; the size of the build id, and three reserved bytes; the build id.
    let mapped = mapped.u64(KERNEL).raw([20, 0, 0, 0]).raw(BUILD_ID);
    // PROT_READ | PROT_EXEC, and MAP_PRIVATE.
    let mapped = mapped.u32(5).u32(2).text(name, 8);
    /// `PERF_RECORD_MISC_MMAP_BUILD_ID` and `_KERNEL`.
    const BUILD_ID_KERNEL: u16 = 1 << 14 | PerfFile::KERNEL;
    // The sample id trailer: process, thread, time.
    let with_trailer = |bytes: Bytes, time| bytes.u32(7).u32(7).u64(time);
    let mut records = vec![record(
        PerfFile::MMAP2,
        BUILD_ID_KERNEL,
        with_trailer(mapped, 1),
    )];
    records.extend(ips.iter().map(|ip| {
        // Instruction pointer, process, thread, time.
        let sample = Bytes::new().u64(*ip).u32(7).u32(7).u64(2);
        record(PerfFile::SAMPLE, PerfFile::KERNEL, sample)
    }));
    let recording = file(&attr, "x86_64", &records.concat());
    fs::write(scratch.path().join("perf.data"), recording).expect("scratch");
    let id: String = BUILD_ID.iter().map(|byte| format!("{byte:02x}")).collect();
    let kcore_copy = scratch.path().join(".debug/[kernel.kcore]").join(id);
    // The time of the copy.
    let kcore_copy = kcore_copy.join("2026010100000000");
    fs::create_dir_all(&kcore_copy).expect("a folder in the cache");
    let end = KERNEL + code.len() as u64;
    let listing = format!(
        "{KERNEL:x} T _text\n{KERNEL:x} T turn\n{end:x} T next\n{:x} T _etext\n",
        end + 16
    );
    fs::write(kcore_copy.join("kallsyms"), listing).expect("a listing");
    fs::write(kcore_copy.join("modules"), "").expect("no modules");
    let mut memory = code.to_vec();
    memory.resize(0x1000, 0xcc);
    fs::write(kcore_copy.join("kcore"), kcore(&[(KERNEL, memory)])).expect("the kernel's code");
}

#[test]
fn kernel_code_is_read_from_its_memory() {
    let scratch = Scratch::new();
    // push %rbp; mov %rsp,%rbp; call next; pop %rbp; ret
    write_kernel_files(
        &scratch,
        &[0x55, 0x48, 0x89, 0xe5, 0xe8, 2, 0, 0, 0, 0x5d, 0xc3],
        &[KERNEL + 4],
    );
    let outcome = rperf_in(&scratch, &["annotate", "--stdio2"]);
    let outcome = outcome.finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let hot = outcome
        .stdout
        .lines()
        .find(|line| line.starts_with("100.00"));
    assert_eq!(
        hot.map(str::trim_end),
        Some("100.00     → call next"),
        "{}",
        outcome.stdout
    );
    let full = rperf_in(&scratch, &["annotate", "--stdio"]);
    let full = full.finish().expect("rperf starts").stdout;
    let line = "  100.00 :   ffffffff81000004:       call   ffffffff8100000b <next>";
    assert!(full.lines().any(|text| text == line), "{full}");
}

/// The kernel's symbols are known from `--kallsyms`, but its code is in no file.
#[test]
fn a_kernel_without_code_is_named_once_for_all_its_functions() {
    let scratch = Scratch::new();
    write_kernel_files(&scratch, &[0x55; 11], &[KERNEL + 4, KERNEL + 11]);
    let folder = scratch.path().join(".debug/[kernel.kcore]");
    fs::remove_dir_all(folder).expect("the cache");
    let listing = format!(
        "{KERNEL:x} T _text\n{KERNEL:x} T turn\n{:x} T next\n",
        KERNEL + 11
    );
    fs::write(scratch.path().join("listing"), listing).expect("scratch");
    let words = ["annotate", "--kallsyms", "listing"];
    let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (1, ""),
        "{outcome:?}"
    );
    let id: String = BUILD_ID.iter().map(|byte| format!("{byte:02x}")).collect();
    let message = format!("No vmlinux file with build id {id} was found in the path.");
    assert_eq!(outcome.stderr.matches(&*message).count(), 1, "{outcome:?}");
    let counts = "cannot show the code of 2 functions (2 samples)";
    assert!(outcome.stderr.contains(counts), "{outcome:?}");
    assert!(outcome.stderr.contains("-k vmlinux"), "{outcome:?}");
}
