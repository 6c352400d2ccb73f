//! The cost of a uprobe on a function, with different BPF programs.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use rperf_sys::{Counter, KprobeProgram, ObservedTask, Sysfs, usleep, usleep_place};
use rperf_wire::{Attr, EventType};

use crate::BenchError;

/// Length of each sleep in microseconds.
const MICROS: u32 = 1000;
/// The bit of `config` that makes the probe a uretprobe (`format/retprobe` of the PMU).
const RETURN: u64 = 1;

/// The BPF program at the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeProgram {
    /// A program that does nothing.
    Empty,
    /// A program that writes a line to the trace buffer with `bpf_trace_printk`.
    TracePrintk,
}

/// A probe on usleep(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsleepProbe {
    /// The program that runs when the probe is hit.
    pub program: ProbeProgram,
    /// Whether the probe is at the function's return (uretprobe).
    pub at_return: bool,
}

/// A benchmark of `bench uprobe`: calls of usleep(3), with or without a probe.
#[derive(Debug, Clone, Copy)]
pub struct UprobeBench {
    /// Number of calls.
    pub loops: u64,
    /// The probe, which is hit by all processes; `None` for the baseline.
    pub probe: Option<UsleepProbe>,
}

impl UprobeBench {
    /// Runs the benchmark; returns the total time of all calls.
    ///
    /// # Errors
    /// [`BenchError::Unavailable`] if the kernel or the user's rights do not allow uprobes or BPF programs;
    /// [`BenchError::System`] if the file with usleep is not found.
    pub fn run(&self) -> Result<Duration, BenchError> {
        let _attached = self.probe.map(UsleepProbe::attach).transpose()?;
        let start = Instant::now();
        for _ in 0..self.loops {
            usleep(MICROS);
        }
        Ok(start.elapsed())
    }
}

impl UsleepProbe {
    /// Creates the probe with its program. Both exist as long as the returned counter: the kernel keeps an attached program after
    /// its descriptor is closed here. Uprobes run programs of the type for kprobes.
    fn attach(self) -> Result<Counter, BenchError> {
        let program = match self.program {
            ProbeProgram::Empty => KprobeProgram::empty(),
            ProbeProgram::TracePrintk => KprobeProgram::trace_printk(),
        };
        let program = program.map_err(unavailable("cannot load a BPF program"))?;
        let counter = self.open()?;
        let attached = counter.attach(&program);
        attached.map_err(unavailable("cannot attach a BPF program to a uprobe"))?;
        Ok(counter)
    }

    fn open(self) -> Result<Counter, BenchError> {
        let pmus = Sysfs::new("/sys").pmu_types().unwrap_or_default();
        let pmu = pmus.iter().find(|(name, _)| name == "uprobe");
        let Some((_, pmu_type)) = pmu else {
            let reason = "the kernel has no uprobe PMU";
            return Err(BenchError::Unavailable(reason.to_owned()));
        };
        let place = usleep_place().map_err(BenchError::of("cannot find usleep in memory"))?;
        let path = CString::new(place.path.as_os_str().as_bytes())
            .map_err(|error| BenchError::of("path of the file with usleep")(error.into()))?;
        let attr = Attr {
            kind: EventType(*pmu_type),
            config: if self.at_return { RETURN } else { 0 },
            config1: path.as_ptr().addr() as u64,
            config2: place.offset,
            ..Attr::default()
        };
        // The program runs on every CPU, whatever CPU the event is opened on.
        let all_tasks = ObservedTask { pid: -1, cpu: 0 };
        let group_leader = None;
        Counter::open(&attr, all_tasks, group_leader).map_err(unavailable("cannot create a uprobe"))
    }
}

fn unavailable(action: &'static str) -> impl FnOnce(io::Error) -> BenchError {
    move |error| BenchError::Unavailable(format!("{action}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_takes_at_least_its_sleep() {
        let least = Duration::from_micros(3 * u64::from(MICROS));
        let probe = |program, at_return| Some(UsleepProbe { program, at_return });
        for probe in [
            None,
            probe(ProbeProgram::Empty, false),
            probe(ProbeProgram::TracePrintk, true),
        ] {
            match (UprobeBench { loops: 3, probe }).run() {
                Ok(time) => assert!(time >= least, "{probe:?}: {time:?}"),
                // Not permitted, or a kernel without uprobes or BPF.
                Err(error) => {
                    let is_unavailable = matches!(error, BenchError::Unavailable(_));
                    assert!(is_unavailable && probe.is_some(), "{probe:?}: {error:?}");
                }
            }
        }
    }
}
