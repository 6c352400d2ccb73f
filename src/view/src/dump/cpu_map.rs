//! CPUs as CPU_MAP and EVENT_UPDATE records hold them.

use std::fmt::Write as _;

use rperf_wire::{Cursor, DecodeError};

/// `PERF_CPU_MAP__CPUS`: a count, numbers of 16 bits.
const LIST: u16 = 0;
/// `PERF_CPU_MAP__MASK`: a count, the bytes of a word, words.
const MASK: u16 = 1;
/// `PERF_CPU_MAP__RANGE_CPUS`: whether any CPU is meant, too; first and last.
const RANGE: u16 = 2;
/// Any CPU.
const ANY: i32 = -1;

/// Reads the CPUs.
pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Vec<i32>, DecodeError> {
    match at.u16("kind of cpu map")? {
        LIST => {
            let count = at.u16("cpu count")?;
            let cpu = |_| Ok(i32::from(at.u16("cpu")?.cast_signed()));
            (0..count).map(cpu).collect()
        }
        MASK => mask(at),
        RANGE => {
            let any = at.u16("any cpu")?.to_ne_bytes() != [0, 0];
            let (first, last) = (at.u16("first cpu")?, at.u16("last cpu")?);
            let any = any.then_some(ANY).into_iter();
            Ok(any.chain((first..=last).map(i32::from)).collect())
        }
        _ => Ok(Vec::new()),
    }
}

fn mask(at: &mut Cursor<'_>) -> Result<Vec<i32>, DecodeError> {
    const WORD_64: u16 = 8;
    let count = at.u16("mask words")?;
    let size = at.u16("mask word size")?;
    if size == WORD_64 {
        at.u32("mask padding")?;
    }
    let mut cpus = Vec::new();
    let bits = i32::from(size) * 8;
    for number in 0..i32::from(count) {
        let word = match size {
            WORD_64 => at.u64("mask word")?,
            _ => u64::from(at.u32("mask word")?),
        };
        let set = (0..64).filter(|bit| word >> bit & 1 == 1);
        cpus.extend(set.map(|bit| number * bits + bit));
    }
    Ok(cpus)
}

/// `0-1,5`.
pub(super) fn text(cpus: &[i32]) -> String {
    let mut text = String::new();
    for run in cpus.chunk_by(|one, next| one.checked_add(1) == Some(*next)) {
        let comma = if text.is_empty() { "" } else { "," };
        // A String takes every write.
        let _ = match run {
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [one] => write!(text, "{comma}{one}"),
            [] => Ok(()),
        };
    }
    text
}
