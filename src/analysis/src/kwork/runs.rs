//! Pairs the events of interrupts, softirqs and work items, and computes delays and run times.
//!
//! A piece of work is raised, entered and exited. From raise to entry is a delay, from entry to exit a run; a [`KworkSpan`] is
//! either.

use rperf_replay::FoldControl;
use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashMap;

use super::events::{KworkEvent, KworkStep, SpanKey};
use super::names::{KworkNames, NameIndex};
use super::{Kwork, KworkClass, SkippedEvents};
use crate::sched::LostStretches;
use crate::{EventContext, Loss, Observer, RepeatedStart, Span, Spans};

/// The measured part of the processing of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KworkMeasure {
    /// From entry to exit.
    Runtime,
    /// From raise to entry.
    Delay,
    /// From entry to exit, with the time of the raise before ([`KworkSpan::raised`]).
    History,
}

/// Which work, or which tasks and interrupts of `kwork top`, are measured.
#[derive(Debug, Clone, Default)]
pub struct KworkSelection {
    /// Only these classes; none if empty.
    pub classes: Vec<KworkClass>,
    /// Only these CPUs; all if `None`.
    pub cpus: Option<Vec<u32>>,
    /// Only the handler, softirq, function or task of this name; all if `None`. Raises that do not record the name (old kernels)
    /// are selected, too.
    pub name: Option<Vec<u8>>,
}

/// Data computed from an event before it is passed to the observer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KworkDetail<'r> {
    /// The symbol of a work item's function.
    pub function: Option<&'r str>,
    /// The stack of the event, as text.
    pub stack: Option<String>,
}

/// A delay or a run of a piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KworkSpan {
    /// When the work was raised (a delay) or began to run (a run), in nanoseconds like all times here.
    pub begin: u64,
    /// When the work began to run (a delay) or ended (a run).
    pub end: u64,
    /// When the work was raised, if known and measured by [`KworkMeasure::History`].
    pub raised: Option<u64>,
    /// The stack of the entry event, if known; `None` for delays.
    pub stack: Option<String>,
    /// Whether records of the CPU on which the work began to run, or of an unknown CPU, were lost between begin and end.
    pub is_doubtful: bool,
}

impl KworkSpan {
    /// Returns the nanoseconds from begin to end.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// Receives delays or runs in order of their end.
pub trait KworkSink {
    /// Handles a span, and returns whether the analysis continues. `index` is the number of `work`, counted from 0 in the order
    /// of the first entry event of each work.
    fn span(&mut self, index: usize, work: &Kwork, span: KworkSpan) -> FoldControl;
}

/// Pairs events, and passes spans to `sink`.
#[derive(Debug)]
pub struct KworkRuns<S> {
    pub(super) sink: S,
    measure: KworkMeasure,
    selection: KworkSelection,
    names: KworkNames,
    works: Vec<Kwork>,
    by_key: FxHashMap<WorkKey, usize>,
    /// Raises without an entry so far; the data are whether the raise is selected.
    raises: Spans<SpanKey, bool>,
    runs: Spans<SpanKey, OpenRun>,
    pub(super) totals: EventTotals,
    /// When records were lost, for the result.
    pub(super) losses: LostStretches,
    /// When records were last lost, by CPU, for [`KworkSpan::is_doubtful`]; `None` is an unknown CPU.
    last_losses: FxHashMap<Option<u32>, u64>,
    /// The last answer of the sink: whether the analysis continues.
    flow: FoldControl,
}

/// Counts of skipped events (those without a counterpart), and the time range of the measured events, including skipped ones.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventTotals {
    pub(super) skipped: SkippedEvents,
    /// Time of the first measured event.
    pub(super) first: Option<u64>,
    /// Time of the last measured event; 0 if there is none.
    pub(super) last: u64,
}

/// The identity of a [`Kwork`]. Unlike a [`SpanKey`], it has the name, and has the CPU for work items, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct WorkKey {
    class: KworkClass,
    cpu: u32,
    id: u64,
    name: NameIndex,
}

/// Data of a run that has begun.
#[derive(Debug)]
struct OpenRun {
    /// Index in [`KworkRuns::works`]; `None` if the work is not selected.
    work: Option<usize>,
    cpu: u32,
    raised: Option<u64>,
    stack: Option<String>,
}

impl<S: KworkSink> KworkRuns<S> {
    /// Creates an analysis that has no events yet.
    #[must_use]
    pub fn new(measure: KworkMeasure, selection: KworkSelection, sink: S) -> Self {
        Self {
            sink,
            measure,
            selection,
            names: KworkNames::default(),
            works: Vec::new(),
            by_key: FxHashMap::default(),
            raises: Spans::new(RepeatedStart::Restarts),
            runs: Spans::new(RepeatedStart::Restarts),
            totals: EventTotals::default(),
            losses: LostStretches::default(),
            last_losses: FxHashMap::default(),
            flow: FoldControl::Continue,
        }
    }

    /// Returns the sink, the counts of events without a counterpart, and where records were lost.
    pub fn finish(mut self) -> (S, SkippedEvents, LostStretches) {
        self.skip_open();
        (self.sink, self.totals.skipped, self.losses)
    }

    /// Counts the selected raises and entries that are still without a counterpart as skipped.
    pub(super) fn skip_open(&mut self) {
        let raises = self.raises.open_spans();
        let raises = raises.filter(|(_, raise)| raise.data).count();
        let runs = self.runs.open_spans();
        let runs = runs.filter(|(_, run)| run.data.work.is_some()).count();
        self.totals.skipped.raise += raises as u64;
        self.totals.skipped.entry += runs as u64;
    }

    /// Returns whether work on a CPU is selected. An unknown name (`None`) is taken for the selected one.
    fn is_selected(&self, cpu: u32, name: Option<NameIndex>) -> bool {
        let selection = &self.selection;
        let cpus = selection.cpus.as_ref();
        let has_cpu = cpus.is_none_or(|cpus| cpus.contains(&cpu));
        let selected_name = selection.name.as_deref();
        let name = name.map(|name| self.names.name(name));
        has_cpu && selected_name.is_none_or(|selected| name.is_none_or(|name| name == selected))
    }

    fn raise(&mut self, time: u64, cpu: u32, event: &KworkEvent) {
        let key = event.key(cpu);
        let is_selected = self.is_selected(cpu, event.name);
        let replaces_selected = self.raises.get(&key).is_some_and(|open| open.data);
        // The new raise replaces an open one, which had no entry.
        self.totals.skipped.raise += u64::from(replaces_selected);
        self.raises.begin(key, time, is_selected);
        if is_selected {
            self.totals.include_time(time);
        }
    }

    fn enter(&mut self, time: u64, cpu: u32, event: &KworkEvent, stack: Option<String>) {
        let key = event.key(cpu);
        // `None` if run times are measured: `Observer::event` then ignores raises.
        let raise = self.raises.end(&key, time);
        let work = match event.name {
            Some(name) if self.is_selected(cpu, event.name) => {
                self.totals.include_time(time);
                Some(self.work(event, cpu, name))
            }
            _ => None,
        };
        if self.measure == KworkMeasure::Delay {
            match (work, raise) {
                (Some(work), Some(raise)) => self.deliver_delay(work, cpu, &raise),
                (Some(_), None) => self.totals.skipped.entry += 1,
                (None, _) => {}
            }
            return;
        }
        let open = self.runs.get(&key);
        let replaces_selected = open.is_some_and(|open| open.data.work.is_some());
        // The new run replaces an open one, which had no exit.
        self.totals.skipped.entry += u64::from(replaces_selected);
        let run = OpenRun {
            work,
            cpu,
            raised: raise.map(|raise| raise.begin),
            stack,
        };
        self.runs.begin(key, time, run);
    }

    fn exit(&mut self, time: u64, cpu: u32, event: &KworkEvent) {
        let Some(run) = self.runs.end(&event.key(cpu), time) else {
            // The name of the work is known only from its entry event. If a name is selected, the exit may be that of other work.
            let unknown_name = None;
            if self.selection.name.is_none() && self.is_selected(cpu, unknown_name) {
                self.totals.include_time(time);
                self.totals.skipped.exit += 1;
            }
            return;
        };
        let Some(work) = run.data.work else {
            return;
        };
        self.totals.include_time(time);
        let span = KworkSpan {
            is_doubtful: self.has_losses(run.data.cpu, run.begin),
            begin: run.begin,
            end: run.end,
            raised: run.data.raised,
            stack: run.data.stack,
        };
        self.deliver(work, span);
    }

    fn deliver_delay(&mut self, work: usize, cpu: u32, raise: &Span<bool>) {
        let span = KworkSpan {
            is_doubtful: self.has_losses(cpu, raise.begin),
            begin: raise.begin,
            end: raise.end,
            raised: None,
            stack: None,
        };
        self.deliver(work, span);
    }

    fn deliver(&mut self, work: usize, span: KworkSpan) {
        self.flow = self.sink.span(work, &self.works[work], span);
    }

    /// Returns whether records of a CPU, or of an unknown CPU, were lost at `since` or later.
    fn has_losses(&self, cpu: u32, since: u64) -> bool {
        let lost = self.last_losses.get(&Some(cpu)).copied();
        let lost = lost.max(self.last_losses.get(&None).copied());
        lost.is_some_and(|lost| lost >= since)
    }

    /// Returns the index of the work that an entry event begins, in [`KworkRuns::works`]; the work is added if it is new.
    fn work(&mut self, event: &KworkEvent, cpu: u32, name: NameIndex) -> usize {
        let (class, id) = (event.class, event.id);
        let key = WorkKey {
            class,
            cpu,
            id,
            name,
        };
        *self.by_key.entry(key).or_insert_with(|| {
            self.works.push(Kwork {
                class,
                cpu,
                id,
                name: self.names.name(name).to_vec(),
            });
            self.works.len() - 1
        })
    }
}

impl EventTotals {
    fn include_time(&mut self, time: u64) {
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = self.last.max(time);
    }
}

impl<S: KworkSink> Observer<KworkDetail<'_>> for KworkRuns<S> {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: KworkDetail<'_>) {
        self.losses.event(at);
        let Some(cpu) = at.cpu else {
            return;
        };
        let event = KworkEvent::new(&event, detail.function, &mut self.names);
        let Some(event) = event.filter(|event| self.selection.classes.contains(&event.class))
        else {
            return;
        };
        if self.flow == FoldControl::Stop {
            return;
        }
        let time = at.time();
        match event.step {
            KworkStep::Raise if self.measure == KworkMeasure::Runtime => {}
            KworkStep::Raise => self.raise(time, cpu, &event),
            KworkStep::Entry => self.enter(time, cpu, &event, detail.stack),
            KworkStep::Exit if self.measure == KworkMeasure::Delay => {}
            KworkStep::Exit => self.exit(time, cpu, &event),
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        self.last_losses.insert(at.cpu, at.time());
    }

    fn flow(&self) -> FoldControl {
        self.flow
    }
}
