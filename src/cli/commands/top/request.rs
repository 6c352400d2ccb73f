//! From options to what is observed.

use std::time::Duration;

use clap::ArgMatches;
use rperf_events::{CallGraph, Details, EventSpec};
use rperf_session::{Request, Roots, Target};
use rperf_sys::{CpuList, Sysctl};

use crate::cli::commands::record::{
    Chains, real_time, refuse_traces, ring_pages, sampling, told_by, wanted_events,
};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{PROC, cgroups, events, target};
use crate::cli::options::flag;
use crate::cli::pmus::MachinePmus;
use crate::cli::tracefs::MachineTracepoints;

/// What the command line asks for; says on stderr what it decides itself.
pub(super) fn build(matches: &ArgMatches, context: &Context) -> Result<Request, CliError> {
    refuse_workload(matches, context)?;
    let chains = Chains::new(matches, context)?;
    if chains.mode == CallGraph::Deferred {
        let error = CliError::usage(
            "--call-graph fp,defer is for recordings: top shows callchains as they come",
        );
        return Err(error.hint("use --call-graph fp"));
    }
    let on = |id| flag(matches, id) == Some(true);
    let sampling = sampling(matches, context, &Sysctl::new(PROC))?;
    let ring_pages = ring_pages(matches, context)?;
    let target = match is_of_system(matches) {
        true => Target::Cpus(None),
        false => target::target(matches, context, "observing")?,
    };
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let pmus = MachinePmus::find(context);
    let events = wanted_events(matches, context, &target, (&pmus, &machine))?;
    refuse_traces(matches, context, &events)?;
    events::refuse_sample_filters(&events)?;
    let side = events::side(matches)?;
    let events: Vec<EventSpec> = match side {
        Some(side) => events.into_iter().map(|event| side.of(event)).collect(),
        None => events,
    };
    let cgroups = cgroups::cgroups(matches, &target, events.len())?;
    let maps_within = matches.get_one::<u64>("proc-map-timeout").copied();
    let roots = Roots {
        proc: PROC.into(),
        sysfs: pmus.sysfs.root().to_owned(),
        tracefs: machine.0,
    };
    let request = Request::observing(target, events, roots);
    Ok(Request {
        sampling,
        call_graph: chains.mode,
        details: Details {
            side,
            no_inherit: on("no-inherit"),
            no_bpf_event: on("no-bpf-event"),
            namespaces: on("namespaces"),
            cgroups: on("all-cgroups"),
            ..Details::default()
        },
        max_stack: chains.max_stack,
        ring_pages,
        cgroups,
        real_time: real_time(matches)?,
        maps_within: maps_within.map_or(request.maps_within, Duration::from_millis),
        told_by: told_by(matches),
        ..request
    })
}

/// Whether call graphs are taken.
pub(super) fn has_callchains(request: &Request) -> bool {
    request.call_graph != CallGraph::default()
}

/// perf's words for whom the rows are of; `cpus` is how many are observed.
pub(super) fn scope(matches: &ArgMatches, cpus: usize) -> String {
    let text = |id| matches.get_one::<String>(id).map(String::as_str);
    let plural = if cpus == 1 { "" } else { "s" };
    let all_of = |who: &str| format!("{who}, {cpus} CPU{plural}");
    match (text("pid"), text("tid"), text("uid"), text("cpu")) {
        (Some(pid), ..) => format!("target_pid: {pid}"),
        (None, Some(tid), ..) => format!("target_tid: {tid}"),
        (None, None, Some(user), _) => all_of(&format!("uid: {user}")),
        (None, None, None, Some(list)) => {
            let several = CpuList::parse(list).is_ok_and(|cpus| cpus.numbers().len() > 1);
            format!("all, CPU{}: {list}", if several { "s" } else { "" })
        }
        _ => all_of("all"),
    }
}

fn is_of_system(matches: &ArgMatches) -> bool {
    let named = ["pid", "tid", "uid", "cpu"];
    named.iter().all(|id| !matches.contains_id(id))
}

/// The words behind the options are a command for `record`, and none here.
fn refuse_workload(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let mut words = matches.get_raw("workload").into_iter().flatten();
    let Some(word) = words.next() else {
        return Ok(());
    };
    let word = word.to_string_lossy();
    let message = format!("{} top: '{word}' is no option", context.program);
    Err(CliError::usage(message).hint(format!(
        "top runs no command; of one that runs: -p $(pidof {word})"
    )))
}
