//! `jitdump`: code that is written at run time and described in a jitdump file.
//!
//! Source of the layout: the kernel's `tools/perf/Documentation/jitdump-specification.txt`.

use std::ffi::OsString;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::ptr::{self, NonNull};

use rperf_safefs::Folder;

use crate::{Arguments, Workload, WorkloadError, failed};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "jitdump",
    arguments: "[<rounds>]",
    summary: "code generated at run time, the function jit_workload of ./jit-PID.dump (default: 100 rounds)",
    body,
};

/// The generated function: counts down from 65536 and returns.
#[cfg(target_arch = "x86_64")]
const CODE: &[u8] = &[
    0xb9, 0x00, 0x00, 0x01, 0x00, // mov ecx, 65536
    0x83, 0xe9, 0x01, // sub ecx, 1
    0x75, 0xfb, // jnz to the sub
    0xc3, // ret
];
/// The generated function: counts down from 65536 and returns.
#[cfg(target_arch = "aarch64")]
const CODE: &[u8] = &[
    0x20, 0x00, 0xa0, 0x52, // movz w0, 1, lsl 16
    0x00, 0x04, 0x00, 0x71, // subs w0, w0, 1
    0xe1, 0xff, 0xff, 0x54, // b.ne to the subs
    0xc0, 0x03, 0x5f, 0xd6, // ret
];
/// No function: the workload is not implemented for other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CODE: &[u8] = &[];

/// The name of the function.
const NAME: &[u8] = b"jit_workload\0";
/// Size of each mapping in bytes, larger than the code. The kernel rounds it up to its page size.
const MAPPING_SIZE: usize = 4096;
/// The number of the processor in ELF (`e_machine`): `EM_X86_64`.
#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 62;
/// The number of the processor in ELF (`e_machine`): `EM_AARCH64`. Unused on processors other than AArch64.
#[cfg(not(target_arch = "x86_64"))]
const MACHINE: u32 = 183;

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let rounds = arguments.number("<rounds>", 100, &(1..=u32::MAX))?;
    arguments.end()?;
    if CODE.is_empty() {
        let workload = arguments.workload();
        return Err(WorkloadError::Processor { workload });
    }
    let code = GeneratedCode::new().map_err(failed("cannot map memory for code"))?;
    write_dump(&code).map_err(failed("cannot write ./jit-PID.dump"))?;
    for _ in 0..rounds {
        code.call();
    }
    Ok(())
}

/// Executable memory that holds the function.
struct GeneratedCode(NonNull<libc::c_void>);

impl GeneratedCode {
    fn new() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new private mapping, at an address that the kernel chooses.
        let memory = unsafe { libc::mmap(ptr::null_mut(), MAPPING_SIZE, protection, flags, -1, 0) };
        let memory = NonNull::new(memory).filter(|memory| memory.as_ptr() != libc::MAP_FAILED);
        let code = Self(memory.ok_or_else(io::Error::last_os_error)?);
        // SAFETY: the mapping is writable, larger than the code, and nothing else refers to it.
        unsafe { ptr::copy_nonoverlapping(CODE.as_ptr(), code.0.as_ptr().cast(), CODE.len()) };
        // SAFETY: the mapping belongs to this value. The kernel makes instruction caches coherent when pages become executable.
        let status = unsafe {
            libc::mprotect(
                code.0.as_ptr(),
                MAPPING_SIZE,
                libc::PROT_READ | libc::PROT_EXEC,
            )
        };
        match status {
            0 => Ok(code),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn address(&self) -> u64 {
        self.0.as_ptr().addr() as u64
    }

    /// Runs the function.
    fn call(&self) {
        // SAFETY: the mapping is executable and holds a function of the C ABI without arguments, which changes only caller-saved
        // registers.
        let function: extern "C" fn() = unsafe { std::mem::transmute(self.0.as_ptr()) };
        black_box(function)();
    }
}

impl Drop for GeneratedCode {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, which is gone afterwards.
        unsafe { libc::munmap(self.0.as_ptr(), MAPPING_SIZE) };
    }
}

/// Writes the file, and maps it as executable for a moment: recorders notice the file by this mapping.
fn write_dump(code: &GeneratedCode) -> io::Result<()> {
    let pid = std::process::id();
    let name = OsString::from(format!("jit-{pid}.dump"));
    let mut file = Folder::open(Path::new("."))?.create_file(&name, 0o644)?;
    file.write_all(&jitdump(pid, code.address(), monotonic_time()?))?;
    map_briefly(&file)
}

/// Maps the file as executable, and unmaps it.
fn map_briefly(file: &File) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    let fd = file.as_raw_fd();
    // SAFETY: a new private mapping of an open file, at an address that the kernel chooses.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            MAPPING_SIZE,
            protection,
            libc::MAP_PRIVATE,
            fd,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: nothing refers to the mapping.
    unsafe { libc::munmap(memory, MAPPING_SIZE) };
    Ok(())
}

/// The contents of the file: the header and one load record.
fn jitdump(pid: u32, address: u64, time: u64) -> Vec<u8> {
    let mut file = Vec::new();
    // The header: magic, version, size of the header, machine, unused, process; time, flags.
    put_u32s(&mut file, &[0x4a69_5444, 1, 40, MACHINE, 0, pid]);
    put_u64s(&mut file, &[time, 0]);
    // The load record, which has 56 bytes before the name: JIT_CODE_LOAD, size of the record; time; process, thread.
    let record_size = u32::try_from(56 + NAME.len() + CODE.len()).unwrap_or_default();
    put_u32s(&mut file, &[0, record_size]);
    put_u64s(&mut file, &[time]);
    put_u32s(&mut file, &[pid, pid]);
    // Virtual address, address of the code, size of the code, index of the code.
    put_u64s(&mut file, &[address, address, CODE.len() as u64, 1]);
    file.extend_from_slice(NAME);
    file.extend_from_slice(CODE);
    file
}

fn put_u32s(file: &mut Vec<u8>, numbers: &[u32]) {
    for number in numbers {
        file.extend_from_slice(&number.to_ne_bytes());
    }
}

fn put_u64s(file: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        file.extend_from_slice(&number.to_ne_bytes());
    }
}

/// Returns the time of `CLOCK_MONOTONIC`, the clock of `record -k mono`, in nanoseconds.
fn monotonic_time() -> io::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    Ok(seconds * 1_000_000_000 + nanos)
}
