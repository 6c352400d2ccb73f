//! `kmem record`: records allocations and frees of the whole system.

use std::ffi::OsString;

use clap::ArgMatches;
use rperf_analysis::kmem::{FALLBACK_EVENT, PAGE_EVENTS, SLAB_EVENTS};
use rperf_events::Tracepoints as _;

use super::Allocators;
use crate::cli::argv::first_word;
use crate::cli::commands::find;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::is_given;
use crate::cli::shared::system_recording::{known_events, record_events, refuse_reading_options};
use crate::cli::tracefs::MachineTracepoints;

/// The command in messages.
const RECORDER: &str = "kmem record";

/// Options of `kmem` that apply to `kmem stat`, not to `kmem record`.
const READING: [&str; 9] = [
    "alloc",
    "caller",
    "histogram",
    "json",
    "line",
    "live",
    "raw-ip",
    "sort",
    "time",
];

/// Records with the options and the workload in `words`.
pub(super) fn run(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    refuse_reading_options(RECORDER, matches)?;
    if let Some(option) = READING.into_iter().find(|id| is_given(matches, id)) {
        return Err(CliError::usage(format!(
            "{RECORDER} writes a recording; --{option} applies to 'kmem stat'"
        )));
    }
    let mut allocators = Allocators::given(matches);
    let mut words = without_allocators(words, &mut allocators, context)?;
    let Allocators { slab, page } = allocators.or_default(context);
    if page {
        // The events of the page allocator do not contain the caller, so callchains are needed.
        words.insert(0, "-g".into());
    }
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let known = known_events(RECORDER, &machine, "kmem")?;
    let slab_events = SLAB_EVENTS.iter().filter(|_| slab);
    // For 'kmem fragmentation'; the event is rare.
    let page_events = PAGE_EVENTS.iter().chain(&[FALLBACK_EVENT]);
    let page_events = page_events.filter(|_| page);
    let events: Vec<String> = slab_events
        .chain(page_events)
        .filter(|event| {
            let name = event.strip_prefix("kmem:");
            name.is_some_and(|name| known.iter().any(|known| known == name))
        })
        .map(|event| (*event).to_owned())
        .collect();
    if events.is_empty() {
        let folder = machine.folder().join("kmem");
        let message = format!(
            "{RECORDER}: the kernel has no events of the allocator in {}",
            folder.display()
        );
        return Err(CliError::message(255, message)
            .hint("the kernel must be built with CONFIG_TRACING and its events be visible"));
    }
    record_events(events, &words, matches, context)
}

/// Removes `--slab` and `--page` from the options before the workload; Linux perf accepts them only before `record`.
fn without_allocators(
    words: &[OsString],
    allocators: &mut Allocators,
    context: &Context,
) -> Result<Vec<OsString>, CliError> {
    let record = find(context, "record")?;
    let end = words.iter().position(|word| word == "--");
    let end = end.or(first_word(&(record.build)(), words));
    let (options, workload) = words.split_at(end.unwrap_or(words.len()));
    let mut kept = Vec::new();
    for word in options {
        match word.to_str() {
            Some("--slab") => allocators.slab = true,
            Some("--page") => allocators.page = true,
            _ => kept.push(word.clone()),
        }
    }
    kept.extend_from_slice(workload);
    Ok(kept)
}
