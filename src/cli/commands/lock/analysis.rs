//! Reads the waits of a recording, adds them up and names the rows.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use clap::ArgMatches;
use rperf_analysis::lock::{
    CONTENTION_EVENTS, FUTEX, FUTEX_EVENTS, KnownStacks, LOCKDEP_EVENTS, LockAggregation,
    LockColumn, LockContention, LockDetail, LockKey, LockRow, LockSelection, LockStack,
};
use rperf_analysis::{DeliveredCounts, ObserverPass, PrepareSamples};
use rperf_replay::{DsoId, DsoKind, Machine, Order, Sample, World};
use rperf_resolve::{AddressContext, Frame, Resolver, bytes_within, chain_addresses};
use rperf_tracepoint::typed::TypedEvent;
use rperf_view::lock::{ContentionTable, NamedRow, SequenceChecks, json};
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

/// Which tracepoints are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockEvents {
    /// Those of waits: `lock:contention_*` and futex(2).
    Contention,
    /// Also those of lockdep, if recorded.
    All,
}

/// How waits are read and summed.
pub(super) struct LockQuery {
    pub(super) events: LockEvents,
    /// Whether locks of one name share a row.
    pub(super) combines: bool,
    /// Whether rows are shown that have waits, but none that ended.
    pub(super) shows_waiting: bool,
    pub(super) aggregation: LockAggregation,
    pub(super) table: ContentionTable,
    pub(super) selection: LockSelection,
    pub(super) key: LockColumn,
    /// The maximum number of rows.
    pub(super) entries: usize,
    /// The number of innermost frames that are skipped when the caller is determined.
    pub(super) stack_skip: usize,
    /// The maximum number of frames that are read and shown. Waits with equal frames share a row of callers.
    pub(super) max_stack: usize,
    /// Only waits whose stack has a function with one of these words in its name.
    pub(super) callstack: Option<Vec<String>>,
}

/// The rows with the names of locks or callers, and what is printed below them.
pub(super) struct LockTable {
    pub(super) rows: Vec<NamedRow>,
    pub(super) checks: SequenceChecks,
}

impl LockTable {
    /// Whether the checks are shown, as perf does.
    pub(super) fn shows_checks(&self, matches: &ArgMatches, context: &Context) -> bool {
        let is_bad = self.checks.sequences.total() > 0;
        !context.output.is_quiet() && (is_bad || context.verbosity(matches) > 0)
    }
}

/// The kernel's functions of locks and of the scheduler: the address ranges of their sections. Modules have none.
pub(super) struct LockFunctions<'n, 'r> {
    resolver: &'n Resolver<'r>,
    /// By kernel. Found once, since stacks are prepared by all threads.
    text: OnceLock<Vec<(DsoId, Vec<Range<u64>>)>>,
}

impl<'n, 'r> LockFunctions<'n, 'r> {
    pub(super) fn new(resolver: &'n Resolver<'r>) -> Self {
        let text = OnceLock::new();
        Self { resolver, text }
    }

    /// Returns the addresses of the frames after the innermost `skip`, without functions of locks.
    pub(super) fn callers(&self, frames: &[Frame], skip: usize) -> Vec<u64> {
        let callers = frames.iter().skip(skip);
        let callers = callers.filter(|frame| !self.contain(frame));
        callers.map(|frame| frame.ip).collect()
    }

    fn contain(&self, frame: &Frame) -> bool {
        let dso = frame.dso.filter(|_| frame.ip >= 1 << 63);
        dso.is_some_and(|dso| self.contain_address(dso, frame.address))
    }

    /// Like [`Self::callers`], for addresses: symbols are not looked up.
    fn callers_of(&self, at: AddressContext, frames: &[(CpuMode, u64)], skip: usize) -> Vec<u64> {
        let callers = frames.iter().skip(skip);
        let callers = callers.filter(|(mode, ip)| {
            let mapping = Some(*ip).filter(|ip| *ip >= 1 << 63);
            let mapping = mapping.and_then(|ip| self.resolver.mapping(at, *mode, ip));
            !mapping.is_some_and(|mapping| {
                let mapping = self.resolver.world().mapping(mapping);
                self.contain_address(mapping.dso, mapping.object_address(*ip))
            })
        });
        callers.map(|(_, ip)| *ip).collect()
    }

    /// Whether an address of an object is in a function of locks.
    fn contain_address(&self, dso: DsoId, address: u64) -> bool {
        let text = self.text.get_or_init(|| lock_text(self.resolver));
        let mut own = text.iter().filter(|(kernel, _)| *kernel == dso);
        own.any(|(_, ranges)| ranges.iter().any(|range| range.contains(&address)))
    }

    /// Whether there is a list of words and no function has one of them in its name.
    pub(super) fn is_excluded(&self, frames: &[Frame], words: Option<&[String]>) -> bool {
        let Some(words) = words else {
            return false;
        };
        let names = frames.iter().filter_map(|frame| frame.symbol);
        let mut names = names.map(|symbol| self.resolver.symbol_name(symbol));
        !names.any(|name| words.iter().any(|word| name.contains(word.as_str())))
    }
}

/// Returns the frames of addresses of a process, or of the kernel if `None`, as of now or of the end of the recording.
pub(super) fn frames_at(
    resolver: &Resolver<'_>,
    process: Option<u32>,
    addresses: &[u64],
) -> Vec<Frame> {
    let (at, mode) = context(process);
    let frames = addresses.iter();
    let frames = frames.map(|ip| resolver.locate(at, mode, *ip));
    frames.collect()
}

/// Returns where addresses of a process, or of the kernel if `None`, are looked up.
fn context(process: Option<u32>) -> (AddressContext, CpuMode) {
    let at = AddressContext {
        machine: Machine::Host,
        pid: process.unwrap_or_default(),
        order: Order::MAX,
    };
    match process {
        Some(_) => (at, CpuMode::User),
        None => (at, CpuMode::Kernel),
    }
}

/// Determines the caller of each wait from the callchain.
struct LockDetails<'r> {
    resolver: &'r Resolver<'r>,
    world: &'r World,
    query: &'r LockQuery,
    functions: LockFunctions<'r, 'r>,
    /// Stacks of the host's kernel whose frames need no names.
    known: KnownStacks,
}

impl PrepareSamples for LockDetails<'_> {
    /// `None` at events without a stack of their own, such as the ends of waits.
    type Detail = Option<Arc<LockDetail>>;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<Self::Detail> {
        Some(match event? {
            TypedEvent::ContentionBegin(_) => Some(self.kernel_detail(sample)),
            TypedEvent::SysEnterFutex(_) => Some(Arc::new(self.user_detail(sample))),
            _ => None,
        })
    }
}

impl LockDetails<'_> {
    fn kernel_detail(&self, sample: &Sample<'_>) -> Arc<LockDetail> {
        let chain = sample.wire.callchain;
        let size = chain.and_then(|chain| bytes_within(chain, self.query.max_stack));
        let bytes = chain.and_then(|chain| chain.as_bytes().get(..size?));
        match (self.query.callstack.is_some(), sample.machine(), bytes) {
            (true, ..) => Arc::new(self.named_kernel_detail(sample)),
            // The kernel's functions of locks stay where they are, so equal bytes have equal callers.
            (_, Machine::Host, Some(bytes)) => {
                self.known.get(bytes, || self.unnamed_kernel_detail(sample))
            }
            _ => Arc::new(self.unnamed_kernel_detail(sample)),
        }
    }

    fn named_kernel_detail(&self, sample: &Sample<'_>) -> LockDetail {
        let frames = self.frames(sample, self.query.max_stack);
        LockDetail {
            stack: LockStack {
                process: None,
                frames: self.functions.callers(&frames, self.query.stack_skip),
            },
            is_excluded: self.is_excluded(&frames),
            full_stack: frames.iter().map(|frame| frame.ip).collect(),
        }
    }

    /// Like [`Self::named_kernel_detail`], if no names are needed: looking these up would take most of the time.
    fn unnamed_kernel_detail(&self, sample: &Sample<'_>) -> LockDetail {
        let chain = sample.wire.callchain;
        let frames = chain.map(|chain| chain_addresses(chain, self.query.max_stack));
        let (at, frames) = (AddressContext::of(sample), frames.unwrap_or_default());
        LockDetail {
            stack: LockStack {
                process: None,
                frames: self
                    .functions
                    .callers_of(at, &frames, self.query.stack_skip),
            },
            is_excluded: false,
            full_stack: frames.into_iter().map(|(_, ip)| ip).collect(),
        }
    }

    /// Returns the user frames from the innermost outside the C library on.
    fn user_detail(&self, sample: &Sample<'_>) -> LockDetail {
        let mut frames = self.frames(sample, usize::MAX);
        frames.retain(|frame| frame.ip < 1 << 63);
        frames.truncate(self.query.max_stack);
        LockDetail {
            stack: LockStack {
                process: Some(sample.pid),
                frames: user_callers(self.world, &frames),
            },
            is_excluded: self.is_excluded(&frames),
            full_stack: frames.iter().map(|frame| frame.ip).collect(),
        }
    }

    fn frames(&self, sample: &Sample<'_>, most: usize) -> Vec<Frame> {
        let (at, mut frames) = (AddressContext::of(sample), Vec::new());
        if let Some(chain) = sample.wire.callchain {
            self.resolver.callchain(at, chain, most, &mut frames);
        }
        frames
    }

    fn is_excluded(&self, frames: &[Frame]) -> bool {
        let words = self.query.callstack.as_deref();
        self.functions.is_excluded(frames, words)
    }
}

/// Returns the addresses of user frames from the innermost outside the C library on; all if there is none outside.
pub(super) fn user_callers(world: &World, frames: &[Frame]) -> Vec<u64> {
    let outside = frames.iter().position(|frame| !is_c_library(world, frame));
    let callers = frames.iter().skip(outside.unwrap_or_default());
    callers.map(|frame| frame.ip).collect()
}

fn is_c_library(world: &World, frame: &Frame) -> bool {
    let Some(dso) = frame.dso else {
        return false;
    };
    let path = world.dso(dso).name.as_str();
    let file = path.rsplit('/').next().unwrap_or(path);
    let names = [
        "libc.so",
        "libc-",
        "libpthread",
        "ld-linux",
        "ld-musl",
        "[vdso]",
    ];
    names.iter().any(|name| file.starts_with(name))
}

/// Returns the address ranges of the kernel's functions of the scheduler and of locks: `__sched_text_start` to
/// `__sched_text_end` and `__lock_text_start` to `__lock_text_end`, as far as `dso` has these symbols.
fn section_ranges(resolver: &Resolver<'_>, dso: DsoId) -> Vec<Range<u64>> {
    let limits = [
        ("__sched_text_start", "__sched_text_end"),
        ("__lock_text_start", "__lock_text_end"),
    ];
    let mut found = [(None, None); 2];
    for (id, symbol) in resolver.symbols(dso) {
        let name = resolver.symbol_name(id);
        if !name.starts_with("__") {
            continue;
        }
        for ((start, end), limits) in found.iter_mut().zip(limits) {
            if name == limits.0 {
                start.get_or_insert(symbol.start);
            } else if name == limits.1 {
                end.get_or_insert(symbol.start);
            }
        }
    }
    let found = found.into_iter();
    found
        .filter_map(|(start, end)| Some(start?..end?))
        .collect()
}

/// Returns the ranges of each kernel's sections of locks and of the scheduler.
fn lock_text(resolver: &Resolver<'_>) -> Vec<(DsoId, Vec<Range<u64>>)> {
    let dsos = (0..).map(DsoId).zip(resolver.world().dsos());
    let kernels = dsos.filter(|(_, dso)| dso.kind == DsoKind::Kernel);
    let text = kernels.map(|(kernel, _)| (kernel, section_ranges(resolver, kernel)));
    text.collect()
}

/// Reads the recording and prints its rows: with `--json` on stdout, otherwise with `write` on stderr, as perf does.
pub(super) fn print(
    matches: &ArgMatches,
    context: &Context,
    query: &LockQuery,
    write: impl FnOnce(&mut dyn Write, &LockTable) -> io::Result<()>,
) -> Result<ExitStatus, CliError> {
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let resolver = analysis.resolver(&symbols);
    let (contention, delivered) = read(&analysis, &resolver, query)?;
    let with_stacks = count(matches, "verbose") > 0 && query.aggregation == LockAggregation::Caller;
    let names = RowNames {
        resolver: &resolver,
        world: analysis.replay.world(),
        max_stack: if with_stacks { query.max_stack } else { 0 },
        with_wakers: count(matches, "verbose") > 0 || flag(matches, "json") == Some(true),
    };
    let table = table(&contention, query, &names);
    if flag(matches, "json") == Some(true) {
        json::write_rows(&mut context.stdout(), &table.rows, losses(&analysis).lost)?;
    } else {
        print_text(context, |out| write(out, &table))?;
    }
    conclude(&analysis, delivered, &contention.losses, "waits", matches)
}

/// Prints text on stderr, as perf does; in a pager if stdout and stderr are a terminal.
pub(super) fn print_text(
    context: &Context,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    if context.output.is_terminal() && OutputStreams::shows_errors_on_terminal() {
        context.paginate("lock")?;
        write(&mut context.stdout())?;
    } else {
        let mut text = Vec::new();
        write(&mut text)?;
        OutputStreams::error(&String::from_utf8_lossy(&text));
    }
    Ok(())
}

/// Reads and sums the waits.
pub(super) fn read(
    analysis: &Analysis<'_>,
    resolver: &Resolver<'_>,
    query: &LockQuery,
) -> Result<(LockContention, DeliveredCounts), CliError> {
    let layouts = event_layouts(analysis)?;
    let has = |events: &[&str]| events.iter().all(|event| layouts.has(event));
    let with_lockdep = query.events == LockEvents::All && layouts.has("lock:lock_acquire");
    let with_user = has(&FUTEX_EVENTS);
    if !with_lockdep && !with_user && !has(&CONTENTION_EVENTS) {
        return Err(without_events(analysis, |event| layouts.has(event)));
    }
    let is_wanted = |flags: &u64| *flags < FUTEX;
    let wants_kernel = query
        .selection
        .flags
        .as_ref()
        .is_none_or(|flags| flags.iter().any(is_wanted));
    if !with_lockdep && wants_kernel && layouts.has("lock:lock_acquire") {
        analysis.context.warn(format_args!(
            "only waits for futexes are shown: locks of the kernel were recorded with the events of lockdep, which 'lock report' shows"
        ));
    }
    let all: [(bool, &'static [&'static str]); 3] = [
        (has(&CONTENTION_EVENTS), &CONTENTION_EVENTS),
        (with_lockdep, &LOCKDEP_EVENTS),
        (with_user, &FUTEX_EVENTS),
    ];
    let needed = all.into_iter().filter(|(is_read, _)| *is_read);
    let needed: Vec<_> = needed.map(|(_, events)| events).collect();
    let is_read = |name: &str| needed.iter().any(|events| events.contains(&name));
    require_fields(analysis, is_read, "lock record")?;
    let details = LockDetails {
        resolver,
        world: analysis.replay.world(),
        query,
        functions: LockFunctions::new(resolver),
        known: KnownStacks::default(),
    };
    let mut contention = LockContention::new(query.aggregation, query.selection.clone());
    let pass = ObserverPass::new(&layouts, details).reading(&needed);
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut contention)?;
    analysis.end_progress();
    Ok((contention, delivered))
}

/// Returns the error for a recording without an event of waits.
fn without_events(analysis: &Analysis<'_>, has: impl Fn(&str) -> bool) -> CliError {
    let (path, program) = (analysis.input.path.display(), analysis.context.program);
    let mut events = CONTENTION_EVENTS.iter();
    let event = events.find(|event| !has(event)).unwrap_or(&"lock");
    let message = format!("{path}: the recording has no {event} events");
    let hint = match has("lock:lock_acquire") {
        true => format!("it has those of lockdep, which '{program} lock report' shows"),
        false => format!("record with '{program} lock record'"),
    };
    CliError::message(255, message).hint(hint)
}

/// Names the rows, combines them if requested, and drops those that are not shown.
fn table(contention: &LockContention, query: &LockQuery, names: &RowNames<'_, '_>) -> LockTable {
    let rows = contention.rows(query.key).into_iter();
    let mut rows: Vec<NamedRow> = rows.map(|row| names.named(row)).collect();
    if query.combines {
        rows = combined(rows, query.key);
    }
    let mut table = LockTable {
        rows: Vec::new(),
        checks: SequenceChecks {
            sequences: contention.bad_sequences(),
            ..SequenceChecks::default()
        },
    };
    for row in rows {
        if table.rows.len() == query.entries {
            break;
        }
        let checks = &mut table.checks;
        checks.total += 1;
        checks.bad += usize::from(row.row.is_broken);
        let is_waiting = query.shows_waiting && row.row.contended > 0;
        if row.row.acquired > 0 || is_waiting {
            table.rows.push(row);
        }
    }
    table
}

/// Merges rows with the same name.
fn combined(rows: Vec<NamedRow>, key: LockColumn) -> Vec<NamedRow> {
    let mut merged: Vec<NamedRow> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for row in rows {
        match by_name.get(&row.name) {
            Some(place) => {
                if let Some(first) = merged.get_mut(*place) {
                    first.row.merge(&row.row);
                }
            }
            None => {
                by_name.insert(row.name.clone(), merged.len());
                merged.push(row);
            }
        }
    }
    merged.sort_by(|left, right| {
        let order = key.value(&right.row).cmp(&key.value(&left.row));
        order.then_with(|| left.row.tie(&right.row))
    });
    merged
}

/// Names callers, locks and threads.
pub(super) struct RowNames<'n, 'r> {
    pub(super) resolver: &'n Resolver<'r>,
    pub(super) world: &'n World,
    /// The number of frames below a row.
    pub(super) max_stack: usize,
    /// Whether rows have the threads that ended their waits.
    pub(super) with_wakers: bool,
}

impl RowNames<'_, '_> {
    /// Returns a row with its name: that of the thread, of lockdep's class, or of the caller.
    pub(super) fn named(&self, row: LockRow) -> NamedRow {
        let name = match (&row.key, &row.class) {
            (LockKey::Thread(tid), _) => self.thread(*tid),
            (_, Some(class)) => String::from_utf8_lossy(class).into_owned(),
            _ if row.caller == 0 => "Unknown".to_owned(),
            _ => address_name(self.resolver, row.process, row.caller),
        };
        let frames = row.full_stack.iter().take(self.max_stack);
        let named = |ip| address_name(self.resolver, row.process, ip);
        let stack = frames.map(|ip| match named(*ip) {
            name if name.starts_with("0x") => format!("{ip:#x}  "),
            name => format!("{ip:#x}  {name}"),
        });
        let wakers = row.wakers.iter().filter(|_| self.with_wakers);
        let wakers = wakers.map(|(tid, count)| (*tid, self.thread(*tid), *count));
        let mut wakers: Vec<_> = wakers.collect();
        wakers.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        NamedRow {
            stack: stack.collect(),
            wakers,
            name,
            row,
        }
    }

    /// Returns the last name of a thread; `:TID` if unknown.
    pub(super) fn thread(&self, tid: u32) -> String {
        match self.world.comm(self.world.comm_last(tid, Order::MAX)) {
            "" => format!(":{tid}"),
            name => name.to_owned(),
        }
    }
}

/// Returns `symbol+0xOFFSET` of an address of `process`, or of the kernel if `None`; the address if it has no symbol.
pub(super) fn address_name(resolver: &Resolver<'_>, process: Option<u32>, address: u64) -> String {
    let (at, mode) = context(process);
    let frame = resolver.locate(at, mode, address);
    let symbol = frame.symbol.filter(|_| address != 0);
    let Some((id, symbol)) = symbol.and_then(|id| Some((id, resolver.symbol(id)?))) else {
        return format!("{address:#x}");
    };
    let offset = frame.address.wrapping_sub(symbol.start);
    format!("{}+{offset:#x}", resolver.symbol_name(id))
}
