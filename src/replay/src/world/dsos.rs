//! The DSOs of a World, by name.

use rustc_hash::FxHashMap;

use crate::{Dso, DsoId, DsoKind, Machine};

/// All DSOs.
#[derive(Debug, Default)]
pub(crate) struct Dsos {
    all: Vec<Dso>,
    /// By machine, whether it is kernel code ([`Dso::is_kernel`]), and name.
    by_name: FxHashMap<(Machine, bool, Box<str>), Vec<DsoId>>,
}

impl Dsos {
    pub(crate) fn all(&self) -> &[Dso] {
        &self.all
    }

    pub(crate) fn get_mut(&mut self, id: DsoId) -> Option<&mut Dso> {
        self.all.get_mut(id.0 as usize)
    }

    /// Adds `dso`, to be found by `name`.
    pub(crate) fn add(&mut self, name: &str, dso: Dso) -> DsoId {
        let id = DsoId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let key = (dso.machine, dso.is_kernel(), name.into());
        self.by_name.entry(key).or_default().push(id);
        self.all.push(dso);
        id
    }

    /// The first DSO with this name, whatever its build-id.
    pub(crate) fn named(&self, machine: Machine, is_kernel: bool, name: &str) -> Option<DsoId> {
        let key = (machine, is_kernel, name.into());
        self.by_name.get(&key)?.first().copied()
    }

    /// The first user DSO with this name and, if given, this build-id; created if necessary. A DSO whose build-id is unknown
    /// matches any build-id, and gets this one.
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
            let matches = match (&dso.build_id, build_id) {
                (Some(known), Some(new)) => known == new,
                _ => true,
            };
            if matches {
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
