//! File access for the symbol loader.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rperf_safefs::{Folder, FoundFile, Refusal};
use rperf_symbol::{FileBytes, Files};

use crate::UnmappedObjects;

/// Reads files of this machine. They are mapped, except files in /sys and files of size 0 (most of those in /proc).
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFiles;

/// The maximum size, 1 GiB, of files that are read because they can't be mapped. Also the maximum size of sparse files in
/// folders where anyone can create files ([`Files::read_trusted`], for perf maps): a sparse file of any size costs nothing to
/// create.
const MAX_READ: u64 = 1 << 30;

/// Whether the path is one of the kernel's files that may be read: in `/proc` the kernel's symbols, modules and memory, and the
/// maps, status and auxiliary vector of a process; in `/sys` the kernel's build-id (notes), all BTF types, and all files about
/// modules. Reading other files there may block or consume data.
fn is_readable_kernel_file(path: &Path) -> bool {
    const IN_PROC: [&str; 4] = ["kallsyms", "modules", "kcore", "iomem"];
    const OF_PROCESS: [&str; 3] = ["maps", "status", "auxv"];
    let in_folder = |folder: &str| path.strip_prefix(folder).ok();
    let is_any = |names: &[&str], rest: &Path| names.iter().any(|name| rest == Path::new(name));
    if let Some(rest) = in_folder("/proc") {
        // Below the folder of a process, `PID/NAME`.
        let mut in_process = rest.components().skip(1);
        let name = in_process.next().map(|name| Path::new(name.as_os_str()));
        let is_deeper = in_process.next().is_some();
        return is_any(&IN_PROC, rest)
            || (!is_deeper && name.is_some_and(|name| is_any(&OF_PROCESS, name)));
    }
    in_folder("/sys/kernel")
        .is_some_and(|rest| rest == Path::new("notes") || rest.starts_with("btf"))
        || in_folder("/sys/module").is_some()
}

impl Files for DiskFiles {
    fn read(&self, path: &Path) -> io::Result<FileBytes> {
        bytes_of(&FoundFile::find(path)?, path)
    }

    fn read_trusted(&self, path: &Path) -> io::Result<Option<FileBytes>> {
        let found = FoundFile::find(path)?;
        // Files of other types are errors below.
        if found.metadata().is_file() && !found.has_trusted_owner() {
            return Ok(None);
        }
        if is_large_and_sparse(found.metadata()) {
            return Err(Refusal::TooLarge { limit: MAX_READ }.into());
        }
        bytes_of(&found, path).map(Some)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn io::Read>> {
        Ok(Box::new(open_regular(&FoundFile::find(path)?, path)?))
    }

    fn read_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let file = open_regular(&FoundFile::find(path)?, path)?;
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if filled == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(filled)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let names = Folder::open(path)?.names()?;
        Ok(names.into_iter().map(|name| path.join(name)).collect())
    }

    fn vdso32(&self) -> Option<FileBytes> {
        Some(rperf_sys::vdso32_image().ok()?.into())
    }
}

/// Whether a file is larger than [`MAX_READ`], and its allocated blocks (of 512 bytes) are smaller than the file.
fn is_large_and_sparse(metadata: &Metadata) -> bool {
    metadata.len() > MAX_READ && metadata.blocks().saturating_mul(512) < metadata.len()
}

/// Opens a regular file on a disk, or a file of the kernel that may be read ([`is_readable_kernel_file`]).
fn open_regular(found: &FoundFile, path: &Path) -> io::Result<File> {
    match found.metadata().is_file() && is_readable_kernel_file(path) {
        // Not for_reading(), which refuses files of procfs and sysfs. The condition ensures a regular file.
        true => found.for_reading_any_type(),
        false => found.for_reading(),
    }
}

fn bytes_of(found: &FoundFile, path: &Path) -> io::Result<FileBytes> {
    let file = open_regular(found, path)?;
    // Most files in /proc have size 0, and most files in /sys the size of a page, whatever they contain.
    if found.metadata().len() == 0 || path.starts_with("/sys") {
        return rperf_safefs::read_all(file, MAX_READ).map(FileBytes::from);
    }
    let mapped = rperf_sys::map_open_file(&file);
    // mmap(2) reports ENOMEM also for more mappings than a process may have. The path is reported at the end of the run.
    if let Err(error) = &mapped
        && error.kind() == io::ErrorKind::OutOfMemory
    {
        UnmappedObjects::note(path, error);
    }
    Ok(FileBytes::new(Mapped(mapped?)))
}

/// A mapped file as [`FileBytes`].
struct Mapped(rperf_sys::MappedFile);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_lists_files_but_refuses_devices_folders_and_other_proc_files() {
        let exe = Path::new("/proc/self/exe");
        let exe_bytes = DiskFiles.read(exe).unwrap();
        assert!(exe_bytes.starts_with(b"\x7fELF"));
        let status = DiskFiles.read(Path::new("/proc/self/status")).unwrap();
        assert!(status.starts_with(b"Name:"));
        let mut magic = [0; 4];
        assert_eq!(DiskFiles.read_at(exe, 0, &mut magic).unwrap(), 4);
        assert_eq!(&magic, b"\x7fELF");
        let last = exe_bytes.len() as u64 - 1;
        assert_eq!(DiskFiles.read_at(exe, last, &mut magic).unwrap(), 1);
        let listed = DiskFiles.list(Path::new("/proc/self")).unwrap();
        assert!(listed.contains(&exe.to_path_buf()));
        for path in ["/dev/zero", "/", "/proc/self/environ", "/proc/kmsg"] {
            let error = DiskFiles.read(Path::new(path)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
    }

    #[test]
    fn large_sparse_files_are_rejected() {
        let scratch = rperf_testkit::Scratch::new();
        let path = scratch.write("perf-1.map", "10 8 function\n").unwrap();
        let map = DiskFiles.read_trusted(&path).unwrap().unwrap();
        assert_eq!(&map[..], b"10 8 function\n");
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(MAX_READ + 1).unwrap();
        let error = DiskFiles.read_trusted(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn only_known_kernel_files_are_readable() {
        for path in [
            "/proc/kallsyms",
            "/proc/42/maps",
            "/proc/self/status",
            "/sys/kernel/notes",
            "/sys/kernel/btf/vmlinux",
            "/sys/module/ext4/notes/.note.gnu.build-id",
        ] {
            assert!(is_readable_kernel_file(Path::new(path)), "{path}");
        }
        for path in [
            "/proc/kmsg",
            "/proc/42/mem",
            "/proc/42/task/maps",
            "/sys/kernel/tracing/trace_pipe",
            "/sys/kernel/debug/tracing/trace_pipe",
            "/home/proc/kallsyms",
        ] {
            assert!(!is_readable_kernel_file(Path::new(path)), "{path}");
        }
    }
}
