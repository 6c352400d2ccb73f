//! The header's feature sections: metadata about the machine and the run.
//!
//! One file per family of features, with decoder and encoder (`pmu` also has event groups and compression); `id`, `sections`,
//! `set` and `text` serve all features.

mod aux_index;
mod bpf;
mod build_id;
mod clock;
mod cpu;
mod domain;
mod event_desc;
mod id;
mod memory;
mod pmu;
mod sections;
mod set;
mod text;

pub use aux_index::AuxIndexEntry;
pub use bpf::{BpfBtf, BpfFunction, BpfProgram, BpfSymbol};
pub use build_id::BuildIdEntry;
pub use clock::ClockData;
pub use cpu::{CpuCache, CpuTopology, CpuTopologyEntry, ElfMachine, NrCpus};
pub use domain::{CpuDomains, SchedDomain, SchedDomains};
pub use id::FeatureId;
pub use memory::{MemoryNode, MemoryTopology, NumaNode};
pub use pmu::{CompressionInfo, GroupDesc, HybridPmu, PmuCapabilities, PmuMapping};
pub use sections::Features;
pub use set::FeatureSet;
