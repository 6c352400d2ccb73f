//! Collects, during a recording, the files with samples, which are added to the build-id cache, and the processes with
//! samples in JIT-compiled code.

use std::collections::{BTreeSet, HashMap, HashSet};

use rperf_sys::Module;
use rperf_wire::{CpuMode, Endian, Mmap, RawRecord, SampleType, Task, U64s};

use crate::record_stats::MappedName;

/// Binary logarithm of the page size, 4 KiB. On kernels with larger pages, each counts as several.
const PAGE_SHIFT: u32 = 12;
/// Maximum number of processes searched for a mapping: a process and its ancestors.
const GENERATIONS: usize = 64;

/// Sampled code pages, and the executable mappings in which their files are looked up.
#[derive(Debug, Default)]
pub(crate) struct CodePages {
    /// Offset of the address within a sample's body; pid and tid follow it. `None` if samples lack the address or the ids.
    address_at: Option<usize>,
    /// Sampled pages in user space: pid and page number.
    pages: HashSet<(u32, u64)>,
    /// The pid and page of the previous sample in user space.
    last: Option<(u32, u64)>,
    /// Sampled pages of the kernel and its modules.
    kernel_pages: HashSet<u64>,
    /// The page of the previous kernel sample.
    last_of_kernel: Option<u64>,
    /// Executable mappings of each process.
    mappings: HashMap<u32, Vec<CodeMapping>>,
    /// The parent of each forked process, by pid.
    parents: HashMap<u32, u32>,
}

#[derive(Debug)]
struct CodeMapping {
    /// Numbers of the first page, and of the page after the last.
    pages: (u64, u64),
    name: MappedName,
}

impl CodePages {
    /// Creates the collection for samples of this type.
    pub(crate) fn new(sample_type: SampleType) -> Self {
        let has_both = sample_type.contains(SampleType::IP | SampleType::TID);
        let before = usize::from(sample_type.contains(SampleType::IDENTIFIER)) * 8;
        Self {
            address_at: has_both.then_some(before),
            ..Self::default()
        }
    }

    /// Adds a sample.
    #[inline]
    pub(crate) fn add_sample(&mut self, record: &RawRecord<'_>) {
        let mode = record.misc.cpu_mode();
        if !matches!(mode, CpuMode::User | CpuMode::Kernel) {
            return;
        }
        let words = self.address_at.and_then(|at| record.body.get(at..at + 16));
        let words = U64s::new(words.unwrap_or_default(), Endian::NATIVE);
        let (Some(address), Some(task)) = (words.get(0), words.get(1)) else {
            return;
        };
        let page = address >> PAGE_SHIFT;
        if mode == CpuMode::Kernel {
            if self.last_of_kernel.replace(page) != Some(page) {
                self.kernel_pages.insert(page);
            }
            return;
        }
        let [pid, _] = split_word(task);
        let hit = Some((pid, page));
        if self.last != hit {
            self.last = hit;
            self.pages.extend(hit);
        }
    }

    /// Adds an executable mapping.
    pub(crate) fn add_mapping(&mut self, mmap: &Mmap<'_>, name: &MappedName) {
        let pages = (
            mmap.start >> PAGE_SHIFT,
            mmap.start.saturating_add(mmap.len) >> PAGE_SHIFT,
        );
        let name = name.clone();
        // Mappings of the kernel, of pid -1, get pid 1. This does no harm: samples in user space have none of their pages.
        let of_process = self.mappings.entry(mmap.pid.unsigned_abs()).or_default();
        of_process.push(CodeMapping { pages, name });
    }

    /// Adds a forked process; new threads are ignored.
    pub(crate) fn add_fork(&mut self, fork: &Task) {
        if fork.pid != fork.ppid {
            self.parents.insert(fork.pid, fork.ppid);
        }
    }

    /// Adds the data of another file of the recording: `--threads` writes a file for each recording thread.
    pub(crate) fn add(&mut self, other: Self) {
        self.pages.extend(other.pages);
        self.kernel_pages.extend(other.kernel_pages);
        self.parents.extend(other.parents);
        for (pid, mappings) in other.mappings {
            self.mappings.entry(pid).or_default().extend(mappings);
        }
    }

    /// Returns the files with samples. If several were mapped at an address successively, all are included.
    pub(crate) fn files(&self) -> HashSet<&MappedName> {
        let found = self
            .pages
            .iter()
            .map(|(pid, page)| self.mapped_at(*pid, *page));
        found.flatten().map(|mapping| &mapping.name).collect()
    }

    /// Whether there are samples in the pages of this module.
    pub(crate) fn has_samples_in(&self, module: &Module) -> bool {
        let end = module.start.saturating_add(module.size);
        let pages = module.start >> PAGE_SHIFT..end.div_ceil(1 << PAGE_SHIFT);
        self.kernel_pages.iter().any(|page| pages.contains(page))
    }

    /// Processes with samples in anonymous memory, as JIT compilers create.
    pub(crate) fn jit_processes(&self) -> BTreeSet<u32> {
        let is_anonymous = |hit: &&(u32, u64)| {
            let (pid, page) = **hit;
            let mapped = self.mapped_at(pid, page);
            mapped.iter().any(|mapping| mapping.name.is_anonymous())
        };
        self.pages
            .iter()
            .filter(is_anonymous)
            .map(|(pid, _)| *pid)
            .collect()
    }

    /// Returns the mappings at a page in a process, or if there are none, in its closest ancestor with some there.
    fn mapped_at(&self, pid: u32, page: u64) -> Vec<&CodeMapping> {
        let covers = |mapping: &&CodeMapping| (mapping.pages.0..mapping.pages.1).contains(&page);
        let ancestors = std::iter::successors(Some(pid), |pid| self.parents.get(pid).copied());
        let mut found = ancestors.take(GENERATIONS).map(|pid| {
            let mappings = self.mappings.get(&pid).map(Vec::as_slice);
            let mappings = mappings.unwrap_or_default().iter();
            mappings.filter(covers).collect::<Vec<_>>()
        });
        found
            .find(|mappings| !mappings.is_empty())
            .unwrap_or_default()
    }
}

/// Splits a word into two 32-bit numbers, in memory order.
fn split_word(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Misc, RecordKind};

    /// `PERF_RECORD_MISC_KERNEL`.
    const KERNEL: u16 = 1;
    /// `PERF_RECORD_MISC_USER`.
    const USER: u16 = 2;

    fn name(file: &str) -> MappedName {
        MappedName {
            filename: file.as_bytes().into(),
            inode: 0,
        }
    }

    fn map(code_pages: &mut CodePages, pid: u32, start: u64, file: &str) {
        let mmap = Mmap {
            pid: pid.cast_signed(),
            tid: pid,
            start,
            len: 0x2000,
            pgoff: 0,
            filename: file.as_bytes(),
        };
        code_pages.add_mapping(&mmap, &name(file));
    }

    /// Adds a sample in the layout of `IDENTIFIER | IP | TID`.
    fn sample(code_pages: &mut CodePages, mode: u16, pid: u32, address: u64) {
        let mut body = vec![0; 8];
        body.extend(address.to_ne_bytes());
        body.extend([pid.to_ne_bytes(), (pid + 1).to_ne_bytes()].concat());
        code_pages.add_sample(&RawRecord {
            kind: RecordKind::SAMPLE,
            misc: Misc(mode),
            body: &body,
        });
    }

    #[test]
    fn samples_belong_to_files_of_the_process_or_an_ancestor_or_to_modules() {
        let sample_type = SampleType::IDENTIFIER | SampleType::IP | SampleType::TID;
        let mut code_pages = CodePages::new(sample_type);
        map(&mut code_pages, 7, 0x1000, "/parent");
        map(&mut code_pages, 7, 0x8000, "/without_samples");
        map(&mut code_pages, 9, 0x1000, "/other");
        let fork = |pid, ppid| Task {
            pid,
            ppid,
            tid: pid,
            ptid: ppid,
            time: 0,
        };
        code_pages.add_fork(&fork(8, 7));
        // A cycle, which damaged records may create, must not loop forever.
        code_pages.add_fork(&fork(5, 6));
        code_pages.add_fork(&fork(6, 5));
        sample(&mut code_pages, USER, 8, 0x2fff);
        // A page of the kernel, which is not looked up in the process's mapping of `/without_samples`.
        sample(&mut code_pages, KERNEL, 7, 0x8000);
        // The page after the mapping of `/parent`.
        sample(&mut code_pages, USER, 7, 0x3000);
        sample(&mut code_pages, USER, 5, 0x1000);
        let module = |start| Module {
            name: "module".to_owned(),
            start,
            size: 0x1800,
            file: None,
        };
        assert!(
            code_pages.has_samples_in(&module(0x7000))
                && code_pages.has_samples_in(&module(0x8000))
        );
        assert!(
            !code_pages.has_samples_in(&module(0x6000))
                && !code_pages.has_samples_in(&module(0x9000))
        );
        let (parent, other) = (name("/parent"), name("/other"));
        assert_eq!(code_pages.files(), HashSet::from([&parent]));
        let mut other_file = CodePages::new(sample_type);
        sample(&mut other_file, USER, 9, 0x1000);
        code_pages.add(other_file);
        assert_eq!(code_pages.files(), HashSet::from([&parent, &other]));
    }

    #[test]
    fn jit_processes_have_samples_in_anonymous_memory() {
        let mut code_pages = CodePages::new(SampleType::IP | SampleType::TID);
        let mut sample = |pid: u32, address: u64| {
            let task = u64::from(pid);
            let body = [address.to_ne_bytes(), task.to_le_bytes()].concat();
            map(&mut code_pages, pid, 0x1000, "//anon");
            map(&mut code_pages, pid, 0x4000, "/file");
            code_pages.add_sample(&RawRecord {
                kind: RecordKind::SAMPLE,
                misc: Misc(USER),
                body: &body,
            });
        };
        sample(8, 0x1100);
        sample(9, 0x4100);
        assert_eq!(code_pages.jit_processes(), BTreeSet::from([8]));
    }

    #[test]
    fn samples_without_an_address_are_ignored() {
        let mut code_pages = CodePages::new(SampleType::TID);
        map(&mut code_pages, 7, 0x1000, "/file");
        sample(&mut code_pages, USER, 7, 0x1000);
        assert!(code_pages.files().is_empty());
    }
}
