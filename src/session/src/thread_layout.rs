//! Assignment of rings to draining threads, and their CPU affinity.

use rperf_sys::{AffinityGuard, CpuList, Sysfs};

use crate::{DrainAffinity, DrainThreads, Error};

/// The rings that one thread drains, and the CPUs on which it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadShare {
    /// The CPUs whose rings it drains.
    pub(crate) drains: CpuList,
    /// Its CPU affinity.
    pub(crate) runs_on: CpuList,
}

impl ThreadShare {
    /// Adds the rings of these CPUs.
    pub(crate) fn also_drains(&mut self, cpus: &[i32]) {
        let more = cpus.iter().filter_map(|cpu| u32::try_from(*cpu).ok());
        self.drains = self.drains.numbers().iter().copied().chain(more).collect();
    }
}

/// Returns the shares of the threads that `threads` requests. Together they drain the rings of all `cpus`, and of no others. A
/// CPU of -1 (rings of tasks) is ignored.
///
/// # Errors
/// With [`DrainThreads::Masks`], [`Error::UnservedCpu`] if one of `cpus` is in no mask of CPUs to drain, and
/// [`Error::IdleThread`] if such a mask has none of `cpus`. [`Error::Bind`] if an affinity can't be set.
pub(crate) fn shares(
    threads: &DrainThreads,
    cpus: &[i32],
    sysfs: &Sysfs,
) -> Result<Vec<ThreadShare>, Error> {
    let cpus: CpuList = cpus
        .iter()
        .filter_map(|cpu| u32::try_from(*cpu).ok())
        .collect();
    let shares = match threads {
        DrainThreads::Masks(masks) => masked(masks, &cpus)?,
        DrainThreads::Cpu => share_per_cpu(&cpus),
        DrainThreads::Core => grouped(&cpus, |sysfs| Some(sysfs.cpu_groups().ok()?.cores), sysfs),
        DrainThreads::Package => grouped(
            &cpus,
            |sysfs| Some(sysfs.cpu_groups().ok()?.packages),
            sysfs,
        ),
        DrainThreads::Node => grouped(&cpus, node_lists, sysfs),
    };
    for share in &shares {
        // The affinity is checked here, before the recording starts.
        try_to_run_on(&share.runs_on)?;
    }
    Ok(shares)
}

/// Checks that this affinity can be set, by setting it; dropping the guard restores the former one.
fn try_to_run_on(cpus: &CpuList) -> Result<(), Error> {
    let bound = AffinityGuard::to(cpus);
    bound.map(drop).map_err(|cause| Error::Bind {
        cpus: cpus.clone(),
        cause,
    })
}

fn share_per_cpu(cpus: &CpuList) -> Vec<ThreadShare> {
    let one = |cpu: &u32| {
        let this_cpu: CpuList = std::iter::once(*cpu).collect();
        ThreadShare {
            drains: this_cpu.clone(),
            runs_on: this_cpu,
        }
    };
    cpus.numbers().iter().map(one).collect()
}

/// Returns a share for each pair of masks: the CPUs to drain, of which only those in `cpus` count, and the thread's affinity.
fn masked(masks: &[(CpuList, CpuList)], cpus: &CpuList) -> Result<Vec<ThreadShare>, Error> {
    let mut shares = Vec::new();
    for (drains, runs_on) in masks {
        let common = in_both(drains, cpus);
        if common.numbers().is_empty() {
            return Err(Error::IdleThread {
                cpus: drains.clone(),
            });
        }
        shares.push(ThreadShare {
            drains: common,
            runs_on: runs_on.clone(),
        });
    }
    match undrained_cpu(&shares, cpus) {
        Some(cpu) => Err(Error::UnservedCpu { cpu }),
        None => Ok(shares),
    }
}

/// Returns one share per group that has some of `cpus`; its thread may run on all CPUs of the group. A CPU in no group gets a
/// separate share. `groups` reads the CPU lists of the groups from sysfs.
fn grouped(
    cpus: &CpuList,
    groups: impl Fn(&Sysfs) -> Option<Vec<String>>,
    sysfs: &Sysfs,
) -> Vec<ThreadShare> {
    let mut shares = Vec::new();
    for group in groups(sysfs).unwrap_or_default() {
        let Ok(group) = CpuList::parse(&group) else {
            continue;
        };
        let common = in_both(&group, cpus);
        if !common.numbers().is_empty() {
            shares.push(ThreadShare {
                drains: common,
                runs_on: group,
            });
        }
    }
    while let Some(cpu) = undrained_cpu(&shares, cpus) {
        shares.extend(share_per_cpu(&std::iter::once(cpu).collect()));
    }
    shares
}

fn node_lists(sysfs: &Sysfs) -> Option<Vec<String>> {
    let nodes = sysfs.nodes().ok()?;
    Some(nodes.into_iter().map(|node| node.cpus).collect())
}

fn in_both(one: &CpuList, other: &CpuList) -> CpuList {
    let numbers = one.numbers().iter().copied();
    numbers.filter(|cpu| other.contains(*cpu)).collect()
}

fn undrained_cpu(shares: &[ThreadShare], cpus: &CpuList) -> Option<u32> {
    let is_drained = |cpu: &u32| shares.iter().any(|share| share.drains.contains(*cpu));
    cpus.numbers().iter().copied().find(|cpu| !is_drained(cpu))
}

/// With a single draining thread: sets its affinity before it drains a ring, according to the ring's CPU (`--affinity`).
#[derive(Debug, Default)]
pub(crate) struct RingAffinity {
    /// CPUs of rings, and the affinity for draining them.
    affinities: Vec<(CpuList, CpuList)>,
    /// Index of the affinity last requested from the kernel, even if the kernel refused it.
    last_requested: Option<usize>,
    /// Restores the thread's own affinity when dropped; `None` until the first affinity is set.
    bound: Option<AffinityGuard>,
}

impl RingAffinity {
    /// Computes the affinities for rings of these CPUs.
    ///
    /// # Errors
    /// [`Error::Bind`] if an affinity can't be set.
    pub(crate) fn new(affinity: DrainAffinity, cpus: &[i32], sysfs: &Sysfs) -> Result<Self, Error> {
        let threads = match affinity {
            DrainAffinity::Anywhere => return Ok(Self::default()),
            DrainAffinity::Cpu => DrainThreads::Cpu,
            DrainAffinity::Node => DrainThreads::Node,
        };
        let shares = shares(&threads, cpus, sysfs)?.into_iter();
        Ok(Self {
            affinities: shares.map(|share| (share.drains, share.runs_on)).collect(),
            ..Self::default()
        })
    }

    /// Sets the affinity for draining the ring of `cpu`. If the kernel refuses it, the ring is drained with the
    /// affinity that the thread already has.
    pub(crate) fn set_for_ring(&mut self, cpu: i32) {
        let has = |cpus: &CpuList| u32::try_from(cpu).is_ok_and(|cpu| cpus.contains(cpu));
        // There is no affinity to set without `--affinity`, for rings of tasks (-1), and for rings of CPUs on which only the
        // side-band event is opened.
        let Some(index) = self.affinities.iter().position(|(cpus, _)| has(cpus)) else {
            return;
        };
        let Some((_, runs_on)) = self
            .affinities
            .get(index)
            .filter(|_| self.last_requested != Some(index))
        else {
            return;
        };
        self.last_requested = Some(index);
        match &mut self.bound {
            // The error is ignored: the former affinity remains.
            Some(bound) => drop(bound.move_to(runs_on)),
            None => self.bound = AffinityGuard::to(runs_on).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn list(text: &str) -> CpuList {
        CpuList::parse(text).unwrap()
    }

    #[test]
    fn masks_cover_all_cpus_and_each_mask_at_least_one() {
        let cpus = list("0-2");
        let shares_of = |masks: &[(&str, &str)]| {
            let lists = masks
                .iter()
                .map(|(drains, runs_on)| (list(drains), list(runs_on)));
            masked(&lists.collect::<Vec<_>>(), &cpus)
        };
        let shares = shares_of(&[("0,7", "0"), ("1-2", "1")]).unwrap();
        let drains: Vec<_> = shares
            .iter()
            .map(|share| share.drains.to_string())
            .collect();
        assert_eq!(drains, ["0", "1-2"]);
        let unserved = shares_of(&[("0", "0"), ("2", "1")]);
        assert!(matches!(unserved, Err(Error::UnservedCpu { cpu: 1 })));
        assert!(matches!(
            shares_of(&[("7", "0")]),
            Err(Error::IdleThread { .. })
        ));
    }

    #[test]
    fn groups_match_the_topology() {
        let root = std::env::temp_dir().join(format!("rperf-layout-{}", std::process::id()));
        for (node, cpus) in [(0, "0-1"), (1, "2-3")] {
            let folder = root.join(format!("devices/system/node/node{node}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpulist"), cpus).unwrap();
        }
        fs::write(root.join("devices/system/node/online"), "0-1").unwrap();
        let sysfs = Sysfs::new(&root);
        let shares = grouped(&list("1-2,5"), node_lists, &sysfs);
        let shares: Vec<_> = shares
            .iter()
            .map(|share| (share.drains.to_string(), share.runs_on.to_string()))
            .collect();
        let expected = [("1", "0-1"), ("2", "2-3"), ("5", "5")];
        assert_eq!(
            shares,
            expected.map(|(cpus, on)| (cpus.to_owned(), on.to_owned()))
        );
        fs::remove_dir_all(root).unwrap();
    }
}
