//! `.ARM.exidx` and `.ARM.extab`: what 32-bit Arm has for throwing exceptions ("Exception Handling ABI for the Arm
//! Architecture", chapters 6 and 7). Nothing else tells of frames in most of its programs.
//!
//! What it says holds at calls, where exceptions come from, and not yet while a function sets up its frame.

use std::ops::Range;

use gimli::RunTimeEndian;

use crate::Arch;
use crate::arm_program;
use crate::frames::u32_at;
use crate::image::Image;
use crate::machine_code;
use crate::outcome::Cause;
use crate::step::Step;

/// The index: pairs of words by rising address, of which the first is the start of a function.
#[derive(Debug)]
pub(crate) struct ArmTable {
    pub(crate) endian: RunTimeEndian,
    /// Of the first pair.
    pub(crate) address: u64,
    /// Where it stands in the file.
    pub(crate) range: Range<usize>,
}

/// Bytes of a pair.
const PAIR: usize = 8;
/// In the place of frame information, for functions that nothing is thrown through (`EXIDX_CANTUNWIND`).
const NOTHING: u32 = 1;
/// What is not an offset, but instructions.
const IS_COMPACT: u32 = 1 << 31;
/// Instructions fit into one word with the number of the personality routine.
const SHORT: u32 = 0;
/// Instructions go on in as many words as the second byte says.
const LONG: [u32; 2] = [1, 2];

impl ArmTable {
    /// The step for `address`; `None` where nothing is said of it. `exact` is whether that instruction is the next to run.
    pub(crate) fn step(
        &self,
        image: &Image,
        address: u64,
        exact: bool,
    ) -> Option<Result<Step, Cause>> {
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
        if word == NOTHING {
            return None;
        }
        if exact && start(pair)? == address {
            return Some(Ok(machine_code::linked(Arch::Arm)));
        }
        let code = if word & IS_COMPACT == 0 {
            self.listed(image, self.target(index, pair * PAIR + 4)?)
        } else {
            compact(word, &[], self.endian)
        };
        Some(
            code.ok_or(Cause::BadFrameInfo)
                .and_then(|code| arm_program::compile(&code)),
        )
    }

    /// The address that the word at `offset` in the index refers to: a distance in 31 bits (`R_ARM_PREL31`). The lowest
    /// bit may mark Thumb code.
    fn target(&self, index: &[u8], offset: usize) -> Option<u64> {
        let distance = u32_at(index, offset, self.endian)?.cast_signed() << 1 >> 1;
        let from = self.address.wrapping_add(offset as u64);
        let to = from.wrapping_add_signed(distance.into());
        Some(Arch::Arm.code_address(Arch::Arm.truncate(to)))
    }

    /// The instructions of the entry at `address` of `.ARM.extab`.
    fn listed(&self, image: &Image, address: u64) -> Option<Vec<u8>> {
        let bytes = image.file.get(image.range_from(address)?)?;
        let word = u32_at(bytes, 0, self.endian)?;
        if word & IS_COMPACT != 0 {
            return compact(word, bytes.get(4..)?, self.endian);
        }
        // An own personality routine: those of all compilers keep the number of further words, then instructions.
        let word = u32_at(bytes, 4, self.endian)?;
        let [count, first @ ..] = word.to_be_bytes();
        instructions(&first, bytes.get(8..)?, count, self.endian)
    }
}

/// The instructions in the compact form that begins with `word` and goes on with `rest`.
fn compact(word: u32, rest: &[u8], endian: RunTimeEndian) -> Option<Vec<u8>> {
    let [_, first, second, third] = word.to_be_bytes();
    match word >> 24 & 0x7f {
        SHORT => Some(vec![first, second, third]),
        number if LONG.contains(&number) => instructions(&[second, third], rest, first, endian),
        _ => None,
    }
}

/// `first` and the bytes of `count` words of `rest`, high ones first.
fn instructions(first: &[u8], rest: &[u8], count: u8, endian: RunTimeEndian) -> Option<Vec<u8>> {
    let mut all = first.to_vec();
    for word in 0..usize::from(count) {
        all.extend(u32_at(rest, word * 4, endian)?.to_be_bytes());
    }
    Some(all)
}
