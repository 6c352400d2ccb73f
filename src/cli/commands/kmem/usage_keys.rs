//! The keys by which `kmem usage` and `kmem diff` sum up memory.

use clap::{Arg, ArgMatches};
use rperf_analysis::kmem::{MemoryUsage, UsageDetail, UsageReport};
use rperf_analysis::sched::LostStretches;
use rperf_analysis::{DeliveredCounts, ObserverPass, PrepareSamples};
use rperf_replay::{Sample, World};
use rperf_resolve::{AddressContext, Resolver, TimeIntervals};
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::CpuMode;
use std::collections::HashMap;

use super::Allocators;
use super::details::KernelStacks;
use super::needed_events::require_events;
use super::stat::page_size;
use crate::cli::error::CliError;
use crate::cli::options::value;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::containers::container_of;
use crate::cli::shared::recorded_fields::{event_layouts, require_cgroups};
use crate::cli::shared::time_range::time_intervals;

/// A part of a key: one of the words of `--by`, whose help and messages call it a key. In this code, a key is all parts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPart {
    /// The frames of the kernel outside the allocators.
    Stack,
    /// The innermost frame outside the allocators.
    Caller,
    /// The function of the caller.
    Function,
    /// The cache of an object, or the order of an allocation of pages.
    Cache,
    Cgroup,
    Container,
    Process,
}

impl KeyPart {
    const ALL: [(&'static str, Self); 7] = [
        ("stack", Self::Stack),
        ("caller", Self::Caller),
        ("function", Self::Function),
        ("cache", Self::Cache),
        ("cgroup", Self::Cgroup),
        ("container", Self::Container),
        ("process", Self::Process),
    ];

    fn title(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, part)| *part == self)
            .map_or("", |(name, _)| name)
    }
}

/// Returns the option `--by`. Its help shows `default`.
pub(super) fn option(default: &str) -> Arg {
    value("by", "key[,key...]").help(format!(
        "sum up by stack, caller, function, cache (of pages: order), cgroup, container, process (default: {default})"
    ))
}

/// The parts of a key, in the order of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UsageKeys(Vec<KeyPart>);

/// The memory of a recording, and which events were read or lost.
pub(super) struct UsageAnalysis {
    pub(super) report: UsageReport,
    pub(super) delivered: DeliveredCounts,
    pub(super) losses: LostStretches,
    /// Whether the events of the slab allocator were read. Its allocations are objects, those of the page allocator are pages.
    pub(super) has_objects: bool,
}

impl UsageKeys {
    /// Parses `--by`.
    ///
    /// # Errors
    ///
    /// Status 129: an unknown key, or an empty list.
    pub(super) fn given(matches: &ArgMatches, default: &[KeyPart]) -> Result<Self, CliError> {
        let Some(list) = matches.get_one::<String>("by") else {
            return Ok(Self(default.into()));
        };
        let mut parts = Vec::new();
        for word in list.split([',', ' ']).filter(|word| !word.is_empty()) {
            let mut all = KeyPart::ALL.into_iter();
            let Some((_, part)) = all.find(|(name, _)| *name == word) else {
                return Err(CliError::usage(format!("Unknown key of --by: '{word}'")).hint(
                    "the keys are stack, caller, function, cache, cgroup, container and process",
                ));
            };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        match parts.is_empty() {
            true => Err(CliError::usage("--by: no key is given")),
            false => Ok(Self(parts)),
        }
    }

    /// Returns the parts.
    pub(super) fn parts(&self) -> impl Iterator<Item = KeyPart> {
        self.0.iter().copied()
    }

    /// Returns the titles of the columns that show the parts of the key.
    pub(super) fn titles(&self) -> Vec<&'static str> {
        self.0.iter().map(|part| part.title()).collect()
    }

    fn has(&self, part: KeyPart) -> bool {
        self.0.contains(&part)
    }

    /// Sums up the memory of a recording.
    ///
    /// # Errors
    ///
    /// The recording lacks the events, their fields or cgroups, or the range of `--time` is not valid.
    pub(super) fn analyse(
        &self,
        analysis: &Analysis<'_>,
        resolver: &Resolver<'_>,
        matches: &ArgMatches,
    ) -> Result<UsageAnalysis, CliError> {
        let layouts = event_layouts(analysis)?;
        let allocators = Allocators::given_or_recorded(matches, &layouts);
        let needed = require_events(analysis, allocators, &layouts)?;
        if self.has(KeyPart::Cgroup) || self.has(KeyPart::Container) {
            require_cgroups(analysis, &needed.concat(), "kmem record")?;
        }
        let details = UsageDetails {
            keys: self,
            stacks: KernelStacks(resolver),
            // `kmem diff` has no --time.
            intervals: match matches.try_contains_id("time") {
                // The hint of an error names `script`, which prints the times of events.
                Ok(true) => time_intervals(matches, analysis, "script")?,
                _ => None,
            },
            containers: containers(analysis.replay.world()),
        };
        let mut usage = MemoryUsage::default().by_cache(self.has(KeyPart::Cache));
        usage.set_page_size(page_size(analysis));
        let pass = ObserverPass::new(&layouts, details).reading(&needed);
        let delivered = pass.run(&analysis.replay, analysis.jobs, &mut usage)?;
        Ok(UsageAnalysis {
            losses: std::mem::take(&mut usage.losses),
            report: usage.report(),
            delivered,
            has_objects: allocators.slab,
        })
    }
}

/// Returns for each cgroup the number of its container: the lowest id of the container's cgroups, 0 if the cgroup belongs to
/// none. `world` has the processes, mappings and cgroups of the recording.
fn containers(world: &World) -> HashMap<u64, u64> {
    let mut by_name: HashMap<String, u64> = HashMap::new();
    let mut all: Vec<(u64, &str)> = world.cgroups().collect();
    all.sort_unstable();
    let containers = all.into_iter().map(|(id, path)| {
        let container = container_of(path);
        let first = container.map(|name| *by_name.entry(name).or_insert(id));
        (id, first.unwrap_or_default())
    });
    containers.collect()
}

/// Selects events by time, and finds the keys of allocations.
struct UsageDetails<'r> {
    keys: &'r UsageKeys,
    stacks: KernelStacks<'r>,
    /// `--time`.
    intervals: Option<TimeIntervals>,
    /// From the id of a cgroup to the number of its container; see [`containers`].
    containers: HashMap<u64, u64>,
}

impl PrepareSamples for UsageDetails<'_> {
    type Detail = UsageDetail;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<UsageDetail> {
        let intervals = self.intervals.as_ref();
        if intervals.is_some_and(|intervals| !intervals.contain(sample.order.time)) {
            return None;
        }
        // `is_slab_page`: whether the slab allocator allocates the pages; an object is no page.
        let (stack, is_slab_page) = match event? {
            TypedEvent::Kmalloc(event) => (self.object_stack(sample, event.call_site()), false),
            TypedEvent::KmemCacheAlloc(event) => {
                (self.object_stack(sample, event.call_site()), false)
            }
            TypedEvent::MmPageAlloc(_) => self.stacks.outside_both_allocators(sample),
            // Frees have no key of their own: they belong to the key of the allocation.
            _ => return Some(UsageDetail::default()),
        };
        Some(UsageDetail {
            key: self.key(sample, &stack),
            is_slab_page,
        })
    }
}

impl UsageDetails<'_> {
    /// Returns the stack of the allocation of an object; only the caller if the key has no stack.
    fn object_stack(&self, sample: &Sample<'_>, call_site: u64) -> Vec<u64> {
        match self.keys.has(KeyPart::Stack) {
            true => self.stacks.starting_at_call_site(sample, call_site),
            false => vec![call_site],
        }
    }

    /// Returns the numbers of the parts in order, except that the stack is at the end. The cache has no number here:
    /// [`MemoryUsage::by_cache`] adds it to the key.
    fn key(&self, sample: &Sample<'_>, stack: &[u64]) -> Vec<u64> {
        let caller = stack.first().copied().unwrap_or_default();
        let mut key = Vec::new();
        for part in self.keys.parts() {
            key.push(match part {
                KeyPart::Stack | KeyPart::Cache => continue,
                KeyPart::Caller => caller,
                KeyPart::Function => self.function(sample, caller),
                KeyPart::Cgroup => sample.wire.cgroup.unwrap_or_default(),
                KeyPart::Container => {
                    let cgroup = sample.wire.cgroup.unwrap_or_default();
                    self.containers.get(&cgroup).copied().unwrap_or_default()
                }
                KeyPart::Process => sample.pid.into(),
            });
        }
        if self.keys.has(KeyPart::Stack) {
            key.extend_from_slice(stack);
        }
        key
    }

    /// Returns the start of the function at an address; the address itself if the function is unknown.
    fn function(&self, sample: &Sample<'_>, address: u64) -> u64 {
        let resolver = self.stacks.0;
        let frame = resolver.locate(AddressContext::of(sample), CpuMode::Kernel, address);
        let start = frame
            .symbol
            .and_then(|symbol| Some(resolver.symbol(symbol)?.start));
        // `start` and `frame.address` are addresses in the symbol table, `address` is one in the running kernel; in a module they
        // differ. So only the offset in the function is used.
        let offset = start.map(|start| frame.address.wrapping_sub(start));
        address.wrapping_sub(offset.unwrap_or_default())
    }
}
