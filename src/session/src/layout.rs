//! Which threads empty which rings, and where they run.

use rperf_sys::{Bound, CpuList, Sysfs};

use crate::{Affinity, Error, Threads};

/// One thread's share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    /// The CPUs whose rings it empties.
    pub(crate) empties: CpuList,
    /// The CPUs that it runs on.
    pub(crate) runs_on: CpuList,
}

/// The shares of the threads that `threads` asks for; each of the CPUs is in one of them, and others are left out.
///
/// # Errors
/// [`Error::UnservedCpu`], [`Error::IdleThread`], and [`Error::Bind`] where a thread may not run on its CPUs.
pub(crate) fn shares(threads: &Threads, cpus: &[i32], sysfs: &Sysfs) -> Result<Vec<Share>, Error> {
    let cpus: CpuList = cpus
        .iter()
        .filter_map(|cpu| u32::try_from(*cpu).ok())
        .collect();
    let shares = match threads {
        Threads::Masks(masks) => masked(masks, &cpus)?,
        Threads::Cpu => each(&cpus),
        Threads::Core => grouped(&cpus, |sysfs| Some(sysfs.cpu_groups().ok()?.cores), sysfs),
        Threads::Package => grouped(
            &cpus,
            |sysfs| Some(sysfs.cpu_groups().ok()?.packages),
            sysfs,
        ),
        Threads::Node => grouped(&cpus, node_lists, sysfs),
    };
    for share in &shares {
        // Known now, it costs no recording.
        try_to_run_on(&share.runs_on)?;
    }
    Ok(shares)
}

/// Tries it.
fn try_to_run_on(cpus: &CpuList) -> Result<(), Error> {
    let bound = Bound::to(cpus);
    bound.map(drop).map_err(|cause| Error::Bind {
        cpus: cpus.clone(),
        cause,
    })
}

fn each(cpus: &CpuList) -> Vec<Share> {
    let one = |cpu: &u32| {
        let own: CpuList = std::iter::once(*cpu).collect();
        Share {
            empties: own.clone(),
            runs_on: own,
        }
    };
    cpus.numbers().iter().map(one).collect()
}

fn masked(masks: &[(CpuList, CpuList)], cpus: &CpuList) -> Result<Vec<Share>, Error> {
    let mut shares = Vec::new();
    for (empties, runs_on) in masks {
        let common = in_both(empties, cpus);
        if common.numbers().is_empty() {
            return Err(Error::IdleThread {
                cpus: empties.clone(),
            });
        }
        shares.push(Share {
            empties: common,
            runs_on: runs_on.clone(),
        });
    }
    match unserved(&shares, cpus) {
        Some(cpu) => Err(Error::UnservedCpu { cpu }),
        None => Ok(shares),
    }
}

/// One thread for each group, which runs there; a CPU in none of them gets one of its own.
fn grouped(
    cpus: &CpuList,
    groups: impl Fn(&Sysfs) -> Option<Vec<String>>,
    sysfs: &Sysfs,
) -> Vec<Share> {
    let mut shares = Vec::new();
    for group in groups(sysfs).unwrap_or_default() {
        let Ok(group) = CpuList::parse(&group) else {
            continue;
        };
        let common = in_both(&group, cpus);
        if !common.numbers().is_empty() {
            shares.push(Share {
                empties: common,
                runs_on: group,
            });
        }
    }
    while let Some(cpu) = unserved(&shares, cpus) {
        shares.extend(each(&std::iter::once(cpu).collect()));
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

fn unserved(shares: &[Share], cpus: &CpuList) -> Option<u32> {
    let served = |cpu: &u32| shares.iter().any(|share| share.empties.contains(*cpu));
    cpus.numbers().iter().copied().find(|cpu| !served(cpu))
}

/// Where the one thread that empties all rings runs while it empties one of them (`--affinity`).
#[derive(Debug, Default)]
pub(crate) struct Near {
    /// CPUs of rings, and where they are emptied.
    places: Vec<(CpuList, CpuList)>,
    /// The place of now, in `places`.
    at: Option<usize>,
    bound: Option<Bound>,
}

impl Near {
    /// Places for the rings of these CPUs.
    ///
    /// # Errors
    /// [`Error::Bind`].
    pub(crate) fn new(affinity: Affinity, cpus: &[i32], sysfs: &Sysfs) -> Result<Self, Error> {
        let threads = match affinity {
            Affinity::Anywhere => return Ok(Self::default()),
            Affinity::Cpu => Threads::Cpu,
            Affinity::Node => Threads::Node,
        };
        let shares = shares(&threads, cpus, sysfs)?.into_iter();
        Ok(Self {
            places: shares.map(|share| (share.empties, share.runs_on)).collect(),
            ..Self::default()
        })
    }

    /// Goes where the ring of `cpu` is to be emptied. It was possible when the recording began; where it no longer is,
    /// the ring is emptied from where this is.
    pub(crate) fn go_to(&mut self, cpu: i32) {
        let has = |cpus: &CpuList| u32::try_from(cpu).is_ok_and(|cpu| cpus.contains(cpu));
        let Some(place) = self.places.iter().position(|(cpus, _)| has(cpus)) else {
            return;
        };
        let Some((_, runs_on)) = self.places.get(place).filter(|_| self.at != Some(place)) else {
            return;
        };
        self.at = Some(place);
        match &mut self.bound {
            Some(bound) => drop(bound.move_to(runs_on)),
            None => self.bound = Bound::to(runs_on).ok(),
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
    fn masks_take_all_cpus_and_no_others() {
        let cpus = list("0-2");
        let shared = |masks: &[(&str, &str)]| {
            let lists = masks.iter().map(|(one, other)| (list(one), list(other)));
            masked(&lists.collect::<Vec<_>>(), &cpus)
        };
        let shares = shared(&[("0,7", "0"), ("1-2", "1")]).unwrap();
        let empties: Vec<_> = shares
            .iter()
            .map(|share| share.empties.to_string())
            .collect();
        assert_eq!(empties, ["0", "1-2"]);
        let unserved = shared(&[("0", "0"), ("2", "1")]);
        assert!(matches!(unserved, Err(Error::UnservedCpu { cpu: 1 })));
        assert!(matches!(
            shared(&[("7", "0")]),
            Err(Error::IdleThread { .. })
        ));
    }

    #[test]
    fn groups_are_those_of_the_machine() {
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
            .map(|share| (share.empties.to_string(), share.runs_on.to_string()))
            .collect();
        let expected = [("1", "0-1"), ("2", "2-3"), ("5", "5")];
        assert_eq!(
            shares,
            expected.map(|(cpus, on)| (cpus.to_owned(), on.to_owned()))
        );
        fs::remove_dir_all(root).unwrap();
    }
}
