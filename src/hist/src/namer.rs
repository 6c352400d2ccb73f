//! Resolution of raw stacks: each becomes a stack of code sites with a [`SampleContext`].

use rperf_replay::{EventIndex, Machine};
use rperf_resolve::{AddressContext, Resolver};

use crate::chains::ChainResolver;
use crate::fold::RawKey;
use crate::keys::SampleContext;
use crate::options::{CountedItems, HistogramOptions};
use crate::patterns::ReportPatterns;
use crate::payloads::{PayloadText, TextId, TextPool};
use crate::properties::{self, RawProperties};
use crate::resolve::RecordingInfo;
use crate::sample_key::SampleKey;
use crate::select::SampleTreatment;
use crate::sites::{KnownSites, SiteBuilder, SiteFinder};
use crate::stacks::{StackKey, StackWeight, UniqueStacks};
use crate::values::{self, ValuesId};

/// The pools to which all workers add payload texts, field values and properties of samples.
#[derive(Clone, Copy)]
pub(crate) struct SharedPools<'a> {
    pub(crate) payloads: &'a TextPool,
    pub(crate) values: &'a values::ValuePool,
    pub(crate) properties: &'a properties::PropertyPool,
}

/// Resolves the frames of stacks and collects the results by event.
pub(crate) struct FrameNamer<'a, 'w> {
    site_builder: SiteBuilder<'a, 'w>,
    payload_text: &'a dyn PayloadText,
    pools: SharedPools<'a>,
    patterns: ReportPatterns<'w, 'a>,
    /// Whether stacks in which no function matches the pattern of `parent` are filtered (`--exclude-other`).
    exclude_other: bool,
    /// Whether callchains are still needed after `patterns` were searched in them.
    keeps_chains: bool,
    /// Whether a sort key shows tracepoint payloads.
    shows_payload: bool,
    /// Whether a sort key shows a tracepoint field.
    shows_fields: bool,
    resolver: &'a Resolver<'w>,
    /// Whether branches are counted instead of samples: then the leaf is the target of a branch.
    counts_branches: bool,
    /// Buffer for the text of a payload.
    text: Vec<u8>,
    chains: ChainResolver,
    /// Whether frames of inlined functions are added, by event.
    inlines: Vec<bool>,
    /// The resolved stacks of each event.
    pub(crate) stacks_by_event: Vec<UniqueStacks>,
    /// For each event, a cache of the sites of addresses.
    known: Vec<KnownSites>,
}

impl<'a, 'w> FrameNamer<'a, 'w> {
    /// Creates a namer that has no stacks yet.
    pub(crate) fn new(
        site_builder: SiteBuilder<'a, 'w>,
        options: &HistogramOptions,
        source: &RecordingInfo<'a>,
        pools: SharedPools<'a>,
    ) -> Self {
        let stacks_by_event = empty_stacks(source);
        let resolver = site_builder.resolver();
        Self {
            site_builder,
            payload_text: source.payloads,
            pools,
            patterns: ReportPatterns::new(options, resolver),
            exclude_other: options.exclude_other,
            keeps_chains: options.keeps_chains(),
            shows_payload: options.shows_payload(),
            shows_fields: options.keys().iter().any(|key| key.shows_field()),
            resolver,
            counts_branches: options.counted == CountedItems::Branches,
            text: Vec::new(),
            chains: ChainResolver::new(options, source.endian),
            inlines: source.inlines.clone(),
            known: stacks_by_event
                .iter()
                .map(|_| KnownSites::default())
                .collect(),
            stacks_by_event,
        }
    }

    /// The address resolver.
    pub(crate) fn resolver(&self) -> &'a Resolver<'w> {
        self.resolver
    }

    /// Resolves the stack `key`, whose samples have the sample key `head` and these `properties`, and adds it with their
    /// `weight`. With `--ignore-callees`, the matched function (the root) and its level (user, kernel, ...) replace those of the
    /// sampled address. Samples that a filter by object or symbol excludes only count for the total. With `--hide-unresolved`,
    /// samples without a symbol are ignored.
    pub(crate) fn add(
        &mut self,
        head: &SampleKey,
        properties: Option<&RawProperties>,
        key: &RawKey<'_>,
        weight: &StackWeight,
    ) {
        let payload = self.payload(head.event, key.payload);
        let values = self.values(head.event, key.payload);
        let event = head.event as usize;
        let stacks = self.stacks_by_event.get_mut(event);
        let (Some(stacks), Some(known)) = (stacks, self.known.get_mut(event)) else {
            return;
        };
        let mode = head.misc.cpu_mode();
        let mut finder = SiteFinder {
            builder: &mut self.site_builder,
            known,
            sites: &mut stacks.sites,
            at: address_context(head, weight),
            epoch: head.epoch,
            inlines: self.inlines.get(event) == Some(&true),
        };
        let (leaf, treatment) = match self.counts_branches {
            true => finder.target(key.ip),
            false => finder.leaf(mode, key.ip),
        };
        let pool = self.pools.properties;
        let properties = properties.map(|raw| pool.intern(finder.properties(mode, raw, key.ip)));
        match treatment {
            SampleTreatment::Counted => {}
            SampleTreatment::Filtered => return stacks.filtered.add(weight.sum()),
            SampleTreatment::Ignored => return,
        }
        let frames = self.chains.resolve(head, key.chain, &mut finder);
        let matched = self.patterns.apply(frames, &stacks.sites);
        if self.exclude_other && matched.parent.is_none() {
            return stacks.filtered.add(weight.sum());
        }
        if !self.keeps_chains {
            frames.clear();
        }
        let context = stacks.contexts.intern(SampleContext {
            comm: head.comm,
            thread: head.thread,
            cpu: head.cpu,
            payload,
            parent: matched.parent,
            values,
            properties,
        });
        let stack_key = StackKey {
            context,
            leaf: matched.root.unwrap_or(leaf),
            level: stacks.level_of(matched.root).unwrap_or(mode.into()),
            frames,
        };
        stacks.add(&stack_key, weight);
    }

    /// Clears cached addresses if there are many.
    pub(crate) fn trim(&mut self) {
        self.known.iter_mut().for_each(KnownSites::trim);
    }

    fn payload(&mut self, event: u32, raw: &[u8]) -> Option<TextId> {
        let event = EventIndex(event);
        if !self.shows_payload || raw.is_empty() || !self.payload_text.has(event) {
            return None;
        }
        self.text.clear();
        self.payload_text.write(event, raw, &mut self.text);
        Some(self.pools.payloads.intern(&self.text))
    }

    fn values(&self, event: u32, raw: &[u8]) -> Option<ValuesId> {
        let event = EventIndex(event);
        if !self.shows_fields || !self.payload_text.has(event) {
            return None;
        }
        let values = self.payload_text.fields(event, raw);
        Some(self.pools.values.intern(values))
    }
}

/// Machine and process of the samples of a stack, and the position of the first of them.
pub(crate) fn address_context(head: &SampleKey, weight: &StackWeight) -> AddressContext {
    // The sample key has the process only if a sort key shows it.
    let pid = weight.thread.pid;
    AddressContext {
        machine: Machine::of(head.misc.cpu_mode(), pid),
        pid,
        order: weight.first,
    }
}

/// Empty stacks for each event.
fn empty_stacks(source: &RecordingInfo<'_>) -> Vec<UniqueStacks> {
    // `callchains` has one item for each event.
    source
        .callchains
        .iter()
        .map(|_| UniqueStacks::default())
        .collect()
}
