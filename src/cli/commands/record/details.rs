//! The switches that change all events alike.

use clap::ArgMatches;
use rperf_events::Details;

use super::{masks, timing};
use crate::cli::error::CliError;
use crate::cli::live::events;
use crate::cli::options::flag;

/// What the switches ask for.
pub(super) fn details(matches: &ArgMatches) -> Result<Details, CliError> {
    let on = |id| flag(matches, id) == Some(true);
    Ok(Details {
        user_callchains: on("user-callchains"),
        kernel_callchains: on("kernel-callchains"),
        side: events::side(matches)?,
        no_inherit: on("no-inherit"),
        no_samples: on("no-samples"),
        data: on("data"),
        phys_data: on("phys-data"),
        data_page_size: on("data-page-size"),
        code_page_size: on("code-page-size"),
        weight: on("weight"),
        cpu: on("sample-cpu"),
        identifier: on("sample-identifier"),
        period: flag(matches, "period"),
        time: flag(matches, "timestamp"),
        transaction: on("transaction"),
        stat: on("stat"),
        running_time: on("running-time"),
        per_thread: on("per-thread"),
        delayed: timing::switches(matches)?.is_some(),
        overwrite: on("overwrite"),
        no_buffering: on("no-buffering"),
        no_bpf_event: on("no-bpf-event"),
        switch_events: on("switch-events") || on("latency"),
        namespaces: on("namespaces"),
        cgroups: on("all-cgroups"),
        build_ids: on("buildid-mmap"),
        user_regs: masks::registers(matches, "user-regs")?,
        intr_regs: masks::registers(matches, "intr-regs")?,
        branches: masks::branches(matches)?,
        clockid: timing::clockid(matches)?,
    })
}
