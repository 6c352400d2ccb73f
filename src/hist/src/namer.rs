//! The frames of raw stacks, named: each place once.

use rperf_replay::{EventIndex, Machine};
use rperf_resolve::{Frame, Place, Resolver};
use rperf_wire::{CpuMode, Endian, U64s};
use rustc_hash::FxHashMap;

use crate::fold::Head;
use crate::keys::{Context, Site};
use crate::options::{Direction, Options};
use crate::payloads::{PayloadId, PayloadText, Payloads};
use crate::resolve::Source;
use crate::select::{Choice, Select};
use crate::stacks::{StackKey, Stacks, Weight};

/// Names the frames of stacks.
pub(crate) struct Namer<'a, 'w> {
    resolver: &'a Resolver<'w>,
    payload_text: &'a dyn PayloadText,
    payloads: &'a Payloads,
    text: Vec<u8>,
    max_stack: usize,
    order: Direction,
    by_address: bool,
    hide_unresolved: bool,
    select: Option<&'a dyn Select>,
    endian: Endian,
    /// The stacks of each event.
    pub(crate) events: Vec<Stacks>,
    /// Sites that were looked up before, by event.
    known: Vec<FxHashMap<Lookup, (u32, Choice)>>,
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
    /// With nothing named yet.
    pub(crate) fn new(
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
            hide_unresolved: options.hide_unresolved,
            select: None,
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

    /// The same for the samples that `select` chooses by their place.
    pub(crate) fn choosing(mut self, select: Option<&'a dyn Select>) -> Self {
        self.select = select;
        self
    }

    /// Names the frames of samples that hold `key`.
    pub(crate) fn add(&mut self, key: &[u8], weight: &Weight) {
        let (head, behind) = Head::read(key);
        let (raw, chain) = behind
            .split_at_checked(head.payload as usize)
            .unwrap_or_default();
        if self.events.len() <= head.event as usize {
            return;
        }
        let mode = head.misc.cpu_mode();
        let pid = weight.thread.pid;
        let place = Place {
            machine: Machine::of(mode, pid),
            pid,
            order: weight.first,
        };
        let leaf = Lookup::new(&head, mode, head.ip);
        let (leaf, choice) = self.site(&head, place, Lookup { leaf: true, ..leaf });
        let payload = self.payload(head.event, raw);
        let stacks = &mut self.events[head.event as usize];
        match choice {
            Choice::Counted => {}
            Choice::Filtered => return stacks.filtered.add(weight.sum()),
            Choice::Ignored => return,
        }
        let context = stacks.contexts.number(Context {
            comm: head.comm,
            thread: head.thread,
            cpu: head.cpu,
            payload,
        });
        self.walk(&head, place, U64s::new(chain, self.endian));
        let key = StackKey {
            context,
            leaf,
            level: mode.into(),
            frames: self.frames.as_slice().into(),
        };
        self.events[head.event as usize].add(key, weight);
    }

    /// Names the frames of a callchain, in the order of call graphs.
    fn walk(&mut self, head: &Head, place: Place, chain: U64s<'_>) {
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        // Where chains begin with the outermost caller, perf counts from there.
        let walked = match self.order {
            Direction::Caller => usize::MAX,
            Direction::Callee => self.max_stack,
        };
        let whole = Resolver::walk(chain, walked, |mode, ip| {
            let lookup = Lookup::new(head, mode, ip);
            if let (site, Choice::Counted) = self.site(head, place, lookup) {
                frames.push(site);
            }
        });
        if !whole {
            frames.clear();
        }
        if self.order == Direction::Caller {
            frames.reverse();
            frames.truncate(self.max_stack);
        }
        self.frames = frames;
    }

    /// The number of a site, and whether samples that fell there count.
    fn site(&mut self, head: &Head, place: Place, lookup: Lookup) -> (u32, Choice) {
        let event = head.event as usize;
        let stacks = &mut self.events[event];
        *self.known[event]
            .entry(lookup)
            .or_insert_with_key(|lookup| {
                let frame = self.resolver.locate(place, lookup.mode, lookup.ip);
                let choice = match self.select {
                    _ if self.hide_unresolved && frame.symbol.is_none() => Choice::Ignored,
                    Some(select) if lookup.leaf => select.place(self.resolver, &frame),
                    _ => Choice::Counted,
                };
                let site = Site::new(&frame, lookup.leaf, self.by_address);
                (stacks.sites.number(site), choice)
            })
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

impl Lookup {
    /// Of a caller.
    fn new(head: &Head, mode: CpuMode, ip: u64) -> Self {
        Self {
            epoch: match mode {
                CpuMode::Kernel | CpuMode::GuestKernel => head.epoch.kernel,
                _ => head.epoch.user,
            },
            mode,
            leaf: false,
            ip,
        }
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

/// No stacks, for each event.
pub(crate) fn empty(source: &Source<'_>) -> Vec<Stacks> {
    source
        .callchains
        .iter()
        .map(|_| Stacks::default())
        .collect()
}
