//! What came of a recording.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rperf_sys::Ended;

use crate::Missed;

/// What a recording brought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Samples in the file.
    pub samples: u64,
    /// Records of all kinds in the file.
    pub records: u64,
    /// How often data was waited for.
    pub woken: u64,
    /// LOST records in the file, each of them for a run of lost records.
    pub lost_chunks: u64,
    /// Lost records per CPU, as the LOST records tell; only CPUs that lost any.
    pub lost_by_cpu: Vec<(u32, u64)>,
    /// Samples that the kernel could not put into a ring, by event and CPU.
    pub lost_samples: Vec<Missed>,
    /// Tracepoints (`SYSTEM:EVENT`) of which nothing was counted at all.
    pub unhit: Vec<String>,
    /// How often the kernel held events back that came faster than it allows (`perf_event_max_sample_rate`,
    /// `perf_cpu_time_max_percent`).
    pub throttled: Vec<Missed>,
    /// How often a hardware trace was cut.
    pub traces: CutTraces,
    /// Data bytes of each ring.
    pub ring_bytes: u64,
    /// Bytes of the file without the feature sections at its end, as perf counts them.
    pub bytes: u64,
    /// Bytes of ring data before and after they were compressed (`-z`), in the last file.
    pub compressed: Option<(u64, u64)>,
    /// Processes whose mappings were not all told, as reading them took too long ([`Request::maps_within`]).
    ///
    /// [`Request::maps_within`]: crate::Request::maps_within
    pub cut_maps: u64,
    /// Files in which run-time compilers told of their code (jitdump).
    pub jit_dumps: BTreeSet<PathBuf>,
    /// Processes with samples in code that they made themselves.
    pub code_makers: BTreeSet<u32>,
    /// How the workload ended; `None` without one, and when the recording ended first.
    pub ended: Option<Ended>,
    /// The signal that ended the recording: SIGPIPE when the reader of a pipe has gone.
    pub signal: Option<i32>,
    /// What could not be stored in the build-id cache.
    pub cache_failure: Option<String>,
    /// Why the header's feature sections are missing.
    pub features_lost: Option<String>,
}

/// How often parts of hardware traces were told of, and how many of them are not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CutTraces {
    /// Parts.
    pub parts: u64,
    /// Parts after which the area was full.
    pub truncated: u64,
    /// Parts with gaps.
    pub gaps: u64,
    /// Parts that another user of the hardware disturbed.
    pub collided: u64,
    /// Bytes of each area.
    pub area_bytes: u64,
}

impl CutTraces {
    /// Adds what another part of the recording counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.parts += other.parts;
        self.truncated += other.truncated;
        self.gaps += other.gaps;
        self.collided += other.collided;
        self.area_bytes = self.area_bytes.max(other.area_bytes);
    }
}

impl Summary {
    /// Adds what another file of the same recording holds.
    pub(crate) fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.records += other.records;
        self.lost_chunks += other.lost_chunks;
        Missed::merge(&mut self.throttled, other.throttled.iter().cloned());
        self.traces.add(&other.traces);
        self.cut_maps += other.cut_maps;
        self.jit_dumps.extend(other.jit_dumps.iter().cloned());
        self.code_makers.extend(&other.code_makers);
    }
}
