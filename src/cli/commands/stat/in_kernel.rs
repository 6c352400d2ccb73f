//! `--bpf-prog`, `--bpf-counters` and the modifier `b`: events counted by BPF programs in the kernel.

use clap::ArgMatches;
use rperf_events::GroupPosition;
use rperf_session::{BpfCounting, Target};

use super::events::RowEvent;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::kernel_offsets::task_pid_offset;
use crate::cli::options::flag;

/// Returns the target of the count. With `--bpf-prog`, events are counted on CPUs while the given programs run; a workload
/// only sets the duration.
pub(super) fn target(matches: &ArgMatches, target: Target) -> Result<Target, CliError> {
    if !matches.contains_id("bpf-prog") {
        return Ok(target);
    }
    let excluded_ids = ["pid", "tid", "uid", "cgroup", "for-each-cgroup"];
    let excluded = excluded_ids.into_iter().find(|id| matches.contains_id(id));
    if let Some(excluded) = excluded {
        let message = format!("--bpf-prog and --{excluded} exclude each other");
        return Err(CliError::usage(message).hint("use -C to count programs on some CPUs"));
    }
    Ok(match target {
        Target::Cpus(cpus) => Target::Cpus(cpus),
        // All online CPUs.
        _ => Target::Cpus(None),
    })
}

/// Marks the events that BPF programs count, dissolves their groups, and returns the settings for these counting programs.
/// The programs of `--bpf-prog` are others: those that are observed.
pub(super) fn set_up_counting(
    matches: &ArgMatches,
    context: &Context,
    target: &Target,
    row_events: &mut [RowEvent],
) -> Result<BpfCounting, CliError> {
    let programs = matches.get_one::<String>("bpf-prog");
    let programs = programs
        .map(|list| ids(list))
        .transpose()?
        .unwrap_or_default();
    let all = flag(matches, "bpf-counters") == Some(true);
    if all && !programs.is_empty() {
        return Err(CliError::usage(
            "--bpf-prog and --bpf-counters exclude each other",
        ));
    }
    let configured = context.config.text("stat.bpf-counter-events");
    let configured: Vec<&str> = configured
        .iter()
        .flat_map(|names| names.split(','))
        .collect();
    for row_event in &mut *row_events {
        let spec = &mut row_event.event.spec;
        spec.bpf |= all || !programs.is_empty() || configured.contains(&spec.name.as_str());
    }
    if !row_events.iter().any(|row_event| row_event.event.spec.bpf) {
        return Ok(BpfCounting::default());
    }
    if flag(matches, "per-thread") == Some(true) {
        return Err(CliError::usage(
            "--per-thread needs a counter for each thread, which BPF programs do not have",
        ));
    }
    ungroup(row_events);
    // The counting programs find children of tasks by `task_struct::pid`. If its offset is unknown, tasks can only be counted
    // without their children.
    let pid_offset = match target {
        Target::Cpus(_) => None,
        _ => task_pid_offset().ok(),
    };
    Ok(BpfCounting {
        programs,
        task_pid: pid_offset,
    })
}

/// Parses the list of BPF program ids of `--bpf-prog`.
fn ids(list: &str) -> Result<Vec<u32>, CliError> {
    let id = |word: &str| {
        let number = word.trim().parse::<u32>().ok();
        number
            .filter(|id| i32::try_from(*id).is_ok_and(|id| id > 0))
            .ok_or_else(|| CliError::usage(format!("-b: '{word}' is not the id of a BPF program")))
    };
    list.split(',').map(id).collect()
}

/// Dissolves the groups that have an event for BPF programs, since the programs read each event separately.
fn ungroup(row_events: &mut [RowEvent]) {
    let mut start = 0;
    while start < row_events.len() {
        let rest = row_events.get(start + 1..).unwrap_or_default();
        let members = rest
            .iter()
            .take_while(|row_event| row_event.event.spec.group == GroupPosition::Member);
        let end = start + 1 + members.count();
        let group = row_events.get_mut(start..end).unwrap_or_default();
        if group.iter().any(|row_event| row_event.event.spec.bpf) {
            for row_event in group {
                row_event.event.spec.group = GroupPosition::None;
                row_event.event.spec.weak = false;
            }
        }
        start = end;
    }
}
