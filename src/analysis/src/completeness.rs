//! How complete the symbols and callchains of samples are.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use rperf_replay::{DsoId, Fold, Replay, Sample, World};
use rperf_resolve::{AddressContext, Frame, LeafCallerCheck, Resolver, chain};
use rperf_wire::{CpuMode, SampleType};

/// The least number of samples that are examined of a large recording, roughly. One of every N samples is examined: N is the
/// number of samples divided by this constant and rounded down, at least 1. So of fewer than 40,000 samples, all are examined; of
/// more, some 20,000 to 30,000.
const EXAMINED_SAMPLES: u64 = 20_000;
/// Functions at which a complete user stack may end: the start code of programs and threads.
const THREAD_ENTRIES: [&str; 16] = [
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

/// Counts by object.
pub type ObjectCounts = BTreeMap<DsoId, u64>;

/// Counts of samples that lack a symbol or a complete stack. Of a recording with 40,000 samples or more, only some 20,000 to
/// 30,000 spread over the recording are examined; samples that `accepts` of [`Completeness::survey`] rejects are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completeness {
    /// The number of samples examined.
    pub samples: u64,
    /// Samples in user code without a symbol, by object; addresses outside of all objects are not counted.
    pub unnamed: ObjectCounts,
    /// Samples in kernel code without a symbol.
    pub unnamed_kernel: u64,
    /// User stacks that were recorded as callchains, not as stack copies.
    pub callchains: u64,
    /// Stacks whose outermost frame has a symbol other than the start code of programs and threads, or has neither a symbol nor
    /// an object. They are counted by the outermost object of the stack; stacks in which no frame has an object are not counted.
    pub truncated: ObjectCounts,
    /// Stacks that lack the caller of their innermost function, by that function's object; found for x86-64 only.
    pub hidden_callers: ObjectCounts,
}

impl Completeness {
    /// Examines some of the samples that `accepts` selects, on `threads` threads. `accepts` gets the [`World`], the processes and
    /// mappings at the time of the sample.
    pub fn survey(
        replay: &Replay<'_>,
        resolver: &Resolver<'_>,
        accepts: &(dyn Fn(&World, &Sample<'_>) -> bool + Sync),
        threads: NonZeroUsize,
    ) -> Self {
        let total: u64 = replay.sample_counts().iter().sum();
        let events = replay.data().events().iter();
        // Callchains recorded with stack copies have no user part.
        let has_user_callchains = events.map(|event| {
            let fields = event.attr.sample_type;
            fields.contains(SampleType::CALLCHAIN) && !fields.contains(SampleType::STACK_USER)
        });
        let survey = SurveyParameters {
            resolver,
            accepts,
            has_user_callchains: has_user_callchains.collect(),
            machine: replay.data().features().arch().unwrap_or_default(),
            every: (total / EXAMINED_SAMPLES).max(1),
        };
        let counts = replay.fold(threads, || SurveyCounts {
            survey: &survey,
            found: Self::default(),
            leaf_check: LeafCallerCheck::default(),
        });
        counts.found
    }
}

/// The parameters of a survey.
struct SurveyParameters<'s> {
    resolver: &'s Resolver<'s>,
    accepts: &'s (dyn Fn(&World, &Sample<'_>) -> bool + Sync),
    /// By event: whether it has callchains and no stack copies.
    has_user_callchains: Vec<bool>,
    /// The architecture as in uname(2).
    machine: String,
    /// The interval of examined samples: one of `every` samples is examined.
    every: u64,
}

/// The counts of a worker.
struct SurveyCounts<'s> {
    survey: &'s SurveyParameters<'s>,
    found: Completeness,
    /// Finds stacks that lack the caller of their innermost function.
    leaf_check: LeafCallerCheck,
}

impl SurveyCounts<'_> {
    fn count_unnamed(&mut self, frame: &Frame, mode: CpuMode) {
        if frame.symbol.is_some() {
            return;
        }
        match (mode, frame.dso) {
            (CpuMode::Kernel, _) => self.found.unnamed_kernel += 1,
            (CpuMode::User, Some(dso)) => *self.found.unnamed.entry(dso).or_default() += 1,
            _ => {}
        }
    }

    /// Checks the innermost and the outermost user frame of a callchain.
    fn count_stack(&mut self, sample: &Sample<'_>, at: AddressContext) {
        let Some(chain) = sample.wire.callchain else {
            return;
        };
        // The object and the address of the innermost user frame, if it is in an object.
        let mut innermost = None;
        let mut outermost = None;
        // The object of the outermost user frame that is in one.
        let mut outermost_object = None;
        let max_stack = usize::MAX;
        let is_valid = chain::walk(chain, max_stack, |mode, ip| {
            if mode == CpuMode::User {
                let frame = self.survey.resolver.locate(at, mode, ip);
                outermost_object = frame.dso.or(outermost_object);
                if outermost.is_none() {
                    innermost = frame.dso.map(|dso| (dso, ip));
                }
                outermost = Some(frame);
            }
        });
        // A chain with an unknown context marker is not valid: perf drops it, too.
        let Some(outermost) = outermost.filter(|_| is_valid) else {
            return;
        };
        self.found.callchains += 1;
        let survey = self.survey;
        if let Some((object, ip)) = innermost
            && self
                .leaf_check
                .is_caller_missing(survey.resolver, &survey.machine, sample, ip)
                == Some(true)
        {
            *self.found.hidden_callers.entry(object).or_default() += 1;
        }
        let ends_early = match (outermost.symbol, outermost.dso) {
            (Some(symbol), _) => {
                let name = self.survey.resolver.symbol_name(symbol);
                !THREAD_ENTRIES.contains(&name)
            }
            (None, None) => true,
            // The function may be start code.
            (None, Some(_)) => false,
        };
        if let (true, Some(object)) = (ends_early, outermost_object) {
            *self.found.truncated.entry(object).or_default() += 1;
        }
    }
}

impl Fold for SurveyCounts<'_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let survey = self.survey;
        // Successive samples are similar; multiplicative hashing of the position spreads the selection.
        let hash = sample.order.position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if !hash.is_multiple_of(survey.every) || !(survey.accepts)(world, sample) {
            return;
        }
        self.found.samples += 1;
        let at = AddressContext::of(sample);
        let mode = sample.cpu_mode();
        let ip = sample.wire.ip.unwrap_or_default();
        self.count_unnamed(&survey.resolver.locate(at, mode, ip), mode);
        if survey.has_user_callchains.get(sample.event.0 as usize) == Some(&true) {
            self.count_stack(sample, at);
        }
    }

    fn merge(&mut self, later: Self) {
        let (found, later) = (&mut self.found, later.found);
        found.samples += later.samples;
        found.unnamed_kernel += later.unnamed_kernel;
        found.callchains += later.callchains;
        for (into, from) in [
            (&mut found.unnamed, later.unnamed),
            (&mut found.truncated, later.truncated),
            (&mut found.hidden_callers, later.hidden_callers),
        ] {
            for (object, count) in from {
                *into.entry(object).or_default() += count;
            }
        }
    }
}
