//! Descriptions of loaded BPF programs for the header (BPF_PROG_INFO, BPF_BTF).

use std::collections::BTreeMap;

use rperf_perfdata::FeatureSet;
use rperf_perfdata::feature::{BpfBtf, BpfProgram};
use rperf_sys::{bpf_program_info, bpf_type_info};
use rperf_wire::{Endian, RawRecord, Record};

/// `PERF_BPF_EVENT_PROG_LOAD`.
pub(crate) const LOADED: u16 = 1;

/// Programs by id, and their types by BTF id.
#[derive(Debug, Default)]
pub(crate) struct BpfPrograms {
    programs: BTreeMap<u32, BpfProgram>,
    types: BTreeMap<u32, BpfBtf>,
}

impl BpfPrograms {
    /// Reads the description of the program that a BPF_EVENT record reports as loaded, before it may be unloaded.
    pub(crate) fn note(&mut self, record: &RawRecord<'_>) {
        if let Ok(Record::BpfEvent(event)) = Record::decode(record, Endian::NATIVE)
            && event.event_type == LOADED
        {
            self.describe(event.id);
        }
    }

    /// Returns a program and its types, which are read on the first successful call for `id`. `None` if no call was successful so
    /// far: the program is not loaded any more, or this process may not read it.
    pub(crate) fn describe(&mut self, id: u32) -> Option<(&BpfProgram, Option<&BpfBtf>)> {
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.programs.entry(id) {
            let info = bpf_program_info(id).ok()??;
            let program = vacant.insert(BpfProgram {
                array_mask: info.array_mask,
                info: info.info,
                data: info.data,
            });
            let btf_id = program.btf_id(Endian::NATIVE);
            if btf_id != 0
                && !self.types.contains_key(&btf_id)
                && let Ok(Some(data)) = bpf_type_info(btf_id)
            {
                self.types.insert(btf_id, BpfBtf { id: btf_id, data });
            }
        }
        let program = self.programs.get(&id)?;
        Some((program, self.types.get(&program.btf_id(Endian::NATIVE))))
    }

    /// Adds the programs and types of another file of the same recording.
    pub(crate) fn add(&mut self, other: Self) {
        self.programs.extend(other.programs);
        self.types.extend(other.types);
    }

    /// Adds the features BPF_PROG_INFO and BPF_BTF, each only if it is not empty.
    pub(crate) fn add_features(&self, set: &mut FeatureSet) {
        if !self.programs.is_empty() {
            set.bpf_programs(&self.programs.values().cloned().collect::<Vec<_>>());
        }
        if !self.types.is_empty() {
            set.btf(&self.types.values().cloned().collect::<Vec<_>>());
        }
    }
}
