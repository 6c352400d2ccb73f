//! Reads the waits of a recording, adds them up and names the rows.

use std::io::{self, Write};
use std::sync::OnceLock;

use clap::ArgMatches;
use rperf_analysis::lock::{
    CONTENTION_EVENTS, LockAggregation, LockColumn, LockContention, LockDetail, LockKey,
    LockSelection, LockStack,
};
use rperf_analysis::{DeliveredCounts, ObserverPass, PrepareSamples};
use rperf_replay::{DsoId, Machine, Order, Sample, World};
use rperf_resolve::{AddressContext, Frame, Resolver};
use rperf_tracepoint::typed::TypedEvent;
use rperf_view::lock::{NamedRow, write_json};
use rperf_wire::CpuMode;

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::{count, flag};
use crate::cli::output::OutputStreams;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::shared::recorded_fields::{event_layouts, require_fields};
use crate::cli::symbol_options::SymbolSources;

/// How waits are read and summed.
pub(super) struct LockQuery {
    pub(super) aggregation: LockAggregation,
    pub(super) selection: LockSelection,
    pub(super) key: LockColumn,
    /// The maximum number of rows.
    pub(super) entries: usize,
    /// The number of innermost frames that are skipped when the caller is determined.
    pub(super) stack_skip: usize,
    /// The maximum number of frames that are shown.
    pub(super) max_stack: usize,
    /// Only waits whose stack has a function with one of these words in its name.
    pub(super) callstack: Option<Vec<String>>,
}

/// The rows with the names of locks or callers, and the counts of lost and damaged records.
struct LockRows {
    rows: Vec<NamedRow>,
    contention: LockContention,
    delivered: DeliveredCounts,
}

/// The address ranges of the kernel's sections with scheduler and locking functions.
type LockText = Vec<std::ops::Range<u64>>;

/// Determines the caller of each locking function from the callchain.
struct LockDetails<'r> {
    resolver: &'r Resolver<'r>,
    query: &'r LockQuery,
    text: OnceLock<LockText>,
}

impl PrepareSamples for LockDetails<'_> {
    type Detail = LockDetail;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<LockDetail> {
        let TypedEvent::ContentionBegin(_) = event? else {
            return Some(LockDetail::default());
        };
        let (at, mut frames) = (AddressContext::of(sample), Vec::new());
        if let Some(chain) = sample.wire.callchain {
            self.resolver.callchain(at, chain, usize::MAX, &mut frames);
        }
        let callers = frames.iter().skip(self.query.stack_skip);
        let callers = callers.filter(|frame| !self.is_lock_function(frame));
        Some(LockDetail {
            stack: LockStack {
                frames: callers.map(|frame| frame.ip).collect(),
            },
            is_excluded: self.is_excluded(&frames),
            full_stack: frames.iter().map(|frame| frame.ip).collect(),
        })
    }
}

impl LockDetails<'_> {
    fn is_lock_function(&self, frame: &Frame) -> bool {
        let Some(dso) = frame.dso else {
            return false;
        };
        if frame.ip < 1 << 63 {
            return false;
        }
        let text = self.text.get_or_init(|| lock_text(self.resolver, dso));
        text.iter().any(|range| range.contains(&frame.address))
    }

    fn is_excluded(&self, frames: &[Frame]) -> bool {
        let Some(words) = &self.query.callstack else {
            return false;
        };
        let names = frames.iter().filter_map(|frame| frame.symbol);
        let mut names = names.map(|symbol| self.resolver.symbol_name(symbol));
        !names.any(|name| words.iter().any(|word| name.contains(word.as_str())))
    }
}

/// Returns the two address ranges: from `__sched_text_start` to `__sched_text_end`, and from `__lock_text_start` to `__lock_text_end`.
fn lock_text(resolver: &Resolver<'_>, dso: DsoId) -> LockText {
    let mut text = LockText::new();
    for section in ["sched", "lock"] {
        let [start, end] = ["start", "end"].map(|side| {
            let name = format!("__{section}_text_{side}");
            let mut symbols = resolver.symbols(dso);
            let found = symbols.find(|(id, _)| resolver.symbol_name(*id) == name);
            found.map(|(_, symbol)| symbol.start)
        });
        if let (Some(start), Some(end)) = (start, end) {
            text.push(start..end);
        }
    }
    text
}

/// Reads the recording and prints its rows: with `write` on stderr, as perf does, in a pager if both streams lead to a terminal; or as JSON
/// on stdout.
pub(super) fn print(
    matches: &ArgMatches,
    context: &Context,
    query: &LockQuery,
    write: impl FnOnce(&mut dyn Write, &[NamedRow]) -> io::Result<()>,
) -> Result<ExitStatus, CliError> {
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let found = read(&analysis, &symbols, query, matches)?;
    if flag(matches, "json") == Some(true) {
        write_json(&mut context.stdout(), &found.rows, losses(&analysis).lost)?;
    } else if context.output.is_terminal() && OutputStreams::shows_errors_on_terminal() {
        context.paginate("lock")?;
        write(&mut context.stdout(), &found.rows)?;
    } else {
        let mut table = Vec::new();
        write(&mut table, &found.rows)?;
        OutputStreams::error(&String::from_utf8_lossy(&table));
    }
    let losses = &found.contention.losses;
    conclude(&analysis, found.delivered, losses, "waits", matches)
}

/// Reads and sums the waits.
fn read(
    analysis: &Analysis<'_>,
    symbols: &SymbolSources,
    query: &LockQuery,
    matches: &ArgMatches,
) -> Result<LockRows, CliError> {
    let layouts = event_layouts(analysis)?;
    if let Some(event) = CONTENTION_EVENTS.iter().find(|event| !layouts.has(event)) {
        let (path, program) = (analysis.input.path.display(), analysis.context.program);
        let message = format!("{path}: the recording has no {event} events");
        return Err(
            CliError::message(255, message).hint(format!("record with '{program} lock record'"))
        );
    }
    require_fields(
        analysis,
        |name| CONTENTION_EVENTS.contains(&name),
        "lock record",
    )?;
    let resolver = analysis.resolver(symbols);
    let details = LockDetails {
        resolver: &resolver,
        query,
        text: OnceLock::new(),
    };
    let mut contention = LockContention::new(query.aggregation, query.selection.clone());
    let pass = ObserverPass::new(&layouts, details).reading(&[&CONTENTION_EVENTS]);
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut contention)?;
    analysis.end_progress();
    let with_stacks = count(matches, "verbose") > 0 && query.aggregation == LockAggregation::Caller;
    let rows = contention.rows(query.key).into_iter();
    let rows = rows.filter(|row| row.acquired > 0).take(query.entries);
    let rows = rows.map(|row| {
        let name = match row.key {
            LockKey::Thread(tid) => thread_name(analysis.replay.world(), tid),
            _ => address_name(&resolver, row.caller),
        };
        let frames = row.full_stack.iter().take(query.max_stack);
        let frames = frames.filter(|_| with_stacks);
        let stack = frames.map(|ip| match address_name(&resolver, *ip) {
            name if name.starts_with("0x") => format!("{ip:#x}  "),
            name => format!("{ip:#x}  {name}"),
        });
        NamedRow {
            stack: stack.collect(),
            name,
            row,
        }
    });
    Ok(LockRows {
        rows: rows.collect(),
        contention,
        delivered,
    })
}

fn thread_name(world: &World, tid: u32) -> String {
    match world.comm(world.comm_last(tid, Order::MAX)) {
        "" => format!(":{tid}"),
        name => name.to_owned(),
    }
}

/// Returns `symbol+0xOFFSET`, or the address.
fn address_name(resolver: &Resolver<'_>, address: u64) -> String {
    let at = AddressContext {
        machine: Machine::Host,
        pid: 0,
        order: Order::MAX,
    };
    let frame = resolver.locate(at, CpuMode::Kernel, address);
    let symbol = frame.symbol.filter(|_| address != 0);
    let Some((id, symbol)) = symbol.and_then(|id| Some((id, resolver.symbol(id)?))) else {
        return format!("{address:#x}");
    };
    let offset = frame.address.wrapping_sub(symbol.start);
    format!("{}+{offset:#x}", resolver.symbol_name(id))
}
