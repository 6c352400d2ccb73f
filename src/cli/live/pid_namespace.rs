//! `--pid-ns`: ids of processes and threads as a container sees them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use rperf_sys::{Proc, read_pseudo_file_text};

use super::PROC;
use super::explain::{NO_TARGET_STATUS, reason};
use crate::cli::error::CliError;

/// Converts ids in the PID namespace of process `member` to ids in the namespace of this process.
pub(super) fn own_ids(ids: &[u32], member: u64) -> Result<Vec<u32>, CliError> {
    let namespace = namespace(member).map_err(|error| {
        CliError::message(
            NO_TARGET_STATUS,
            format!("--pid-ns {member}: {}", reason(&error)),
        )
        .hint("give a running process of the container by its id outside of it")
    })?;
    let known = tasks(&namespace);
    let own_id = |id: &u32| {
        known.get(id).copied().ok_or_else(|| {
            let error = format!("no task {id} in the PID namespace of process {member}");
            CliError::message(NO_TARGET_STATUS, error)
                .hint("without --pid-ns, ids are those of this namespace")
        })
    };
    ids.iter().map(own_id).collect()
}

/// Returns the name of a process's PID namespace: `pid:[4026531836]`.
fn namespace(pid: u64) -> std::io::Result<PathBuf> {
    fs::read_link(format!("{PROC}/{pid}/ns/pid"))
}

/// Maps the ids of tasks in the namespace named `link` to their ids in this process's namespace. Processes that exit
/// meanwhile, or whose namespace this user may not read, are skipped.
fn tasks(link: &PathBuf) -> HashMap<u32, u32> {
    let proc = Proc::new(PROC);
    let processes = proc.processes().unwrap_or_default().into_iter();
    let members = processes.filter(|pid| namespace((*pid).into()).is_ok_and(|name| name == *link));
    let threads = members.flat_map(|pid| proc.threads(pid).unwrap_or_default());
    let inner_and_own_id = |tid: u32| {
        let status = read_pseudo_file_text(format!("{PROC}/{tid}/status")).ok()?;
        Some((innermost(&status)?, tid))
    };
    threads.filter_map(inner_and_own_id).collect()
}

/// Returns the task's id in the innermost of its namespaces: the last one of `NSpid:` (proc_pid_status(5)).
fn innermost(status: &str) -> Option<u32> {
    let mut lines = status.lines();
    let ids = lines.find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_id_is_that_in_the_innermost_namespace() {
        assert_eq!(
            innermost("Name:\tsh\nNSpid:\t812\t7\t1\nFDSize:\t64\n"),
            Some(1)
        );
        assert_eq!(innermost("NSpid:\t812\n"), Some(812));
        assert_eq!(innermost("Name:\tsh\n"), None);
    }

    #[test]
    fn ids_of_this_namespace_are_unchanged() {
        let own = std::process::id();
        assert_eq!(own_ids(&[own], own.into()).ok(), Some(vec![own]));
        assert!(own_ids(&[u32::MAX], own.into()).is_err());
        assert!(own_ids(&[own], u64::MAX).is_err());
    }
}
