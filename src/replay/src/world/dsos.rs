//! The DSOs of a World, by name.

use rustc_hash::FxHashMap;

use crate::{Dso, DsoId, DsoKind, Machine};

/// All DSOs.
#[derive(Debug, Default)]
pub(crate) struct Dsos {
    all: Vec<Dso>,
    by_name: FxHashMap<(Machine, bool, Box<str>), Vec<DsoId>>,
}

impl Dsos {
    pub(crate) fn all(&self) -> &[Dso] {
        &self.all
    }

    pub(crate) fn get_mut(&mut self, id: DsoId) -> Option<&mut Dso> {
        self.all.get_mut(id.0 as usize)
    }

    /// Adds `dso`, to be found by the name `key`.
    pub(crate) fn add(&mut self, key: &str, dso: Dso) -> DsoId {
        let id = DsoId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let key = (dso.machine, dso.is_kernel(), key.into());
        self.by_name.entry(key).or_default().push(id);
        self.all.push(dso);
        id
    }

    /// The first DSO with this name, whatever its build-id.
    pub(crate) fn named(&self, machine: Machine, kernel: bool, name: &str) -> Option<DsoId> {
        let key = (machine, kernel, name.into());
        self.by_name.get(&key)?.first().copied()
    }

    /// The user DSO with this name and, if given, this build-id; created if necessary. A DSO without a known
    /// build-id gets this one.
    pub(crate) fn user(
        &mut self,
        machine: Machine,
        kind: DsoKind,
        name: &str,
        build_id: Option<&[u8]>,
    ) -> DsoId {
        let key = (machine, false, name.into());
        for id in self.by_name.get(&key).into_iter().flatten() {
            let Some(dso) = self.all.get_mut(id.0 as usize) else {
                continue;
            };
            let same = match (&dso.build_id, build_id) {
                (Some(known), Some(new)) => known == new,
                _ => true,
            };
            if same {
                if dso.build_id.is_none() {
                    dso.build_id = build_id.map(<[u8]>::to_vec);
                }
                return *id;
            }
        }
        let mut dso = Dso::new(machine, kind, name);
        dso.build_id = build_id.map(<[u8]>::to_vec);
        self.add(name, dso)
    }
}
