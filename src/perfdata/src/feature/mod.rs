//! The header's feature sections: what the recorder noted about the machine and the run.
//!
//! One file for each family of features, the decoder beside the encoder.

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
pub use bpf::{BpfFunction, BpfProgram, Btf};
pub use build_id::BuildIdEntry;
pub use clock::ClockData;
pub use cpu::{Cache, CpuPlace, CpuTopology, ElfMachine, NrCpus};
pub use domain::{CpuDomains, SchedDomain, SchedDomains};
pub use id::FeatureId;
pub use memory::{MemoryNode, MemoryTopology, NumaNode};
pub use pmu::{Compressed, GroupDesc, HybridPmu, PmuCapabilities, PmuMapping};
pub use sections::Features;
pub use set::FeatureSet;
