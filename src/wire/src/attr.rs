//! `struct perf_event_attr`: one event's settings.

use std::fmt;

use crate::{
    AttrFlags, BranchSampleType, Cursor, DecodeError, Encoder, Endian, ReadFormat, SampleType,
};

/// `perf_event_attr::type`: the PMU an event belongs to. The kernel assigns numbers from 6 up at
/// run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct EventType(pub u32);

impl EventType {
    /// Generalised hardware events (`PERF_TYPE_HARDWARE`).
    pub const HARDWARE: Self = Self(0);
    /// Software events (`PERF_TYPE_SOFTWARE`).
    pub const SOFTWARE: Self = Self(1);
    /// Tracepoints (`PERF_TYPE_TRACEPOINT`).
    pub const TRACEPOINT: Self = Self(2);
    /// Generalised cache events (`PERF_TYPE_HW_CACHE`).
    pub const HW_CACHE: Self = Self(3);
    /// Raw hardware codes (`PERF_TYPE_RAW`).
    pub const RAW: Self = Self(4);
    /// Hardware breakpoints (`PERF_TYPE_BREAKPOINT`).
    pub const BREAKPOINT: Self = Self(5);

    /// Whether the type was assigned by the kernel when the PMU was registered (`PERF_TYPE_MAX` and above, sysfs `type`).
    #[must_use]
    pub const fn is_dynamic(self) -> bool {
        self.0 > Self::BREAKPOINT.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// `struct perf_event_attr` (perf_event_open(2)) without its `size` field, which [`Attr::encode`]
/// adds. Each union is one field, whose doc comment lists the members.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Attr {
    /// The PMU.
    pub kind: EventType,
    /// The event of the PMU.
    pub config: u64,
    /// `sample_period`, or `sample_freq` in Hz if [`AttrFlags::FREQ`] is set.
    pub sample_period: u64,
    /// Fields of a sample.
    pub sample_type: SampleType,
    /// What a read of the counter returns.
    pub read_format: ReadFormat,
    /// The one-bit fields.
    pub flags: AttrFlags,
    /// `wakeup_events`, or `wakeup_watermark` in bytes if [`AttrFlags::WATERMARK`] is set.
    pub wakeup: u32,
    /// Breakpoint kind.
    pub bp_type: u32,
    /// `config1`, `bp_addr`, `kprobe_func` or `uprobe_path`.
    pub config1: u64,
    /// `config2`, `bp_len`, `kprobe_addr` or `probe_offset`.
    pub config2: u64,
    /// The branches that are recorded in the branch stack.
    pub branch_sample_type: BranchSampleType,
    /// Mask of user registers in a sample.
    pub sample_regs_user: u64,
    /// Bytes of user stack in a sample.
    pub sample_stack_user: u32,
    /// Clock of the timestamps (`CLOCK_*`), if [`AttrFlags::USE_CLOCKID`] is set.
    pub clockid: i32,
    /// Mask of interrupt registers in a sample.
    pub sample_regs_intr: u64,
    /// AUX bytes before a wakeup.
    pub aux_watermark: u32,
    /// Maximum depth of a callchain; 0 for the system's limit.
    pub sample_max_stack: u16,
    /// Bytes of AUX data in a sample.
    pub aux_sample_size: u32,
    /// `aux_action` bits (start paused, pause, resume) of newer kernels.
    pub aux_action: u32,
    /// User data passed with SIGTRAP.
    pub sig_data: u64,
    /// `config3`.
    pub config3: u64,
    /// `config4`.
    pub config4: u64,
    /// Bytes after the last known field, unchanged, in the byte order of the file or machine.
    pub unknown: Vec<u8>,
}

impl Attr {
    /// Size of the oldest published layout (`PERF_ATTR_SIZE_VER0`), in bytes.
    pub const SIZE_VER0: usize = 64;
    /// Size of the layout that [`Attr::encode`] writes by default (`PERF_ATTR_SIZE_VER7`), in
    /// bytes: the one of Linux perf 6.1.
    pub const SIZE: usize = 128;
    /// Size of the layout with `config3` (`PERF_ATTR_SIZE_VER8`), in bytes.
    pub const SIZE_VER8: usize = 136;
    /// Size of the largest known layout (`PERF_ATTR_SIZE_VER9`, with `config4`), in bytes.
    pub const SIZE_VER9: usize = 144;

    /// `config` of the software event that counts nothing and only carries side-band records
    /// (`PERF_COUNT_SW_DUMMY`).
    pub const DUMMY: u64 = 9;

    /// `config` of the hardware event for retired branches (`PERF_COUNT_HW_BRANCH_INSTRUCTIONS`).
    pub const BRANCHES: u64 = 4;

    /// Whether this is the dummy event, which counts nothing.
    #[must_use]
    pub fn is_dummy(&self) -> bool {
        self.kind == EventType::SOFTWARE && self.config == Self::DUMMY
    }

    /// Whether this is a software clock (`PERF_COUNT_SW_CPU_CLOCK` or `_TASK_CLOCK`), which counts nanoseconds.
    #[must_use]
    pub fn is_clock(&self) -> bool {
        self.kind == EventType::SOFTWARE && self.config <= 1
    }

    /// Skid constraint, 0 (arbitrary skid) to 3 (no skid).
    #[must_use]
    pub fn precise_ip(&self) -> u8 {
        u8::from(self.flags.contains(AttrFlags::PRECISE_LOW))
            | (u8::from(self.flags.contains(AttrFlags::PRECISE_HIGH)) << 1)
    }

    /// Sets the skid constraint to the lowest two bits of `level`.
    pub fn set_precise_ip(&mut self, level: u8) {
        self.flags = self
            .flags
            .with(AttrFlags::PRECISE_LOW, level & 1 != 0)
            .with(AttrFlags::PRECISE_HIGH, level & 2 != 0);
    }

    /// Whether `sample_period` is a frequency.
    #[must_use]
    pub fn is_freq(&self) -> bool {
        self.flags.contains(AttrFlags::FREQ)
    }

    /// Decodes a structure of `bytes.len()` bytes; its `size` field is ignored. Fields beyond the end are 0; bytes
    /// after the last known field are kept in [`Attr::unknown`].
    ///
    /// # Errors
    /// [`DecodeError::Short`] below [`Attr::SIZE_VER0`] bytes.
    pub fn decode(bytes: &[u8], endian: Endian) -> Result<Self, DecodeError> {
        if bytes.len() < Self::SIZE_VER0 {
            return Err(DecodeError::Short {
                field: "perf_event_attr",
                offset: 0,
                need: Self::SIZE_VER0,
                have: bytes.len(),
            });
        }
        let mut padded = [0; Self::SIZE_VER9];
        for (to, from) in padded.iter_mut().zip(bytes) {
            *to = *from;
        }
        let mut at = Cursor::new(&padded, endian);
        let kind = EventType(at.u32("type")?);
        at.u32("size")?;
        // Rust evaluates the fields in the order written here, which must be that of `struct perf_event_attr`.
        Ok(Self {
            kind,
            config: at.u64("config")?,
            sample_period: at.u64("sample_period")?,
            sample_type: SampleType(at.u64("sample_type")?),
            read_format: ReadFormat(at.u64("read_format")?),
            flags: decode_flags(at.u64("flags")?, endian),
            wakeup: at.u32("wakeup_events")?,
            bp_type: at.u32("bp_type")?,
            config1: at.u64("config1")?,
            config2: at.u64("config2")?,
            branch_sample_type: BranchSampleType(at.u64("branch_sample_type")?),
            sample_regs_user: at.u64("sample_regs_user")?,
            sample_stack_user: at.u32("sample_stack_user")?,
            clockid: at.u32("clockid")?.cast_signed(),
            sample_regs_intr: at.u64("sample_regs_intr")?,
            aux_watermark: at.u32("aux_watermark")?,
            sample_max_stack: at.u16("sample_max_stack")?,
            aux_sample_size: {
                at.u16("__reserved_2")?;
                at.u32("aux_sample_size")?
            },
            aux_action: at.u32("aux_action")?,
            sig_data: at.u64("sig_data")?,
            config3: at.u64("config3")?,
            config4: at.u64("config4")?,
            unknown: bytes.get(Self::SIZE_VER9..).unwrap_or_default().to_vec(),
        })
    }

    /// Encodes the layout of [`Attr::SIZE`] bytes, or a longer one if `config3` or `config4` is not 0 or
    /// [`Attr::unknown`] is not empty.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let size = match (self.config3, self.config4, self.unknown.len()) {
            (0, 0, 0) => Self::SIZE,
            (_, 0, 0) => Self::SIZE_VER8,
            (_, _, unknown) => Self::SIZE_VER9 + unknown,
        };
        let mut out = Vec::with_capacity(size);
        let mut to = Encoder::new(&mut out, endian);
        to.u32(self.kind.0);
        to.u32(u32::try_from(size).unwrap_or(u32::MAX));
        to.u64(self.config);
        to.u64(self.sample_period);
        to.u64(self.sample_type.0);
        to.u64(self.read_format.0);
        to.u64(encode_flags(self.flags, endian));
        to.u32(self.wakeup);
        to.u32(self.bp_type);
        to.u64(self.config1);
        to.u64(self.config2);
        to.u64(self.branch_sample_type.0);
        to.u64(self.sample_regs_user);
        to.u32(self.sample_stack_user);
        to.u32(self.clockid.cast_unsigned());
        to.u64(self.sample_regs_intr);
        to.u32(self.aux_watermark);
        to.u16(self.sample_max_stack);
        to.u16(0);
        to.u32(self.aux_sample_size);
        to.u32(self.aux_action);
        to.u64(self.sig_data);
        if size > Self::SIZE {
            to.u64(self.config3);
        }
        if size > Self::SIZE_VER8 {
            to.u64(self.config4);
            to.bytes(&self.unknown);
        }
        out
    }
}

/// Converts the 64 flag bits. C bit-fields start at the low bit of the word on little-endian machines
/// and at the high bit on big-endian ones, so the flags of a big-endian file are mirrored.
fn decode_flags(word: u64, endian: Endian) -> AttrFlags {
    match endian {
        Endian::Little => AttrFlags(word),
        Endian::Big => AttrFlags(word.reverse_bits()),
    }
}

fn encode_flags(flags: AttrFlags, endian: Endian) -> u64 {
    match endian {
        Endian::Little => flags.0,
        Endian::Big => flags.0.reverse_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_attr() -> Attr {
        let mut attr = Attr {
            kind: EventType::SOFTWARE,
            config: 9,
            sample_period: 4000,
            sample_type: SampleType::IP | SampleType::TID | SampleType::IDENTIFIER,
            read_format: ReadFormat::ID | ReadFormat::LOST,
            flags: AttrFlags::DISABLED | AttrFlags::SAMPLE_ID_ALL,
            sample_max_stack: 127,
            clockid: -1,
            sig_data: 7,
            ..Attr::default()
        };
        attr.set_precise_ip(3);
        attr
    }

    #[test]
    fn attrs_round_trip_in_both_byte_orders() {
        for endian in [Endian::Little, Endian::Big] {
            for (config3, config4) in [(0, 0), (5, 0), (0, 6)] {
                let attr = Attr {
                    config3,
                    config4,
                    ..sample_attr()
                };
                assert_eq!(Attr::decode(&attr.encode(endian), endian), Ok(attr));
            }
        }
    }

    #[test]
    fn fields_of_newer_kernels_are_kept() {
        let newer = Attr {
            unknown: vec![1, 2, 3, 4, 5, 6, 7, 0],
            ..sample_attr()
        };
        for endian in [Endian::Little, Endian::Big] {
            let bytes = newer.encode(endian);
            assert_eq!(bytes.len(), Attr::SIZE_VER9 + 8);
            assert_eq!(endian.u32_at(&bytes, 4), Some(152));
            assert_eq!(Attr::decode(&bytes, endian).as_ref(), Ok(&newer));
        }
    }

    #[test]
    fn fields_beyond_an_old_layout_are_zero() {
        let bytes = sample_attr().encode(Endian::Little);
        let attr = Attr::decode(&bytes[..Attr::SIZE_VER0], Endian::Little).unwrap();
        assert_eq!(
            (attr.config, attr.clockid, attr.sample_max_stack),
            (9, 0, 0)
        );
        assert!(Attr::decode(&bytes[..Attr::SIZE_VER0 - 1], Endian::Little).is_err());
    }

    #[test]
    fn precise_ip_takes_two_bits() {
        let mut attr = sample_attr();
        assert_eq!(attr.precise_ip(), 3);
        attr.set_precise_ip(2);
        assert_eq!(attr.precise_ip(), 2);
        assert!(attr.flags.contains(AttrFlags::SAMPLE_ID_ALL));
    }

    #[test]
    fn a_big_endian_file_mirrors_the_flag_bits() {
        // The first flag (disabled) is the top bit of the first flag byte on big-endian machines.
        let attr = Attr {
            flags: AttrFlags::DISABLED,
            ..Attr::default()
        };
        assert_eq!(attr.encode(Endian::Big)[40], 0x80);
    }
}
