//! `/sys`: CPUs and their topology, caches, memory nodes, PMUs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::CpuList;

/// A sysfs at a root chosen by the caller.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: PathBuf,
}

/// Position of a CPU in the topology. A number is -1 if the kernel reports -1 or doesn't provide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuIds {
    /// Core within the package.
    pub core: i32,
    /// Die within the package.
    pub die: i32,
    /// Physical package.
    pub package: i32,
}

/// The CPUs grouped by the kernel's topology files; each group is a CPU list as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuGroups {
    /// CPUs per package, without duplicates, ordered by first CPU.
    pub packages: Vec<String>,
    /// CPUs per die; empty if the kernel doesn't distinguish dies.
    pub dies: Vec<String>,
    /// Hardware threads per core.
    pub cores: Vec<String>,
}

/// One cache of one CPU, from `cpu*/cache/index*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheLevel {
    /// Cache level, 1 for the closest.
    pub level: u32,
    /// Bytes per line.
    pub line_size: u32,
    /// Number of sets.
    pub sets: u32,
    /// Lines per set.
    pub ways: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size as text, such as `32K`.
    pub size: String,
    /// The CPUs that share it, a CPU list as text.
    pub shared: String,
}

/// A NUMA node: its memory and its CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaNodeCpus {
    /// Its number.
    pub number: u32,
    /// Kilobytes of memory.
    pub total_kb: u64,
    /// Kilobytes of free memory.
    pub free_kb: u64,
    /// Its CPUs, a CPU list as text.
    pub cpus: String,
}

impl Sysfs {
    /// The sysfs mounted at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The CPUs that are online, present or possible.
    ///
    /// # Errors
    /// What reading the file reports; [`io::ErrorKind::InvalidData`] when it holds no CPU list.
    pub fn cpus(&self, which: CpuState) -> io::Result<CpuList> {
        let name = match which {
            CpuState::Online => "online",
            CpuState::Present => "present",
            CpuState::Possible => "possible",
        };
        self.list(&format!("devices/system/cpu/{name}"))
    }

    /// Position of a CPU in the topology.
    #[must_use]
    pub fn cpu_ids(&self, cpu: u32) -> CpuIds {
        let number = |name: &str| self.topology(cpu, name)?.parse().ok();
        CpuIds {
            core: number("core_id").unwrap_or(-1),
            die: number("die_id").unwrap_or(-1),
            package: number("physical_package_id").unwrap_or(-1),
        }
    }

    /// The cluster of a CPU, -1 if the kernel doesn't provide it (before Linux 5.16, or no
    /// clusters).
    #[must_use]
    pub fn cluster(&self, cpu: u32) -> i32 {
        let number = self.topology(cpu, "cluster_id");
        number.and_then(|number| number.parse().ok()).unwrap_or(-1)
    }

    /// The data and unified caches of a CPU: the level of each, and the first CPU that shares it.
    #[must_use]
    pub fn data_caches(&self, cpu: u32) -> Vec<(u8, i32)> {
        let caches = self.caches_of(cpu);
        let data_caches = caches.filter(|cache| cache.kind != "Instruction");
        let level_and_first_cpu = |cache: CacheLevel| {
            let shared = CpuList::parse(&cache.shared).ok()?;
            let first = shared.numbers().first()?.cast_signed();
            Some((u8::try_from(cache.level).ok()?, first))
        };
        data_caches.filter_map(level_and_first_cpu).collect()
    }

    /// The groups of the `present` CPUs; offline ones are in no group.
    ///
    /// # Errors
    /// As [`Sysfs::cpus`].
    pub fn cpu_groups(&self) -> io::Result<CpuGroups> {
        let mut groups = CpuGroups::default();
        for cpu in self.cpus(CpuState::Present)?.numbers() {
            // Older kernels have only the second name, which newer ones keep as a deprecated alias.
            let cpus = |new: &str, old: &str| {
                self.topology(*cpu, new)
                    .or_else(|| self.topology(*cpu, old))
            };
            push_once(
                &mut groups.packages,
                cpus("package_cpus_list", "core_siblings_list"),
            );
            push_once(&mut groups.dies, self.topology(*cpu, "die_cpus_list"));
            push_once(
                &mut groups.cores,
                cpus("core_cpus_list", "thread_siblings_list"),
            );
        }
        Ok(groups)
    }

    /// The distinct caches of the `present` CPUs, closest level first as in perf, and within a level in the order of the CPUs.
    ///
    /// # Errors
    /// As [`Sysfs::cpus`].
    pub fn caches(&self) -> io::Result<Vec<CacheLevel>> {
        let mut caches: Vec<CacheLevel> = Vec::new();
        for cpu in self.cpus(CpuState::Present)?.numbers() {
            for cache in self.caches_of(*cpu) {
                if !caches.contains(&cache) {
                    caches.push(cache);
                }
            }
        }
        caches.sort_by_key(|cache| cache.level);
        Ok(caches)
    }

    /// The online NUMA nodes; sizes that can't be read are 0.
    ///
    /// # Errors
    /// What reading the list of nodes reports. Kernels without NUMA have no such list.
    pub fn nodes(&self) -> io::Result<Vec<NumaNodeCpus>> {
        let mut nodes = Vec::new();
        for number in self.list("devices/system/node/online")?.numbers() {
            let directory = self.root.join(format!("devices/system/node/node{number}"));
            let memory = fs::read_to_string(directory.join("meminfo")).unwrap_or_default();
            let kilobytes = |key: &str| {
                // A line is `Node 0 MemTotal:  100 kB`.
                let line = memory.lines().find(|line| line.contains(key))?;
                line.split_whitespace().nth(3)?.parse().ok()
            };
            nodes.push(NumaNodeCpus {
                number: *number,
                total_kb: kilobytes("MemTotal:").unwrap_or_default(),
                free_kb: kilobytes("MemFree:").unwrap_or_default(),
                cpus: text(&directory.join("cpulist")).unwrap_or_default(),
            });
        }
        Ok(nodes)
    }

    /// The PMUs with their type numbers, in directory order, as in perf 6.1.
    ///
    /// # Errors
    /// What opening and reading the directory report.
    pub fn pmu_types(&self) -> io::Result<Vec<(String, u32)>> {
        let mut pmus = Vec::new();
        for entry in fs::read_dir(self.root.join("bus/event_source/devices"))? {
            let entry = entry?;
            let number = text(&entry.path().join("type")).and_then(|text| text.parse().ok());
            let name = entry.file_name().into_string().ok();
            pmus.extend(name.zip(number));
        }
        Ok(pmus)
    }

    /// The content of a file of a PMU's `format` or `events` folder, or of the PMU's own folder if `folder` is empty, without
    /// its newline; `None` if it can't be read, or if `pmu` or `name` is not a single path component or begins with a dot.
    #[must_use]
    pub fn pmu_file(&self, pmu: &str, folder: &str, name: &str) -> Option<String> {
        // Names come from the command line and must be single path components.
        let is_plain =
            |word: &str| !word.is_empty() && !word.contains('/') && !word.starts_with('.');
        let are_plain = is_plain(pmu) && is_plain(name);
        are_plain.then(|| text(&self.pmu_folder(pmu, folder).join(name)))?
    }

    /// The names in a PMU's `format` or `events` folder, sorted, without those that have a dot, which
    /// are attributes (`NAME.unit`, `NAME.scale`).
    #[must_use]
    pub fn pmu_files(&self, pmu: &str, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.pmu_folder(pmu, folder));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.contains('.')).collect();
        names.sort_unstable();
        names
    }

    fn pmu_folder(&self, pmu: &str, folder: &str) -> PathBuf {
        self.root
            .join("bus/event_source/devices")
            .join(pmu)
            .join(folder)
    }

    /// Bytes per block of hot-pluggable memory, and the numbers of the blocks of each online node, ascending.
    ///
    /// # Errors
    /// What reading reports; kernels without memory hotplug have no block size.
    pub fn memory_blocks(&self) -> io::Result<(u64, BTreeMap<u32, Vec<u32>>)> {
        let size = fs::read_to_string(self.root.join("devices/system/memory/block_size_bytes"))?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut nodes = BTreeMap::new();
        for number in self.list("devices/system/node/online")?.numbers() {
            let directory = self.root.join(format!("devices/system/node/node{number}"));
            let mut blocks: Vec<u32> = fs::read_dir(directory)?
                .flatten()
                .filter_map(|entry| {
                    entry
                        .file_name()
                        .to_str()?
                        .strip_prefix("memory")?
                        .parse()
                        .ok()
                })
                .collect();
            blocks.sort_unstable();
            nodes.insert(*number, blocks);
        }
        Ok((size, nodes))
    }

    /// The caches of a CPU; at most ten, which is more than CPUs have.
    fn caches_of(&self, cpu: u32) -> impl Iterator<Item = CacheLevel> {
        let folder = self.root.join(format!("devices/system/cpu/cpu{cpu}/cache"));
        (0..10).map_while(move |index| cache(&folder.join(format!("index{index}"))))
    }

    fn topology(&self, cpu: u32, name: &str) -> Option<String> {
        text(
            &self
                .root
                .join(format!("devices/system/cpu/cpu{cpu}/topology/{name}")),
        )
    }

    fn list(&self, path: &str) -> io::Result<CpuList> {
        let text = fs::read_to_string(self.root.join(path))?;
        CpuList::parse(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// The state of the CPUs that [`Sysfs::cpus`] lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuState {
    /// Online: can run tasks.
    Online,
    /// Present: plugged in, online or offline.
    Present,
    /// Possible: plugged in, or may be later.
    Possible,
}

fn cache(directory: &Path) -> Option<CacheLevel> {
    let number = |name: &str| text(&directory.join(name))?.parse().ok();
    Some(CacheLevel {
        level: number("level")?,
        line_size: number("coherency_line_size")?,
        sets: number("number_of_sets")?,
        ways: number("ways_of_associativity")?,
        kind: text(&directory.join("type"))?,
        size: text(&directory.join("size"))?,
        shared: text(&directory.join("shared_cpu_list"))?,
    })
}

fn push_once(list: &mut Vec<String>, item: Option<String>) {
    if let Some(item) = item.filter(|item| !list.contains(item)) {
        list.push(item);
    }
}

/// A one-line file without its newline; `None` if it can't be read.
fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_fake_sysfs() {
        let root = std::env::temp_dir().join(format!("rperf-sysfs-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("devices/system/cpu/present", "0-1\n");
        for cpu in 0..2 {
            let topology = format!("devices/system/cpu/cpu{cpu}/topology");
            write(&format!("{topology}/package_cpus_list"), "0-1\n");
            write(&format!("{topology}/core_cpus_list"), &format!("{cpu}\n"));
            write(&format!("{topology}/core_id"), &format!("{cpu}\n"));
            write(&format!("{topology}/physical_package_id"), "0\n");
            let cache = format!("devices/system/cpu/cpu{cpu}/cache/index0");
            for (name, value) in [
                ("level", "2"),
                ("coherency_line_size", "64"),
                ("number_of_sets", "8"),
                ("ways_of_associativity", "4"),
                ("type", "Unified"),
                ("size", "2K"),
                ("shared_cpu_list", "0-1"),
            ] {
                write(&format!("{cache}/{name}"), &format!("{value}\n"));
            }
        }
        write("devices/system/node/online", "0\n");
        write(
            "devices/system/node/node0/meminfo",
            "Node 0 MemTotal:  100 kB\nNode 0 MemFree:  40 kB\n",
        );
        write("devices/system/node/node0/cpulist", "0-1\n");
        write("bus/event_source/devices/software/type", "1\n");
        let pmu = "bus/event_source/devices/software";
        write(&format!("{pmu}/events/tick"), "event=1\n");
        write(&format!("{pmu}/events/tick.unit"), "s\n");
        let sysfs = Sysfs::new(&root);
        let groups = sysfs.cpu_groups().unwrap();
        assert_eq!(
            (groups.packages, groups.dies, groups.cores),
            (vec!["0-1".into()], vec![], vec!["0".into(), "1".into()])
        );
        assert_eq!(
            sysfs.cpu_ids(1),
            CpuIds {
                core: 1,
                die: -1,
                package: 0
            }
        );
        assert_eq!(sysfs.caches().unwrap().len(), 1);
        assert_eq!(sysfs.data_caches(1), [(2, 0)]);
        assert_eq!(sysfs.cluster(1), -1);
        let node = NumaNodeCpus {
            number: 0,
            total_kb: 100,
            free_kb: 40,
            cpus: "0-1".into(),
        };
        assert_eq!(sysfs.nodes().unwrap(), [node]);
        assert_eq!(sysfs.pmu_types().unwrap(), [("software".to_owned(), 1)]);
        assert_eq!(sysfs.pmu_files("software", "events"), ["tick"]);
        let file = |name| sysfs.pmu_file("software", "events", name);
        assert_eq!(file("tick").as_deref(), Some("event=1"));
        assert_eq!(
            [file("tock"), file("../type"), file("")],
            [None, None, None]
        );
        fs::remove_dir_all(root).unwrap();
    }
}
