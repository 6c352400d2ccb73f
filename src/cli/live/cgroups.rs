//! `-G`: the cgroups that events are restricted to; and the paths of all cgroups.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::ArgMatches;
use rperf_names::counted;
use rperf_session::Target;

use crate::cli::error::CliError;

/// Returns the cgroups that `-G` names, in the order of the events; none without the option. A single name applies to all events.
/// If there are several names, but fewer than events, the list has only these: the remaining events have no cgroup. An empty name
/// means no cgroup.
pub(crate) fn cgroups(
    matches: &ArgMatches,
    target: &Target,
    event_count: usize,
) -> Result<Vec<Option<String>>, CliError> {
    let given = matches.get_many::<String>("cgroup").into_iter().flatten();
    let names: Vec<&str> = given.flat_map(|list| list.split(',')).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    check(target)?;
    if names.len() > event_count {
        let message = format!(
            "-G names {} for {}",
            counted(names.len() as u64, "cgroup"),
            counted(event_count as u64, "event")
        );
        return Err(CliError::usage(message).hint("give one name, or one per event"));
    }
    let name = |name: &&str| (!name.is_empty()).then(|| (*name).to_owned());
    Ok(match names.as_slice() {
        [single] => vec![name(single); event_count],
        names => names.iter().map(name).collect(),
    })
}

/// Rejects targets other than CPUs, as cgroups require CPU-wide events.
pub(crate) fn check(target: &Target) -> Result<(), CliError> {
    if matches!(target, Target::Cpus(_)) {
        return Ok(());
    }
    let message = "cgroup monitoring only available in system-wide mode";
    Err(CliError::usage(message).hint("add -a"))
}

/// Returns the paths of all cgroups, by id; empty if no cgroup file system is mounted.
pub(crate) fn paths() -> HashMap<u64, PathBuf> {
    let mounts = rperf_sys::read_pseudo_file("/proc/self/mounts").unwrap_or_default();
    let folder = rperf_sys::CgroupFolder::find(&String::from_utf8_lossy(&mounts));
    folder.map_or_else(HashMap::new, |folder| {
        rperf_sys::cgroups(&folder).into_iter().collect()
    })
}
