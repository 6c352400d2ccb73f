//! Statistics of a recording.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rperf_sys::WaitStatus;

use crate::EventLosses;

/// Statistics of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Number of samples in all files.
    pub samples: u64,
    /// Number of records of all types in all files.
    pub records: u64,
    /// How often the threads that drain the rings woke up: for ring data, a timeout or another event.
    pub wakeups: u64,
    /// Number of LOST records in all files.
    pub lost_chunks: u64,
    /// Lost records per CPU, from LOST records; only CPUs with losses. Losses in rings of tasks are not included.
    pub lost_by_cpu: Vec<(u32, u64)>,
    /// Lost records in rings of tasks, from LOST records.
    pub lost_of_tasks: u64,
    /// Lost samples as counted by the kernel, by event and CPU.
    pub lost_samples: Vec<EventLosses>,
    /// Tracepoints (`SYSTEM:EVENT`) with a count of 0.
    pub tracepoints_without_hits: Vec<String>,
    /// Throttlings by the kernel (`perf_event_max_sample_rate`, `perf_cpu_time_max_percent`), by event and CPU;
    /// [`EventLosses::count`] is their number.
    pub throttled: Vec<EventLosses>,
    /// Statistics of hardware traces.
    pub traces: TraceStats,
    /// Data size of each ring in bytes.
    pub ring_bytes: u64,
    /// Size of the last file without the feature sections at its end, as reported by perf.
    pub bytes: u64,
    /// Bytes of ring data before and after compression (`-z`), in the last file.
    pub compressed: Option<(u64, u64)>,
    /// Number of processes whose mappings are incomplete, because reading them took too long
    /// ([`SynthesisOptions::maps_timeout`]).
    ///
    /// [`SynthesisOptions::maps_timeout`]: crate::SynthesisOptions::maps_timeout
    pub truncated_maps: u64,
    /// Jitdump files (written by JIT compilers) that were mapped by recorded processes.
    pub jit_dumps: BTreeSet<PathBuf>,
    /// Processes with samples in JIT-compiled code.
    pub jit_processes: BTreeSet<u32>,
    /// Exit status of the workload; `None` without one, or if the recording ended first.
    pub workload_status: Option<WaitStatus>,
    /// The signal that ended the recording, if any; SIGPIPE if the reader closed the pipe.
    pub signal: Option<i32>,
    /// The first failure to add to the build-id cache when the last file was completed.
    pub cache_failure: Option<String>,
    /// Why the last file has no feature sections, if they could not be written.
    pub features_lost: Option<String>,
}

/// Statistics of hardware traces: numbers of all parts and of incomplete ones, from AUX records, and the size of AUX areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceStats {
    /// Number of parts, each of which one AUX record describes.
    pub parts: u64,
    /// Number of parts after which the area was full.
    pub truncated: u64,
    /// Number of parts with gaps.
    pub gaps: u64,
    /// Number of parts disturbed by another user of the hardware.
    pub collided: u64,
    /// Size of each area in bytes.
    pub area_bytes: u64,
}

impl TraceStats {
    /// Adds the counts of another file or thread of the recording; `area_bytes` becomes the larger size.
    pub(crate) fn add(&mut self, other: &Self) {
        self.parts += other.parts;
        self.truncated += other.truncated;
        self.gaps += other.gaps;
        self.collided += other.collided;
        self.area_bytes = self.area_bytes.max(other.area_bytes);
    }
}

impl Summary {
    /// Adds the statistics of an earlier file of the recording. The other fields are not changed: they describe the last file
    /// (such as `bytes`), or already the whole recording (such as `lost_by_cpu` and `lost_samples`).
    pub(crate) fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.records += other.records;
        self.lost_chunks += other.lost_chunks;
        EventLosses::merge(&mut self.throttled, other.throttled.iter().cloned());
        self.traces.add(&other.traces);
        self.truncated_maps += other.truncated_maps;
        self.jit_dumps.extend(other.jit_dumps.iter().cloned());
        self.jit_processes.extend(&other.jit_processes);
    }
}
