//! `kmem stat`: sums of allocations, by caller and by address.

use std::io::{self, Write};

use clap::{ArgMatches, Command};
use rperf_analysis::ObserverPass;
use rperf_analysis::kmem::{
    KmemDistributions, KmemEvents, PageRow, PageStatistics, SlabRow, SlabStatistics,
};
use rperf_sys::CpuList;
use rperf_view::kmem::pages::{PageLayout, PageTable};
use rperf_view::kmem::slab::SlabTable;
use rperf_view::kmem::{CallSiteNames, ShownRows, distributions, json, slab};

use super::details::{KmemDetails, call_site};
use super::fragmentation::migrate_types;
use super::needed_events::require_events;
use super::tables::ShownTables;
use super::{Allocators, stat_options};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::shared::recorded_fields::event_layouts;
use crate::cli::shared::time_range::time_intervals;
use crate::cli::symbol_options::SymbolSources;

const ABOUT: &str = "\
Shows how much memory the kernel allocated and freed, on request by caller (--caller) and by address (--alloc). Ping-pong counts objects that were \
freed on another CPU, Frag is the share of allocated bytes that were not requested.";

/// The numbers that may be wrong if records were lost, for the warning.
const DOUBTFUL: &str = "sums of allocations";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("kmem stat")
        .long_about(ABOUT)
        .args(stat_options())
}

/// Prints tables and sums.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let allocators = Allocators::given(matches).or_default(context);
    let tables = ShownTables::given(matches, allocators)?;
    tables.warn_of_unused(matches, context);
    let is_live = flag(matches, "live") == Some(true);
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let layouts = event_layouts(&analysis)?;
    let needed = require_events(&analysis, allocators, &layouts)?;
    let resolver = analysis.resolver(&symbols);
    let mut events = KmemEvents::default();
    events.slab.set_nodes(nodes(&analysis));
    events.pages.set_page_size(page_size(&analysis));
    if flag(matches, "histogram") == Some(true) {
        let mut distributions = KmemDistributions::default();
        distributions.set_page_size(page_size(&analysis));
        events.distributions = Some(distributions);
    }
    if tables.alloc.is_some() {
        events.slab = events.slab.with_addresses();
        events.pages = events.pages.with_pages();
    }
    if is_live {
        events.pages = events.pages.live_only();
    }
    let details = KmemDetails {
        resolver: &resolver,
        intervals: time_intervals(matches, &analysis, "script")?, // For the hint on an invalid --time: `script` prints times.
    };
    let pass = ObserverPass::new(&layouts, details).reading(&needed);
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut events)?;
    analysis.end_progress();
    context.paginate("kmem")?;
    let is_raw = flag(matches, "raw-ip") == Some(true);
    let result = StatResult {
        page_layout: PageLayout::new(&events.pages, migrate_types(&analysis), is_live),
        allocators,
        tables,
        is_live,
        slab: &events.slab,
        pages: &events.pages,
        distributions: events.distributions.as_ref(),
        names: &|address| match is_raw {
            true => None, // The address is shown instead.
            false => call_site(&resolver, address),
        },
    };
    let out = &mut context.stdout();
    match flag(matches, "json") == Some(true) {
        true => result.write_json(out, losses(&analysis).lost)?,
        false => result.write(out)?,
    }
    conclude(&analysis, delivered, &events.losses, DOUBTFUL, matches)
}

/// Returns the page size of the recording kernel in bytes; `None` if not recorded.
pub(super) fn page_size(analysis: &Analysis<'_>) -> Option<u32> {
    analysis.metadata().formats().ok()?.page_size()
}

/// Returns the NUMA node of each CPU, by CPU number; `None` for CPUs whose node is not recorded. CPUs after the last recorded one
/// are missing.
fn nodes(analysis: &Analysis<'_>) -> Vec<Option<u32>> {
    let mut nodes = Vec::new();
    let recorded = analysis.metadata().features.numa_topology();
    for node in recorded.unwrap_or_default() {
        let Ok(cpus) = CpuList::parse(&node.cpus) else {
            continue;
        };
        for cpu in cpus.numbers() {
            let index = *cpu as usize;
            if nodes.len() <= index {
                nodes.resize(index + 1, None);
            }
            if let Some(slot) = nodes.get_mut(index) {
                *slot = Some(node.node);
            }
        }
    }
    nodes
}

/// The sums, and which of them are printed.
struct StatResult<'a> {
    allocators: Allocators,
    tables: ShownTables,
    is_live: bool,
    slab: &'a SlabStatistics,
    pages: &'a PageStatistics,
    page_layout: PageLayout,
    distributions: Option<&'a KmemDistributions>,
    names: &'a CallSiteNames<'a>,
}

/// A requested table of the slab allocator or of pages, and its rows.
enum RequestedTable {
    Slab(SlabTable, ShownRows<SlabRow>),
    Pages(PageTable, ShownRows<PageRow>),
}

impl StatResult<'_> {
    /// Returns the requested tables of `allocators`, those by caller first.
    fn requested(&self, allocators: Allocators) -> Vec<RequestedTable> {
        let (slab, pages, live) = (self.slab, self.pages, self.is_live);
        let mut requested = Vec::new();
        for (by_caller, table) in [(true, &self.tables.caller), (false, &self.tables.alloc)] {
            let Some(table) = table else {
                continue;
            };
            let (most, keys) = (table.most, &table.slab_keys);
            if allocators.slab {
                let (kind, rows) = match (by_caller, live) {
                    (true, false) => (SlabTable::Callers, slab.by_caller(keys)),
                    (true, true) => (SlabTable::Callers, slab.live_by_caller(keys)),
                    (false, false) => (SlabTable::Addresses, slab.by_address(keys)),
                    (false, true) => (SlabTable::Addresses, slab.live_by_address(keys)),
                };
                requested.push(RequestedTable::Slab(kind, ShownRows { rows, most }));
            }
            if allocators.page {
                // With --live, `pages` itself counts only live pages: `PageStatistics::live_only`.
                let (kind, rows) = match by_caller {
                    true => (PageTable::Callers, pages.by_caller(&table.page_keys)),
                    false => (PageTable::Pages, pages.by_page(&table.page_keys)),
                };
                requested.push(RequestedTable::Pages(kind, ShownRows { rows, most }));
            }
        }
        requested
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Allocators { slab, page } = self.allocators;
        let only_slab = Allocators { slab, page: false };
        for table in self.requested(only_slab) {
            if let RequestedTable::Slab(kind, rows) = table {
                slab::write(out, kind, &rows, self.names)?;
            }
        }
        if slab {
            slab::write_summary(out, self.slab.totals())?;
        }
        if page {
            self.write_pages(out)?;
        }
        let Some(distributions) = self.distributions else {
            return Ok(());
        };
        for allocator in self.allocators.each() {
            let report = distributions.report(allocator);
            distributions::write(out, allocator, &report, distributions.end())?;
        }
        Ok(())
    }

    fn write_pages(&self, out: &mut dyn Write) -> io::Result<()> {
        let tables = self.requested(Allocators {
            slab: false,
            page: true,
        });
        if !tables.is_empty() {
            self.page_layout.write_flag_legend(out, self.pages)?;
        }
        for (number, table) in tables.into_iter().enumerate() {
            if let RequestedTable::Pages(kind, rows) = table {
                if number > 0 {
                    writeln!(out)?;
                }
                self.page_layout.write(out, kind, &rows, self.names)?;
            }
        }
        self.page_layout.write_summary(out, self.pages)
    }

    fn write_json(&self, out: &mut dyn Write, lost: u64) -> io::Result<()> {
        json::write_begin(out, lost)?;
        if self.allocators.slab {
            json::write_slab_totals(out, self.slab.totals())?;
        }
        if self.allocators.page {
            json::write_page_totals(out, self.pages)?;
        }
        for table in self.requested(self.allocators) {
            match table {
                RequestedTable::Slab(kind, rows) => {
                    let key = match kind {
                        SlabTable::Callers => "slab_callers",
                        SlabTable::Addresses => "slab_addresses",
                    };
                    json::write_slab_rows(out, key, &rows, self.names)?;
                }
                RequestedTable::Pages(kind, rows) => {
                    let key = match kind {
                        PageTable::Callers => "page_callers",
                        PageTable::Pages => "page_frames",
                    };
                    json::write_page_rows(out, key, &rows, &self.page_layout, self.names)?;
                }
            }
        }
        if let Some(distributions) = self.distributions {
            for allocator in self.allocators.each() {
                let report = distributions.report(allocator);
                distributions::write_json(out, allocator, &report)?;
            }
        }
        json::write_end(out)
    }
}
