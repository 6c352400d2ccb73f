//! Histograms of what happens now: records as they come out of rings, samples folded by what they hold and given names
//! in a World that grows.
//!
//! ```text
//! take: round 1 | round 2 | round 3 ...
//! fold:           round 1 | round 2 ...     what round 2 tells of the time of round 1 is known by then
//! ```

use std::num::NonZeroUsize;

use rperf_replay::{Fold as _, Growing, Sample, World};
use rperf_resolve::{Frame, Known, Resolver, StackOptions, StackSummary, UserStacks};
use rperf_symbol::{FileBytes, Files, SearchPaths};
use rperf_wire::{CpuMode, Misc, RawRecord, Record, RecordKind};

use crate::fading::{Fade, Fading, Hidden};
use crate::histogram::Histogram;
use crate::options::Options;
use crate::resolve::{Naming, Source};
use crate::select::{Choice, Select};
use crate::watched::Watched;

/// Bytes of records that wait for a refresh; more are folded before.
const ROOM: usize = 4 << 20;

/// How samples become histograms.
pub struct LiveSetup {
    /// What is shown.
    pub options: Options,
    /// The events, and the groups of them that have a histogram each.
    pub source: Source<'static>,
    /// How user stacks are unwound.
    pub stacks: StackOptions,
    /// Objects and their debug files.
    pub files: &'static dyn Files,
    /// Where these are.
    pub paths: SearchPaths,
    /// The running kernel's `[vdso]`.
    pub vdso: Option<FileBytes>,
    /// Which samples count; all where nothing is said.
    pub select: Option<Box<dyn Select>>,
}

/// What came out of the rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveCounts {
    /// Samples.
    pub samples: u64,
    /// Those of them in the kernel.
    pub kernel: u64,
    /// Those whose instruction is known exactly.
    pub exact: u64,
    /// Records that found no room in a ring.
    pub lost: u64,
    /// How often records were lost.
    pub losses: u64,
    /// Samples that could not be decoded.
    pub damaged: u64,
}

/// The histograms of what happens now, one for each group of the setup's source.
pub struct Live {
    setup: LiveSetup,
    growing: Growing,
    known: Option<Known>,
    counts: LiveCounts,
    hidden: Hidden,
    tables: Vec<Fading>,
    stacks: StackSummary,
    /// Functions whose instructions are looked at.
    watched: Vec<Watched>,
    /// Where `ready` begins among all that was taken.
    position: u64,
    /// Rounds of which all is known.
    ready: Vec<u8>,
    /// The last round that has ended.
    waiting: Vec<u8>,
    /// The round that goes on.
    round: Vec<u8>,
}

impl Live {
    /// Nothing came yet of the events of `growing`.
    #[must_use]
    pub fn new(growing: Growing, mut setup: LiveSetup) -> Self {
        let paths = setup.paths.clone();
        let resolver = Resolver::new(growing.world(), setup.files, paths);
        let known = resolver.with_vdso(setup.vdso.take()).into_known();
        let mut live = Self {
            growing,
            known: Some(known),
            counts: LiveCounts::default(),
            hidden: Hidden::default(),
            tables: Vec::new(),
            stacks: StackSummary::default(),
            watched: Vec::new(),
            position: 0,
            ready: Vec::new(),
            waiting: Vec::new(),
            round: Vec::new(),
            setup,
        };
        let options = live.setup.options.clone();
        live.show(options);
        live
    }

    /// Begins anew with other options.
    pub fn show(&mut self, options: Options) {
        let groups = self.setup.source.groups.iter();
        self.tables = groups.map(|_| Fading::new(&options)).collect();
        self.setup.options = Fading::whole(&options);
    }

    /// Takes whole records of the round that goes on.
    pub fn take(&mut self, records: &[u8]) {
        self.count(records);
        self.growing.note(records);
        self.round.extend_from_slice(records);
    }

    /// The round is over: each ring was emptied.
    pub fn end_round(&mut self) {
        self.growing.end_round();
        self.ready.append(&mut self.waiting);
        std::mem::swap(&mut self.waiting, &mut self.round);
        if self.ready.len() > ROOM {
            self.fold();
        }
    }

    /// Adds all samples of rounds that are complete, and lets older ones fade.
    pub fn refresh(&mut self, fade: Fade) {
        for watched in &mut self.watched {
            watched.fade(fade);
        }
        self.fold();
        for table in &mut self.tables {
            table.refresh(fade, self.hidden);
        }
    }

    /// What is to be seen since the last refresh, by group.
    pub fn histograms(&self) -> impl Iterator<Item = &Histogram> {
        self.tables.iter().map(Fading::histogram)
    }

    /// The histogram of one group, and all samples that ever came for it.
    #[must_use]
    pub fn table(&self, group: usize) -> Option<&Fading> {
        self.tables.get(group)
    }

    /// What came since this was asked the last time.
    pub fn take_counts(&mut self) -> LiveCounts {
        std::mem::take(&mut self.counts)
    }

    /// What is not counted.
    #[must_use]
    pub fn hidden(&self) -> Hidden {
        self.hidden
    }

    /// The same, to be changed.
    pub fn hidden_mut(&mut self) -> &mut Hidden {
        &mut self.hidden
    }

    /// What became of the user stacks that were unwound.
    #[must_use]
    pub fn stacks(&self) -> &StackSummary {
        &self.stacks
    }

    /// The functions whose samples are counted by address, to be changed.
    pub fn watched_mut(&mut self) -> &mut Vec<Watched> {
        &mut self.watched
    }

    /// Calls `with` with these functions and what gives them names and code.
    pub fn with_watched<R>(
        &mut self,
        with: impl FnOnce(&[Watched], &Resolver<'_>) -> R,
    ) -> Option<R> {
        let known = self.known.take()?;
        let resolver = Resolver::resume(self.growing.world(), self.setup.files, known);
        let result = with(&self.watched, &resolver);
        self.known = Some(resolver.into_known());
        Some(result)
    }

    fn count(&mut self, records: &[u8]) {
        let counts = &mut self.counts;
        for (raw, _) in RawRecord::all(records, self.growing.endian()) {
            match raw.kind {
                RecordKind::SAMPLE => {
                    let mode = raw.misc.cpu_mode();
                    counts.samples += 1;
                    counts.kernel += u64::from(mode == CpuMode::Kernel);
                    counts.exact += u64::from(raw.misc.contains(Misc::EXACT_IP));
                }
                RecordKind::LOST => {
                    if let Ok(Record::Lost(lost)) = Record::decode(&raw, self.growing.endian()) {
                        counts.lost = counts.lost.saturating_add(lost.lost);
                        counts.losses += 1;
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the samples of complete rounds to the tables.
    fn fold(&mut self) {
        let Some(known) = self.known.take() else {
            return;
        };
        self.growing.complete();
        let setup = &self.setup;
        let resolver = Resolver::resume(self.growing.world(), setup.files, known);
        if !self.ready.is_empty() {
            let chosen = Shown {
                hidden: self.hidden,
                select: setup.select.as_deref(),
            };
            let naming = Naming::new(&setup.options, &setup.source, &resolver, NonZeroUsize::MIN);
            let stacks = UserStacks::new(&resolver, setup.stacks.clone());
            let mut samples = stacks.fold(naming.samples(Some(&chosen)));
            let mut position = self.position;
            for (raw, record) in RawRecord::all(&self.ready, self.growing.endian()) {
                if raw.kind == RecordKind::SAMPLE {
                    match self.growing.sample(&raw, position) {
                        Ok(Some(sample)) => {
                            let world = self.growing.world();
                            samples.sample(world, &sample);
                            if chosen.sample(world, &sample) == Choice::Counted {
                                let watched = self.watched.iter_mut();
                                watched.for_each(|watched| watched.sample(&resolver, &sample));
                            }
                        }
                        Ok(None) => {}
                        Err(_) => self.counts.damaged += 1,
                    }
                }
                position += record.len() as u64;
            }
            let folded = samples.into_inner().finish(NonZeroUsize::MIN);
            self.stacks.merge(stacks.summary());
            for (table, more) in self.tables.iter_mut().zip(naming.histograms(folded)) {
                table.add(more);
            }
        }
        let mut known = resolver.into_known();
        self.position += self.ready.len() as u64;
        self.ready.clear();
        known.forget_run_time_code(self.growing.world());
        if self.growing.forget() {
            known.forget_mappings();
            self.watched.iter_mut().for_each(Watched::forget_place);
        }
        self.known = Some(known);
    }
}

/// The samples that are chosen, without those of a side that is hidden.
struct Shown<'a> {
    hidden: Hidden,
    select: Option<&'a dyn Select>,
}

impl Select for Shown<'_> {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> Choice {
        let is_hidden = match sample.misc.cpu_mode() {
            CpuMode::Kernel | CpuMode::GuestKernel => self.hidden.kernel,
            CpuMode::User | CpuMode::GuestUser => self.hidden.user,
            _ => false,
        };
        match self.select {
            _ if is_hidden => Choice::Ignored,
            Some(select) => select.sample(world, sample),
            None => Choice::Counted,
        }
    }

    fn place(&self, resolver: &Resolver<'_>, frame: &Frame) -> Choice {
        let select = self.select;
        select.map_or(Choice::Counted, |select| select.place(resolver, frame))
    }
}
