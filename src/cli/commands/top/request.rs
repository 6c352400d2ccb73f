//! Builds the request for the observation (sampling without a file) from the options.

use clap::ArgMatches;
use rperf_events::{CallGraph, EventSpec, PrivilegeLevel, RecordDetails, SideBand, TaskScope};
use rperf_names::counted;
use rperf_session::{
    KernelRoots, ObserveOptions, RecordRequest, RingOptions, SynthesisOptions, Target,
};
use rperf_sys::{CpuList, Sysctl};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{PROC, cgroups, events, target};
use crate::cli::options::flag;
use crate::cli::pmus::machine_pmus;
use crate::cli::shared::sampling::{
    CallchainOptions, events_to_record, real_time, ring_size, sampling, synthesis, traces,
};
use crate::cli::tracefs::MachineTracepoints;

/// Builds the request of an observation: a recording that writes no file.
pub(super) fn build(matches: &ArgMatches, context: &Context) -> Result<RecordRequest, CliError> {
    refuse_workload(matches, context)?;
    let chains = CallchainOptions::new(matches, context, "top.call-graph")?;
    if chains.mode == CallGraph::Deferred {
        let error = CliError::usage(
            "--call-graph fp,defer is supported by record only: top cannot join deferred callchains",
        );
        return Err(error.hint("use --call-graph fp"));
    }
    let sampling = sampling(matches, context, &Sysctl::new(PROC))?;
    let ring_pages = ring_size::pages(matches, context)?;
    let all_cpus = Target::Cpus(None);
    let target = match is_system_wide(matches) {
        true => all_cpus,
        false => target::target(matches, context, "observing")?,
    };
    let tracepoints = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let pmus = machine_pmus(context);
    let events = events_to_record(matches, context, &target, &pmus, &tracepoints)?;
    // Only `record` supports AUX area traces and sample filters.
    traces::refuse(matches, context, &events)?;
    events::refuse_sample_filters(&events)?;
    // The level is applied here to the requested events; through `details` also to a side-band event that the session adds.
    let level = events::privilege_level(matches)?;
    let events: Vec<EventSpec> = match level {
        Some(level) => events
            .into_iter()
            .map(|event| level.restrict_event(event))
            .collect(),
        None => events,
    };
    let cgroups = cgroups::cgroups(matches, &target, events.len())?;
    let roots = KernelRoots {
        proc: PROC.into(),
        sysfs: pmus.sysfs.root().to_owned(),
        tracefs: tracepoints.tracefs,
    };
    let observe = ObserveOptions {
        cgroups,
        sampling,
        call_graph: chains.mode,
        details: details(matches, level),
        max_stack: chains.max_stack,
        ..ObserveOptions::new(target, events)
    };
    Ok(RecordRequest {
        rings: RingOptions {
            pages: ring_pages,
            real_time: real_time(matches)?,
            ..RingOptions::default()
        },
        synthesis: SynthesisOptions {
            maps_timeout: synthesis::maps_timeout(matches, context),
            threads: synthesis::threads(matches),
            ..SynthesisOptions::default()
        },
        ..RecordRequest::observing(observe, roots)
    })
}

fn details(matches: &ArgMatches, level: Option<PrivilegeLevel>) -> RecordDetails {
    let on = |id| flag(matches, id) == Some(true);
    RecordDetails {
        scope: TaskScope {
            level,
            no_inherit: on("no-inherit"),
            ..TaskScope::default()
        },
        side_band: SideBand {
            no_bpf: on("no-bpf-event"),
            namespaces: on("namespaces"),
            cgroups: on("all-cgroups"),
            ..SideBand::default()
        },
        ..RecordDetails::default()
    }
}

/// Whether callchains are recorded.
pub(super) fn has_callchains(request: &RecordRequest) -> bool {
    request.observe.call_graph != CallGraph::None
}

/// The target in perf's words, for the status line; `cpus` is the number of observed CPUs.
pub(super) fn scope(matches: &ArgMatches, cpus: usize) -> String {
    let text = |id| matches.get_one::<String>(id).map(String::as_str);
    let all_of = |who: &str| format!("{who}, {}", counted(cpus as u64, "CPU"));
    match (text("pid"), text("tid"), text("uid"), text("cpu")) {
        (Some(pid), ..) => format!("target_pid: {pid}"),
        (None, Some(tid), ..) => format!("target_tid: {tid}"),
        (None, None, Some(user), _) => all_of(&format!("uid: {user}")),
        (None, None, None, Some(list)) => {
            let several = CpuList::parse(list).is_ok_and(|parsed| parsed.numbers().len() > 1);
            format!("all, CPU{}: {list}", if several { "s" } else { "" })
        }
        _ => all_of("all"),
    }
}

/// Whether no option restricts the target: the default, with or without `-a`.
fn is_system_wide(matches: &ArgMatches) -> bool {
    let restrictions = ["pid", "tid", "uid", "cpu"];
    restrictions.iter().all(|id| !matches.contains_id(id))
}

/// Refuses a workload.
fn refuse_workload(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let mut words = matches.get_raw("workload").into_iter().flatten();
    let Some(word) = words.next() else {
        return Ok(());
    };
    let word = word.to_string_lossy();
    let message = format!("{} top: unexpected word '{word}'", context.program);
    Err(CliError::usage(message).hint(format!(
        "top runs no command; sample a running one with -p $(pidof {word})"
    )))
}
