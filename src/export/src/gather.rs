//! From samples to a [`Profile`].

mod code;
mod tables;

use rperf_perfdata::{Described, EventDesc};
use rperf_replay::{CommId, Epoch, EventIndex, Fold, Machine, Recent, Sample, World};
use rperf_resolve::{Place, Resolver};
use rperf_wire::{CpuMode, Endian, EventType, SampleType, U64s};
use rustc_hash::FxHashMap;

use self::code::{Code, Spot};
use crate::intern::Interner;
use crate::profile::{Event, Profile, Row, Stack, Unit};

/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];

/// What gathering has to know of a recording.
pub struct Gather<'r, 'w> {
    resolver: &'r Resolver<'w>,
    endian: Endian,
    events: Vec<Known>,
}

/// What is known of one event.
struct Known {
    event: Event,
    /// Whether its samples have callchains.
    callchains: bool,
    /// Whether inlined functions are frames of these.
    inlines: bool,
}

impl<'r, 'w> Gather<'r, 'w> {
    /// Gathers the samples of `recording`, with the functions inlined into frames of the events for which `inlines` says so.
    #[must_use]
    pub fn new(
        resolver: &'r Resolver<'w>,
        recording: Described<'_>,
        inlines: impl Fn(&EventDesc) -> bool,
    ) -> Self {
        let known = recording.events.iter().map(|event| Known {
            event: Event {
                name: event.name.clone(),
                unit: unit(event),
            },
            callchains: event.attr.sample_type.contains(SampleType::CALLCHAIN),
            inlines: inlines(event),
        });
        Self {
            resolver,
            endian: recording.endian,
            events: known.collect(),
        }
    }

    /// What one worker gathers.
    #[must_use]
    pub fn worker(&self) -> Gathered<'_, 'w> {
        Gathered {
            gather: self,
            recent: Recent::default(),
            code: Code::new(self.resolver),
            callers: FxHashMap::default(),
            key: Vec::new(),
            path: Vec::new(),
            trail: Trail::default(),
            stacks: Interner::default(),
            tracks: FxHashMap::default(),
            rows: Vec::new(),
        }
    }
}

fn unit(event: &EventDesc) -> Unit {
    let attr = &event.attr;
    match attr.kind == EventType::SOFTWARE && CLOCKS.contains(&attr.config) {
        true => Unit::Nanoseconds,
        false => Unit::Count,
    }
}

/// Whose samples belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TrackKey {
    pid: u32,
    tid: u32,
    comm: CommId,
    event: EventIndex,
}

/// The samples of a part of a recording.
pub struct Gathered<'r, 'w> {
    gather: &'r Gather<'r, 'w>,
    recent: Recent,
    code: Code<'r, 'w>,
    /// From what decides the callers of a frame to their stack; outer `None` for a corrupted chain.
    callers: FxHashMap<Box<[u8]>, Option<Option<u32>>>,
    key: Vec<u8>,
    path: Vec<(CpuMode, u64)>,
    trail: Trail,
    stacks: Interner<Stack>,
    tracks: FxHashMap<TrackKey, usize>,
    rows: Vec<(TrackKey, Vec<Row>)>,
}

/// The callers that were looked up last: those that come next mostly have the outer ones in common.
#[derive(Default)]
struct Trail {
    /// Where and when that was.
    at: Option<(Epoch, Machine, bool)>,
    /// Outermost first, each with the stack that it completes.
    callers: Vec<((CpuMode, u64), Option<u32>)>,
}

impl Trail {
    /// Keeps what it has in common with `callers`, outermost first, and says how many that are.
    fn keep(&mut self, at: At, callers: impl Iterator<Item = (CpuMode, u64)>) -> usize {
        let here = Some((at.epoch, at.place.machine, at.inlines));
        if self.at != here {
            self.at = here;
            self.callers.clear();
        }
        let both = callers.zip(&self.callers);
        let common = both.take_while(|(caller, known)| *caller == known.0);
        let common = common.count();
        self.callers.truncate(common);
        common
    }
}

/// Where and when the frames of a sample are looked up.
#[derive(Clone, Copy)]
struct At {
    place: Place,
    epoch: Epoch,
    inlines: bool,
}

impl Gathered<'_, '_> {
    /// The tables of all that was gathered.
    #[must_use]
    pub fn finish(self) -> Profile {
        tables::finish(self)
    }

    fn stack(&mut self, sample: &Sample<'_>, known: &Known, epoch: Epoch) -> Option<u32> {
        let at = At {
            place: Place::of(sample),
            epoch,
            inlines: known.inlines,
        };
        let chain = sample.wire.callchain.filter(|_| known.callchains);
        let Some(chain) = chain else {
            let ip = sample.wire.ip.unwrap_or_default();
            return self.called(None, at, (sample.cpu_mode(), ip));
        };
        let split = Resolver::split_first(chain)?;
        let callers = self.callers(at, split.mode, split.callers)?;
        self.called(callers, at, (split.mode, split.ip))
    }

    /// The stack of some callers, whose first is in `mode`; `None` for a corrupted chain.
    fn callers(&mut self, at: At, mode: CpuMode, callers: &[u8]) -> Option<Option<u32>> {
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
        let entries = U64s::new(callers, self.gather.endian);
        let whole = Resolver::walk_on(mode, entries, usize::MAX, |mode, ip| path.push((mode, ip)));
        let mut stack = None;
        if whole {
            let common = self.trail.keep(at, path.iter().rev().copied());
            let last = self.trail.callers.last();
            stack = last.and_then(|(_, stack)| *stack);
            for caller in path.iter().rev().skip(common) {
                stack = self.called(stack, at, *caller);
                self.trail.callers.push((*caller, stack));
            }
        }
        self.path = path;
        let found = whole.then_some(stack);
        self.callers.insert(self.key.as_slice().into(), found);
        found
    }

    /// The stack of `caller` and what it called: one frame, or several where functions were inlined.
    fn called(&mut self, caller: Option<u32>, at: At, (mode, ip): (CpuMode, u64)) -> Option<u32> {
        let spot = Spot::new(at, mode, ip);
        let mut stack = caller;
        for frame in self.code.frames(&spot, mode, at.place) {
            let longer = Stack {
                caller: stack,
                frame: *frame,
            };
            stack = Some(self.stacks.number(longer));
        }
        stack
    }

    fn rows(&mut self, key: TrackKey) -> Option<&mut Vec<Row>> {
        let rows = &mut self.rows;
        let at = *self.tracks.entry(key).or_insert_with(|| {
            rows.push((key, Vec::new()));
            rows.len() - 1
        });
        self.rows.get_mut(at).map(|(_, rows)| rows)
    }
}

impl Fold for Gathered<'_, '_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let gather = self.gather;
        let Some(known) = gather.events.get(sample.event.0 as usize) else {
            return;
        };
        let moment = self.recent.moment(world, sample.who(), sample.order);
        let stack = self.stack(sample, known, moment.epoch);
        let row = Row {
            time: sample.wire.time.unwrap_or_default(),
            period: sample.period,
            stack,
            cpu: sample.cpu,
        };
        let key = TrackKey {
            pid: sample.pid,
            tid: sample.tid,
            comm: moment.comm_final,
            event: sample.event,
        };
        if let Some(rows) = self.rows(key) {
            rows.push(row);
        }
    }

    fn merge(&mut self, later: Self) {
        let frames = self.code.merge(later.code);
        let mut stacks: Vec<u32> = Vec::new();
        for stack in later.stacks.items() {
            // Callers come first.
            let renumbered = |caller: u32| stacks.get(caller as usize).copied();
            let stack = Stack {
                caller: stack.caller.and_then(renumbered),
                frame: frames
                    .get(stack.frame as usize)
                    .copied()
                    .unwrap_or_default(),
            };
            stacks.push(self.stacks.number(stack));
        }
        for (key, later) in later.rows {
            let rows = later.into_iter().map(|row| Row {
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

impl Spot {
    /// What decides the frames at `ip`.
    fn new(at: At, mode: CpuMode, ip: u64) -> Self {
        Self {
            epoch: at.epoch.side(mode),
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
