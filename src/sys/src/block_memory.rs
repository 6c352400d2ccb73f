//! Copies and fills memory with given instructions of x86-64.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;

/// Instructions that copy or fill blocks of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockInstructions {
    /// A loop of 64-bit moves that copies or fills 64 bytes in each round.
    Unrolled,
    /// `rep movsq`, `rep stosq`: eight bytes at a time.
    Quadwords,
    /// `rep movsb`, `rep stosb`: a byte at a time.
    Bytes,
}

impl BlockInstructions {
    /// Copies as many bytes as the shorter slice has: whole rounds with these instructions, the bytes after the last round
    /// with a plain copy. On architectures other than x86-64, which have none of these instructions, only the bytes after the
    /// last round are copied.
    pub fn copy(self, to: &mut [u8], from: &[u8]) {
        let length = to.len().min(from.len());
        let (Some(to), Some(from)) = (to.get_mut(..length), from.get(..length)) else {
            return;
        };
        let whole = length - length % self.round_size();
        let (to_whole, to_rest) = to.split_at_mut(whole);
        let (from_whole, from_rest) = from.split_at(whole);
        copy(self, to_whole, from_whole);
        to_rest.copy_from_slice(from_rest);
    }

    /// Sets all bytes to `byte`: whole rounds with these instructions, the bytes after the last round with a plain fill. On
    /// architectures other than x86-64, which have none of these instructions, only the bytes after the last round are set.
    pub fn fill(self, to: &mut [u8], byte: u8) {
        let whole = to.len() - to.len() % self.round_size();
        let (to_whole, to_rest) = to.split_at_mut(whole);
        fill(self, to_whole, byte);
        to_rest.fill(byte);
    }

    /// Number of bytes that a round copies or fills.
    fn round_size(self) -> usize {
        match self {
            Self::Unrolled => 64,
            Self::Quadwords => 8,
            Self::Bytes => 1,
        }
    }
}

/// Copies slices of the same length, a multiple of the round size.
#[cfg(target_arch = "x86_64")]
fn copy(instructions: BlockInstructions, to: &mut [u8], from: &[u8]) {
    let rounds = to.len() / instructions.round_size();
    if rounds == 0 {
        return;
    }
    let (target, source) = (to.as_mut_ptr(), from.as_ptr());
    // SAFETY: `rounds` times the round size is the length of both slices; the direction flag is clear by the ABI.
    unsafe {
        match instructions {
            BlockInstructions::Bytes => asm!(
                "rep movsb",
                inout("rcx") rounds => _, inout("rdi") target => _, inout("rsi") source => _,
                options(nostack, preserves_flags)
            ),
            BlockInstructions::Quadwords => asm!(
                "rep movsq",
                inout("rcx") rounds => _, inout("rdi") target => _, inout("rsi") source => _,
                options(nostack, preserves_flags)
            ),
            BlockInstructions::Unrolled => asm!(
                "2:",
                "mov {a}, [{from}]", "mov {b}, [{from} + 8]",
                "mov {c}, [{from} + 16]", "mov {d}, [{from} + 24]",
                "mov [{to}], {a}", "mov [{to} + 8], {b}",
                "mov [{to} + 16], {c}", "mov [{to} + 24], {d}",
                "mov {a}, [{from} + 32]", "mov {b}, [{from} + 40]",
                "mov {c}, [{from} + 48]", "mov {d}, [{from} + 56]",
                "mov [{to} + 32], {a}", "mov [{to} + 40], {b}",
                "mov [{to} + 48], {c}", "mov [{to} + 56], {d}",
                "add {from}, 64", "add {to}, 64", "dec {n}", "jnz 2b",
                from = inout(reg) source => _, to = inout(reg) target => _, n = inout(reg) rounds => _,
                a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
                options(nostack)
            ),
        }
    }
}

/// Fills a slice whose length is a multiple of the round size.
#[cfg(target_arch = "x86_64")]
fn fill(instructions: BlockInstructions, to: &mut [u8], byte: u8) {
    let rounds = to.len() / instructions.round_size();
    if rounds == 0 {
        return;
    }
    let target = to.as_mut_ptr();
    let word = u64::from_ne_bytes([byte; 8]);
    // SAFETY: `rounds` times the round size is the length of the slice; the direction flag is clear by the ABI.
    unsafe {
        match instructions {
            BlockInstructions::Bytes => asm!(
                "rep stosb",
                inout("rcx") rounds => _, inout("rdi") target => _, in("al") byte,
                options(nostack, preserves_flags)
            ),
            BlockInstructions::Quadwords => asm!(
                "rep stosq",
                inout("rcx") rounds => _, inout("rdi") target => _, in("rax") word,
                options(nostack, preserves_flags)
            ),
            BlockInstructions::Unrolled => asm!(
                "2:",
                "mov [{to}], {word}", "mov [{to} + 8], {word}",
                "mov [{to} + 16], {word}", "mov [{to} + 24], {word}",
                "mov [{to} + 32], {word}", "mov [{to} + 40], {word}",
                "mov [{to} + 48], {word}", "mov [{to} + 56], {word}",
                "add {to}, 64", "dec {n}", "jnz 2b",
                to = inout(reg) target => _, n = inout(reg) rounds => _, word = in(reg) word,
                options(nostack)
            ),
        }
    }
}

// Callers do not offer these instructions on other architectures.
#[cfg(not(target_arch = "x86_64"))]
fn copy(_: BlockInstructions, _: &mut [u8], _: &[u8]) {}

#[cfg(not(target_arch = "x86_64"))]
fn fill(_: BlockInstructions, _: &mut [u8], _: u8) {}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_and_filled_and_no_other() {
        let source: Vec<u8> = (0..=255).cycle().take(300).collect();
        for instructions in [
            BlockInstructions::Unrolled,
            BlockInstructions::Quadwords,
            BlockInstructions::Bytes,
        ] {
            for length in [0, 1, 7, 8, 63, 64, 65, 130, 256] {
                let mut target = vec![1; 300];
                instructions.copy(&mut target[..length], &source);
                assert_eq!(
                    target[..length],
                    source[..length],
                    "{instructions:?} {length}"
                );
                assert!(
                    target[length..].iter().all(|byte| *byte == 1),
                    "{instructions:?}"
                );
                instructions.fill(&mut target[..length], 9);
                assert!(
                    target[..length].iter().all(|byte| *byte == 9),
                    "{instructions:?}"
                );
                assert!(
                    target[length..].iter().all(|byte| *byte == 1),
                    "{instructions:?}"
                );
            }
        }
    }
}
