//! Warns if the recorded events include the writes to the output file: then each write adds events.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rperf_events::EventSpec;
use rperf_session::{RecordRequest, Target};
use rperf_sys::read_pseudo_file_text;

use crate::cli::context::Context;

/// The device number in the field `dev` of a tracepoint.
#[derive(Debug, Clone, Copy)]
enum DevField {
    /// The number of the disk.
    Disk,
    /// The number of the file system's device, which may be a partition.
    FileSystem,
    /// There is no such field.
    Missing,
}

/// Systems of tracepoints that report reads and writes of devices.
const DEVICE_SYSTEMS: [(&str, DevField); 8] = [
    ("block", DevField::Disk),
    ("ext4", DevField::FileSystem),
    ("xfs", DevField::FileSystem),
    ("f2fs", DevField::FileSystem),
    ("jbd2", DevField::FileSystem),
    ("writeback", DevField::Missing),
    ("nvme", DevField::Missing),
    ("scsi", DevField::Missing),
];

/// The number of a block device, written as `major:minor`.
#[derive(Debug, Clone, Copy)]
struct DeviceNumber {
    major: u32,
    minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The devices that a file is written to.
#[derive(Debug, Clone, Copy)]
struct OutputDevices {
    /// The device of the file system.
    file_system: DeviceNumber,
    /// The disk: the same device, unless that is a partition.
    disk: DeviceNumber,
}

/// Warns if writing the output file causes recorded events. Only recordings of CPUs (`-a`, `-C`) are checked, since others do not
/// include rperf's own writes, and only if the output is a file, not a pipe.
pub(super) fn warn(context: &Context, request: &RecordRequest) {
    if !matches!(request.observe.target, Target::Cpus(_)) || request.output.stream.is_some() {
        return;
    }
    let mut events = request.observe.events.iter();
    let traced = events.find_map(|event| Some((event, dev_field(event)?)));
    let Some(((event, field), devices)) = traced.zip(devices_of(&request.output.path)) else {
        return;
    };
    context.warn(format_args!(
        "{} also records the writes to {}, which is on device {}",
        event.name,
        request.output.path.display(),
        devices.disk
    ));
    let number = match field {
        DevField::Disk => Some(devices.disk),
        DevField::FileSystem => Some(devices.file_system),
        DevField::Missing => None,
    };
    // The device is given as `major:minor`, which rperf replaces by the kernel's number for the device.
    let filter = number.map(|number| format!(", or add --filter 'dev != {number}'"));
    context.note(format_args!(
        "hint: write to another device or to memory (-o /dev/shm/perf.data){}",
        filter.unwrap_or_default()
    ));
}

/// Returns what the field `dev` of an event contains; `None` unless the event reports accesses to devices and has no filter: a
/// filter may already exclude the output's device.
fn dev_field(event: &EventSpec) -> Option<DevField> {
    if event.filter.is_some() {
        return None;
    }
    let tracepoint = event.tracepoint.as_ref()?;
    let mut systems = DEVICE_SYSTEMS.iter();
    let listed = systems.find(|(system, _)| *system == tracepoint.system);
    listed.map(|(_, field)| *field)
}

/// Returns the devices that a file is written to; `None` if the file system has no number of a block device (tmpfs, overlay,
/// btrfs) or the folder cannot be read.
fn devices_of(output: &Path) -> Option<OutputDevices> {
    let folder = output
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let device = fs::metadata(folder.unwrap_or(Path::new("."))).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    if major == 0 {
        return None;
    }
    let file_system = DeviceNumber { major, minor };
    let entry = format!("/sys/dev/block/{file_system}");
    let is_partition = fs::metadata(format!("{entry}/partition")).is_ok();
    // In sysfs, the folder of a partition is in the folder of its disk.
    let disk = match is_partition {
        true => read_pseudo_file_text(format!("{entry}/../dev")).ok(),
        false => None,
    };
    let numbers = disk.as_deref().and_then(|text| text.trim().split_once(':'));
    let parsed = numbers.and_then(|(major, minor)| {
        Some(DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    });
    Some(OutputDevices {
        file_system,
        disk: parsed.unwrap_or(file_system),
    })
}
