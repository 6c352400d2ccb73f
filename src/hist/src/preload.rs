//! Which objects stacks are of, found out without their symbols: these are then read by all threads side by side. A thread that
//! comes upon an object while it names stacks would read it while the others wait for the same one.

use std::collections::BTreeSet;

use rperf_replay::{DsoId, World};
use rustc_hash::FxHashSet;

use crate::fold::RawStacks;
use crate::namer::place;

/// Smallest unit of a mapping, as a power of two.
const PAGE: u32 = 12;

/// The objects that samples fell on.
pub(crate) fn objects(stacks: &RawStacks, world: &World) -> BTreeSet<DsoId> {
    let mut seen = FxHashSet::default();
    let mut objects = BTreeSet::new();
    for (head, key, weight) in stacks.iter() {
        let mode = head.misc.cpu_mode();
        if seen.insert((head.epoch.side(mode), mode, key.ip >> PAGE)) {
            let at = place(head, weight);
            let mapping = world.lookup(at.machine, mode, at.pid, at.order, key.ip);
            objects.extend(mapping.map(|mapping| world.mapping(mapping).dso));
        }
    }
    objects
}
