//! Which files were mapped, by build-id: found after the recording, without a second pass over it.

use std::collections::{HashMap, HashSet};
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
use crate::hits::Hits;
use crate::tally::MappedName;

/// `PERF_RECORD_MISC_KERNEL` and `_USER`.
const KERNEL: Misc = Misc(1);
const USER: Misc = Misc(2);
/// Pid of the host machine.
const HOST: i32 = -1;
/// Files per thread below which starting another costs more than it saves.
const FILES_PER_THREAD: usize = 16;

/// The entry of the kernel, a module or a file; `None` without a build-id.
fn entry(filename: &str, misc: Misc, id: &[u8]) -> Option<BuildIdEntry> {
    let mut build_id = [0; 20];
    let size = id.len().min(build_id.len());
    build_id.get_mut(..size)?.copy_from_slice(id.get(..size)?);
    Some(BuildIdEntry {
        pid: HOST,
        misc,
        build_id,
        size: u8::try_from(size).ok()?,
        filename: filename.to_owned(),
    })
}

/// The kernel's entry.
pub(crate) fn of_kernel(id: &[u8]) -> Option<BuildIdEntry> {
    entry("[kernel.kallsyms]", KERNEL, id)
}

/// The vdso's entry.
pub(crate) fn of_vdso(id: &[u8]) -> Option<BuildIdEntry> {
    entry("[vdso]", USER, id)
}

/// Loaded modules, by the notes that sysfs has of them. Those whose file is of another build count as not hit, since no
/// file has their code.
pub(crate) fn of_modules(
    modules: &[Module],
    hits: &Hits,
    (sysfs, ids): (&Path, &dyn BuildIds),
) -> Vec<FoundFile> {
    let of_module = |module: &Module| {
        let id = ids.of_notes(&module_notes(sysfs, &module.name).ok()?)?;
        let place = module.file.clone().unwrap_or_default();
        let name = match &module.file {
            Some(path) => path.to_str()?.to_owned(),
            None => format!("[{}]", module.name),
        };
        // Compressed files show no build-id.
        let is_it = || ids.of_file(&place).is_none_or(|found| found == id);
        let is_hit = place.is_file() && hits.are_in(module) && is_it();
        Some(FoundFile {
            entry: entry(&name, KERNEL, &id)?,
            place,
            is_hit,
        })
    };
    modules.iter().filter_map(of_module).collect()
}

/// A file with code that ran, and where it can be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) entry: BuildIdEntry,
    pub(crate) place: PathBuf,
    /// Whether samples fell into it.
    pub(crate) is_hit: bool,
}

/// The mapped files that have a build-id, sorted by name; read by several threads where there are many.
pub(crate) fn of_files(
    mapped: &HashMap<MappedName, u32>,
    hit: &HashSet<&MappedName>,
    (proc, ids): (&Proc, &dyn BuildIds),
) -> Vec<FoundFile> {
    let mapped: Vec<_> = mapped.iter().collect();
    let threads = mapped
        .len()
        .div_ceil(FILES_PER_THREAD)
        .min(rperf_sys::parallelism());
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, pid)) = mapped.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file = of_file(name, **pid, proc, ids);
            if let (Some((entry, place)), Ok(mut found)) = (file, found.lock()) {
                found.push(FoundFile {
                    entry,
                    place,
                    is_hit: hit.contains(name),
                });
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // One that cannot be started leaves its share to the others.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_by(|one, other| one.entry.filename.cmp(&other.entry.filename));
    found.dedup_by(|later, first| {
        let is_same = later.entry.filename == first.entry.filename;
        first.is_hit |= is_same && later.is_hit;
        is_same
    });
    found
}

fn of_file(
    name: &MappedName,
    pid: u32,
    proc: &Proc,
    ids: &dyn BuildIds,
) -> Option<(BuildIdEntry, PathBuf)> {
    let path = Path::new(std::ffi::OsStr::from_bytes(&name.filename));
    // Names such as `//anon`, `[heap]` or `/dev/zero` are no files with notes.
    let is_file =
        path.is_absolute() && !name.filename.starts_with(b"//") && !path.starts_with("/dev");
    let place = same_file(path, name.inode, pid, proc).filter(|_| is_file)?;
    let id = ids.of_file(&place)?;
    let name = name_text(path.as_os_str().as_bytes());
    Some((entry(&name, USER, &id)?, place))
}

/// The path under which the file that was mapped can be read: as it stands, or as its process sees it,
/// which may live in a container. `None` when another file stands there by now.
fn same_file(path: &Path, inode: u64, pid: u32, proc: &Proc) -> Option<PathBuf> {
    let inside = proc
        .path(format!("{pid}/root"))
        .join(path.strip_prefix("/").ok()?);
    [path.to_owned(), inside].into_iter().find(|path| {
        fs::metadata(path)
            .is_ok_and(|metadata| metadata.is_file() && (inode == 0 || metadata.ino() == inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{RawRecord, RecordKind, SampleType};

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

    #[test]
    fn modules_with_samples_are_found_with_their_files() {
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
        let mut hits = Hits::new(SampleType::IP | SampleType::TID);
        let body = [0x5010_u64.to_ne_bytes(), [0; 8]].concat();
        hits.sample(&RawRecord {
            kind: RecordKind::SAMPLE,
            misc: KERNEL,
            body: &body,
        });
        let found = |start| of_modules(&[module(start)], &hits, (&root, &FirstBytes));
        let [hit] = &found(0x5000)[..] else {
            panic!("one module");
        };
        assert_eq!(
            (hit.entry.filename.as_str(), hit.is_hit),
            (file.to_str().unwrap(), true)
        );
        assert!(!found(0x6000)[0].is_hit);
        fs::write(&file, "cd").unwrap();
        assert!(!found(0x5000)[0].is_hit, "another build by now");
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
        let place = (&proc, &FirstBytes as &dyn BuildIds);
        let file = |is_hit| FoundFile {
            entry: entry("/no/such/dir/lib.so", USER, b"ab").unwrap(),
            place: inside.join("lib.so"),
            is_hit,
        };
        let mapped = HashMap::from([(name(inode), 7), (anonymous, 7)]);
        let found = of_files(&mapped, &HashSet::new(), place);
        assert_eq!(found, [file(false)]);
        let found = of_files(&mapped, &HashSet::from([&name(inode)]), place);
        assert_eq!(found, [file(true)]);
        let other = HashMap::from([(name(inode + 1), 7)]);
        let found = of_files(&other, &HashSet::new(), place);
        assert_eq!(found, [], "another file by now");
        fs::remove_dir_all(root).unwrap();
    }
}
