//! The DSOs of a World (the processes, threads, mappings and DSOs of a recording), by name.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Dso, DsoId, DsoKind, Machine};

/// All DSOs.
#[derive(Debug, Default)]
pub(crate) struct Dsos {
    all: Vec<Dso>,
    /// By machine, whether it is kernel code ([`Dso::is_kernel`]), and name.
    by_name: FxHashMap<(Machine, bool, Box<str>), Vec<DsoId>>,
    /// Ids of removed DSOs, to be reused by new ones.
    removed: Vec<DsoId>,
}

impl Dsos {
    /// All DSOs by id, including removed ones.
    pub(crate) fn all(&self) -> &[Dso] {
        &self.all
    }

    /// Number of DSOs that are not removed.
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.removed.len()
    }

    /// The ids of removed DSOs that are not reused yet.
    pub(crate) fn removed(&self) -> &[DsoId] {
        &self.removed
    }

    /// Removes all DSOs except those in `used`, kernels and modules. DSOs added later get the ids of the removed ones.
    pub(crate) fn keep(&mut self, used: &FxHashSet<DsoId>) {
        let (all, removed) = (&mut self.all, &mut self.removed);
        self.by_name.retain(|_, ids| {
            ids.retain(|id| {
                let Some(dso) = all.get_mut(id.0 as usize) else {
                    return false;
                };
                let is_kept = used.contains(id)
                    || matches!(dso.kind, DsoKind::Kernel | DsoKind::KernelModule);
                if !is_kept {
                    // An empty DSO, until a new one gets this id.
                    *dso = Dso::new(dso.machine, DsoKind::Memory, "");
                    removed.push(*id);
                }
                is_kept
            });
            !ids.is_empty()
        });
    }

    pub(crate) fn get_mut(&mut self, id: DsoId) -> Option<&mut Dso> {
        self.all.get_mut(id.0 as usize)
    }

    /// Adds `dso`, to be found by `name`.
    pub(crate) fn add(&mut self, name: &str, dso: Dso) -> DsoId {
        let key = (dso.machine, dso.is_kernel(), name.into());
        let free = self.removed.pop();
        let slot = free.and_then(|id| Some((id, self.all.get_mut(id.0 as usize)?)));
        let id = match slot {
            Some((id, slot)) => {
                *slot = dso;
                id
            }
            None => {
                let id = DsoId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
                self.all.push(dso);
                id
            }
        };
        self.by_name.entry(key).or_default().push(id);
        id
    }

    /// The first DSO with this name, whatever its build-id.
    pub(crate) fn named(&self, machine: Machine, is_kernel: bool, name: &str) -> Option<DsoId> {
        let key = (machine, is_kernel, name.into());
        self.by_name.get(&key)?.first().copied()
    }

    /// The first user DSO with this name and, if given, this build-id; created if necessary. A DSO whose build-id is unknown
    /// matches any build-id, and gets this one.
    pub(crate) fn find_or_add_user(
        &mut self,
        machine: Machine,
        kind: DsoKind,
        name: &str,
        build_id: Option<&[u8]>,
    ) -> DsoId {
        let is_kernel = false;
        let key = (machine, is_kernel, name.into());
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
