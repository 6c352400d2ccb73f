//! From unique raw stacks to stacks of names, on all cores, and on to the finished reports.

use std::num::NonZeroUsize;

use rperf_replay::{CommId, DsoId, EventIndex, Machine, Order};
use rperf_resolve::{Frame, Place, Resolver, SymbolId};
use rperf_wire::{CpuMode, Endian, U64s};
use rustc_hash::FxHashMap;

use crate::fold::{Head, RawKey, Samples};
use crate::histogram::Histogram;
use crate::keys::{Context, Site, Thread};
use crate::names::Names;
use crate::options::{Direction, Options};
use crate::parallel;
use crate::payloads::{PayloadId, PayloadText, Payloads, Texts};
use crate::rows;
use crate::stacks::{StackKey, Stacks, Weight};

/// What is known of a recording's events, for the text of their reports.
#[derive(Clone)]
pub struct Source<'a> {
    /// Byte order of the file.
    pub endian: Endian,
    /// For each event, whether its samples have callchains.
    pub callchains: Vec<bool>,
    /// What its tracepoints tell.
    pub payloads: &'a dyn PayloadText,
}

impl Samples {
    /// The reports, one for each event of `source`.
    #[must_use]
    pub fn histograms(
        self,
        options: &Options,
        source: &Source<'_>,
        resolver: &Resolver<'_>,
        threads: NonZeroUsize,
    ) -> Vec<Histogram> {
        let payloads = Payloads::default();
        let make = || Namer::new(resolver, options, source, &payloads);
        let events = self.resolve(make, threads).unwrap_or_else(|| empty(source));
        let names = Recording {
            resolver,
            payloads: payloads.finish(),
        };
        let reports = events.into_iter().zip(&source.callchains);
        reports
            .map(|(stacks, graphs)| {
                rows::histogram(&stacks.lay_out(), options, *graphs, &names, threads)
            })
            .collect()
    }

    /// The stacks of each event; `None` without samples.
    fn resolve<'n, 'w: 'n>(
        self,
        make: impl Fn() -> Namer<'n, 'w> + Sync,
        threads: NonZeroUsize,
    ) -> Option<Vec<Stacks>> {
        let raw: Vec<(RawKey, Weight)> = self.stacks.into_iter().collect();
        let part = raw.len().div_ceil(threads.get()).max(1);
        let parts = raw.chunks(part).collect();
        let resolved = parallel::map(parts, threads, |part: &[(RawKey, Weight)]| {
            let mut namer = make();
            for (key, weight) in part {
                namer.add(key, weight);
            }
            namer.events
        });
        resolved.into_iter().reduce(|mut all, part| {
            for (into, from) in all.iter_mut().zip(part) {
                into.merge(from);
            }
            all
        })
    }
}

fn empty(source: &Source<'_>) -> Vec<Stacks> {
    source
        .callchains
        .iter()
        .map(|_| Stacks::default())
        .collect()
}

/// Names the frames of stacks.
struct Namer<'a, 'w> {
    resolver: &'a Resolver<'w>,
    payload_text: &'a dyn PayloadText,
    payloads: &'a Payloads,
    text: Vec<u8>,
    max_stack: usize,
    order: Direction,
    by_address: bool,
    endian: Endian,
    events: Vec<Stacks>,
    /// Sites that were looked up before, by event.
    known: Vec<FxHashMap<Lookup, u32>>,
    frames: Vec<u32>,
}

/// All that a site depends on.
#[derive(PartialEq, Eq, Hash)]
struct Lookup {
    /// The epoch of the side of the border that the mode looks at.
    epoch: u64,
    mode: CpuMode,
    /// Whether the sample itself fell there: its address is shown in terms of the object then, as in perf.
    leaf: bool,
    ip: u64,
}

impl<'a, 'w> Namer<'a, 'w> {
    fn new(
        resolver: &'a Resolver<'w>,
        options: &Options,
        source: &Source<'a>,
        payloads: &'a Payloads,
    ) -> Self {
        Self {
            resolver,
            payload_text: source.payloads,
            payloads,
            text: Vec::new(),
            max_stack: options.max_stack,
            order: options.order,
            by_address: options.graph.is_some_and(|graph| graph.by_address),
            endian: source.endian,
            events: empty(source),
            known: source
                .callchains
                .iter()
                .map(|_| FxHashMap::default())
                .collect(),
            frames: Vec::new(),
        }
    }

    fn add(&mut self, key: &[u8], weight: &Weight) {
        let (head, behind) = Head::read(key);
        let (raw, chain) = behind
            .split_at_checked(head.payload as usize)
            .unwrap_or_default();
        let payload = self.payload(head.event, raw);
        let event = head.event as usize;
        let (Some(stacks), Some(known)) = (self.events.get_mut(event), self.known.get_mut(event))
        else {
            return;
        };
        let mode = head.misc.cpu_mode();
        let pid = weight.thread.pid;
        let place = Place {
            machine: Machine::of(mode, pid),
            pid,
            order: weight.first,
        };
        let mut site = |mode, ip, leaf| {
            let lookup = Lookup {
                epoch: epoch(&head, mode),
                mode,
                leaf,
                ip,
            };
            *known.entry(lookup).or_insert_with(|| {
                let frame = self.resolver.locate(place, mode, ip);
                stacks
                    .sites
                    .number(Site::new(&frame, leaf, self.by_address))
            })
        };
        let leaf = site(mode, head.ip, true);
        self.frames.clear();
        let chain = U64s::new(chain, self.endian);
        let frames = &mut self.frames;
        if !Resolver::walk(chain, self.max_stack, |mode, ip| {
            frames.push(site(mode, ip, false))
        }) {
            frames.clear();
        }
        if self.order == Direction::Caller {
            frames.reverse();
        }
        let context = stacks.contexts.number(Context {
            comm: head.comm,
            thread: head.thread,
            cpu: head.cpu,
            payload,
        });
        let key = StackKey {
            context,
            leaf,
            level: mode.into(),
            frames: frames.as_slice().into(),
        };
        stacks.add(key, weight);
    }

    fn payload(&mut self, event: u32, raw: &[u8]) -> Option<PayloadId> {
        let event = EventIndex(event);
        if raw.is_empty() || !self.payload_text.has(event) {
            return None;
        }
        self.text.clear();
        self.payload_text.write(event, raw, &mut self.text);
        Some(self.payloads.number(&self.text))
    }
}

fn epoch(head: &Head, mode: CpuMode) -> u64 {
    match mode {
        CpuMode::Kernel | CpuMode::GuestKernel => head.epoch.kernel,
        _ => head.epoch.user,
    }
}

impl Site {
    fn new(frame: &Frame, leaf: bool, by_address: bool) -> Self {
        let address = match (frame.symbol, leaf) {
            (Some(_), false) if by_address => frame.address,
            (Some(_), _) => 0,
            (None, true) => frame.address,
            (None, false) => frame.ip,
        };
        Self {
            dso: frame.dso,
            symbol: frame.symbol,
            address,
            level: frame.mapping.map(|_| frame.level),
        }
    }
}

/// The names of a recording.
struct Recording<'a, 'w> {
    resolver: &'a Resolver<'w>,
    payloads: Texts,
}

impl Names for Recording<'_, '_> {
    fn comm(&self, comm: CommId) -> &str {
        self.resolver.world().comm(comm)
    }

    fn last_comm(&self, thread: Thread) -> &str {
        let world = self.resolver.world();
        world.comm(world.comm_last(thread.pid, thread.tid, Order::MAX))
    }

    fn dso(&self, dso: DsoId) -> &str {
        &self.resolver.world().dso(dso).short_name
    }

    fn symbol(&self, symbol: SymbolId) -> &str {
        self.resolver.symbol_name(symbol)
    }

    fn payload(&self, payload: PayloadId) -> &str {
        self.payloads.get(payload)
    }

    fn payload_rank(&self, payload: PayloadId) -> u32 {
        self.payloads.rank(payload)
    }

    fn range(&self, symbol: SymbolId) -> (u64, u64) {
        let symbol = self.resolver.symbol(symbol);
        symbol.map_or((0, 0), |symbol| (symbol.start, symbol.end))
    }
}
