//! Which threads wait for which: chains, and cycles, which are deadlocks.

use std::collections::{BTreeMap, BTreeSet};

/// The threads that wait for threads, as cycles and chains. Each thread waits for at most one; one that waits for itself is a
/// cycle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitChains {
    /// The threads of each cycle: each waits for the next one, the last for the first. The first has the lowest id.
    pub cycles: Vec<Vec<u32>>,
    /// The threads of each chain: each waits for the next one. No thread waits for the first; the last waits for no thread, or is
    /// in a cycle.
    pub chains: Vec<Vec<u32>>,
}

impl WaitChains {
    /// Finds the chains and cycles. `holders` maps each waiting thread to the thread that holds the lock.
    #[must_use]
    pub fn of(holders: &BTreeMap<u32, u32>) -> Self {
        let mut wait_chains = Self::default();
        let mut in_cycle: BTreeSet<u32> = BTreeSet::new();
        let mut visited: BTreeSet<u32> = BTreeSet::new();
        for first in holders.keys() {
            let path = path(holders, *first, &visited);
            // A path that ends at a visited thread leads to no new cycle. Otherwise its last thread waits for no thread, or for a
            // thread of the path itself, where a cycle begins.
            let last = path.last().filter(|last| !visited.contains(last));
            let holder = last.and_then(|last| holders.get(last));
            let start = holder.and_then(|holder| path.iter().position(|tid| tid == holder));
            if let Some(cycle) = start.and_then(|start| path.get(start..)) {
                in_cycle.extend(cycle);
                wait_chains.cycles.push(from_lowest(cycle));
            }
            visited.extend(path);
        }
        wait_chains.cycles.sort();
        let waited_for: BTreeSet<u32> = holders.values().copied().collect();
        for first in holders.keys().filter(|tid| !waited_for.contains(tid)) {
            wait_chains.chains.push(path(holders, *first, &in_cycle));
        }
        wait_chains
    }
}

/// Returns `first` and the threads that follow it: each waits for the next one. The path ends at a thread of `stop_at`, at a
/// thread that does not wait, or at a thread that waits for one of the path.
fn path(holders: &BTreeMap<u32, u32>, first: u32, stop_at: &BTreeSet<u32>) -> Vec<u32> {
    let mut path = vec![first];
    let mut known = BTreeSet::from([first]);
    let mut at = first;
    while let Some(next) = holders.get(&at).filter(|_| !stop_at.contains(&at)) {
        if !known.insert(*next) {
            break;
        }
        path.push(*next);
        at = *next;
    }
    path
}

/// Returns a cycle rotated so that the lowest thread id is first.
fn from_lowest(cycle: &[u32]) -> Vec<u32> {
    let lowest = (0..cycle.len()).min_by_key(|at| cycle.get(*at));
    let mut rotated = cycle.to_vec();
    rotated.rotate_left(lowest.unwrap_or_default());
    rotated
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(waits: &[(u32, u32)]) -> WaitChains {
        WaitChains::of(&waits.iter().copied().collect())
    }

    #[test]
    fn chains_end_at_a_thread_that_does_not_wait_or_in_a_cycle() {
        let chain = of(&[(1, 2), (2, 3), (5, 3)]);
        assert!(chain.cycles.is_empty());
        assert_eq!(chain.chains, [vec![1, 2, 3], vec![5, 3]]);
        let cycle = of(&[(4, 2), (2, 3), (3, 4), (1, 3), (9, 9)]);
        assert_eq!(cycle.cycles, [vec![2, 3, 4], vec![9]]);
        assert_eq!(cycle.chains, [vec![1, 3]]);
        assert_eq!(of(&[]), WaitChains::default());
    }

    proptest! {
        // Also checks the order of the threads in cycles and chains.
        #[test]
        fn threads_are_in_a_cycle_if_following_the_holders_leads_back(
            holders in prop::collection::btree_map(0..12_u32, 0..12_u32, 0..12),
        ) {
            let wait_chains = WaitChains::of(&holders);
            let leads_back = |tid: u32| {
                let mut at = tid;
                (0..12).any(|_| {
                    // 99 is no thread.
                    at = holders.get(&at).copied().unwrap_or(99);
                    at == tid
                })
            };
            let mut in_cycles: Vec<u32> = wait_chains.cycles.concat();
            in_cycles.sort_unstable();
            let expected: Vec<u32> = (0..12).filter(|tid| leads_back(*tid)).collect();
            prop_assert_eq!(&in_cycles, &expected);
            for cycle in &wait_chains.cycles {
                for (at, tid) in cycle.iter().enumerate() {
                    prop_assert_eq!(holders[tid], cycle[(at + 1) % cycle.len()]);
                }
                prop_assert_eq!(cycle.iter().min(), cycle.first());
            }
            for chain in &wait_chains.chains {
                prop_assert!(chain.len() > 1);
                prop_assert!(chain.windows(2).all(|pair| holders[&pair[0]] == pair[1]));
                prop_assert!(!holders.values().any(|tid| *tid == chain[0]));
                let last = chain[chain.len() - 1];
                prop_assert!(leads_back(last) || !holders.contains_key(&last));
            }
        }
    }
}
