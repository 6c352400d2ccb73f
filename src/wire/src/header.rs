//! `struct perf_event_header` and iteration over records.

use crate::{Cursor, DecodeError, Encoder, Endian, RecordKind};

/// `perf_event_header::misc`: the CPU mode of the record and per-type flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Misc(pub u16);

impl Misc {
    /// The bits of the CPU mode (`PERF_RECORD_MISC_CPUMODE_MASK`).
    const CPU_MODE: Self = Self(7);
    /// The mode of the kernel (`PERF_RECORD_MISC_KERNEL`).
    pub const KERNEL: Self = Self(1);
    /// The mode of user space (`PERF_RECORD_MISC_USER`).
    pub const USER: Self = Self(2);
    /// MMAP: the mapping holds data, not code (`PERF_RECORD_MISC_MMAP_DATA`).
    pub const MMAP_DATA: Self = Self(1 << 13);
    /// MMAP: reading the mappings of the process timed out at this record
    /// (`PERF_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT`).
    pub const PROC_MAP_PARSE_TIMEOUT: Self = Self(1 << 12);
    /// COMM: the name was changed by exec (`PERF_RECORD_MISC_COMM_EXEC`).
    pub const COMM_EXEC: Self = Self(1 << 13);
    /// FORK: synthesized by perf from /proc; the child inherits no mappings
    /// (`PERF_RECORD_MISC_FORK_EXEC`).
    pub const FORK_EXEC: Self = Self(1 << 13);
    /// SWITCH: the task left the CPU (`PERF_RECORD_MISC_SWITCH_OUT`).
    pub const SWITCH_OUT: Self = Self(1 << 13);
    /// Sample: the instruction pointer is exact (`PERF_RECORD_MISC_EXACT_IP`).
    pub const EXACT_IP: Self = Self(1 << 14);
    /// SWITCH: the task was preempted (`PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`).
    pub const SWITCH_OUT_PREEMPT: Self = Self(1 << 14);
    /// MMAP2: device and inode are replaced by a build-id (`PERF_RECORD_MISC_MMAP_BUILD_ID`).
    pub const MMAP_BUILD_ID: Self = Self(1 << 14);
    /// HEADER_BUILD_ID: the record has the size of the build-id (`PERF_RECORD_MISC_BUILD_ID_SIZE`).
    pub const BUILD_ID_SIZE: Self = Self(1 << 15);

    /// Whether all bits of `flag` are set.
    #[must_use]
    pub const fn contains(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }

    /// The bits of the CPU mode, without flags.
    #[must_use]
    pub const fn mode_bits(self) -> Self {
        Self(self.0 & Self::CPU_MODE.0)
    }

    /// The CPU mode (lowest three bits).
    #[must_use]
    pub const fn cpu_mode(self) -> CpuMode {
        match self.mode_bits() {
            Self::KERNEL => CpuMode::Kernel,
            Self::USER => CpuMode::User,
            Self(3) => CpuMode::Hypervisor,
            Self(4) => CpuMode::GuestKernel,
            Self(5) => CpuMode::GuestUser,
            _ => CpuMode::Unknown,
        }
    }
}

/// Mode of the CPU when a record was written (`PERF_RECORD_MISC_CPUMODE_MASK`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuMode {
    /// Unknown.
    Unknown = 0,
    /// The kernel.
    Kernel = 1,
    /// User space.
    User = 2,
    /// A hypervisor.
    Hypervisor = 3,
    /// A guest's kernel.
    GuestKernel = 4,
    /// A guest's user space.
    GuestUser = 5,
}

impl CpuMode {
    /// The mode to which an address of the host belongs: [`Self::Kernel`] in the upper half of the address space, as on x86-64
    /// and arm64, otherwise [`Self::User`].
    #[must_use]
    pub const fn of_address(address: u64) -> Self {
        match address >> 63 {
            0 => Self::User,
            _ => Self::Kernel,
        }
    }
}

/// `struct perf_event_header`, the first eight bytes of every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Record type.
    pub kind: RecordKind,
    /// Mode and flags.
    pub misc: Misc,
    /// Size of the whole record in bytes, header included; for simpleperf's own types its low 16 bits.
    pub size: u16,
}

impl RecordHeader {
    /// Size of the header itself, in bytes.
    pub const SIZE: usize = 8;

    /// Decodes the first eight bytes.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when there are fewer.
    pub fn decode(bytes: &[u8], endian: Endian) -> Result<Self, DecodeError> {
        let mut at = Cursor::new(bytes, endian);
        Ok(Self {
            kind: RecordKind(at.u32("header type")?),
            misc: Misc(at.u16("header misc")?),
            size: at.u16("header size")?,
        })
    }

    /// Size of the whole record in bytes. For simpleperf's own types `misc` holds the high 16 bits.
    #[inline]
    #[must_use]
    pub fn record_size(&self) -> usize {
        if self.kind.is_simpleperf() {
            usize::from(self.misc.0) << 16 | usize::from(self.size)
        } else {
            usize::from(self.size)
        }
    }

    /// Appends the eight bytes.
    pub fn encode(&self, to: &mut Encoder<'_>) {
        to.u32(self.kind.0);
        to.u16(self.misc.0);
        to.u16(self.size);
    }

    /// Appends a record: a header and the body that `body` appends. Returns `false` and appends
    /// nothing if the record is larger than a header can describe (65535 bytes).
    pub fn encode_record(
        kind: RecordKind,
        misc: Misc,
        out: &mut Vec<u8>,
        endian: Endian,
        body: impl FnOnce(&mut Encoder<'_>),
    ) -> bool {
        let start = out.len();
        let mut to = Encoder::new(out, endian);
        // The size is the last field of the header and known only after the body.
        Self {
            kind,
            misc,
            size: 0,
        }
        .encode(&mut to);
        let body_start = to.len();
        body(&mut to);
        let size = u16::try_from(out.len() - start);
        let size_bytes = size.map(|size| match endian {
            Endian::Little => size.to_le_bytes(),
            Endian::Big => size.to_be_bytes(),
        });
        match (size_bytes, out.get_mut(body_start - 2..body_start)) {
            (Ok(size_bytes), Some(place)) => {
                place.copy_from_slice(&size_bytes);
                true
            }
            _ => {
                out.truncate(start);
                false
            }
        }
    }
}

/// A record that is not decoded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Record type.
    pub kind: RecordKind,
    /// Mode and flags; none for simpleperf's own types.
    pub misc: Misc,
    /// Everything after the header, the sample id trailer included.
    pub body: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Splits off the first record of `bytes` and returns it with its size; `None` if the header or
    /// the record is incomplete, or its size is smaller than a header.
    #[inline]
    #[must_use]
    pub fn split(bytes: &'a [u8], endian: Endian) -> Option<(Self, usize)> {
        let [a, b, c, d, e, f, g, h] = *bytes.first_chunk()?;
        let header = RecordHeader {
            kind: RecordKind(endian.u32([a, b, c, d])),
            misc: Misc(endian.u16([e, f])),
            size: endian.u16([g, h]),
        };
        let size = header.record_size();
        let body = bytes.get(RecordHeader::SIZE..size)?;
        let (kind, mut misc) = (header.kind, header.misc);
        if kind.is_simpleperf() {
            misc = Misc::default();
        }
        Some((Self { kind, misc, body }, size))
    }

    /// Like [`RawRecord::split`] for a sample; `None` also for a record of another type. For loops over millions of
    /// samples.
    #[inline(always)]
    #[must_use]
    pub fn split_sample(bytes: &'a [u8], endian: Endian) -> Option<(Self, usize)> {
        let word = endian.u64(*bytes.first_chunk()?);
        let (kind, misc, size) = match endian {
            Endian::Little => (word as u32, (word >> 32) as u16, (word >> 48) as u16),
            Endian::Big => ((word >> 32) as u32, (word >> 16) as u16, word as u16),
        };
        if kind != RecordKind::SAMPLE.0 {
            return None;
        }
        let size = usize::from(size);
        let sample = Self {
            kind: RecordKind::SAMPLE,
            misc: Misc(misc),
            body: bytes.get(RecordHeader::SIZE..size)?,
        };
        Some((sample, size))
    }

    /// Iterates over the complete records at the start of `bytes`, each with its bytes, header included.
    pub fn all(bytes: &'a [u8], endian: Endian) -> impl Iterator<Item = (Self, &'a [u8])> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let (raw, size) = Self::split(rest, endian)?;
            let (record_bytes, after) = rest.split_at(size);
            rest = after;
            Some((raw, record_bytes))
        })
    }

    /// Appends the record with its header: the inverse of [`RawRecord::split`]. Appends nothing if
    /// the body is too long for the header.
    pub fn encode(&self, endian: Endian, out: &mut Vec<u8>) {
        let size = RecordHeader::SIZE + self.body.len();
        let Ok(high) = u16::try_from(size >> 16) else {
            return;
        };
        let misc = match self.kind.is_simpleperf() {
            true => Misc(high),
            false if high == 0 => self.misc,
            false => return,
        };
        let header = RecordHeader {
            kind: self.kind,
            misc,
            size: u16::try_from(size & 0xffff).unwrap_or_default(),
        };
        header.encode(&mut Encoder::new(out, endian));
        out.extend_from_slice(self.body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_only_complete_records() {
        let mut bytes = Vec::new();
        let header = RecordHeader {
            kind: RecordKind::COMM,
            misc: Misc(1 << 13 | 2),
            size: 12,
        };
        let mut to = Encoder::new(&mut bytes, Endian::Big);
        header.encode(&mut to);
        to.u32(77);
        let (record, size) = RawRecord::split(&bytes, Endian::Big).unwrap();
        assert_eq!(
            (record.kind, size, record.body.len()),
            (RecordKind::COMM, 12, 4)
        );
        assert_eq!(record.misc.cpu_mode(), CpuMode::User);
        assert_eq!(RawRecord::split_sample(&bytes, Endian::Big), None);
        for end in 0..bytes.len() {
            assert_eq!(RawRecord::split(&bytes[..end], Endian::Big), None);
        }
        bytes[7] = 7;
        assert_eq!(
            RawRecord::split(&bytes, Endian::Big),
            None,
            "smaller than its header"
        );
    }

    #[test]
    fn a_sample_is_split_like_any_record() {
        for endian in [Endian::Little, Endian::Big] {
            let mut bytes = Vec::new();
            RecordHeader {
                kind: RecordKind::SAMPLE,
                misc: Misc(0x4002),
                size: 16,
            }
            .encode(&mut Encoder::new(&mut bytes, endian));
            // One byte more than the body has, so that the last `part` is the whole record.
            bytes.extend_from_slice(&[7; 9]);
            for end in 0..bytes.len() {
                let part = &bytes[..end];
                let sample = RawRecord::split_sample(part, endian);
                assert_eq!(sample, RawRecord::split(part, endian));
            }
            // Smaller than its header.
            bytes[6..8].fill(0);
            assert_eq!(RawRecord::split_sample(&bytes, endian), None);
        }
    }

    #[test]
    fn a_record_of_65536_bytes_is_not_encoded() {
        for endian in [Endian::Little, Endian::Big] {
            let mut bytes = vec![1];
            let (kind, misc) = (RecordKind::COMM, Misc(2));
            let encode_with_body = |out: &mut Vec<u8>, body_length| {
                RecordHeader::encode_record(kind, misc, out, endian, |to| to.zeros(body_length))
            };
            // The header has 8 bytes.
            assert!(!encode_with_body(&mut bytes, 0xffff - 7));
            assert_eq!(bytes, [1]);
            assert!(encode_with_body(&mut bytes, 0xffff - 8));
            let (record, size) = RawRecord::split(&bytes[1..], endian).unwrap();
            assert_eq!(
                (record.kind, record.misc, size),
                (kind, misc, bytes.len() - 1)
            );
        }
    }

    #[test]
    fn simpleperf_records_may_exceed_64_kb() {
        let mut bytes = Vec::new();
        let header = RecordHeader {
            kind: RecordKind::SIMPLEPERF_TRACING_DATA,
            // The high 16 bits of the size.
            misc: Misc(1),
            size: 16,
        };
        header.encode(&mut Encoder::new(&mut bytes, Endian::Little));
        bytes.resize((1 << 16) + 16, 7);
        let (record, size) = RawRecord::split(&bytes, Endian::Little).unwrap();
        assert_eq!((record.misc, size), (Misc(0), bytes.len()));
        let truncated = &bytes[..bytes.len() - 1];
        assert_eq!(RawRecord::split(truncated, Endian::Little), None);
    }
}
