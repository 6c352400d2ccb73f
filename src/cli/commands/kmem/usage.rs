//! `kmem usage`: memory of both allocators in one table.

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::kmem::{UsageReport, UsageRow};
use rperf_replay::{Order, World};
use rperf_resolve::Resolver;
use rperf_view::kmem::usage::{NamedUsage, UsageTable, UsageTotals};

use super::details::call_site;
use super::usage_keys::{KeyPart, UsageAnalysis, UsageKeys};
use super::{FRAMES, reading_options, recorded_allocators};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{flag, number, switch, value};
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::containers::container_of;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::symbol_options::SymbolSources;

const ABOUT: &str = "\
Shows how much memory the kernel allocated, freed and did not free: objects of the slab allocator and pages in one table, by default by stack. Pages that \
the slab allocator allocates for its objects are listed as 'slab pages', but not added to the sums if objects are shown, too. 'kmem record --slab \
--page -g' records both with stacks, and --all-cgroups the cgroup of each allocation.";

/// The number of rows that the text shows by default; JSON has all.
const ROWS: u64 = 20;

/// The numbers that may be wrong where records were lost.
const DOUBTFUL: &str = "sums of allocations";

/// The order of rows, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortKey {
    Bytes,
    Hits,
    Live,
    Peak,
    Life,
}

impl SortKey {
    /// Parses `-s`.
    fn given(matches: &ArgMatches) -> Result<Self, CliError> {
        let Some(word) = matches.get_one::<String>("sort") else {
            return Ok(Self::Bytes);
        };
        Ok(match word.as_str() {
            "bytes" => Self::Bytes,
            "hit" => Self::Hits,
            "live" => Self::Live,
            "peak" => Self::Peak,
            "life" => Self::Life,
            _ => {
                return Err(CliError::usage(format!("Unknown --sort key: '{word}'"))
                    .hint("the keys are bytes, hit, live, peak and life"));
            }
        })
    }

    /// Returns the number by which a row is sorted; for `life` the median of the lifetimes.
    fn of(self, row: &UsageRow) -> u64 {
        match self {
            Self::Bytes => row.allocated.bytes,
            Self::Hits => row.allocated.requests,
            Self::Live => row.live.bytes,
            Self::Peak => row.peak,
            Self::Life => {
                let median = 500; // per mille
                row.lifetimes.percentile(median).unwrap_or_default()
            }
        }
    }
}

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("kmem usage")
        .long_about(ABOUT)
        .args(options())
        .args(reading_options(recorded_allocators()))
}

fn options() -> [Arg; 6] {
    [
        super::usage_keys::option("stack"),
        value("line", "n")
            .short('l')
            .value_parser(number)
            .help("show only the first n rows (default: 20)"),
        value("max-stack", "n")
            .value_parser(number)
            .help("show at most n frames of a stack (default: 8)"),
        value("sort", "key").short('s').help(
            "sort key, highest first: bytes, hit, live (bytes not freed), peak, life (median) (default: bytes)",
        ),
        switch("json").help("print the rows as JSON, sizes in bytes, times in nanoseconds"),
        jobs::option(),
    ]
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let sort_key = SortKey::given(matches)?;
    let keys = UsageKeys::given(matches, &[KeyPart::Stack])?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let resolver = analysis.resolver(&symbols);
    let UsageAnalysis {
        mut report,
        delivered,
        losses: lost_stretches,
        has_objects,
    } = keys.analyse(&analysis, &resolver, matches)?;
    analysis.end_progress();
    // The sort is stable: equal rows remain in the order of the report, by kind, cache and key.
    report
        .rows
        .sort_by_key(|row| std::cmp::Reverse(sort_key.of(row)));
    let names = UsageNames {
        keys: &keys,
        resolver: &resolver,
        world: analysis.replay.world(),
        is_raw: flag(matches, "raw-ip") == Some(true),
    };
    let is_json = flag(matches, "json") == Some(true);
    let limit = |id, default| {
        let given = matches.get_one::<u64>(id).copied();
        usize::try_from(given.unwrap_or(default)).unwrap_or(usize::MAX)
    };
    let row_limit = limit("line", if is_json { u64::MAX } else { ROWS });
    let table = UsageTable {
        seconds: report.seconds(),
        totals: UsageTotals::of(&report, has_objects),
        titles: keys.titles(),
        rows: names.named(&report, row_limit),
        hidden: report.rows.len().saturating_sub(row_limit),
        frames: limit("max-stack", FRAMES),
    };
    context.paginate("kmem")?;
    let out = &mut context.stdout();
    match is_json {
        true => table.write_json(out, losses(&analysis).lost)?,
        false => table.write(out)?,
    }
    conclude(&analysis, delivered, &lost_stretches, DOUBTFUL, matches)
}

/// Names the parts of keys.
pub(super) struct UsageNames<'n> {
    pub(super) keys: &'n UsageKeys,
    pub(super) resolver: &'n Resolver<'n>,
    /// The processes and cgroups of the recording.
    pub(super) world: &'n World,
    /// Whether addresses are shown instead of symbols.
    pub(super) is_raw: bool,
}

impl UsageNames<'_> {
    /// Returns the first `limit` rows with their names.
    pub(super) fn named(&self, report: &UsageReport, limit: usize) -> Vec<NamedUsage> {
        let rows = report.rows.iter().take(limit);
        rows.map(|row| self.row(row)).collect()
    }

    /// Names a row. `UsageDetails::key` makes its key: a number for each part in order, but none for the cache, and the addresses
    /// of the stack at the end.
    fn row(&self, row: &UsageRow) -> NamedUsage {
        let mut numbers = row.key.iter().copied();
        let mut names = Vec::new();
        for part in self.keys.parts() {
            names.push(match part {
                KeyPart::Stack => continue,
                KeyPart::Cache => {
                    rperf_view::kmem::usage::cache_or_order(row.cache_or_order.as_ref())
                }
                part => self.name(part, numbers.next().unwrap_or_default()),
            });
        }
        // The rest is the stack.
        let frames = numbers.map(|address| self.address(address)).collect();
        NamedUsage {
            row: row.clone(),
            names,
            frames,
        }
    }

    fn name(&self, part: KeyPart, number: u64) -> String {
        match part {
            KeyPart::Function => match call_site(self.resolver, number) {
                Some(site) if !self.is_raw => site.symbol,
                _ => self.address(number),
            },
            KeyPart::Cgroup => match self.world.cgroup(number) {
                Some(path) => path.to_owned(),
                None => format!("cgroup {number}"),
            },
            KeyPart::Container => match self.world.cgroup(number).and_then(container_of) {
                Some(name) => name,
                None => "no container".to_owned(),
            },
            KeyPart::Process => self.process(number),
            // `row` handles stack and cache itself.
            KeyPart::Caller | KeyPart::Stack | KeyPart::Cache => self.address(number),
        }
    }

    fn process(&self, pid: u64) -> String {
        let pid = u32::try_from(pid).unwrap_or(u32::MAX);
        // The name at the end of the recording.
        match self.world.comm(self.world.comm_last(pid, Order::MAX)) {
            "" => format!(":{pid}"),
            name => format!("{name} ({pid})"),
        }
    }

    fn address(&self, address: u64) -> String {
        let site = call_site(self.resolver, address).filter(|_| !self.is_raw);
        match site {
            Some(site) => format!("{}+{:#x}", site.symbol, site.offset),
            None if address == 0 => "unknown".to_owned(),
            None => format!("{address:#x}"),
        }
    }
}
