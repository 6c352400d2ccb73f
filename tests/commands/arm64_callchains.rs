//! Frame-pointer callchains of 64-bit Arm: the sampled link register gives the caller of a leaf function without a
//! frame.

use std::process::Command;

use rperf_testkit::{Bytes, PerfFile, Scratch, skip};

use super::generated_files::{Attr, file, record};
use crate::kernel::rperf_in;
use crate::tidy::root;

const TRIPLE: &str = "aarch64-unknown-linux-musl";
const PID: u32 = 7;
/// `PERF_CONTEXT_USER`.
const USER: u64 = (-512_i64).cast_unsigned();
/// `PERF_SAMPLE_IP`, `_TID`, `_TIME`, `_CALLCHAIN`, `_REGS_USER`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 12;

/// A sample at the first address of `chain`; `link` is the value of the link register.
fn sample(time: u64, chain: &[u64], link: u64) -> Vec<u8> {
    let body = Bytes::new().u64(chain[0]).u32(PID).u32(PID).u64(time);
    let body = body.u64(chain.len() as u64 + 1).u64(USER);
    let body = chain.iter().fold(body, |body, ip| body.u64(*ip));
    // PERF_SAMPLE_REGS_ABI_64, and the only register.
    record(PerfFile::SAMPLE, PerfFile::USER, body.u64(2).u64(link))
}

/// A mapping of the first page of `program`, which contains its code, at `start`.
fn mapped(program: &str, start: u64) -> Vec<u8> {
    let body = Bytes::new().u32(PID).u32(PID).u64(start).u64(0x1000).u64(0);
    // No device, inode and generation; PROT_READ | PROT_EXEC, and MAP_PRIVATE.
    let body = body.raw([0; 24]).u32(5).u32(2).text(program, 8);
    record(PerfFile::MMAP2, PerfFile::USER, body)
}

#[test]
fn the_caller_of_a_function_without_frame_is_added() {
    let scratch = Scratch::new();
    let program = scratch.path().join("leaf");
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition=2024", "-O", "--target", TRIPLE]);
    compiler.args(["-C", "panic=abort", "-C", "force-unwind-tables=yes"]);
    compiler.args(["-C", "linker=rust-lld", "-C", "link-self-contained=no"]);
    compiler.arg("-o").arg(&program);
    compiler.arg(root().join("tests/workloads/leaf.rs"));
    let built = compiler.output().expect("a Rust compiler");
    if !built.status.success() {
        return skip(
            "commands::arm64_callchains::the_caller_of_a_function_without_frame_is_added",
            &String::from_utf8_lossy(&built.stderr),
        );
    }
    let symbols = Command::new("nm").arg(&program).output().expect("nm");
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let address = |name: &str| {
        let mut lines = symbols.lines().map(str::split_whitespace);
        let mut line = lines.find(|line| line.clone().nth(2) == Some(name));
        let digits = line.as_mut().and_then(Iterator::next).expect("a function");
        u64::from_str_radix(digits, 16).expect("an address")
    };
    let (leaf, caller, start) = (address("leaf"), address("caller"), address("_start"));
    // `caller + 20` is where its first call of `leaf` returns; the other offsets only have to be in the functions.
    let records = [
        mapped(program.to_str().expect("a printable path"), leaf & !0xfff),
        sample(1, &[leaf + 8, start + 16], caller + 20),
        // `caller` has saved the link register, which may have been overwritten since: its value must not be added.
        sample(2, &[caller + 20, start + 16], caller + 20),
    ];
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        // The link register, x30.
        regs_user: 1 << 30,
        no_sample_id_all: true,
        ..Attr::default()
    };
    let recording = file(&attr, "aarch64", &records.concat());
    std::fs::write(scratch.path().join("perf.data"), recording).expect("the recording");
    let words = ["script", "-i", "perf.data", "-F", "ip,sym"];
    let script = rperf_in(&scratch, &words).finish().expect("rperf starts");
    let lines = script.stdout.lines().map(str::split_whitespace);
    let names: Vec<&str> = lines.filter_map(|mut words| words.nth(1)).collect();
    let expected = ["leaf", "caller", "_start", "caller", "_start"];
    assert_eq!(names, expected, "{script:?}");
}
