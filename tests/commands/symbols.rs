//! Where the commands look for symbols, code and unwind tables, and their messages if there are none.

use std::fs;
use std::path::Path;
use std::process::Command;

use rperf_perfdata::PerfData;
use rperf_testkit::{Bytes, Outcome, PerfFile, Run, Scratch, copy_program, skip};
use rperf_wire::TextPoke;

use super::generated_files::{Attr, file, kcore, record};
use crate::kernel::{BUSY, record_in, rperf_in};
use crate::text_pokes::{samples, with_text_poke};
use crate::tidy::root;
use crate::tools::{Tool, Tools};

/// Runs rperf with another home folder, so without the build-id cache that the recording filled.
fn elsewhere(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    let home = scratch.path().join("elsewhere");
    let run = run.within(scratch.path()).env("HOME", home);
    run.finish().expect("rperf starts")
}

#[test]
fn a_replaced_program_is_reported() {
    let scratch = Scratch::new();
    let program = scratch.path().join("program");
    copy_program("/bin/sh", &program);
    let shell = program.to_str().expect("a printable path");
    let options = ["-q", "-e", "cpu-clock:u", "-F", "999"];
    let recorded = record_in(&scratch, &options, &[shell, "-c", BUSY]);
    if recorded.status != 0 {
        return skip(
            "commands::symbols::a_replaced_program_is_reported",
            &recorded.stderr,
        );
    }
    let warned = |outcome: &Outcome| {
        let mut lines = outcome.stderr.lines();
        lines.any(|line| line.contains(shell) && line.contains("its build-id is"))
    };
    for command in ["report", "script"] {
        let outcome = elsewhere(&scratch, &[command]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(!warned(&outcome), "{outcome:?}");
    }
    let mut other_programs = ["/bin/true", "/bin/ls"].into_iter();
    let other_program = other_programs.find(|path| Path::new(path).exists());
    let other_program = other_program.expect("another program");
    fs::remove_file(&program).expect("the program is removed");
    fs::copy(other_program, &program).expect("another takes its place");
    let cache = scratch.path().join("elsewhere/.debug/.build-id");
    let hint = format!("'buildid-cache --add': there is no {}/", cache.display());
    for command in ["report", "script"] {
        let outcome = elsewhere(&scratch, &[command]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(warned(&outcome), "{outcome:?}");
        assert!(outcome.stderr.contains(&hint), "{outcome:?}");
    }
    // The recorded program was a copy of /bin/sh.
    let added = elsewhere(&scratch, &["buildid-cache", "--add", "/bin/sh"]);
    assert_eq!(added.status, 0, "{added:?}");
    let outcome = elsewhere(&scratch, &["report"]);
    assert!(!warned(&outcome), "the cache has it: {outcome:?}");
}

#[test]
fn invalid_symbol_files_are_reported() {
    const KERNEL_START: u64 = 0xffff_ffff_8100_0000;
    const JIT_CODE: u64 = 0x7f00_0000_0000;
    let scratch = Scratch::new();
    let dump = scratch.write("jit-7.dump", "no dump").expect("a file");
    let dump = dump.to_str().expect("a printable path");
    scratch.write("vmlinux", "no image").expect("a file");
    scratch.write("symbols", "no\nlist\n").expect("a file");
    let attr = Attr {
        // IP, TID and TIME.
        sample_type: 7,
        no_sample_id_all: true,
        ..Attr::default()
    };
    // Greater than any pid: the kernel's limit is 1 << 22.
    let pid = 4_200_000;
    let map = |(pid, misc): (u32, u16), start, name: &str| {
        let body = Bytes::new().u32(pid).u32(pid).u64(start);
        record(PerfFile::MMAP, misc, body.u64(0x1000).u64(0).text(name, 8))
    };
    let sample = |misc, address| {
        let body = Bytes::new().u64(address).u32(pid).u32(pid);
        record(PerfFile::SAMPLE, misc, body.u64(10))
    };
    let records = [
        map(
            (u32::MAX, PerfFile::KERNEL),
            KERNEL_START,
            "[kernel.kallsyms]_text",
        ),
        // A process maps its jitdump file so that recordings name the file. The generated code is in anonymous memory.
        map((pid, PerfFile::USER), JIT_CODE, dump),
        map((pid, PerfFile::USER), JIT_CODE, "//anon"),
        sample(PerfFile::KERNEL, KERNEL_START + 16),
        sample(PerfFile::USER, JIT_CODE + 16),
    ];
    let recording = file(&attr, "x86_64", &records.concat());
    scratch.write("perf.data", recording).expect("a file");
    let symbols_warning =
        "Warning: symbols: no lines of the form 'ADDRESS TYPE NAME', as in /proc/kallsyms\n";
    let dump_warning = format!("Warning: {dump}: not a jitdump file\n");
    for command in [&["report", "--stdio"][..], &["script"], &["script", "-v"]] {
        let words = [command, &["--kallsyms", "symbols"]].concat();
        let outcome = elsewhere(&scratch, &words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let times = |text: &str| outcome.stderr.matches(text).count();
        assert_eq!(
            (times(symbols_warning), times(&dump_warning)),
            (1, 1),
            "{outcome:?}"
        );
        let words = [command, &["-k", "vmlinux"]].concat();
        let outcome = elsewhere(&scratch, &words);
        let image_warning = "Warning: vmlinux: not an ELF file\n";
        assert!(outcome.stderr.contains(image_warning), "{outcome:?}");
    }
}

/// The address of a function in kallsyms; `None` if the function is missing or its address hidden (0).
fn kallsyms_address(listing: &str, name: &str) -> Option<u64> {
    let mut lines = listing.lines().map(str::split_whitespace);
    let mut line = lines.find(|line| line.clone().nth(2) == Some(name))?;
    u64::from_str_radix(line.next()?, 16)
        .ok()
        .filter(|at| *at != 0)
}

/// Instructions of one byte from `start` to `end`, each value derived from its address.
fn code(start: u64, end: u64) -> Vec<u8> {
    const OPCODES: [u8; 8] = [0x90, 0xc3, 0xf4, 0xf8, 0xf9, 0xfc, 0xfd, 0xcc];
    let code = (start..end).map(|address| OPCODES[(address >> 4) as usize % 8]);
    code.collect()
}

/// Writes two copies of the kernel's memory (kcore) to this folder of the build-id cache, as `buildid-cache --kcore` does. The
/// second one is of another boot, with the kernel at another address, so it cannot be used.
fn write_kcore_copies(folder: &Path, listing: &str, start: u64, end: u64) {
    for (time, offset) in [("2026010100000000", 0), ("2026010200000000", 0x20_0000)] {
        let copy = folder.join(time);
        fs::create_dir_all(&copy).expect("a folder in the cache");
        let moved_listing = listing.replace(
            &format!("{start:x} T _"),
            &format!("{:x} T _", start + offset),
        );
        fs::write(copy.join("kallsyms"), moved_listing).expect("a listing");
        fs::write(copy.join("modules"), "").expect("no modules");
        let memory = kcore(&[(start, code(start, end))]);
        fs::write(copy.join("kcore"), memory).expect("the kernel's code");
    }
}

#[test]
fn kernel_code_is_read_from_a_cached_copy_of_its_memory() {
    let test = "commands::symbols::kernel_code_is_read_from_a_cached_copy_of_its_memory";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    let dd_operands = ["if=/dev/zero", "of=/dev/null", "bs=4k", "count=100000"];
    let words = ["-e", "cpu-clock:k", "-F", "999", "--", "dd"];
    let Some(file) = tools.record(Tool::Rperf, "kernel", &[&words[..], &dd_operands].concat())
    else {
        return;
    };
    let listing = fs::read_to_string("/proc/kallsyms").expect("the kernel's symbols");
    let (Some(start), Some(end)) = (
        kallsyms_address(&listing, "_stext"),
        kallsyms_address(&listing, "_etext"),
    ) else {
        return skip(test, "the kernel's addresses are hidden");
    };
    let script = ["script", "-i", &file, "-F", "ip,sym,symoff,dso,insn"];
    let without_kcore_copy = tools.outcome(Tool::Rperf, &script).stdout;
    // Without a copy, the code is read from /proc/kcore.
    assert_eq!(
        without_kcore_copy.contains(" insn: "),
        Path::new("/proc/kcore").exists()
    );
    let id = tools.outcome(Tool::Rperf, &["buildid-list", "--kernel"]);
    let copies = tools
        .path()
        .join(".debug/[kernel.kcore]")
        .join(id.stdout.trim());
    write_kcore_copies(&copies, &listing, start, end);
    let text = tools.assert_same(&script);
    assert!(!text.is_empty());
    assert!(text.lines().all(|line| line.contains(" insn: ")), "{text}");
    let recording = fs::read(tools.path().join(&file)).expect("the recording");
    for has_old_code in [true, false] {
        let poked = with_poked_instruction(&recording, has_old_code);
        fs::write(tools.path().join(&file), poked).expect("scratch");
        let now = match has_old_code {
            true => tools.assert_same(&script),
            // perf assumes that the copy has the code before the poke, which is wrong here.
            false => tools.outcome(Tool::Rperf, &script).stdout,
        };
        assert_ne!(now, text);
        // With the old code in the copy, only samples after the poke change; with the new code, only those before it.
        let changed = now.lines().zip(text.lines());
        let changed: Vec<bool> = changed.map(|(now, then)| now != then).collect();
        let (first, second) = changed.split_at(changed.len() / 2);
        assert_eq!(
            [first, second].map(|half| half.contains(&true)),
            [!has_old_code, has_old_code]
        );
    }
}

/// Adds a TEXT_POKE record for an instruction with many samples, before the later half of the samples. The copy of the kernel's
/// memory has the code before the poke if `has_old_code`, otherwise the code after it.
fn with_poked_instruction(recording: &[u8], has_old_code: bool) -> Vec<u8> {
    let data = PerfData::parse(recording).expect("a recording");
    let samples = samples(&data);
    // The samples of each CPU are contiguous in the file.
    let mut by_time: Vec<usize> = (0..samples.len()).collect();
    by_time.sort_by_key(|index| samples[*index].1.time);
    let middle = samples.len() / 2;
    let halves = by_time.split_at(middle);
    // Each half has at least this number of samples at the address.
    let samples_in_each_half = |ip: &u64| {
        let count = |half: &[usize]| {
            let is_there = |index: &&usize| samples[**index].1.ip == Some(*ip);
            half.iter().filter(is_there).count()
        };
        count(halves.0).min(count(halves.1))
    };
    let addresses = samples.iter().filter_map(|(_, sample)| sample.ip);
    let addr = addresses
        .max_by_key(samples_in_each_half)
        .expect("a sample");
    // 0xf5 is none of the opcodes of `code`.
    let (in_copy, other) = (&code(addr, addr + 1)[..], &[0xf5][..]);
    let (old, new) = match has_old_code {
        true => (in_copy, other),
        false => (other, in_copy),
    };
    with_text_poke(recording, by_time[middle], TextPoke { addr, old, new })
}

#[test]
fn the_32_bit_vdso_is_unwound_to_its_caller() {
    let test = "commands::symbols::the_32_bit_vdso_is_unwound_to_its_caller";
    if !cfg!(target_arch = "x86_64") {
        return skip(test, "this machine is no x86-64");
    }
    let scratch = Scratch::new();
    let program = scratch.path().join("vdso32");
    let mut compiler = Command::new("cc");
    compiler.args(["-m32", "-O1", "-nostdlib", "-static", "-ffreestanding"]);
    compiler
        .args(["-fno-stack-protector", "-fno-pic", "-no-pie", "-o"])
        .arg(&program);
    compiler.arg(root().join("tests/workloads/vdso32.c"));
    let built = compiler.status().expect("a C compiler");
    assert!(built.success());
    let words = [
        "record",
        "-q",
        "-o",
        "perf.data",
        "-e",
        "cpu-clock:u",
        "-F",
        "999",
    ];
    let options = [
        "--call-graph",
        "dwarf,1024",
        "--",
        program.to_str().expect("printable"),
    ];
    let recorded = rperf_in(&scratch, &[&words[..], &options].concat());
    let recorded = recorded.finish().expect("rperf starts");
    if recorded.status != 0 {
        return skip(test, &recorded.stderr);
    }
    let script = rperf_in(&scratch, &["script", "-F", "ip,sym,dso"]);
    let script = script.finish().expect("rperf starts").stdout;
    let frames: Vec<&str> = script.lines().map(str::trim).collect();
    let is_in = |frame: &str, name: &str| frame.split_whitespace().nth(1) == Some(name);
    let gettime = "__vdso_clock_gettime";
    let in_vdso = frames.iter().filter(|frame| frame.ends_with("([vdso32])"));
    let called = |pair: &&[&str]| is_in(pair[0], gettime) && is_in(pair[1], "ask");
    let (calls, all) = (frames.windows(2).filter(called).count(), in_vdso.count());
    // At least 80% of the frames in the vDSO must be those of __vdso_clock_gettime with its caller `ask`.
    // Without unwind tables, `ask` would be found by frame pointers, but not from the prologue of __vdso_clock_gettime, nor from
    // the function without a symbol that it calls. One more frame may lack its caller: a loaded virtual machine can lose most
    // samples, and then one frame is a large share.
    assert!(calls > 0 && 10 * calls + 10 >= 8 * all, "{calls} of {all}");
}

/// A jitdump with two functions of 64 bytes at `code`: `first`, loaded at 1005 nanoseconds, and `second`, which replaces it at
/// 1200. `start_time` and `flags` are fields of the header.
fn dump_with_replaced_function(code: u64, start_time: u64, flags: u64) -> Vec<u8> {
    const LOAD: u32 = 0;
    let header = Bytes::new().raw(b"DTiJ").u32(1).u32(40).u32(0).u32(0);
    let mut dump = header.u32(7).u64(start_time).u64(flags);
    for (time, name) in [(1005, "first\0"), (1200, "second\0")] {
        let size = 56 + u32::try_from(name.len()).expect("short") + 64;
        let load = dump.u32(LOAD).u32(size).u64(time).u32(7).u32(7);
        let place = load.u64(code).u64(code).u64(64).u64(0);
        dump = place.raw(name.as_bytes()).raw([0x90; 64]);
    }
    dump.done()
}

#[test]
fn functions_of_a_jitdump_are_used_from_their_times_on_if_the_clocks_can_be_related() {
    const CODE: u64 = 0x7f00_0000_0000;
    // Greater than any pid: the kernel's limit is 1 << 22.
    const PID: u32 = 4_200_001;
    let scratch = Scratch::new();
    let dump = scratch.path().join("jit-7.dump");
    let attr = Attr {
        // IP, TID and TIME.
        sample_type: 7,
        ..Attr::default()
    };
    let map = |name: &str| {
        let body = Bytes::new().u32(PID).u32(PID).u64(CODE).u64(0x1000).u64(0);
        // The trailer: pid, tid and time.
        let body = body.text(name, 8).u32(PID).u32(PID).u64(500);
        record(PerfFile::MMAP, PerfFile::USER, body)
    };
    let sample = Bytes::new().u64(CODE + 16).u32(PID).u32(PID).u64(600);
    let records = [
        map(dump.to_str().expect("a printable path")),
        map("//anon"),
        record(PerfFile::SAMPLE, PerfFile::USER, sample),
    ];
    let recording = file(&attr, "x86_64", &records.concat());
    scratch.write("perf.data", recording).expect("a file");
    for (start_time, flags, function) in [
        // The start, 1000, is taken for the time of the dump's mapping, 500: the sample at 600 is at 1100 of the dump's clock.
        (1000, 0, "first"),
        // Without a start time, or with times of a CPU counter (flag 1), the last function is used.
        (0, 0, "second"),
        (1000, 1, "second"),
    ] {
        let bytes = dump_with_replaced_function(CODE, start_time, flags);
        fs::write(&dump, bytes).expect("a file");
        let outcome = elsewhere(&scratch, &["script", "-F", "ip,sym"]);
        let shown = outcome.stdout.trim().strip_prefix("7f0000000010 ");
        assert_eq!(shown, Some(function), "{outcome:?}");
    }
}
