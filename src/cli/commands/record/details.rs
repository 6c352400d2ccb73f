//! Options that apply to all events, except the call-graph mode, sampling rates and ring sizes.

use clap::ArgMatches;
use rperf_events::{CounterReads, RecordDetails, SampleFields, SideBand, TaskScope};

use super::{build_ids, masks, timing};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::events;
use crate::cli::options::flag;

/// Returns the settings that the options select.
pub(super) fn details(matches: &ArgMatches, context: &Context) -> Result<RecordDetails, CliError> {
    let on = |id| flag(matches, id) == Some(true);
    Ok(RecordDetails {
        scope: TaskScope {
            level: events::privilege_level(matches)?,
            no_inherit: on("no-inherit"),
            per_thread: on("per-thread"),
            // `timed_switches` are times at which -D enables or disables events, not context switches.
            delayed: timing::timed_switches(matches)?.is_some(),
        },
        samples: sample_fields(matches)?,
        side_band: SideBand {
            // `report --latency` needs context switches.
            switches: on("switch-events") || on("latency"),
            namespaces: on("namespaces"),
            cgroups: on("all-cgroups"),
            build_ids: build_ids::are_in_mappings(matches, context),
            no_bpf: on("no-bpf-event"),
        },
        reads: CounterReads {
            per_task: on("stat"),
            running_time: on("running-time"),
        },
        no_samples: on("no-samples"),
        overwrite: on("overwrite"),
        no_buffering: on("no-buffering"),
        clockid: timing::clockid(matches)?,
    })
}

/// The optional fields of samples.
fn sample_fields(matches: &ArgMatches) -> Result<SampleFields, CliError> {
    let on = |id| flag(matches, id) == Some(true);
    Ok(SampleFields {
        user_callchains: on("user-callchains"),
        kernel_callchains: on("kernel-callchains"),
        data: on("data"),
        phys_data: on("phys-data"),
        data_page_size: on("data-page-size"),
        code_page_size: on("code-page-size"),
        weight: on("weight"),
        cpu: on("sample-cpu"),
        identifier: on("sample-identifier"),
        // Period and time are `None` if not given: then they depend on the event and on `--per-thread`.
        period: flag(matches, "period"),
        time: flag(matches, "timestamp"),
        transaction: on("transaction"),
        user_regs: masks::registers(matches, "user-regs")?,
        intr_regs: masks::registers(matches, "intr-regs")?,
        branches: masks::branches(matches)?,
    })
}
