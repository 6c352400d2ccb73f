//! The frames of raw stacks, named.

use rperf_replay::{EventIndex, Machine};
use rperf_resolve::{Place, Resolver};

use crate::chains::Chains;
use crate::facts::{self, RawFacts};
use crate::fold::{Head, RawKey};
use crate::keys::Context;
use crate::options::{Counted, Options};
use crate::patterns::Patterns;
use crate::payloads::{PayloadId, PayloadText, Payloads};
use crate::resolve::Source;
use crate::select::Choice;
use crate::sites::{Finder, KnownSites, Sites};
use crate::stacks::{StackKey, Stacks, Weight};
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
    chains: Chains,
    inlines: Vec<bool>,
    /// The stacks of each event.
    pub(crate) events: Vec<Stacks>,
    /// What was looked up before, by event.
    known: Vec<KnownSites>,
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
            chains: Chains::new(options, source.endian),
            inlines: source.inlines.clone(),
            known: events.iter().map(|_| KnownSites::default()).collect(),
            events,
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
        let mut finder = Finder {
            sites: &mut self.sites,
            known,
            numbers: &mut stacks.sites,
            at: place(head, weight),
            epoch: head.epoch,
            inlines: self.inlines.get(event) == Some(&true),
        };
        let (leaf, choice) = match self.counts_branches {
            true => finder.target(key.ip),
            false => finder.leaf(mode, key.ip),
        };
        let facts = facts.map(|raw| self.pools.facts.number(finder.facts(mode, raw, key.ip)));
        match choice {
            Choice::Counted => {}
            Choice::Filtered => return stacks.filtered.add(weight.sum()),
            Choice::Ignored => return,
        }
        let frames = self.chains.name(head, key.chain, &mut finder);
        let found = self.patterns.find(frames, &stacks.sites);
        if self.exclude_other && found.parent.is_none() {
            return stacks.filtered.add(weight.sum());
        }
        let root = found.root.and_then(|root| stacks.sites.get(root)?.level);
        if !self.keeps_chains {
            frames.clear();
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
            frames,
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

/// Where and when the samples of a stack were taken.
pub(crate) fn place(head: &Head, weight: &Weight) -> Place {
    let pid = weight.thread.pid;
    Place {
        machine: Machine::of(head.misc.cpu_mode(), pid),
        pid,
        order: weight.first,
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
