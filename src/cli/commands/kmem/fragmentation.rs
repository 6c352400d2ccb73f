//! `kmem fragmentation`: pages by order and migrate type, and unused bytes of objects.

use std::ops::RangeInclusive;

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::ObserverPass;
use rperf_analysis::kmem::{FALLBACK_EVENT, Fragmentation, MigrateTypes};
use rperf_view::kmem::fragmentation::FragmentationView;

use super::details::{KmemDetails, call_site};
use super::needed_events::require_events;
use super::stat::page_size;
use super::{Allocators, reading_options, recorded_allocators};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{flag, number, switch, value};
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::shared::recorded_fields::{event_layouts, require_fields};
use crate::cli::shared::time_range::time_intervals;
use crate::cli::symbol_options::SymbolSources;

const ABOUT: &str = "\
Shows how allocations fragment memory. Pages: how many were allocated, freed and not freed (outstanding), by order and migrate type; how outstanding \
pages are distributed over pageblocks, the units in which the kernel groups pages of one type; the callers with pages that cannot be moved, those in most \
pageblocks first; and events of external fragmentation, if recorded: allocations from blocks of another type. Objects of the slab allocator: bytes that were \
allocated but not requested, by cache.";

/// The number of callers, and of caches, in tables of text by default. As JSON, all are shown by default.
const ROWS: u64 = 20;

/// The orders of pageblocks that are accepted: those of existing kernels, and a few more.
const PAGEBLOCK_ORDERS: RangeInclusive<u32> = 4..=14;

/// The numbers that may be wrong where records were lost.
const DOUBTFUL: &str = "numbers of pages and objects that were not freed";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("kmem fragmentation")
        .long_about(ABOUT)
        .args(options())
        .args(reading_options(recorded_allocators()))
}

fn options() -> [Arg; 3] {
    [
        value("line", "n")
            .short('l')
            .value_parser(number)
            .help("show only the first n callers and caches (default: 20)"),
        switch("json").help("print the tables as JSON, sizes in bytes"),
        jobs::option(),
    ]
}

/// Prints the tables.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let layouts = event_layouts(&analysis)?;
    let allocators = Allocators::given_or_recorded(matches, &layouts);
    let mut needed = require_events(&analysis, allocators, &layouts)?;
    let has_fallback_event = allocators.page && layouts.has(FALLBACK_EVENT);
    if has_fallback_event {
        require_fields(&analysis, |name| name == FALLBACK_EVENT, "kmem record")?;
        needed.push(&[FALLBACK_EVENT]);
    }
    let resolver = analysis.resolver(&symbols);
    let details = KmemDetails {
        resolver: &resolver,
        intervals: time_intervals(matches, &analysis, "script")?, // For a hint: `script` prints times.
    };
    let pageblock_order = pageblock_order(&analysis);
    let mut fragmentation = Fragmentation::default().with_pageblock_order(pageblock_order);
    let pass = ObserverPass::new(&layouts, details).reading(&needed);
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut fragmentation)?;
    analysis.end_progress();
    let types = migrate_types(&analysis);
    let is_raw = flag(matches, "raw-ip") == Some(true);
    let is_json = flag(matches, "json") == Some(true);
    let most = matches.get_one::<u64>("line").copied();
    let most = most.unwrap_or(if is_json { u64::MAX } else { ROWS });
    let view = FragmentationView {
        report: &fragmentation.report(types),
        page_size: page_size(&analysis),
        types,
        pageblock_order,
        has_fallback_event,
        shows_pages: allocators.page,
        shows_objects: allocators.slab,
        most: usize::try_from(most).unwrap_or(usize::MAX),
        names: &|address| match is_raw {
            true => None,
            false => call_site(&resolver, address),
        },
    };
    context.paginate("kmem")?;
    let out = &mut context.stdout();
    match is_json {
        true => view.write_json(out, losses(&analysis).lost)?,
        false => view.write(out)?,
    }
    conclude(
        &analysis,
        delivered,
        &fragmentation.losses,
        DOUBTFUL,
        matches,
    )
}

/// Returns the numbering of migrate types of the recording kernel.
pub(super) fn migrate_types(analysis: &Analysis<'_>) -> MigrateTypes {
    let release = analysis.metadata().features.os_release();
    let types = release.as_deref().map(MigrateTypes::of_release);
    types.unwrap_or_default()
}

/// Returns the binary logarithm of the number of pages of a pageblock: a constant in the print format of [`FALLBACK_EVENT`].
/// `None` if the event was not recorded, or its format has no plausible constant.
fn pageblock_order(analysis: &Analysis<'_>) -> Option<u32> {
    let metadata = analysis.metadata();
    let formats = metadata.formats().ok()?;
    let mut events = metadata.events.iter();
    let event = events.find(|event| event.name == FALLBACK_EVENT)?;
    let tracepoint = formats.of_event(&event.attr).ok()?;
    let order = tracepoint.format.printed_constant("pageblock_order")?;
    // Other orders are from damaged recordings.
    let order = u32::try_from(order).ok();
    order.filter(|order| PAGEBLOCK_ORDERS.contains(order))
}
