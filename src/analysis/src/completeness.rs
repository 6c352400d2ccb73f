//! How complete the symbols and callchains of samples are.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use rperf_replay::{DsoId, Fold, Replay, Sample, World};
use rperf_resolve::{AddressContext, Frame, HiddenCallers, Resolver, chain};
use rperf_wire::{CpuMode, SampleType};

/// The approximate minimum number of samples selected for examination; the maximum is twice that.
const EXAMINED_SAMPLES: u64 = 20_000;
/// Thread entry functions, which have no callers.
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

/// Counts of samples without symbols or complete stacks, among the accepted ones of some 20,000 to 40,000 samples spread over the
/// recording, or of all samples of a smaller one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completeness {
    /// The number of samples examined.
    pub samples: u64,
    /// Samples in user code without a symbol, by object.
    pub unnamed: ObjectCounts,
    /// Samples in kernel code without a symbol.
    pub unnamed_kernel: u64,
    /// User stacks that were recorded as callchains, not as stack copies.
    pub stacks: u64,
    /// Stacks that end before the start of their thread, by their outermost object.
    pub truncated: ObjectCounts,
    /// Stacks whose innermost function hides its caller, by that function's object.
    pub hidden_callers: ObjectCounts,
}

impl Completeness {
    /// Examines some of the samples that `accepts` selects, on `threads` threads.
    pub fn survey(
        replay: &Replay<'_>,
        resolver: &Resolver<'_>,
        accepts: &(dyn Fn(&World, &Sample<'_>) -> bool + Sync),
        threads: NonZeroUsize,
    ) -> Self {
        let total: u64 = replay.sample_counts().iter().sum();
        let events = replay.data().events().iter();
        // Callchains recorded with stack copies have no user part.
        let walked = events.map(|event| {
            let kind = event.attr.sample_type;
            kind.contains(SampleType::CALLCHAIN) && !kind.contains(SampleType::STACK_USER)
        });
        let survey = CompletenessScan {
            resolver,
            accepts,
            walked: walked.collect(),
            machine: replay.data().features().arch().unwrap_or_default(),
            every: (total / EXAMINED_SAMPLES).max(1),
        };
        let counts = replay.fold(threads, || ScanCounts {
            survey: &survey,
            found: Self::default(),
            hiding: HiddenCallers::default(),
        });
        counts.found
    }
}

/// The parameters of a survey.
struct CompletenessScan<'s> {
    resolver: &'s Resolver<'s>,
    accepts: &'s (dyn Fn(&World, &Sample<'_>) -> bool + Sync),
    /// By event: whether it has callchains and no stack copies.
    walked: Vec<bool>,
    /// The architecture as in uname(2).
    machine: String,
    /// The interval of examined samples: one of `every` samples is examined.
    every: u64,
}

/// The counts of a worker.
struct ScanCounts<'s> {
    survey: &'s CompletenessScan<'s>,
    found: Completeness,
    hiding: HiddenCallers,
}

impl ScanCounts<'_> {
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

    /// Checks where the user part of a callchain starts and ends.
    fn stack(&mut self, sample: &Sample<'_>, at: AddressContext) {
        let Some(chain) = sample.wire.callchain else {
            return;
        };
        let mut object = None;
        let mut last = None;
        let mut first = None;
        chain::walk(chain, usize::MAX, |mode, ip| {
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
        self.found.stacks += 1;
        let survey = self.survey;
        if let Some((object, ip)) = first
            && self
                .hiding
                .are_missing(survey.resolver, &survey.machine, sample, ip)
                == Some(true)
        {
            *self.found.hidden_callers.entry(object).or_default() += 1;
        }
        let ends_early = match (last.symbol, last.dso) {
            (Some(symbol), _) => {
                let name = self.survey.resolver.symbol_name(symbol);
                !THREAD_ENTRIES.contains(&name)
            }
            (None, None) => true,
            // The function may be the entry of the thread.
            (None, Some(_)) => false,
        };
        if let (true, Some(object)) = (ends_early, object) {
            *self.found.truncated.entry(object).or_default() += 1;
        }
    }
}

impl Fold for ScanCounts<'_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let survey = self.survey;
        // Neighbours are similar; multiplicative hashing of the position spreads the selection.
        let hash = sample.order.position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if !hash.is_multiple_of(survey.every) || !(survey.accepts)(world, sample) {
            return;
        }
        self.found.samples += 1;
        let at = AddressContext::of(sample);
        let mode = sample.cpu_mode();
        let ip = sample.wire.ip.unwrap_or_default();
        self.count_unnamed(&survey.resolver.locate(at, mode, ip), mode);
        if survey.walked.get(sample.event.0 as usize) == Some(&true) {
            self.stack(sample, at);
        }
    }

    fn merge(&mut self, later: Self) {
        let (found, later) = (&mut self.found, later.found);
        found.samples += later.samples;
        found.unnamed_kernel += later.unnamed_kernel;
        found.stacks += later.stacks;
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
