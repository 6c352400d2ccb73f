//! `kmem record`: records allocations and frees of the whole system.

use std::ffi::OsString;

use clap::{ArgMatches, Command};
use rperf_analysis::kmem::{FALLBACK_EVENT, PAGE_EVENTS, SLAB_EVENTS};
use rperf_events::Tracepoints as _;

use super::Allocators;
use crate::cli::argv::take_switch;
use crate::cli::commands::find;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::is_given;
use crate::cli::shared::system_recording::{known_events, record_events, refuse_reading_options};
use crate::cli::tracefs::MachineTracepoints;

/// The command in messages.
const RECORDER: &str = "kmem record";

/// Options of `kmem` that are refused before `record`, as they apply to `kmem stat`.
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
    // `record` does not have --page and --slab. They are added so that they are found among the options before the workload.
    let command = (find(context, "record")?.build)().args(super::allocators());
    let mut words = take_allocators(words, &mut allocators, &command);
    let Allocators { slab, page } = allocators.or_default(context);
    if page {
        // The events of the page allocator do not contain the caller, so callchains are needed.
        words.insert(0, "-g".into());
    }
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let known = known_events(RECORDER, &machine, "kmem")?;
    let mut wanted: Vec<&str> = Vec::new();
    if slab {
        wanted.extend(SLAB_EVENTS);
    }
    if page {
        wanted.extend(PAGE_EVENTS);
        // For 'kmem fragmentation'; the event is rare.
        wanted.push(FALLBACK_EVENT);
    }
    // Not every kernel has all of these events.
    wanted.retain(|event| {
        let name = event.strip_prefix("kmem:");
        name.is_some_and(|name| known.iter().any(|known| known == name))
    });
    let events: Vec<String> = wanted.into_iter().map(str::to_owned).collect();
    if events.is_empty() {
        let folder = machine.folder().join("kmem");
        let message = format!(
            "{RECORDER}: the kernel has no events of the allocator in {}",
            folder.display()
        );
        return Err(CliError::message(255, message).hint(
            "the kernel must be built with CONFIG_TRACING, and this user must see its events",
        ));
    }
    record_events(events, &words, matches, context)
}

/// Selects the allocators of `--slab` and `--page` after `record`, and returns `words` without these options. Words of the
/// workload are kept. Linux perf accepts the options only before `record`.
fn take_allocators(
    words: &[OsString],
    allocators: &mut Allocators,
    command: &Command,
) -> Vec<OsString> {
    let (words, slab) = take_switch(command, words, "slab");
    let (words, page) = take_switch(command, &words, "page");
    allocators.slab = slab.unwrap_or(allocators.slab);
    allocators.page = page.unwrap_or(allocators.page);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::value;

    #[test]
    fn options_before_the_workload_are_taken_and_its_words_kept() {
        let command = Command::new("record")
            .arg(value("output", "file").short('o'))
            .args(crate::cli::commands::kmem::allocators());
        // Options may be abbreviated, and the last one applies. `--page` after `-o` is the name of a file.
        for (words, kept) in [
            ("--slab program --page", "program --page"),
            ("--slab program --page -- x", "program --page -- x"),
            ("--slab -- program --page", "-- program --page"),
            ("--sl --page --no-pa program", "program"),
            ("-o --page --sl program", "-o --page program"),
        ] {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let mut allocators = Allocators {
                slab: false,
                page: false,
            };
            let rest = take_allocators(&words, &mut allocators, &command);
            assert_eq!(rest, kept.split(' ').collect::<Vec<_>>());
            assert!(allocators.slab && !allocators.page);
        }
    }
}
