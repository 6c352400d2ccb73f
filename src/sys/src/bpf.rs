//! The ids of loaded BPF programs, and programs for probes: bpf(2).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::bpf_load::{LoadOptions, load_program};
use crate::bpf_map::bpf;

/// `BPF_PROG_GET_NEXT_ID` (linux/bpf.h).
const PROG_GET_NEXT_ID: libc::c_int = 11;
/// `BPF_PROG_TYPE_KPROBE`, the type of programs for kprobes and uprobes.
const TYPE_KPROBE: u32 = 2;
/// `BPF_FUNC_trace_printk`.
const TRACE_PRINTK: i32 = 6;
/// The text that [`KprobeProgram::trace_printk`] writes. `bpf_trace_printk` requires a NUL at its end; further NULs pad it to
/// whole words, since the program stores it on its stack word by word.
const TEXT: &[u8; 16] = b"rperf uprobe\0\0\0\0";

/// The part of `union bpf_attr` for `BPF_PROG_GET_NEXT_ID`.
#[repr(C)]
#[derive(Default)]
struct NextIdAttr {
    start_id: u32,
    next_id: u32,
    open_flags: u32,
}

/// Returns the ids of all loaded BPF programs, ascending; none if the kernel lacks bpf(2).
///
/// # Errors
/// What bpf(2) reports: `EPERM` without `CAP_SYS_ADMIN`.
pub fn bpf_program_ids() -> io::Result<Vec<u32>> {
    let mut ids = Vec::new();
    let mut attr = NextIdAttr::default();
    loop {
        // SAFETY: the structure has the layout of the union's part for this command, and no pointers.
        if let Err(error) = unsafe { bpf(PROG_GET_NEXT_ID, &mut attr) } {
            return match error.raw_os_error() {
                // No program has a higher id, or the kernel lacks bpf(2).
                Some(libc::ENOENT | libc::ENOSYS) => Ok(ids),
                _ => Err(error),
            };
        }
        ids.push(attr.next_id);
        attr.start_id = attr.next_id;
    }
}

/// One instruction (`struct bpf_insn`).
#[derive(Debug, Clone, Copy)]
struct Instruction {
    code: u8,
    /// Destination in the low four bits, source in the high four; [`Self::encoded`] swaps them on big-endian machines.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The frame pointer, which is the end of the stack.
const R10: u8 = 10;

impl Instruction {
    const EXIT: Self = Self::new(0x95, 0, 0);

    const fn new(code: u8, registers: u8, immediate: i32) -> Self {
        Self {
            code,
            registers,
            offset: 0,
            immediate,
        }
    }

    /// Sets a register to a number.
    const fn set(register: u8, value: i32) -> Self {
        Self::new(0xb7, register, value)
    }

    /// Returns the instruction in the kernel's layout.
    fn encoded(&self) -> [u8; 8] {
        let registers = match cfg!(target_endian = "little") {
            true => self.registers,
            false => self.registers.rotate_left(4),
        };
        let [o0, o1] = self.offset.to_ne_bytes();
        let [i0, i1, i2, i3] = self.immediate.to_ne_bytes();
        [self.code, registers, o0, o1, i0, i1, i2, i3]
    }

    /// Stores four bytes at an offset from the frame pointer.
    const fn store(offset: i16, value: i32) -> Self {
        Self {
            offset,
            ..Self::new(0x62, R10, value)
        }
    }
}

/// A loaded BPF program for kprobes and uprobes.
#[derive(Debug)]
pub struct KprobeProgram(OwnedFd);

impl KprobeProgram {
    /// Loads a program that only returns 0.
    ///
    /// # Errors
    /// What bpf(2) reports: `EPERM` unless the user has both `CAP_BPF` and `CAP_PERFMON`, or `CAP_SYS_ADMIN`; `ENOSYS`.
    pub fn empty() -> io::Result<Self> {
        Self::load(&[Instruction::set(0, 0), Instruction::EXIT])
    }

    /// Loads a program that writes a line into the trace of tracefs each time it runs (`bpf_trace_printk`).
    ///
    /// # Errors
    /// As [`KprobeProgram::empty`].
    pub fn trace_printk() -> io::Result<Self> {
        let (words, _) = TEXT.as_chunks();
        let offsets = (-16..0_i16).step_by(4);
        let mut program: Vec<Instruction> = offsets
            .zip(words)
            .map(|(offset, word)| Instruction::store(offset, i32::from_ne_bytes(*word)))
            .collect();
        program.extend([
            // R1 = R10 - 16, the address of the text: a move from R10 (the high four bits) to R1, and an addition.
            Instruction::new(0xbf, R10 << 4 | 1, 0),
            Instruction::new(0x07, 1, -16),
            // R2 = 16, the size of the text.
            Instruction::set(2, 16),
            // Calls the helper.
            Instruction::new(0x85, 0, TRACE_PRINTK),
            Instruction::set(0, 0),
            Instruction::EXIT,
        ]);
        Self::load(&program)
    }

    fn load(program: &[Instruction]) -> io::Result<Self> {
        let encoded: Vec<[u8; 8]> = program.iter().map(Instruction::encoded).collect();
        let options = LoadOptions {
            kind: TYPE_KPROBE,
            ..LoadOptions::default()
        };
        let no_log: &mut [u8] = &mut [];
        load_program(&options, &encoded, no_log).map(Self)
    }
}

impl AsFd for KprobeProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only checks that the list is not empty while a program is loaded.
    #[test]
    fn a_loaded_program_is_listed() {
        let Ok(_program) = KprobeProgram::empty() else {
            return;
        };
        assert!(!bpf_program_ids().unwrap().is_empty());
    }

    #[test]
    fn the_kernel_verifies_the_programs() {
        for load in [KprobeProgram::empty, KprobeProgram::trace_printk] {
            match load() {
                Ok(_) => {}
                // The user lacks permission, or the kernel has no BPF. EINVAL and EACCES would mean an invalid program.
                Err(error) => {
                    let code = error.raw_os_error();
                    assert!(matches!(code, Some(libc::EPERM | libc::ENOSYS)), "{error}");
                }
            }
        }
    }
}
