//! The CPU topology of the machine that counted.

use rperf_count::{CpuLocation, Topology};
use rperf_perfdata::Features;
use rperf_sys::CpuList;

/// The type of an instruction cache in the header.
const INSTRUCTION_CACHE: &str = "Instruction";

/// Returns the location of each CPU that the header describes.
pub(super) fn topology(features: &Features<'_>) -> Topology {
    let known = features.cpu_topology().unwrap_or_default();
    let nodes: Vec<(u32, CpuList)> = features
        .numa_topology()
        .unwrap_or_default()
        .iter()
        .filter_map(|node| Some((node.node, CpuList::parse(&node.cpus).ok()?)))
        .collect();
    // Data caches and unified caches.
    let data_caches: Vec<(u8, CpuList)> = features
        .cache()
        .unwrap_or_default()
        .iter()
        .filter(|cache| cache.kind != INSTRUCTION_CACHE)
        .filter_map(|cache| {
            Some((
                u8::try_from(cache.level).ok()?,
                CpuList::parse(&cache.map).ok()?,
            ))
        })
        .collect();
    let located = |(cpu, entry): (u32, &rperf_perfdata::feature::CpuTopologyEntry)| {
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(cpu));
        let caches = data_caches.iter().filter(|(_, cpus)| cpus.contains(cpu));
        // A cache is identified by its level and the first CPU that shares it. -1 does not occur: `cpu` shares each of `caches`.
        let first = |cpus: &CpuList| cpus.numbers().first().map_or(-1, |cpu| cpu.cast_signed());
        let location = CpuLocation {
            socket: entry.socket,
            die: entry.die.unwrap_or_default(),
            core: entry.core,
            // Kernels without NUMA have one node and do not report it.
            node: node.map_or(0, |(node, _)| node.cast_signed()),
            caches: caches.map(|(level, cpus)| (*level, first(cpus))).collect(),
            // The header does not store clusters.
            ..CpuLocation::default()
        };
        (cpu, location)
    };
    (0..).zip(&known.cpus).map(located).collect()
}
