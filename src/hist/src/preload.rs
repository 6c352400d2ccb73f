//! Determines the objects of sampled addresses without loading symbols, so that the objects can be loaded in
//! parallel. Otherwise one thread would load an object while all threads that need the same object
//! wait.

use std::collections::BTreeSet;

use rperf_replay::{DsoId, World};
use rustc_hash::FxHashSet;

use crate::fold::RawStacks;
use crate::namer::address_context;

/// Binary logarithm of the minimum page size.
const PAGE_SHIFT: u32 = 12;

/// The objects of the sampled addresses of `stacks` (not of the callers in callchains), by the mappings of `world` at the time of
/// the samples.
pub(crate) fn sampled_objects(stacks: &RawStacks, world: &World) -> BTreeSet<DsoId> {
    // Each page of an address space is looked up once for each epoch, a period without changes to the mappings: files are mapped
    // in whole pages, so a page has one object. Only BPF programs share pages; those that are not found have a single symbol each
    // and need no preloading. The number of an epoch also identifies the address space.
    let mut seen = FxHashSet::default();
    let mut objects = BTreeSet::new();
    // `sample_key` has the mode and the epoch, `raw_key` the address. `weight` has the process, and the position of the stack's
    // first sample.
    for (sample_key, raw_key, weight) in stacks.iter() {
        let mode = sample_key.misc.cpu_mode();
        let page = raw_key.ip >> PAGE_SHIFT;
        if seen.insert((sample_key.epoch.of_mode(mode), mode, page)) {
            let at = address_context(sample_key, weight);
            let mapping = world.lookup(at.machine, mode, at.pid, at.order, raw_key.ip);
            objects.extend(mapping.map(|mapping| world.mapping(mapping).dso));
        }
    }
    objects
}
