//! `kmem leaks`: memory that was allocated and not freed, by stack.

use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::kmem::{LeakDetail, LeakReport, LiveMemory, StackMemory};
use rperf_analysis::{ObserverPass, PrepareSamples};
use rperf_flame::CurveChart;
use rperf_replay::{Order, Sample, World};
use rperf_resolve::{Resolver, TimeIntervals};
use rperf_tracepoint::typed::TypedEvent;
use rperf_view::kmem::leaks::{self, NamedStack, StackLimits};

use super::details::{KernelStacks, call_site};
use super::needed_events::require_events;
use super::stat::page_size;
use super::{Allocators, FRAMES, reading_options, recorded_allocators};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{flag, number, switch, value};
use crate::cli::output_file::write_to;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::shared::recorded_fields::event_layouts;
use crate::cli::shared::time_range::time_intervals;
use crate::cli::symbol_options::SymbolSources;

const ABOUT: &str = "\
Shows how much memory the kernel allocated and did not free, over the time of the recording and by stack. Stacks marked with * are suspected to leak: \
they have more than one allocation that was not freed, at least half of their allocations were not freed, and their memory increased in at least half of the intervals of time and over \
the last quarter of them. 'kmem record -g' records stacks for objects of the slab allocator, of which otherwise only the caller is known.";

/// The number of stacks shown by default.
const ROWS: u64 = 20;

/// The numbers that may be wrong where records were lost.
const DOUBTFUL: &str = "allocations that were not freed";

/// The order of stacks, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortKey {
    Suspect,
    Bytes,
    Count,
    Age,
    Growth,
}

impl SortKey {
    /// Parses `-s`.
    fn given(matches: &ArgMatches) -> Result<Self, CliError> {
        let Some(word) = matches.get_one::<String>("sort") else {
            return Ok(Self::Suspect);
        };
        Self::named(word).ok_or_else(|| {
            CliError::usage(format!("Unknown --sort key: '{word}'"))
                .hint("the keys are suspect, bytes, count, age and growth")
        })
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "suspect" => Self::Suspect,
            "bytes" => Self::Bytes,
            "count" => Self::Count,
            "age" => Self::Age,
            "growth" => Self::Growth,
            _ => return None,
        })
    }

    /// Sorts the stacks of a report.
    fn sort(self, report: &mut LeakReport) {
        let mut stacks = std::mem::take(&mut report.stacks);
        // The sort is stable: equal stacks keep the order of the report, by bytes, allocator and addresses.
        match self {
            Self::Bytes => {}
            Self::Count => stacks.sort_by_key(|memory| std::cmp::Reverse(memory.live.requests)),
            Self::Age => stacks.sort_by_key(|memory| std::cmp::Reverse(memory.ages.max())),
            Self::Growth => {
                stacks.sort_by(|left, right| report.growth(right).total_cmp(&report.growth(left)));
            }
            Self::Suspect => stacks.sort_by(|left, right| {
                let suspects_first = right.is_suspect().cmp(&left.is_suspect());
                suspects_first.then_with(|| report.growth(right).total_cmp(&report.growth(left)))
            }),
        }
        report.stacks = stacks;
    }
}

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("kmem leaks")
        .long_about(ABOUT)
        .args(options())
        .args(reading_options(recorded_allocators()))
}

fn options() -> [Arg; 7] {
    [
        value("line", "n")
            .short('l')
            .value_parser(number)
            .help("show only the first n stacks (default: 20, with --json all)"),
        value("sort", "key").short('s').help(
            "sort key, highest first: suspect, bytes, count, age, growth (default: suspect, then growth)",
        ),
        value("max-stack", "n")
            .value_parser(number)
            .help("show at most n frames of a stack (default: 8)"),
        switch("suspects").help("show only stacks that are suspected to leak"),
        switch("json").help("print the curve and the stacks as JSON, sizes in bytes"),
        value("svg", "file").help("write the curve to this file as a picture, - for the standard output; print no tables"),
        jobs::option(),
    ]
}

/// Prints the curve and the stacks.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let key = SortKey::given(matches)?;
    refuse_two_formats(matches)?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let layouts = event_layouts(&analysis)?;
    let allocators = Allocators::given_or_recorded(matches, &layouts);
    let needed = require_events(&analysis, allocators, &layouts)?;
    let resolver = analysis.resolver(&symbols);
    let details = LeakDetails {
        resolver: &resolver,
        // The hint on invalid times names `script`, which prints times.
        intervals: time_intervals(matches, &analysis, "script")?,
    };
    let mut live = LiveMemory::default();
    live.set_page_size(page_size(&analysis));
    let pass = ObserverPass::new(&layouts, details).reading(&needed);
    let delivered_counts = pass.run(&analysis.replay, analysis.jobs, &mut live)?;
    analysis.end_progress();
    let mut report = live.report();
    key.sort(&mut report);
    let names = StackNames {
        resolver: &resolver,
        world: analysis.replay.world(),
        is_raw: flag(matches, "raw-ip") == Some(true),
    };
    let maximum = |id, default| {
        let given = matches.get_one::<u64>(id).copied();
        usize::try_from(given.unwrap_or(default)).unwrap_or(usize::MAX)
    };
    let is_json = flag(matches, "json") == Some(true);
    let rows = maximum("line", if is_json { u64::MAX } else { ROWS });
    let selected = selected_stacks(&report.stacks, matches);
    let shown = selected.iter().take(rows);
    let stacks: Vec<NamedStack> = shown.map(|memory| names.named(memory)).collect();
    let limits = StackLimits {
        hidden: selected.len().saturating_sub(rows),
        frames: maximum("max-stack", FRAMES),
    };
    if let Some(file) = matches.get_one::<String>("svg") {
        let chart = chart(&report, &analysis.input.path.display().to_string());
        write_to(Path::new(file), context, |out| chart.write(out))?;
        return conclude(&analysis, delivered_counts, &live.losses, DOUBTFUL, matches);
    }
    context.paginate("kmem")?;
    let out = &mut context.stdout();
    match is_json {
        true => leaks::write_json(out, &report, &stacks, losses(&analysis).lost)?,
        false => leaks::write(out, &report, &stacks, limits)?,
    }
    conclude(&analysis, delivered_counts, &live.losses, DOUBTFUL, matches)
}

/// Returns all stacks, or with `--suspects` only the suspected ones.
fn selected_stacks<'r>(stacks: &'r [StackMemory], matches: &ArgMatches) -> Vec<&'r StackMemory> {
    let only_suspects = flag(matches, "suspects") == Some(true);
    let selected = stacks.iter();
    selected
        .filter(|memory| !only_suspects || memory.is_suspect())
        .collect()
}

fn refuse_two_formats(matches: &ArgMatches) -> Result<(), CliError> {
    let is_json = flag(matches, "json") == Some(true);
    match is_json && matches.get_one::<String>("svg").is_some() {
        true => Err(CliError::usage("--json and --svg exclude each other")),
        false => Ok(()),
    }
}

/// Returns the picture of two curves: pages, and objects of the slab allocator. The memory of the objects is part of the pages. A
/// curve that is always 0 is left out.
#[expect(clippy::cast_precision_loss, reason = "coordinates of a picture")]
fn chart(report: &LeakReport, path: &str) -> CurveChart {
    // The last interval ends after the last event.
    let seconds = |end: &u64| (*end).min(report.end).saturating_sub(report.begin) as f64 / 1e9;
    let curves = [
        ("pages, bytes", &report.page_bytes),
        ("objects (slab), bytes", &report.slab_bytes),
    ];
    let curves = curves
        .into_iter()
        .filter(|(_, curve)| curve.iter().any(|bytes| *bytes > 0));
    CurveChart {
        title: "Memory that was allocated and not freed".to_owned(),
        subtitle: format!("kernel, from the start of {path}"),
        times: report.ends.iter().map(seconds).collect(),
        curves: curves
            .map(|(name, curve)| (name.to_owned(), curve.clone()))
            .collect(),
    }
}

/// Selects events by time, and finds the stacks of allocations.
struct LeakDetails<'r> {
    resolver: &'r Resolver<'r>,
    /// `--time`.
    intervals: Option<TimeIntervals>,
}

impl PrepareSamples for LeakDetails<'_> {
    type Detail = LeakDetail;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<LeakDetail> {
        let intervals = self.intervals.as_ref();
        if intervals.is_some_and(|intervals| !intervals.contain(sample.order.time)) {
            return None;
        }
        let stacks = KernelStacks(self.resolver);
        let stack = match event? {
            TypedEvent::Kmalloc(event) => stacks.starting_at_call_site(sample, event.call_site()),
            TypedEvent::KmemCacheAlloc(event) => {
                stacks.starting_at_call_site(sample, event.call_site())
            }
            TypedEvent::MmPageAlloc(_) => stacks.outside_page_allocator(sample),
            _ => Vec::new(),
        };
        Some(LeakDetail { stack })
    }
}

/// Names the frames of stacks, and processes.
struct StackNames<'n> {
    resolver: &'n Resolver<'n>,
    world: &'n World,
    is_raw: bool,
}

impl StackNames<'_> {
    fn named(&self, memory: &StackMemory) -> NamedStack {
        let frames = memory.stack.iter().map(|ip| {
            let site = call_site(self.resolver, *ip).filter(|_| !self.is_raw);
            site.map_or_else(
                || format!("{ip:#x}"),
                |site| format!("{}+{:#x}", site.symbol, site.offset),
            )
        });
        let processes = memory.processes.iter().map(|(pid, count)| {
            let name = self.world.comm(self.world.comm_last(*pid, Order::MAX));
            let name = match name {
                "" => format!(":{pid}"),
                name => name.to_owned(),
            };
            (*pid, name, *count)
        });
        NamedStack {
            memory: memory.clone(),
            frames: frames.collect(),
            processes: processes.collect(),
        }
    }
}
