//! Histograms for live views: samples of ring buffers are resolved with the World (the processes and mappings at a time), which
//! grows meanwhile, and added to the histograms ("folded"). A round has the records of one draining of all rings. It is folded
//! only after the next round has ended, since records of the next round may be older than samples of this one.
//!
//! ```text
//! add_records: round 1 | round 2 | round 3 | round 4 ...
//! fold:                            round 1 | round 2 ...
//! ```

use std::num::NonZeroUsize;

use rperf_replay::{Fold as _, LiveWorld, Sample, World};
use rperf_resolve::{Frame, LoadedObjects, Resolver, StackOptions, StackSummary, UserStacks};
use rperf_symbol::{FileBytes, Files, SearchPaths};
use rperf_wire::{CpuMode, Misc, RawRecord, Record, RecordKind};

use crate::decaying::{Decay, DecayingHistogram, HiddenSamples};
use crate::options::HistogramOptions;
use crate::resolve::{NamingContext, RecordingInfo};
use crate::select::{SampleTreatment, SelectSamples};
use crate::watched_function::WatchedFunction;

/// Size in bytes above which [`LiveHistograms::ready`] is folded before the next refresh.
const MAX_BUFFERED: usize = 4 << 20;

/// Settings of a live histogram.
pub struct LiveSetup {
    /// The options of histograms.
    pub options: HistogramOptions,
    /// The events, and the groups with a histogram each.
    pub source: RecordingInfo<'static>,
    /// Options for unwinding user stacks.
    pub stacks: StackOptions,
    /// Provider of objects and debug files.
    pub files: &'static dyn Files,
    /// Search paths.
    pub paths: SearchPaths,
    /// The running kernel's `[vdso]`.
    pub vdso: Option<FileBytes>,
    /// Filter of samples; `None` accepts all.
    pub select: Option<Box<dyn SelectSamples>>,
}

/// Statistics of the rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveCounts {
    /// Number of samples.
    pub samples: u64,
    /// Number of samples in the kernel.
    pub kernel: u64,
    /// Number of samples with an exact instruction pointer.
    pub exact: u64,
    /// Number of records lost because a ring was full.
    pub lost: u64,
    /// Number of LOST records, each of which reports one or more of these losses.
    pub loss_reports: u64,
    /// Number of samples that could not be decoded.
    pub damaged: u64,
}

/// Live histograms, one for each group.
pub struct LiveHistograms {
    setup: LiveSetup,
    live_world: LiveWorld,
    /// Objects and symbols loaded so far; `None` while a resolver uses them, and after a panic meanwhile.
    objects: Option<LoadedObjects>,
    counts: LiveCounts,
    hidden: HiddenSamples,
    /// The histograms, by group.
    tables: Vec<DecayingHistogram>,
    stack_summary: StackSummary,
    /// Functions whose samples are counted by address, for annotation.
    watched: Vec<WatchedFunction>,
    /// Position of the first byte of `ready` among the bytes of all records.
    position: u64,
    /// Records that the next fold processes: those of all ended rounds but the last.
    ready: Vec<u8>,
    /// Records of the last ended round.
    waiting: Vec<u8>,
    /// Records of the current round so far.
    round: Vec<u8>,
}

impl LiveHistograms {
    /// Creates an empty histogram for each group of `setup`.
    #[must_use]
    pub fn new(live_world: LiveWorld, mut setup: LiveSetup) -> Self {
        let paths = setup.paths.clone();
        let resolver = Resolver::new(live_world.world(), setup.files, paths);
        let objects = resolver.with_vdso(setup.vdso.take()).into_loaded();
        let groups = setup.source.groups.iter();
        let tables = groups.map(|_| DecayingHistogram::new(&setup.options));
        let tables = tables.collect();
        // `tables` have the given options. From here on, `setup` has those for the histograms of new samples, which each fold
        // adds to `tables`.
        setup.options = DecayingHistogram::addable_options(&setup.options);
        Self {
            live_world,
            objects: Some(objects),
            counts: LiveCounts::default(),
            hidden: HiddenSamples::default(),
            tables,
            stack_summary: StackSummary::default(),
            watched: Vec::new(),
            position: 0,
            ready: Vec::new(),
            waiting: Vec::new(),
            round: Vec::new(),
            setup,
        }
    }

    /// Adds complete records of the current round.
    pub fn add_records(&mut self, records: &[u8]) {
        self.count(records);
        self.live_world.add(records);
        self.round.extend_from_slice(records);
    }

    /// Ends the round, after all rings were drained.
    pub fn end_round(&mut self) {
        self.live_world.end_round();
        self.ready.append(&mut self.waiting);
        std::mem::swap(&mut self.waiting, &mut self.round);
        if self.ready.len() > MAX_BUFFERED {
            self.fold();
        }
    }

    /// Decays the samples so far, and adds new samples: those of all ended rounds but the last.
    pub fn refresh(&mut self, decay: Decay) {
        // Watched functions decay before the fold adds new samples to them. Tables may decay later: they keep new samples apart
        // until their refresh.
        for watched in &mut self.watched {
            watched.decay(decay);
        }
        self.fold();
        for table in &mut self.tables {
            table.refresh(decay, self.hidden);
        }
    }

    /// The histogram of one group; `None` if there is no such group.
    #[must_use]
    pub fn table(&self, group: usize) -> Option<&DecayingHistogram> {
        self.tables.get(group)
    }

    /// Returns the statistics since the last call.
    pub fn take_counts(&mut self) -> LiveCounts {
        std::mem::take(&mut self.counts)
    }

    /// The CPU modes (kernel, user) whose samples are hidden.
    #[must_use]
    pub fn hidden(&self) -> HiddenSamples {
        self.hidden
    }

    /// Like [`Self::hidden`], mutable.
    pub fn hidden_mut(&mut self) -> &mut HiddenSamples {
        &mut self.hidden
    }

    /// Statistics of unwound user stacks.
    #[must_use]
    pub fn stack_summary(&self) -> &StackSummary {
        &self.stack_summary
    }

    /// The functions whose samples are counted by address.
    pub fn watched_mut(&mut self) -> &mut Vec<WatchedFunction> {
        &mut self.watched
    }

    /// Calls `action` with the watched functions and a resolver, and returns its result; `None` if an earlier use of the resolver
    /// panicked.
    pub fn with_watched<R>(
        &mut self,
        action: impl FnOnce(&[WatchedFunction], &Resolver<'_>) -> R,
    ) -> Option<R> {
        let objects = self.objects.take()?;
        let resolver = Resolver::resume(self.live_world.world(), self.setup.files, objects);
        let result = action(&self.watched, &resolver);
        self.objects = Some(resolver.into_loaded());
        Some(result)
    }

    fn count(&mut self, records: &[u8]) {
        let counts = &mut self.counts;
        for (raw, _) in RawRecord::all(records, self.live_world.endian()) {
            match raw.kind {
                RecordKind::SAMPLE => {
                    let mode = raw.misc.cpu_mode();
                    counts.samples += 1;
                    counts.kernel += u64::from(mode == CpuMode::Kernel);
                    counts.exact += u64::from(raw.misc.contains(Misc::EXACT_IP));
                }
                RecordKind::LOST => {
                    if let Ok(Record::Lost(lost)) = Record::decode(&raw, self.live_world.endian()) {
                        counts.lost = counts.lost.saturating_add(lost.lost);
                        counts.loss_reports += 1;
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the samples of [`LiveHistograms::ready`] to the tables and to the watched functions, and updates the World.
    fn fold(&mut self) {
        let Some(objects) = self.objects.take() else {
            return;
        };
        // Updates the World up to the newest record of the rounds in `ready`: no older records can arrive any more.
        self.live_world.apply_complete();
        let setup = &self.setup;
        let one_thread = NonZeroUsize::MIN;
        let resolver = Resolver::resume(self.live_world.world(), setup.files, objects);
        if !self.ready.is_empty() {
            let filter = VisibleSamples {
                hidden: self.hidden,
                select: setup.select.as_deref(),
            };
            let naming = NamingContext::new(&setup.options, &setup.source, &resolver, one_thread);
            let stacks = UserStacks::new(&resolver, setup.stacks.clone());
            let mut fold = stacks.fold(naming.sample_fold(Some(&filter)));
            let mut position = self.position;
            for (raw, bytes) in RawRecord::all(&self.ready, self.live_world.endian()) {
                if raw.kind == RecordKind::SAMPLE {
                    match self.live_world.sample(&raw, position) {
                        Ok(Some(sample)) => {
                            let world = self.live_world.world();
                            fold.sample(world, &sample);
                            if filter.sample(world, &sample) == SampleTreatment::Counted {
                                let watched = self.watched.iter_mut();
                                watched.for_each(|watched| watched.sample(&resolver, &sample));
                            }
                        }
                        // The event of the sample is unknown.
                        Ok(None) => {}
                        Err(_) => self.counts.damaged += 1,
                    }
                }
                position += bytes.len() as u64;
            }
            let folded = fold.into_inner().finish(one_thread);
            self.stack_summary.merge(stacks.summary());
            for (table, more) in self.tables.iter_mut().zip(naming.histograms(folded)) {
                table.add(more);
            }
        }
        let mut objects = resolver.into_loaded();
        self.position += self.ready.len() as u64;
        self.ready.clear();
        objects.discard_jit_code(self.live_world.world());
        // True if the World was pruned.
        if self.live_world.forget() {
            objects.discard_after_prune(self.live_world.world());
            self.watched
                .iter_mut()
                .for_each(WatchedFunction::discard_frame);
        }
        self.objects = Some(objects);
    }
}

/// Ignores hidden samples, and passes the others to the filter `select`; `None` accepts all of them.
struct VisibleSamples<'a> {
    hidden: HiddenSamples,
    select: Option<&'a dyn SelectSamples>,
}

impl SelectSamples for VisibleSamples<'_> {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> SampleTreatment {
        let is_hidden = match sample.misc.cpu_mode() {
            CpuMode::Kernel | CpuMode::GuestKernel => self.hidden.kernel,
            CpuMode::User | CpuMode::GuestUser => self.hidden.user,
            _ => false,
        };
        match self.select {
            _ if is_hidden => SampleTreatment::Ignored,
            Some(select) => select.sample(world, sample),
            None => SampleTreatment::Counted,
        }
    }

    fn frame(&self, resolver: &Resolver<'_>, frame: &Frame) -> SampleTreatment {
        let select = self.select;
        select.map_or(SampleTreatment::Counted, |select| {
            select.frame(resolver, frame)
        })
    }
}
