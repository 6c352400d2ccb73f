//! The frames of raw stacks, named.

use rperf_replay::{EventIndex, Machine};
use rperf_resolve::{Place, Resolver};
use rperf_wire::{Endian, U64s};

use crate::facts::{self, RawFacts};
use crate::fold::{Head, RawKey};
use crate::keys::Context;
use crate::options::{Counted, Direction, Options};
use crate::patterns::Patterns;
use crate::payloads::{PayloadId, PayloadText, Payloads};
use crate::resolve::Source;
use crate::select::Choice;
use crate::sites::{Finder, KnownSites, Sites};
use crate::stacks::{StackKey, Stacks, Weight};
use crate::trail::Trail;
use crate::values::{self, ValuesId};

/// What all workers fill together.
#[derive(Clone, Copy)]
pub(crate) struct Pools<'a> {
    pub(crate) payloads: &'a Payloads,
    pub(crate) values: &'a values::Pool,
    pub(crate) facts: &'a facts::Pool,
}

/// Names the frames of stacks.
pub(crate) struct Namer<'a, 'w> {
    sites: Sites<'a, 'w>,
    payload_text: &'a dyn PayloadText,
    pools: Pools<'a>,
    patterns: Patterns<'w, 'a>,
    exclude_other: bool,
    keeps_chains: bool,
    shows_payload: bool,
    shows_fields: bool,
    resolver: &'a Resolver<'w>,
    counts_branches: bool,
    text: Vec<u8>,
    max_stack: usize,
    order: Direction,
    endian: Endian,
    inlines: Vec<bool>,
    /// The stacks of each event.
    pub(crate) events: Vec<Stacks>,
    /// What was looked up before, by event.
    known: Vec<KnownSites>,
    trail: Trail,
    frames: Vec<u32>,
}

impl<'a, 'w> Namer<'a, 'w> {
    /// With nothing named yet.
    pub(crate) fn new(
        sites: Sites<'a, 'w>,
        options: &Options,
        source: &Source<'a>,
        pools: Pools<'a>,
    ) -> Self {
        let events = empty(source);
        let resolver = sites.resolver();
        Self {
            sites,
            payload_text: source.payloads,
            pools,
            patterns: Patterns::new(options, resolver),
            exclude_other: options.exclude_other,
            keeps_chains: options.keeps_chains(),
            shows_payload: options.shows_payload(),
            shows_fields: options.keys().iter().any(|key| key.shows_field()),
            resolver,
            counts_branches: options.counted == Counted::Branches,
            text: Vec::new(),
            max_stack: options.max_stack,
            order: options.order,
            endian: source.endian,
            inlines: source.inlines.clone(),
            known: events.iter().map(|_| KnownSites::default()).collect(),
            events,
            trail: Trail::default(),
            frames: Vec::new(),
        }
    }

    /// What looks addresses up.
    pub(crate) fn resolver(&self) -> &'a Resolver<'w> {
        self.resolver
    }

    /// Names the frames of samples that hold `head` and `key`.
    pub(crate) fn add(
        &mut self,
        head: &Head,
        facts: Option<&RawFacts>,
        key: &RawKey<'_>,
        weight: &Weight,
    ) {
        let payload = self.payload(head.event, key.payload);
        let values = self.values(head.event, key.payload);
        let event = head.event as usize;
        let (Some(stacks), Some(known)) = (self.events.get_mut(event), self.known.get_mut(event))
        else {
            return;
        };
        let mode = head.misc.cpu_mode();
        let pid = weight.thread.pid;
        let mut finder = Finder {
            sites: &mut self.sites,
            known,
            numbers: &mut stacks.sites,
            at: Place {
                machine: Machine::of(mode, pid),
                pid,
                order: weight.first,
            },
            epoch: head.epoch,
            inlines: self.inlines.get(event) == Some(&true),
        };
        let (leaf, choice) = match self.counts_branches {
            true => finder.target(key.ip),
            false => finder.leaf(mode, key.ip),
        };
        let facts = facts.map(|raw| {
            let finder = facts::Finder {
                sites: finder.sites,
                resolver: self.resolver,
                at: finder.at,
                mode,
            };
            self.pools.facts.number(finder.facts(raw, key.ip))
        });
        match choice {
            Choice::Counted => {}
            Choice::Filtered => return stacks.filtered.add(weight.sum()),
            Choice::Ignored => return,
        }
        let trail = &mut self.trail;
        trail.begin(head.epoch, head.event);
        // Where chains begin with the outermost caller, perf counts from there.
        let walked = match self.order {
            Direction::Caller => usize::MAX,
            Direction::Callee => self.max_stack,
        };
        let chain = U64s::new(key.chain, self.endian);
        if !Resolver::walk(chain, walked, |mode, ip| trail.push(mode, ip)) {
            trail.begin(head.epoch, head.event);
        }
        let sites = trail.name(|mode, ip, sites| finder.append(mode, ip, sites));
        self.frames.clear();
        self.frames.extend_from_slice(sites);
        match self.order {
            Direction::Caller => self.frames.truncate(self.max_stack),
            Direction::Callee => self.frames.reverse(),
        }
        let found = self.patterns.find(&mut self.frames, &stacks.sites);
        if self.exclude_other && found.parent.is_none() {
            return stacks.filtered.add(weight.sum());
        }
        let root = found.root.and_then(|root| stacks.sites.get(root)?.level);
        if !self.keeps_chains {
            self.frames.clear();
        }
        let context = stacks.contexts.number(Context {
            comm: head.comm,
            thread: head.thread,
            cpu: head.cpu,
            payload,
            parent: found.parent,
            values,
            facts,
        });
        let key = StackKey {
            context,
            leaf: found.root.unwrap_or(leaf),
            level: root.unwrap_or(mode.into()),
            frames: &self.frames,
        };
        stacks.add(&key, weight);
    }

    /// Forgets addresses that were looked up, if they are many.
    pub(crate) fn trim(&mut self) {
        self.known.iter_mut().for_each(KnownSites::trim);
    }

    fn payload(&mut self, event: u32, raw: &[u8]) -> Option<PayloadId> {
        let event = EventIndex(event);
        if !self.shows_payload || raw.is_empty() || !self.payload_text.has(event) {
            return None;
        }
        self.text.clear();
        self.payload_text.write(event, raw, &mut self.text);
        Some(self.pools.payloads.number(&self.text))
    }

    fn values(&self, event: u32, raw: &[u8]) -> Option<ValuesId> {
        let event = EventIndex(event);
        if !self.shows_fields || !self.payload_text.has(event) {
            return None;
        }
        let values = self.payload_text.fields(event, raw);
        Some(self.pools.values.number(values))
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
