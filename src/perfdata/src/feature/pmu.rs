//! Features of the header about PMUs (type numbers, CPUs and capabilities), groups of events, and compression. Names in capitals
//! are those of features.

use rperf_wire::{Cursor, DecodeError, Encoder};

use super::text;

/// One PMU of PMU_MAPPINGS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PmuMapping {
    /// `perf_event_attr::type`.
    pub kind: u32,
    /// Name in sysfs.
    pub name: String,
}

impl PmuMapping {
    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let count = at.u32("pmu count")?;
        (0..count)
            .map(|_| {
                Ok(Self {
                    kind: at.u32("pmu type")?,
                    name: text::take(at)?,
                })
            })
            .collect()
    }

    pub(crate) fn encode_list(pmus: &[Self], to: &mut Encoder<'_>) {
        text::put_count(to, pmus.len());
        for pmu in pmus {
            to.u32(pmu.kind);
            text::put(to, &pmu.name);
        }
    }
}

/// One group of GROUP_DESC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDesc {
    /// Name of the group; [`Self::ANONYMOUS`] or empty if it has none.
    pub name: String,
    /// Index of the leader among the events.
    pub leader: u32,
    /// Number of events in the group, including the leader.
    pub members: u32,
}

impl GroupDesc {
    /// The name that perf writes for a group without a name.
    pub const ANONYMOUS: &'static str = "{anon_group}";

    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let count = at.u32("group count")?;
        (0..count)
            .map(|_| {
                Ok(Self {
                    name: text::take(at)?,
                    leader: at.u32("group leader")?,
                    members: at.u32("group members")?,
                })
            })
            .collect()
    }

    pub(crate) fn encode_list(groups: &[Self], to: &mut Encoder<'_>) {
        text::put_count(to, groups.len());
        for group in groups {
            text::put(to, &group.name);
            to.u32(group.leader);
            to.u32(group.members);
        }
    }
}

/// One PMU of HYBRID_TOPOLOGY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HybridPmu {
    /// Name in sysfs, such as `cpu_core`.
    pub name: String,
    /// CPU list.
    pub cpus: String,
}

impl HybridPmu {
    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let count = at.u32("hybrid pmu count")?;
        (0..count)
            .map(|_| {
                Ok(Self {
                    name: text::take(at)?,
                    cpus: text::take(at)?,
                })
            })
            .collect()
    }

    pub(crate) fn encode_list(pmus: &[Self], to: &mut Encoder<'_>) {
        text::put_count(to, pmus.len());
        for pmu in pmus {
            text::put(to, &pmu.name);
            text::put(to, &pmu.cpus);
        }
    }
}

/// Capabilities of one PMU (CPU_PMU_CAPS, PMU_CAPS).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PmuCapabilities {
    /// Name in sysfs; `cpu` for CPU_PMU_CAPS, whose section does not store the name.
    pub name: String,
    /// Names and values.
    pub values: Vec<(String, String)>,
}

impl PmuCapabilities {
    pub(crate) fn decode_cpu(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: "cpu".to_owned(),
            values: decode_values(at)?,
        })
    }

    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let count = at.u32("pmu count")?;
        (0..count)
            .map(|_| {
                let values = decode_values(at)?;
                let name = text::take(at)?;
                Ok(Self { name, values })
            })
            .collect()
    }

    /// Encodes the values without the name: the section of CPU_PMU_CAPS, and the start of an entry of PMU_CAPS.
    pub(crate) fn encode_values(&self, to: &mut Encoder<'_>) {
        text::put_count(to, self.values.len());
        for (key, value) in &self.values {
            text::put(to, key);
            text::put(to, value);
        }
    }

    pub(crate) fn encode_list(pmus: &[Self], to: &mut Encoder<'_>) {
        text::put_count(to, pmus.len());
        for pmu in pmus {
            pmu.encode_values(to);
            text::put(to, &pmu.name);
        }
    }
}

fn decode_values(at: &mut Cursor<'_>) -> Result<Vec<(String, String)>, DecodeError> {
    let count = at.u32("capability count")?;
    (0..count)
        .map(|_| Ok((text::take(at)?, text::take(at)?)))
        .collect()
}

/// The feature COMPRESSED: the parameters of the records of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionInfo {
    /// 1 for zstd.
    pub kind: u32,
    /// Compression level of zstd.
    pub level: u32,
    /// Compression ratio, rounded; 0 if unknown, as in pipe mode.
    pub ratio: u32,
    /// Size in bytes of the buffer into which readers decompress one record; perf writes the size of its rings.
    pub mmap_len: u32,
}

/// The only version of the feature COMPRESSED. As in perf, it is not checked when decoding.
const VERSION: u32 = 1;

impl CompressionInfo {
    pub(crate) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        at.u32("compression version")?;
        Ok(Self {
            kind: at.u32("compression type")?,
            level: at.u32("compression level")?,
            ratio: at.u32("compression ratio")?,
            mmap_len: at.u32("compression mmap_len")?,
        })
    }

    pub(crate) fn encode(self, to: &mut Encoder<'_>) {
        to.u32(VERSION);
        to.u32(self.kind);
        to.u32(self.level);
        to.u32(self.ratio);
        to.u32(self.mmap_len);
    }
}
