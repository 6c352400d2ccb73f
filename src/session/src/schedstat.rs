//! The scheduler's statistics, read from `/proc/schedstat` before and after a workload.

mod reading;

use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use rperf_perfdata::{FeatureSet, Writer};
use rperf_safefs::PathOrigin;
use rperf_sys::{CpuList, Proc, Program, Signals, Sysctl, WaitStatus};

pub use self::reading::{CpuReading, DomainReading, SchedstatError, SchedstatReading};
use crate::Error;
use crate::counted_output::write_error;
use crate::counting::wait_conditions::WaitConditions;
use crate::header::HeaderInputs;
use crate::output::{OutputFile, Replacement};
use crate::recording::fork_workload;
use crate::synthesize::RecordBuffer;

/// Options of [`observe_schedstat`].
#[derive(Debug, Clone)]
pub struct SchedstatRequest {
    /// The mount point of proc.
    pub proc: PathBuf,
    /// The mount point of sysfs.
    pub sysfs: PathBuf,
    /// The CPUs to observe; all if `None`.
    pub cpus: Option<CpuList>,
    /// The command to run; without one a signal ends the observation.
    pub workload: Option<Program>,
    /// The file to write the recording to, if any. The recording is always returned in [`SchedstatSummary::recording`].
    pub output: Option<SchedstatOutput>,
    /// The version for the header.
    pub version: String,
    /// The command line for the header.
    pub command_line: Vec<String>,
}

/// The file to which a recording is written.
#[derive(Debug, Clone)]
pub struct SchedstatOutput {
    /// Its path.
    pub path: PathBuf,
    /// Whether the user gave the name.
    pub naming: PathOrigin,
}

/// The result of [`observe_schedstat`].
#[derive(Debug)]
pub struct SchedstatSummary {
    /// The bytes of the complete perf.data.
    pub recording: Vec<u8>,
    /// The status of the workload, if there is one.
    pub workload_status: Option<WaitStatus>,
    /// The signal that ended the observation, if one did.
    pub signal: Option<i32>,
}

/// Reads the statistics, waits until the workload exits or a signal is received, reads them again, and makes a recording of
/// both readings. Statistics that are disabled are enabled before the first reading, and disabled after the last.
///
/// SIGINT, SIGTERM, SIGHUP and SIGCHLD are handled as by [`crate::count`].
///
/// # Errors
/// The kernel has no such statistics, they are not as expected or cannot be enabled, a CPU is not online, the workload cannot
/// be run, the file cannot be written, or a system call fails.
pub fn observe_schedstat(request: &SchedstatRequest) -> Result<SchedstatSummary, Error> {
    let blocked = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD];
    let signals = Signals::block(&blocked).map_err(Error::system("block signals"))?;
    // This reading is only checked, before a file is created and the statistics are enabled.
    let reading = request.read()?;
    request.check_cpus(&reading)?;
    let output = request.output.as_ref();
    let output = output.map(|output| Replacement::create(&output.path, output.naming));
    let output = output.transpose()?;
    let mut workload = fork_workload(request.workload.as_ref(), &signals)?;
    // All records are of perf's own types, which have no trailer.
    let trailer = 0;
    let mut records = RecordBuffer::new(trailer);
    let enabled = EnabledStatistics::enable(&request.proc)?;
    request.read()?.put(request.cpus.as_ref(), &mut records);
    if let Some(workload) = &mut workload {
        workload.start().map_err(|cause| Error::Workload {
            program: request
                .workload
                .as_ref()
                .map_or_else(PathBuf::new, |program| program.path().to_owned()),
            cause,
        })?;
    }
    let mut waiting = WaitConditions {
        signals: &signals,
        workload: workload.as_mut(),
        // There are no other observed tasks, and no control commands.
        tasks: None,
        control: None,
    };
    let deadline = None;
    let woken = waiting.until(deadline)?;
    let signal = waiting.finish(woken)?;
    let last = request.read()?;
    drop(enabled);
    last.put(request.cpus.as_ref(), &mut records);
    let recording = request.recording(&records.take(), &last)?;
    if let (Some((replacement, file)), Some(to)) = (output, &request.output) {
        write(&recording, replacement, file).map_err(|error| error.with_path(&to.path))?;
    }
    let ended = workload.as_mut().map(rperf_sys::Workload::wait).transpose();
    Ok(SchedstatSummary {
        recording,
        workload_status: ended.map_err(Error::system("wait for the workload"))?,
        signal,
    })
}

impl SchedstatRequest {
    fn read(&self) -> Result<SchedstatReading, Error> {
        let path = self.proc.join("schedstat");
        let text = Proc::new(&self.proc).schedstat();
        let text = text.map_err(|cause| Error::NoSchedstat {
            path: path.clone(),
            cause,
        })?;
        SchedstatReading::parse(&text).map_err(|cause| Error::Schedstat { path, cause })
    }

    fn check_cpus(&self, reading: &SchedstatReading) -> Result<(), Error> {
        let online: CpuList = reading.cpus.iter().map(|cpu| cpu.cpu).collect();
        let selected = self.cpus.iter().flat_map(CpuList::numbers);
        match selected.copied().find(|cpu| !online.contains(*cpu)) {
            Some(missing) => Err(Error::NoSuchCpu { missing, online }),
            None => Ok(()),
        }
    }

    fn recording(&self, records: &[u8], reading: &SchedstatReading) -> Result<Vec<u8>, Error> {
        let inputs = HeaderInputs {
            proc: &self.proc,
            sysfs: &self.sysfs,
            version: &self.version,
            command_line: &self.command_line,
            events: &[],
        };
        let mut features: FeatureSet = inputs.features();
        features.sched_domains(&reading.domains());
        let mut writer = Writer::new(Cursor::new(Vec::new()), &[]).map_err(write_error)?;
        writer.write_data(records).map_err(write_error)?;
        let (_, written) = writer.finish(&features).map_err(write_error)?;
        Ok(written.into_inner())
    }
}

fn write(
    recording: &[u8],
    mut replacement: Replacement,
    mut file: OutputFile,
) -> Result<(), Error> {
    let written = file.write_all(recording);
    written.map_err(|cause| Error::Write {
        // Set by the caller.
        path: PathBuf::new(),
        // An incomplete recording is not kept.
        kept: 0,
        cause,
    })?;
    replacement.commit()
}

/// Enables the statistics until dropped, if they were disabled.
struct EnabledStatistics {
    /// Access to the setting, to disable them again; `None` if they were enabled before.
    disable: Option<Sysctl>,
}

impl EnabledStatistics {
    fn enable(proc: &std::path::Path) -> Result<Self, Error> {
        let sysctl = Sysctl::new(proc);
        // Kernels before 4.6 have no such setting and always count.
        if sysctl.sched_schedstats() != Some(false) {
            return Ok(Self { disable: None });
        }
        let enabled = sysctl.set_sched_schedstats(true);
        enabled.map_err(Error::SchedstatsOff)?;
        Ok(Self {
            disable: Some(sysctl),
        })
    }
}

impl Drop for EnabledStatistics {
    fn drop(&mut self) {
        if let Some(sysctl) = &self.disable {
            // A destructor cannot return the error; enabled statistics cost little.
            let _ = sysctl.set_sched_schedstats(false);
        }
    }
}
