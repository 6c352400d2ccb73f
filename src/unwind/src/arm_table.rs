//! `.ARM.exidx` and `.ARM.extab`: exception tables of 32-bit Arm ("Exception Handling ABI for the
//! Arm Architecture", chapters 6 and 7). Most programs for 32-bit Arm have no other frame information.
//!
//! The tables are valid at calls, where exceptions originate, but not in function prologues and epilogues.

use std::ops::Range;

use gimli::RunTimeEndian;

use crate::Arch;
use crate::arm_program;
use crate::frames::u32_at;
use crate::image::Image;
use crate::machine_code;
use crate::outcome::TruncationCause;
use crate::step::Step;

/// The index: one pair of words for each function, by ascending start address. The first word refers to the start of the
/// function; the second contains its unwind instructions, refers to them, or is [`CANT_UNWIND`].
#[derive(Debug)]
pub(crate) struct ArmTable {
    pub(crate) endian: RunTimeEndian,
    /// Address of the first pair.
    pub(crate) address: u64,
    /// Range of the index in the file.
    pub(crate) range: Range<usize>,
}

/// Size of a pair in bytes.
const PAIR: usize = 8;
/// Marks functions that can't be unwound (`EXIDX_CANTUNWIND`).
const CANT_UNWIND: u32 = 1;
/// Marks a word that contains unwind instructions itself, instead of an offset.
const IS_COMPACT: u32 = 1 << 31;
/// Personality routine 0: instructions in one word.
const ONE_WORD_ROUTINE: u32 = 0;
/// Personality routines 1 and 2: the byte after the routine's number tells how many further words contain instructions.
const MULTI_WORD_ROUTINES: [u32; 2] = [1, 2];

impl ArmTable {
    /// The step for `address`; `None` without an entry, or if the entry marks the function as one that can't be unwound. `exact`
    /// means that the instruction at `address` is executed next; otherwise `address` is that of the last byte of a call.
    pub(crate) fn step(
        &self,
        image: &Image,
        address: u64,
        exact: bool,
    ) -> Option<Result<Step, TruncationCause>> {
        let index = image.file.get(self.range.clone())?;
        let start = |pair: usize| self.target(index, pair * PAIR);
        let (mut low, mut high) = (0, index.len() / PAIR);
        while low < high {
            let middle = low + (high - low) / 2;
            if start(middle)? <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let pair = low.checked_sub(1)?;
        let word = u32_at(index, pair * PAIR + 4, self.endian)?;
        if word == CANT_UNWIND {
            return None;
        }
        if exact && start(pair)? == address {
            // At its first instruction, a function has not pushed anything yet.
            return Some(Ok(machine_code::link_register_step(Arch::Arm)));
        }
        let code = if word & IS_COMPACT == 0 {
            self.extab_instructions(image, self.target(index, pair * PAIR + 4)?)
        } else {
            compact(word, &[], self.endian)
        };
        Some(
            code.ok_or(TruncationCause::BadFrameInfo)
                .and_then(|code| arm_program::compile(&code)),
        )
    }

    /// The address that the word at `offset` in the index refers to by a 31-bit offset (`R_ARM_PREL31`), without the Thumb bit.
    fn target(&self, index: &[u8], offset: usize) -> Option<u64> {
        let distance = u32_at(index, offset, self.endian)?.cast_signed() << 1 >> 1;
        let from = self.address.wrapping_add(offset as u64);
        let to = from.wrapping_add_signed(distance.into());
        Some(Arch::Arm.code_address(Arch::Arm.truncate(to)))
    }

    /// The instructions of the `.ARM.extab` entry at `address`.
    fn extab_instructions(&self, image: &Image, address: u64) -> Option<Vec<u8>> {
        let bytes = image.file.get(image.range_from(address)?)?;
        let word = u32_at(bytes, 0, self.endian)?;
        if word & IS_COMPACT != 0 {
            return compact(word, bytes.get(4..)?, self.endian);
        }
        // The word refers to a custom personality routine. With all compilers, the next word begins with the number of further
        // words, and then has instructions.
        let word = u32_at(bytes, 4, self.endian)?;
        let [count, first @ ..] = word.to_be_bytes();
        instructions(&first, bytes.get(8..)?, count, self.endian)
    }
}

/// The instructions in compact form, starting with `word` and continued in `rest`; `None` if they are damaged, or for another
/// personality routine.
fn compact(word: u32, rest: &[u8], endian: RunTimeEndian) -> Option<Vec<u8>> {
    let [_, first, second, third] = word.to_be_bytes();
    match word >> 24 & 0x7f {
        ONE_WORD_ROUTINE => Some(vec![first, second, third]),
        number if MULTI_WORD_ROUTINES.contains(&number) => {
            let count = first;
            instructions(&[second, third], rest, count, endian)
        }
        _ => None,
    }
}

/// `first` and the bytes of `count` words of `rest`, high bytes first.
fn instructions(first: &[u8], rest: &[u8], count: u8, endian: RunTimeEndian) -> Option<Vec<u8>> {
    let mut all = first.to_vec();
    for index in 0..usize::from(count) {
        all.extend(u32_at(rest, index * 4, endian)?.to_be_bytes());
    }
    Some(all)
}
