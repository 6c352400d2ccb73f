//! Enumerations and structures of the running kernel (BTF), for arguments and fields for which rperf has no table, and with
//! `--force-btf` for all structures.

use std::collections::{BTreeMap, BTreeSet};

use rperf_analysis::trace::EnumerationNames;
use rperf_btf::{Btf, Enumeration, TypeLayout};
use rperf_syscalls::StructureTexts;

use super::TraceSettings;
use crate::cli::live::kernel_offsets::kernel_btf;

/// The enumerations and structures that a trace needs, by name.
#[derive(Debug, Default)]
pub(super) struct KernelTypes {
    enumerations: BTreeMap<String, Enumeration>,
    structures: BTreeMap<String, TypeLayout>,
    /// Whether the structures are formatted with these layouts even if rperf has a table for them.
    is_preferred: bool,
}

impl KernelTypes {
    /// Reads these enumerations, and the structures among arguments of recorded calls. The result is empty if the kernel has no
    /// type information, or if no lines are printed.
    pub(super) fn load(settings: &TraceSettings, enumerations: &BTreeSet<String>) -> Self {
        let structures = structures(settings);
        if !settings.options.prints_lines || structures.is_empty() && enumerations.is_empty() {
            return Self::default();
        }
        let bytes = kernel_btf().unwrap_or_default();
        let Ok(btf) = Btf::parse(&bytes) else {
            return Self::default();
        };
        let named = enumerations
            .iter()
            .filter_map(|name| Some((name.clone(), btf.enumeration(name)?)));
        // Assumes that the running kernel has pointers of the same size as this program.
        let pointer_size = size_of::<usize>();
        Self {
            enumerations: named.collect(),
            structures: btf.structures(&structures, pointer_size),
            is_preferred: settings.prefers_kernel_types,
        }
    }
}

/// Returns the names of the structures among arguments of recorded calls.
fn structures(settings: &TraceSettings) -> BTreeSet<&'static str> {
    if !settings.traces_calls {
        return BTreeSet::new();
    }
    let calls = settings.recorded_syscalls().into_iter();
    calls.flat_map(|(_, call)| call.structure_names()).collect()
}

impl EnumerationNames for KernelTypes {
    fn name(&self, enumeration: &str, value: i64) -> Option<&str> {
        self.enumerations.get(enumeration)?.name(value)
    }
}

impl StructureTexts for KernelTypes {
    fn size(&self, name: &str) -> Option<u32> {
        u32::try_from(self.structures.get(name)?.size()).ok()
    }

    fn text(&self, name: &str, bytes: &[u8], with_names: bool) -> Option<String> {
        self.structures.get(name)?.text(bytes, with_names)
    }

    fn is_preferred(&self) -> bool {
        self.is_preferred
    }
}
