//! Converts samples to a [`Profile`].

mod code;
mod tables;

use rperf_perfdata::{EventDesc, Metadata};
use rperf_replay::{CommId, Epoch, EventIndex, Fold, Machine, Sample, ThreadCache, World};
use rperf_resolve::{AddressContext, Resolver, chain};
use rperf_wire::{CpuMode, Endian, EventType, SampleType, U64s};
use rustc_hash::FxHashMap;

use self::code::{CodeAddress, CodeTables};
use crate::intern::Interner;
use crate::profile::{PeriodUnit, Profile, ProfileEvent, ProfileSample, ProfileStack};

/// `PERF_COUNT_HW_CPU_CYCLES`.
const CYCLES: u64 = 0;
/// The event of `record --off-cpu`, whose periods are nanoseconds.
pub(crate) const OFF_CPU: &str = "offcpu-time";

/// The conversion of one recording. [`ProfileConversion::worker`] creates the fold of each worker thread: the accumulator to
/// which the samples of a part of the file are added.
pub struct ProfileConversion<'r, 'w> {
    resolver: &'r Resolver<'w>,
    endian: Endian,
    events: Vec<EventProperties>,
}

/// Properties of one event.
struct EventProperties {
    event: ProfileEvent,
    /// Whether its samples have callchains.
    callchains: bool,
    /// Whether the stacks of its samples include inlined functions.
    inlines: bool,
}

impl<'r, 'w> ProfileConversion<'r, 'w> {
    /// Creates the conversion of `recording`, with inlined functions for the events selected by
    /// `inlines`.
    #[must_use]
    pub fn new(
        resolver: &'r Resolver<'w>,
        recording: Metadata<'_>,
        inlines: impl Fn(&EventDesc) -> bool,
    ) -> Self {
        let events = recording.events.iter().map(|event| EventProperties {
            event: ProfileEvent {
                name: event.name.clone(),
                unit: unit(event),
            },
            callchains: event.attr.sample_type.contains(SampleType::CALLCHAIN),
            inlines: inlines(event),
        });
        Self {
            resolver,
            endian: recording.endian,
            events: events.collect(),
        }
    }

    /// Creates the fold of one worker.
    #[must_use]
    pub fn worker(&self) -> GatheredProfile<'_, 'w> {
        GatheredProfile {
            conversion: self,
            recent: ThreadCache::default(),
            code: CodeTables::new(self.resolver),
            callers: FxHashMap::default(),
            key: Vec::new(),
            path: Vec::new(),
            cache: CallerCache::default(),
            stacks: Interner::default(),
            tracks: FxHashMap::default(),
            rows: Vec::new(),
        }
    }
}

/// The unit of the event's periods.
fn unit(event: &EventDesc) -> PeriodUnit {
    let attr = &event.attr;
    match (attr.kind, attr.config) {
        _ if attr.is_clock() => PeriodUnit::Nanoseconds,
        (EventType::SOFTWARE, _) if event.name == OFF_CPU => PeriodUnit::Nanoseconds,
        (EventType::HARDWARE, CYCLES) => PeriodUnit::Cycles,
        _ => PeriodUnit::Count,
    }
}

/// Key of a track: the samples of one event in one thread, as long as the thread has the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TrackKey {
    pid: u32,
    tid: u32,
    comm: CommId,
    event: EventIndex,
}

/// The converted samples of a part of a recording.
pub struct GatheredProfile<'r, 'w> {
    conversion: &'r ProfileConversion<'r, 'w>,
    /// The epochs and names of threads that were looked up.
    recent: ThreadCache,
    code: CodeTables<'r, 'w>,
    /// Results of [`GatheredProfile::callers()`] by their inputs: the two numbers of the [`Epoch`], mode, inlines and raw
    /// callers. The machine is not needed: equal epochs mean equal mappings.
    callers: FxHashMap<Box<[u8]>, Option<Option<u32>>>,
    /// Buffer for a key of `callers`.
    key: Vec<u8>,
    /// Buffer for decoded callers, innermost first.
    path: Vec<(CpuMode, u64)>,
    cache: CallerCache,
    stacks: Interner<ProfileStack>,
    /// Index of each track in [`Self::rows`].
    tracks: FxHashMap<TrackKey, usize>,
    /// Each track with its samples. One sample is also called a row.
    rows: Vec<(TrackKey, Vec<ProfileSample>)>,
}

/// The callers resolved last. Consecutive samples usually have their outer callers in common.
#[derive(Default)]
struct CallerCache {
    /// Epoch, machine and whether inlined functions have frames: the inputs, other than addresses, with which the callers were
    /// resolved.
    context: Option<(Epoch, Machine, bool)>,
    /// Mode and address, outermost first, each with the stack that ends in it.
    callers: Vec<((CpuMode, u64), Option<u32>)>,
}

impl CallerCache {
    /// Keeps the outer callers that `callers` (outermost first) has in common with the cache, and returns their number.
    fn keep(&mut self, at: SampleContext, callers: impl Iterator<Item = (CpuMode, u64)>) -> usize {
        let context = Some((at.epoch, at.place.machine, at.inlines));
        if self.context != context {
            self.context = context;
            self.callers.clear();
        }
        let pairs = callers.zip(&self.callers);
        let common = pairs.take_while(|(caller, known)| *caller == known.0);
        let common = common.count();
        self.callers.truncate(common);
        common
    }
}

/// Inputs of resolving a sample's frames.
#[derive(Clone, Copy)]
struct SampleContext {
    place: AddressContext,
    epoch: Epoch,
    /// Whether inlined functions have frames.
    inlines: bool,
}

impl GatheredProfile<'_, '_> {
    /// Returns the profile.
    #[must_use]
    pub fn finish(self) -> Profile {
        tables::finish(self)
    }

    /// Returns the stack of a sample; `None` for a callchain that is corrupted or has no frames.
    fn stack(&mut self, sample: &Sample<'_>, event: &EventProperties, epoch: Epoch) -> Option<u32> {
        let at = SampleContext {
            place: AddressContext::of(sample),
            epoch,
            inlines: event.inlines,
        };
        let chain = sample.wire.callchain.filter(|_| event.callchains);
        let Some(chain) = chain else {
            let ip = sample.wire.ip.unwrap_or_default();
            return self.with_frames(None, at, sample.cpu_mode(), ip);
        };
        let split = chain::split_first(chain)?;
        let callers = self.callers(at, split.mode, split.callers)?;
        self.with_frames(callers, at, split.mode, split.ip)
    }

    /// Returns the stack of the raw entries `callers`, the first of which is in `mode`. The outer `None` means a
    /// corrupted chain, the inner one no callers.
    fn callers(&mut self, at: SampleContext, mode: CpuMode, callers: &[u8]) -> Option<Option<u32>> {
        self.key.clear();
        self.key.extend(at.epoch.user.to_ne_bytes());
        self.key.extend(at.epoch.kernel.to_ne_bytes());
        self.key.extend([mode as u8, u8::from(at.inlines)]);
        self.key.extend(callers);
        if let Some(known) = self.callers.get(&*self.key) {
            return *known;
        }
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let entries = U64s::new(callers, self.conversion.endian);
        let no_limit = usize::MAX;
        let is_complete =
            chain::walk_part(mode, entries, no_limit, |mode, ip| path.push((mode, ip)));
        let mut stack = None;
        // A chain that could not be walked to its end is corrupted.
        if is_complete {
            let common = self.cache.keep(at, path.iter().rev().copied());
            let last = self.cache.callers.last();
            stack = last.and_then(|(_, stack)| *stack);
            for caller in path.iter().rev().skip(common) {
                stack = self.with_frames(stack, at, caller.0, caller.1);
                self.cache.callers.push((*caller, stack));
            }
        }
        self.path = path;
        let result = is_complete.then_some(stack);
        self.callers.insert(self.key.as_slice().into(), result);
        result
    }

    /// Returns the stack `caller` extended by the frames of the address `ip`, outermost first: several if functions are inlined
    /// there.
    fn with_frames(
        &mut self,
        caller: Option<u32>,
        at: SampleContext,
        mode: CpuMode,
        ip: u64,
    ) -> Option<u32> {
        let address = CodeAddress::new(at, mode, ip);
        let mut stack = caller;
        for frame in self.code.frames(&address, mode, at.place) {
            let longer = ProfileStack {
                caller: stack,
                frame: *frame,
            };
            stack = Some(self.stacks.number(longer));
        }
        stack
    }

    /// Returns the samples of a track; adds the track if it is new.
    fn rows(&mut self, key: TrackKey) -> Option<&mut Vec<ProfileSample>> {
        let rows = &mut self.rows;
        let index = *self.tracks.entry(key).or_insert_with(|| {
            rows.push((key, Vec::new()));
            rows.len() - 1
        });
        self.rows.get_mut(index).map(|(_, rows)| rows)
    }
}

impl Fold for GatheredProfile<'_, '_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let conversion = self.conversion;
        let Some(event) = conversion.events.get(sample.event.0 as usize) else {
            return;
        };
        let state = self.recent.state_at(world, sample.who(), sample.order);
        let stack = self.stack(sample, event, state.epoch);
        let row = ProfileSample {
            time: sample.wire.time.unwrap_or_default(),
            period: sample.period,
            stack,
            cpu: sample.cpu,
        };
        let key = TrackKey {
            pid: sample.pid,
            tid: sample.tid,
            // The name at the time of the sample or, if it is not known yet, the first later one.
            comm: state.comm_at_or_later,
            event: sample.event,
        };
        if let Some(rows) = self.rows(key) {
            rows.push(row);
        }
    }

    fn merge(&mut self, later: Self) {
        let frames = self.code.merge(later.code);
        // The new number of each stack of `later`.
        let mut stacks: Vec<u32> = Vec::new();
        for stack in later.stacks.items() {
            // A caller's stack precedes those of its callees, so its new number is known.
            let renumbered = |caller: u32| stacks.get(caller as usize).copied();
            let stack = ProfileStack {
                caller: stack.caller.and_then(renumbered),
                frame: frames
                    .get(stack.frame as usize)
                    .copied()
                    .unwrap_or_default(),
            };
            stacks.push(self.stacks.number(stack));
        }
        for (key, rows) in later.rows {
            let rows = rows.into_iter().map(|row| ProfileSample {
                stack: row
                    .stack
                    .and_then(|stack| stacks.get(stack as usize).copied()),
                ..row
            });
            if let Some(own) = self.rows(key) {
                own.extend(rows);
            }
        }
    }
}

impl CodeAddress {
    /// The inputs of resolving `ip`.
    fn new(at: SampleContext, mode: CpuMode, ip: u64) -> Self {
        Self {
            epoch: at.epoch.of_mode(mode),
            guest: match at.place.machine {
                Machine::Host => None,
                Machine::Guest(pid) => Some(pid),
            },
            mode: mode as u8,
            inlines: at.inlines,
            ip,
        }
    }
}
