//! Warns if the recorded events include the writes to the output file: then each write adds events.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rperf_events::EventSpec;
use rperf_session::{RecordRequest, Target};
use rperf_sys::kernel_text;

use crate::cli::context::Context;

/// Systems of tracepoints that report reads and writes of devices.
const DEVICE_SYSTEMS: [&str; 8] = [
    "block",
    "ext4",
    "xfs",
    "f2fs",
    "jbd2",
    "writeback",
    "nvme",
    "scsi",
];

/// Warns if events of the whole system are caused by writing the output.
pub(super) fn warn(context: &Context, request: &RecordRequest) {
    if !matches!(request.observe.target, Target::Cpus(_)) || request.output.stream.is_some() {
        return;
    }
    let traced = request
        .observe
        .events
        .iter()
        .find(|event| is_of_device(event));
    let Some((event, (major, minor))) = traced.zip(device_of(&request.output.path)) else {
        return;
    };
    context.warn(format_args!(
        "{} also records the writes to {}, which is on device {major}:{minor}",
        event.name,
        request.output.path.display()
    ));
    context.note(format_args!(
        "hint: write to another device or to memory (-o /dev/shm/perf.data), or add --filter 'dev != {major}:{minor}'"
    ));
}

/// Whether the event reports accesses to devices and has no filter.
fn is_of_device(event: &EventSpec) -> bool {
    let tracepoint = event.tracepoint.as_ref();
    let is_listed = |system: &str| DEVICE_SYSTEMS.contains(&system);
    event.filter.is_none() && tracepoint.is_some_and(|name| is_listed(&name.system))
}

/// Returns the device number of the disk that a file is written to; `None` if the file system has no number of a block
/// device (tmpfs, overlay, btrfs) or the folder cannot be read.
fn device_of(output: &Path) -> Option<(u32, u32)> {
    let folder = output
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let device = fs::metadata(folder.unwrap_or(Path::new("."))).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    if major == 0 {
        return None;
    }
    let entry = format!("/sys/dev/block/{major}:{minor}");
    // Events have the device number of the disk, not of a partition.
    let is_partition = fs::metadata(format!("{entry}/partition")).is_ok();
    let disk = match is_partition {
        true => kernel_text(format!("{entry}/../dev")).ok(),
        false => None,
    };
    let numbers = disk.as_deref().and_then(|text| text.trim().split_once(':'));
    let parsed =
        numbers.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    Some(parsed.unwrap_or((major, minor)))
}
