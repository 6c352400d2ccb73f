//! Maps of threads and CPUs.

use super::put_name;
use crate::{Cursor, DecodeError, Encoder, until_nul};

/// `PERF_RECORD_THREAD_MAP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadMap {
    /// The threads.
    pub threads: Vec<ThreadMapEntry>,
}

/// One thread of a [`ThreadMap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadMapEntry {
    /// Thread id, named `pid` as in perf's structure; all bits set for any thread.
    pub pid: u64,
    /// Name of the thread.
    pub comm: Vec<u8>,
}

/// Size of the field for a thread's name, in bytes.
const COMM: usize = 16;

impl ThreadMap {
    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let count = at.u64("thread map nr")?;
        let threads = (0..count).map(|_| {
            let pid = at.u64("thread map pid")?;
            let comm = until_nul(at.take(COMM, "thread map comm")?).to_vec();
            Ok(ThreadMapEntry { pid, comm })
        });
        let threads = threads.collect::<Result<_, _>>()?;
        Ok(Self { threads })
    }

    pub(super) fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(self.threads.len() as u64);
        for thread in &self.threads {
            to.u64(thread.pid);
            put_name::<COMM>(to, &thread.comm);
        }
    }
}

/// `PERF_RECORD_CPU_MAP`, and the CPUs of an EVENT_UPDATE record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuMap {
    /// `PERF_CPU_MAP__CPUS`: CPU numbers; `u16::MAX` is "any CPU".
    List(Vec<u16>),
    /// `PERF_CPU_MAP__MASK` with words of 32 bits, lowest CPU first.
    Mask32(Vec<u32>),
    /// `PERF_CPU_MAP__MASK` with words of 64 bits, lowest CPU first.
    Mask64(Vec<u64>),
    /// `PERF_CPU_MAP__RANGE_CPUS`.
    Range {
        /// Whether "any CPU" is included.
        any: bool,
        /// First CPU.
        first: u16,
        /// Last CPU.
        last: u16,
    },
    /// An unknown encoding, by its number.
    Other(u16),
}

const LIST: u16 = 0;
const MASK: u16 = 1;
const RANGE: u16 = 2;

impl CpuMap {
    /// Decodes a map: its type, then the data of that type.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes end within the map.
    pub fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(match at.u16("cpu map type")? {
            LIST => {
                let count = at.u16("cpu map nr")?;
                let cpus = (0..count).map(|_| at.u16("cpu"));
                Self::List(cpus.collect::<Result<_, _>>()?)
            }
            MASK => Self::mask(at)?,
            RANGE => {
                let any = at.u8("any_cpu")? != 0;
                at.u8("cpu map pad")?;
                Self::Range {
                    any,
                    first: at.u16("start_cpu")?,
                    last: at.u16("end_cpu")?,
                }
            }
            other => Self::Other(other),
        })
    }

    /// Decodes a mask. Its words are unaligned; four bytes of padding precede 64-bit words.
    fn mask(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let (count, size) = (at.u16("mask nr")?, at.u16("mask long_size")?);
        Ok(if size == 8 {
            at.u32("mask pad")?;
            let words = (0..count).map(|_| at.u64("mask word"));
            Self::Mask64(words.collect::<Result<_, _>>()?)
        } else {
            let words = (0..count).map(|_| at.u32("mask word"));
            Self::Mask32(words.collect::<Result<_, _>>()?)
        })
    }

    /// The CPU numbers, without "any CPU".
    #[must_use]
    pub fn cpus(&self) -> Vec<u32> {
        let cpus_of_words = |words: &mut dyn Iterator<Item = (u32, u64)>, width: u32| {
            let mut cpus = Vec::new();
            for (index, word) in words {
                let set_bits = (0..width).filter(|bit| word >> bit & 1 == 1);
                cpus.extend(set_bits.map(|bit| index * width + bit));
            }
            cpus
        };
        match self {
            Self::List(cpus) => {
                let numbers = cpus.iter().filter(|cpu| **cpu != u16::MAX);
                numbers.map(|cpu| u32::from(*cpu)).collect()
            }
            Self::Mask32(words) => {
                let words = words.iter().map(|word| u64::from(*word));
                cpus_of_words(&mut (0..).zip(words), u32::BITS)
            }
            Self::Mask64(words) => cpus_of_words(&mut (0..).zip(words.iter().copied()), u64::BITS),
            Self::Range { first, last, .. } => (*first..=*last).map(u32::from).collect(),
            Self::Other(_) => Vec::new(),
        }
    }

    /// Appends the map; a list or mask is truncated to 65,535 CPUs or words.
    pub fn encode(&self, to: &mut Encoder<'_>) {
        let max_len = usize::from(u16::MAX);
        let count = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
        match self {
            Self::List(cpus) => {
                to.u16(LIST);
                to.u16(count(cpus.len()));
                cpus.iter().take(max_len).for_each(|cpu| to.u16(*cpu));
            }
            Self::Mask32(words) => {
                to.u16(MASK);
                to.u16(count(words.len()));
                let long_size = 4;
                to.u16(long_size);
                words.iter().take(max_len).for_each(|word| to.u32(*word));
            }
            Self::Mask64(words) => {
                to.u16(MASK);
                to.u16(count(words.len()));
                let (long_size, padding) = (8, 0);
                to.u16(long_size);
                to.u32(padding);
                words.iter().take(max_len).for_each(|word| to.u64(*word));
            }
            Self::Range { any, first, last } => {
                to.u16(RANGE);
                to.bytes(&[u8::from(*any), 0]);
                to.u16(*first);
                to.u16(*last);
            }
            Self::Other(kind) => to.u16(*kind),
        }
    }
}
