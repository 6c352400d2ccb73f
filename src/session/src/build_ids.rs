//! Build-ids of the kernel, its modules and mapped files, determined after the recording without reading it again.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rperf_perfdata::feature::BuildIdEntry;
use rperf_sys::{Module, Proc, module_notes};
use rperf_wire::{Misc, name_text};

use crate::BuildIds;
use crate::record_stats::{MappedName, RecordStats};

/// The pid in entries of the host (a guest's entries have the pid of its process), as in perf.
const HOST: i32 = -1;
/// Number of files per thread; any further files are worth another thread.
const FILES_PER_THREAD: usize = 16;

/// Returns the entry of an object with this name and build-id, of which at most 20 bytes are stored.
fn entry(filename: &str, misc: Misc, id: &[u8]) -> BuildIdEntry {
    let mut build_id = [0; 20];
    let size = id.len().min(build_id.len());
    build_id
        .iter_mut()
        .zip(id)
        .for_each(|(to, byte)| *to = *byte);
    BuildIdEntry {
        pid: HOST,
        misc,
        build_id,
        size: u8::try_from(size).unwrap_or_default(),
        filename: filename.to_owned(),
    }
}

/// Returns the kernel's entry.
pub(crate) fn of_kernel(id: &[u8]) -> BuildIdEntry {
    entry("[kernel.kallsyms]", Misc::KERNEL, id)
}

/// Returns the vdso's entry.
pub(crate) fn of_vdso(id: &[u8]) -> BuildIdEntry {
    entry("[vdso]", Misc::USER, id)
}

/// Returns the loaded modules that have a build-id in their notes in sysfs. Those that `is_wanted` selects are to be added to the
/// cache, except a module without a file, or whose file has another build-id and so does not contain its code.
pub(crate) fn of_modules(
    modules: &[Module],
    is_wanted: &dyn Fn(&Module) -> bool,
    sysfs: &Path,
    ids: &dyn BuildIds,
) -> Vec<BuildIdFile> {
    let of_module = |module: &Module| {
        let id = ids.of_notes(&module_notes(sysfs, &module.name).ok()?)?;
        let path = module.file.clone().unwrap_or_default();
        let name = match &module.file {
            Some(path) => path.to_str()?.to_owned(),
            None => format!("[{}]", module.name),
        };
        // The build-id of a compressed file is unknown; it is assumed to be the same.
        let is_same = || ids.of_file(&path).is_none_or(|found| found == id);
        let add_to_cache = path.is_file() && is_wanted(module) && is_same();
        Some(BuildIdFile {
            entry: entry(&name, Misc::KERNEL, &id),
            path,
            add_to_cache,
        })
    };
    modules.iter().filter_map(of_module).collect()
}

/// The entry of a module or a mapped file, and a path to read it; the path is empty for a module without a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BuildIdFile {
    pub(crate) entry: BuildIdEntry,
    pub(crate) path: PathBuf,
    /// Whether the file is to be added to the cache.
    pub(crate) add_to_cache: bool,
}

/// Returns the mapped files with a build-id, one per name, sorted by name. Those in `to_cache` are to be added to the
/// cache. Files are read by several threads if there are many.
pub(crate) fn of_files(
    stats: &RecordStats,
    to_cache: &HashSet<&MappedName>,
    proc: &Proc,
    ids: &dyn BuildIds,
) -> Vec<BuildIdFile> {
    let mapped: Vec<_> = stats.mapped.iter().collect();
    let threads = mapped
        .len()
        .div_ceil(FILES_PER_THREAD)
        .min(rperf_sys::parallelism());
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, pid)) = mapped.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A file that was deleted when it was mapped may have been kept open: then it is read through its descriptor.
            let path = || same_file(name, **pid, proc);
            let file = of_file(name, stats.deleted.path_of(name).or_else(path), ids);
            if let (Some((entry, path)), Ok(mut found)) = (file, found.lock()) {
                found.push(BuildIdFile {
                    entry,
                    path,
                    add_to_cache: to_cache.contains(name),
                });
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, the others process its share.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_by(|one, other| one.entry.filename.cmp(&other.entry.filename));
    found.dedup_by(|later, first| {
        let is_same = later.entry.filename == first.entry.filename;
        first.add_to_cache |= is_same && later.add_to_cache;
        is_same
    });
    found
}

/// Returns the entry of the mapped file `name`, and `readable`, the path from which its build-id is read. `None` if there is no
/// such path or no build-id, or if the name is not that of an ELF file.
fn of_file(
    name: &MappedName,
    readable: Option<PathBuf>,
    ids: &dyn BuildIds,
) -> Option<(BuildIdEntry, PathBuf)> {
    let path = Path::new(OsStr::from_bytes(&name.filename));
    // Names such as `//anon`, `[heap]` or `/dev/zero` are not ELF files.
    let is_file =
        path.is_absolute() && !name.filename.starts_with(b"//") && !path.starts_with("/dev");
    let readable = readable.filter(|_| is_file)?;
    let id = ids.of_file(&readable)?;
    let name = name_text(path.as_os_str().as_bytes());
    Some((entry(&name, Misc::USER, &id), readable))
}

/// Returns a path to the mapped file: the recorded one, or one in `/proc/PID` if the process is in a container or the program was
/// deleted. `None` if the file was replaced or is gone.
fn same_file(name: &MappedName, pid: u32, proc: &Proc) -> Option<PathBuf> {
    const INODE_REQUIRED: bool = true;
    const NAME_SUFFICES: bool = false;
    let path = Path::new(OsStr::from_bytes(&name.filename));
    let inside = proc
        .path(format!("{pid}/root"))
        .join(path.strip_prefix("/").ok()?);
    // If the inode is not recorded (0), the name is enough, except for `exe`, which every process has.
    let is_mapped = |path: &PathBuf, needs_inode: bool| {
        let is_same = |inode| inode == name.inode || (name.inode == 0 && !needs_inode);
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && is_same(metadata.ino()))
    };
    let mut named = [path.to_owned(), inside].into_iter();
    let running = proc.path(format!("{pid}/exe"));
    named
        .find(|path| is_mapped(path, NAME_SUFFICES))
        .or_else(|| Some(running).filter(|path| is_mapped(path, INODE_REQUIRED)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_pages::CodePages;
    use rperf_wire::{RawRecord, RecordKind, SampleType};
    use std::collections::HashMap;

    /// The first bytes of a file are its build-id.
    struct FirstBytes;

    impl BuildIds for FirstBytes {
        fn of_file(&self, path: &Path) -> Option<Vec<u8>> {
            fs::read(path).ok()?.get(..2).map(<[u8]>::to_vec)
        }
        fn of_image(&self, _: &[u8]) -> Option<Vec<u8>> {
            None
        }
        fn of_notes(&self, notes: &[u8]) -> Option<Vec<u8>> {
            Some(notes.to_vec())
        }
    }

    /// All modules are returned; those that are "kept" are to be added to the cache. The sample at 0x5010 is in the module if the
    /// module starts at 0x5000, not if it starts at 0x6000.
    #[test]
    fn modules_are_kept_if_they_have_samples_and_a_file_of_their_build() {
        let root = std::env::temp_dir().join(format!("rperf-modules-{}", std::process::id()));
        let notes = root.join("module/hit/notes");
        fs::create_dir_all(&notes).unwrap();
        fs::write(notes.join(".note.gnu.build-id"), "ab").unwrap();
        let file = root.join("hit.ko");
        fs::write(&file, "ab").unwrap();
        let module = |start| Module {
            name: "hit".to_owned(),
            start,
            size: 0x1000,
            file: Some(file.clone()),
        };
        let mut hits = CodePages::new(SampleType::IP | SampleType::TID);
        let body = [0x5010_u64.to_ne_bytes(), [0; 8]].concat();
        hits.add_sample(&RawRecord {
            kind: RecordKind::SAMPLE,
            misc: Misc::KERNEL,
            body: &body,
        });
        let found = |start| {
            of_modules(
                &[module(start)],
                &|module| hits.has_samples_in(module),
                &root,
                &FirstBytes,
            )
        };
        let [hit] = &found(0x5000)[..] else {
            panic!("one module");
        };
        assert_eq!(
            (hit.entry.filename.as_str(), hit.add_to_cache),
            (file.to_str().unwrap(), true)
        );
        assert!(!found(0x6000)[0].add_to_cache);
        fs::write(&file, "cd").unwrap();
        assert!(!found(0x5000)[0].add_to_cache, "another build by now");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_file_is_looked_for_where_its_process_sees_it() {
        let root = std::env::temp_dir().join(format!("rperf-build-ids-{}", std::process::id()));
        let inside = root.join("7/root/no/such/dir");
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("lib.so"), "ab").unwrap();
        let inode = fs::metadata(inside.join("lib.so")).unwrap().ino();
        let name = |inode| MappedName {
            filename: b"/no/such/dir/lib.so"[..].into(),
            inode,
        };
        let anonymous = MappedName {
            filename: b"//anon"[..].into(),
            inode: 0,
        };
        let proc = Proc::new(&root);
        let file = |add_to_cache| BuildIdFile {
            entry: entry("/no/such/dir/lib.so", Misc::USER, b"ab"),
            path: inside.join("lib.so"),
            add_to_cache,
        };
        let stats = |mapped| {
            let mut stats = RecordStats::default();
            stats.mapped = mapped;
            stats
        };
        let mapped = HashMap::from([(name(inode), 7), (anonymous, 7)]);
        let found = of_files(&stats(mapped.clone()), &HashSet::new(), &proc, &FirstBytes);
        assert_eq!(found, [file(false)]);
        let found = of_files(
            &stats(mapped),
            &HashSet::from([&name(inode)]),
            &proc,
            &FirstBytes,
        );
        assert_eq!(found, [file(true)]);
        let other = HashMap::from([(name(inode + 1), 7)]);
        let found = of_files(&stats(other), &HashSet::new(), &proc, &FirstBytes);
        assert_eq!(found, [], "another file by now");
        fs::remove_dir_all(root).unwrap();
    }
}
