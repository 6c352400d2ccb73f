//! memcpy(3), memmove(3), memcmp(3) and bcmp(3) for x86-64 builds with musl.
//!
//! musl copies with `rep movsq`, whose startup takes longer than copying a text field of a few dozen bytes, and compares
//! byte by byte. In builds with musl, the functions of this file replace those of musl; other builds have them in tests only.
//! They are assembly because a compiler may turn loops over memory into calls of these very functions.

use std::arch::naked_asm;

/// Copies `count` bytes; source and destination may overlap. Returns the destination.
///
/// Copies of up to 128 bytes load all bytes before they store the first. Longer copies go upwards, or downwards if the
/// destination begins inside the source.
///
/// # Safety
/// That of memmove(3).
#[cfg_attr(not(test), unsafe(export_name = "memmove"))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn move_bytes(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        // The returned value, also of the functions to which this one jumps.
        "mov rax, rdi",
        "cmp rdx, 16",
        "jb {few}",
        "cmp rdx, 32",
        "ja {more}",
        "movups xmm0, [rsi]",
        "movups xmm1, [rsi + rdx - 16]",
        "movups [rdi], xmm0",
        "movups [rdi + rdx - 16], xmm1",
        "ret",
        few = sym move_few,
        more = sym move_more,
    )
}

/// [`move_bytes`] of less than 16 bytes.
///
/// # Safety
/// That of [`move_bytes`].
#[unsafe(naked)]
unsafe extern "C" fn move_few(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "cmp edx, 8",
        "jb 21f",
        "mov rcx, [rsi]",
        "mov r8, [rsi + rdx - 8]",
        "mov [rdi], rcx",
        "mov [rdi + rdx - 8], r8",
        "ret",
        "21:",
        "cmp edx, 4",
        "jb 22f",
        "mov ecx, [rsi]",
        "mov r8d, [rsi + rdx - 4]",
        "mov [rdi], ecx",
        "mov [rdi + rdx - 4], r8d",
        "ret",
        "22:",
        "test edx, edx",
        "jz 24f",
        "movzx r8d, byte ptr [rsi + rdx - 1]",
        "cmp edx, 1",
        "je 23f",
        "movzx ecx, word ptr [rsi]",
        "mov [rdi], cx",
        "23:",
        "mov [rdi + rdx - 1], r8b",
        "24:",
        "ret",
    )
}

/// [`move_bytes`] of 33 to 128 bytes. Longer copies are passed to [`move_up`].
///
/// # Safety
/// That of [`move_bytes`].
#[unsafe(naked)]
unsafe extern "C" fn move_more(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "cmp rdx, 64",
        "ja 40f",
        "movups xmm0, [rsi]",
        "movups xmm1, [rsi + 16]",
        "movups xmm2, [rsi + rdx - 32]",
        "movups xmm3, [rsi + rdx - 16]",
        "movups [rdi], xmm0",
        "movups [rdi + 16], xmm1",
        "movups [rdi + rdx - 32], xmm2",
        "movups [rdi + rdx - 16], xmm3",
        "ret",
        "40:",
        "cmp rdx, 128",
        "ja {long}",
        "movups xmm0, [rsi]",
        "movups xmm1, [rsi + 16]",
        "movups xmm2, [rsi + 32]",
        "movups xmm3, [rsi + 48]",
        "movups xmm4, [rsi + rdx - 64]",
        "movups xmm5, [rsi + rdx - 48]",
        "movups xmm6, [rsi + rdx - 32]",
        "movups xmm7, [rsi + rdx - 16]",
        "movups [rdi], xmm0",
        "movups [rdi + 16], xmm1",
        "movups [rdi + 32], xmm2",
        "movups [rdi + 48], xmm3",
        "movups [rdi + rdx - 64], xmm4",
        "movups [rdi + rdx - 48], xmm5",
        "movups [rdi + rdx - 32], xmm6",
        "movups [rdi + rdx - 16], xmm7",
        "ret",
        long = sym move_up,
    )
}

/// [`move_bytes`] of more than 128 bytes, upwards. If the destination begins inside the source, [`move_down`] copies instead.
///
/// # Safety
/// That of [`move_bytes`].
#[unsafe(naked)]
unsafe extern "C" fn move_up(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "mov rcx, rdi",
        "sub rcx, rsi",
        "cmp rcx, rdx",
        "jb {down}",
        "cmp rdx, 2048",
        "jae 60f",
        // 64 bytes at a time; the last 64 are loaded first, and stored last.
        "movups xmm4, [rsi + rdx - 64]",
        "movups xmm5, [rsi + rdx - 48]",
        "movups xmm6, [rsi + rdx - 32]",
        "movups xmm7, [rsi + rdx - 16]",
        "lea r8, [rdi + rdx - 64]",
        "51:",
        "movups xmm0, [rsi]",
        "movups xmm1, [rsi + 16]",
        "movups xmm2, [rsi + 32]",
        "movups xmm3, [rsi + 48]",
        "add rsi, 64",
        "movups [rdi], xmm0",
        "movups [rdi + 16], xmm1",
        "movups [rdi + 32], xmm2",
        "movups [rdi + 48], xmm3",
        "add rdi, 64",
        "cmp rdi, r8",
        "jb 51b",
        "movups [r8], xmm4",
        "movups [r8 + 16], xmm5",
        "movups [r8 + 32], xmm6",
        "movups [r8 + 48], xmm7",
        "ret",
        // 2 KiB or more: the startup of `rep movsq` takes little time. The last 16 bytes are loaded first, and stored last.
        "60:",
        "movups xmm4, [rsi + rdx - 16]",
        "lea r8, [rdi + rdx - 16]",
        "mov rcx, rdx",
        "shr rcx, 3",
        "rep movsq",
        "movups [r8], xmm4",
        "ret",
        down = sym move_down,
    )
}

/// [`move_bytes`] of more than 128 bytes, downwards; the first 64 are loaded first, and stored last.
///
/// # Safety
/// That of [`move_bytes`].
#[unsafe(naked)]
unsafe extern "C" fn move_down(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "movups xmm4, [rsi]",
        "movups xmm5, [rsi + 16]",
        "movups xmm6, [rsi + 32]",
        "movups xmm7, [rsi + 48]",
        "lea r8, [rdi + 64]",
        "add rsi, rdx",
        "add rdi, rdx",
        "71:",
        "movups xmm0, [rsi - 64]",
        "movups xmm1, [rsi - 48]",
        "movups xmm2, [rsi - 32]",
        "movups xmm3, [rsi - 16]",
        "sub rsi, 64",
        "movups [rdi - 64], xmm0",
        "movups [rdi - 48], xmm1",
        "movups [rdi - 32], xmm2",
        "movups [rdi - 16], xmm3",
        "sub rdi, 64",
        "cmp rdi, r8",
        "ja 71b",
        "movups [rax], xmm4",
        "movups [rax + 16], xmm5",
        "movups [rax + 32], xmm6",
        "movups [rax + 48], xmm7",
        "ret",
    )
}

/// Copies `count` bytes. Returns the destination.
///
/// # Safety
/// That of memcpy(3).
#[cfg_attr(not(test), unsafe(export_name = "memcpy"))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn copy_bytes(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!("jmp {}", sym move_bytes)
}

/// Compares `count` bytes as unsigned numbers. Returns a negative number, 0 or a positive one.
///
/// # Safety
/// That of memcmp(3).
#[cfg_attr(not(test), unsafe(export_name = "memcmp"))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn compare_bytes(
    one: *const u8,
    other: *const u8,
    count: usize,
) -> i32 {
    naked_asm!(
        "cmp rdx, 16",
        "jb {few}",
        "lea r8, [rdx - 16]",
        "xor ecx, ecx",
        "10:",
        "cmp rcx, r8",
        "jae 11f",
        "movups xmm0, [rdi + rcx]",
        "movups xmm1, [rsi + rcx]",
        "pcmpeqb xmm0, xmm1",
        "pmovmskb eax, xmm0",
        "sub eax, 0xffff",
        "jnz 12f",
        "add rcx, 16",
        "jmp 10b",
        // The last 16 bytes.
        "11:",
        "mov rcx, r8",
        "movups xmm0, [rdi + rcx]",
        "movups xmm1, [rsi + rcx]",
        "pcmpeqb xmm0, xmm1",
        "pmovmskb eax, xmm0",
        "sub eax, 0xffff",
        "jnz 12f",
        "ret",
        // EAX is minus the mask of the different bytes: its lowest set bit is that of the first different byte.
        "12:",
        "bsf eax, eax",
        "add rcx, rax",
        "movzx eax, byte ptr [rdi + rcx]",
        "movzx edx, byte ptr [rsi + rcx]",
        "sub eax, edx",
        "ret",
        few = sym compare_few,
    )
}

/// [`compare_bytes`] of less than 16 bytes.
///
/// # Safety
/// That of [`compare_bytes`].
#[unsafe(naked)]
unsafe extern "C" fn compare_few(one: *const u8, other: *const u8, count: usize) -> i32 {
    naked_asm!(
        "cmp edx, 8",
        "jb 21f",
        "mov rax, [rdi]",
        "mov rcx, [rsi]",
        "cmp rax, rcx",
        "jne 30f",
        "mov rax, [rdi + rdx - 8]",
        "mov rcx, [rsi + rdx - 8]",
        "cmp rax, rcx",
        "jne 30f",
        "xor eax, eax",
        "ret",
        "21:",
        "cmp edx, 4",
        "jb 22f",
        "mov eax, [rdi]",
        "mov ecx, [rsi]",
        "cmp eax, ecx",
        "jne 30f",
        "mov eax, [rdi + rdx - 4]",
        "mov ecx, [rsi + rdx - 4]",
        "cmp eax, ecx",
        "jne 30f",
        "xor eax, eax",
        "ret",
        "22:",
        "xor eax, eax",
        "test edx, edx",
        "jz 24f",
        "xor r8d, r8d",
        "23:",
        "movzx eax, byte ptr [rdi + r8]",
        "movzx ecx, byte ptr [rsi + r8]",
        "sub eax, ecx",
        "jnz 24f",
        "inc r8d",
        "cmp r8d, edx",
        "jb 23b",
        "24:",
        "ret",
        // Two different numbers, whose first bytes in memory count most.
        "30:",
        "bswap rax",
        "bswap rcx",
        "cmp rax, rcx",
        "sbb eax, eax",
        "or eax, 1",
        "ret",
    )
}

/// Compares `count` bytes. Returns 0 if they are equal, otherwise another number.
///
/// # Safety
/// That of bcmp(3).
#[cfg_attr(not(test), unsafe(export_name = "bcmp"))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn differ(one: *const u8, other: *const u8, count: usize) -> i32 {
    naked_asm!("jmp {}", sym compare_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths around every limit of the functions.
    fn lengths() -> impl Iterator<Item = usize> {
        (0..300).chain(2030..2070).chain([4096, 5000])
    }

    /// Bytes without short repetitions.
    fn pattern(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        std::iter::repeat_with(&mut next).take(length).collect()
    }

    #[test]
    fn copies_equal_those_of_the_standard_library() {
        const ROOM: usize = 256;
        let original = pattern(6000);
        for length in lengths() {
            for distance in [0, 1, 3, 7, 8, 15, 16, 17, 33, 63, 64, 65, 127, 128, 200] {
                for (from, to) in [(ROOM, ROOM + distance), (ROOM + distance, ROOM)] {
                    let mut expected = original.clone();
                    expected.copy_within(from..from + length, to);
                    let mut actual = original.clone();
                    let base = actual.as_mut_ptr();
                    // SAFETY: both ranges are inside the vector.
                    let returned = unsafe { move_bytes(base.add(to), base.add(from), length) };
                    assert_eq!(returned as usize, base as usize + to);
                    assert!(actual == expected, "{length} bytes from {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn copies_change_no_bytes_outside_the_destination() {
        let from = pattern(5100);
        for length in lengths() {
            for offset in 0..17 {
                let mut to = vec![0xaa; length + 40];
                // SAFETY: both ranges are inside the vectors.
                unsafe {
                    copy_bytes(
                        to.as_mut_ptr().add(offset),
                        from.as_ptr().add(offset),
                        length,
                    )
                };
                assert!(to[..offset].iter().all(|byte| *byte == 0xaa));
                assert!(
                    to[offset..offset + length] == from[offset..offset + length],
                    "{length}"
                );
                assert!(to[offset + length..].iter().all(|byte| *byte == 0xaa));
            }
        }
    }

    #[test]
    fn comparisons_have_the_sign_of_the_first_different_byte() {
        for length in lengths() {
            let one = pattern(length);
            // SAFETY: the length is that of both.
            let same = unsafe { compare_bytes(one.as_ptr(), one.as_ptr(), length) };
            assert_eq!(same, 0);
            for at in (0..length).rev().take(40).chain((0..length).take(40)) {
                let mut other = one.clone();
                // For nearly all values, the result would have the opposite sign if bytes were compared as signed numbers.
                other[at] = other[at].wrapping_add(0x81);
                // Bytes after the first difference do not count.
                if let Some(last) = other.last_mut().filter(|_| at + 1 < length) {
                    *last ^= 0xff;
                }
                let expected = one.cmp(&other) as i32;
                // SAFETY: the length is that of both.
                let (result, unequal) = unsafe {
                    let result = compare_bytes(one.as_ptr(), other.as_ptr(), length);
                    (result, differ(one.as_ptr(), other.as_ptr(), length))
                };
                assert_eq!(
                    result.signum(),
                    expected,
                    "{length} bytes, different at {at}"
                );
                assert_ne!(unequal, 0);
            }
        }
    }
}
