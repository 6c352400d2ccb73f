//! What would spoil the truth of a report: stacks that end early, code without names.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use rperf_hist::{Choice, Select};
use rperf_replay::{DsoId, DsoKind, Fold, Replay, Sample, World};
use rperf_resolve::{Frame, HiddenCallers, Place, Resolver};
use rperf_wire::{CpuMode, SampleType};

/// Samples that are looked at, of however many there are.
const LOOKED_AT: u64 = 20_000;
/// Percent of the samples from which on something is worth a line.
const WORTH: u64 = 5;
/// Functions that threads begin in: whoever calls them is nobody's business.
const STARTS: [&str; 16] = [
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "__libc_start_main@@GLIBC_2.34",
    "_dl_start",
    "_dl_start_user",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__GI___clone3",
    "__GI___clone",
    "runtime.goexit",
    "runtime.goexit.abi0",
];

/// Looks at some of the samples that `select` lets pass; a line, without a break, for each thing that is wrong.
pub(crate) fn diagnose(
    replay: &Replay<'_>,
    resolver: &Resolver<'_>,
    select: Option<&dyn Select>,
    jobs: NonZeroUsize,
) -> Vec<String> {
    let total: u64 = replay.sample_counts().iter().sum();
    let events = replay.data().events().iter();
    // Whose stacks were copied is told of the stacks themselves.
    let walked = events.map(|event| {
        let kind = event.attr.sample_type;
        kind.contains(SampleType::CALLCHAIN) && !kind.contains(SampleType::STACK_USER)
    });
    let survey = Survey {
        resolver,
        select,
        walked: walked.collect(),
        machine: replay.data().features().arch().unwrap_or_default(),
        every: (total / LOOKED_AT).max(1),
    };
    let seen = replay.fold(jobs, || Seen::new(&survey));
    seen.lines(resolver.world())
}

/// What is looked at, and how.
struct Survey<'s> {
    resolver: &'s Resolver<'s>,
    select: Option<&'s dyn Select>,
    /// By event: whether its callchains follow frame pointers.
    walked: Vec<bool>,
    /// Its architecture, as uname(2) says it.
    machine: String,
    /// One of so many samples is looked at, wherever it stands.
    every: u64,
}

/// Counts by object.
type Counts = BTreeMap<DsoId, u64>;

/// What was seen.
struct Seen<'s> {
    survey: &'s Survey<'s>,
    samples: u64,
    /// In user space, or in a kernel, on code without a name.
    unnamed: Counts,
    unnamed_kernel: u64,
    /// Stacks of user space, and those of them that end early.
    stacks: u64,
    cut: Counts,
    /// Those whose innermost function hides its caller.
    hidden: Counts,
    hiding: HiddenCallers,
}

impl<'s> Seen<'s> {
    fn new(survey: &'s Survey<'s>) -> Self {
        Self {
            survey,
            samples: 0,
            unnamed: Counts::new(),
            unnamed_kernel: 0,
            stacks: 0,
            cut: Counts::new(),
            hidden: Counts::new(),
            hiding: HiddenCallers::default(),
        }
    }

    fn leaf(&mut self, frame: &Frame, mode: CpuMode) {
        if frame.symbol.is_some() {
            return;
        }
        match (mode, frame.dso) {
            (CpuMode::Kernel, _) => self.unnamed_kernel += 1,
            (CpuMode::User, Some(dso)) => *self.unnamed.entry(dso).or_default() += 1,
            _ => {}
        }
    }

    /// Looks where the user part of a callchain begins and ends.
    fn stack(&mut self, sample: &Sample<'_>, at: Place) {
        let Some(chain) = sample.wire.callchain else {
            return;
        };
        let mut object = None;
        let mut last = None;
        let mut first = None;
        Resolver::walk(chain, usize::MAX, |mode, ip| {
            if mode == CpuMode::User {
                let frame = self.survey.resolver.locate(at, mode, ip);
                object = frame.dso.or(object);
                if last.is_none() {
                    first = frame.dso.map(|dso| (dso, ip));
                }
                last = Some(frame);
            }
        });
        let Some(last) = last else {
            return;
        };
        self.stacks += 1;
        let survey = self.survey;
        let within = (survey.resolver, survey.machine.as_str());
        if let Some((object, ip)) = first
            && self.hiding.are_missing(within, sample, ip) == Some(true)
        {
            *self.hidden.entry(object).or_default() += 1;
        }
        let ends_early = match (last.symbol, last.dso) {
            (Some(symbol), _) => {
                let name = self.survey.resolver.symbol_name(symbol);
                !STARTS.contains(&name)
            }
            (None, None) => true,
            // It may well be a start.
            (None, Some(_)) => false,
        };
        if let (true, Some(object)) = (ends_early, object) {
            *self.cut.entry(object).or_default() += 1;
        }
    }

    fn lines(&self, world: &World) -> Vec<String> {
        let name = |dso: &DsoId| world.dso(*dso).short_name.as_str();
        let mut lines = Vec::new();
        if let Some((share, object)) = share(&self.cut, self.stacks) {
            lines.push(format!(
                "{share}% of the user stacks end before the start of their thread, most of them in {}: for what is built \
                 without frame pointers record with --call-graph dwarf",
                name(object)
            ));
        } else if let Some((share, object)) = share(&self.hidden, self.stacks) {
            lines.push(format!(
                "{share}% of the user stacks lack a caller, that of a function which sets up no frame of its own, most of \
                 them in {}: for all callers record with --call-graph dwarf",
                name(object)
            ));
        }
        if let Some((share, object)) = share(&self.unnamed, self.samples) {
            let remedy = match world.dso(*object).kind {
                DsoKind::PerfMap(_) | DsoKind::Memory => {
                    "let the runtime write a perf map (java -XX:+DumpPerfMapAtExit, node --perf-basic-prof)"
                }
                _ => "install its debug symbols, or ask servers for them with --debuginfod",
            };
            lines.push(format!(
                "{share}% of the samples fell on code without a name, most of it in {}: {remedy}",
                name(object)
            ));
        }
        if let Some(share) = percent(self.unnamed_kernel, self.samples) {
            lines.push(format!(
                "{share}% of the samples fell on code of the kernel without a name: set kernel.kptr_restrict to 0 while \
                 recording, or name the kernel's image with -k"
            ));
        }
        lines
    }
}

/// The share of all counts together, if it is worth a line, and the object that has most.
fn share(counts: &Counts, whole: u64) -> Option<(u64, &DsoId)> {
    let share = percent(counts.values().sum(), whole)?;
    let (object, _) = counts.iter().max_by_key(|(_, count)| **count)?;
    Some((share, object))
}

fn percent(part: u64, whole: u64) -> Option<u64> {
    let share = (part * 100).checked_div(whole)?;
    (share >= WORTH).then_some(share)
}

impl Fold for Seen<'_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let survey = self.survey;
        // Neighbours are much alike; a place that is multiplied so falls anywhere.
        let anywhere = sample.order.position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if !anywhere.is_multiple_of(survey.every) {
            return;
        }
        let chosen = survey.select.map(|select| select.sample(world, sample));
        if chosen.is_some_and(|choice| choice != Choice::Counted) {
            return;
        }
        self.samples += 1;
        let at = Place::of(sample);
        let mode = sample.cpu_mode();
        let ip = sample.wire.ip.unwrap_or_default();
        self.leaf(&survey.resolver.locate(at, mode, ip), mode);
        if survey.walked.get(sample.event.0 as usize) == Some(&true) {
            self.stack(sample, at);
        }
    }

    fn merge(&mut self, later: Self) {
        self.samples += later.samples;
        self.unnamed_kernel += later.unnamed_kernel;
        self.stacks += later.stacks;
        for (into, from) in [
            (&mut self.unnamed, later.unnamed),
            (&mut self.cut, later.cut),
            (&mut self.hidden, later.hidden),
        ] {
            for (object, count) in from {
                *into.entry(object).or_default() += count;
            }
        }
    }
}
