//! Identifies mapped files while processes run, by device and inode rather than by name.
//!
//! The name of a file in a container may refer to another file here, or to none. A deleted file has no name at all. So each
//! ELF file is identified when its MMAP2 record is read, by its build-id, or by a generated id if it has none, and is kept
//! open, up to a limit.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rperf_safefs::FoundFile;
use rperf_symbol::{BuildId, FilePart, FileRequest, Servers, build_id_of_elf};
use rperf_wire::{CpuMode, Endian, Misc, Mmap2, MmapId, PROT_EXEC, RawRecord, Record, RecordKind};

/// Offset of `misc` in an MMAP2 record.
const MISC: usize = 4;
/// Offset of the 24 bytes that identify the file: device and inode, or the build-id.
const IDENTITY: usize = 40;
/// Offset of the build-id, after its size and two reserved fields.
const BUILD_ID: usize = IDENTITY + 4;
/// The suffix that the kernel appends to the name of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// Major and minor number of a device, and an inode on it.
type DeviceInode = (u32, u32, u64);

/// The files that were mapped so far.
#[derive(Debug)]
pub(super) struct MappedFiles {
    /// The mount point of the proc file system.
    proc: PathBuf,
    /// Ids of the files found so far; `None` for files that are not ELF files or cannot be mapped.
    known: HashMap<DeviceInode, Option<BuildId>>,
    open: Arc<OpenFiles>,
    /// Maximum number of files kept open: a quarter of this process's limit (`RLIMIT_NOFILE`), which is raised.
    max_open: usize,
}

/// The files that are kept open.
#[derive(Debug, Default)]
pub(super) struct OpenFiles(Mutex<HashMap<BuildId, File>>);

/// Replaces debuginfod servers: symbol lookup asks for a file by its build-id if no file at a known path has it.
impl Servers for OpenFiles {
    fn fetch(&self, request: &FileRequest<'_>) -> Option<PathBuf> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = files
            .get(request.build_id)
            .filter(|_| request.part == FilePart::Executable)?;
        Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
    }
}

impl MappedFiles {
    /// Creates an empty set, for processes in the proc file system at `proc`.
    pub(super) fn new(proc: impl Into<PathBuf>) -> Self {
        Self {
            proc: proc.into(),
            known: HashMap::new(),
            open: Arc::default(),
            max_open: usize::try_from(rperf_sys::raise_open_files_limit().unwrap_or(0) / 4)
                .unwrap_or(0),
        }
    }

    /// The files that are kept open.
    pub(super) fn open_files(&self) -> Arc<OpenFiles> {
        Arc::clone(&self.open)
    }

    /// Passes `records`, which are complete, to `take`, one or more at a time. In executable mappings of files, device and inode
    /// are replaced by the build-id of the file, or by a generated id; mappings without either are passed unchanged.
    pub(super) fn identify(&mut self, records: &[u8], mut take: impl FnMut(&[u8])) {
        let (mut done, mut at) = (0, 0);
        for (raw, record) in RawRecord::all(records, Endian::NATIVE) {
            if raw.kind == RecordKind::MMAP2
                && let Some(id) = self.id_of(&raw)
                && let Some(identified) = with_build_id(record, raw.misc, &id)
            {
                take(records.get(done..at).unwrap_or_default());
                take(&identified);
                done = at + record.len();
            }
            at += record.len();
        }
        take(records.get(done..).unwrap_or_default());
    }

    /// Returns the id of the mapped file; `None` unless the record is an executable mapping of a file in user space. For a
    /// file that could be opened: its build-id, or a generated id if it has none; `None` if it is not an ELF file or cannot be
    /// mapped. For other files: a generated id if the name is that of a file here (outside of containers), otherwise `None`.
    fn id_of(&mut self, raw: &RawRecord<'_>) -> Option<BuildId> {
        let Ok(Record::Mmap2(mapped)) = Record::decode(raw, Endian::NATIVE) else {
            return None;
        };
        let MmapId::Inode {
            major,
            minor,
            inode,
            ..
        } = mapped.id
        else {
            return None;
        };
        let name = mapped.mmap.filename;
        let is_code = mapped.prot & PROT_EXEC != 0 && raw.misc.cpu_mode() == CpuMode::User;
        let is_file = inode != 0 && name.starts_with(b"/") && !name.starts_with(b"//");
        if !is_code || !is_file {
            return None;
        }
        let file_id = (major, minor, inode);
        if let Some(known) = self.known.get(&file_id) {
            return *known;
        }
        if let Some(file) = self.find(&mapped, file_id) {
            let id = self.keep(file, file_id);
            self.known.insert(file_id, id);
            return id;
        }
        // If the file was not found or cannot be opened, another file may have the name now: a generated id keeps readers from
        // using that file.
        match Path::new(OsStr::from_bytes(name)).is_file() {
            true => generated(file_id),
            false => None,
        }
    }

    /// Opens the mapped file: by its name here, through map_files, by its name in the process's root directory, or by its name
    /// here if only the device differs.
    fn find(&self, mapped: &Mmap2<'_>, file_id: DeviceInode) -> Option<File> {
        let (major, minor, inode) = file_id;
        let mmap = &mapped.mmap;
        let pid = self.proc.join(mmap.pid.to_string());
        let name = mmap.filename.strip_suffix(DELETED).unwrap_or(mmap.filename);
        let name = Path::new(OsStr::from_bytes(name));
        let end = mmap.start.saturating_add(mmap.len);
        let mapping = pid.join(format!("map_files/{:x}-{end:x}", mmap.start));
        let inside = pid.join("root").join(name.strip_prefix("/").ok()?);
        // Overlay file systems report device numbers of their own.
        let has_inode = |metadata: &Metadata| metadata.ino() == inode;
        let has_device_and_inode =
            |metadata: &Metadata| has_inode(metadata) && device(metadata.dev()) == (major, minor);
        opened(name, has_device_and_inode)
            .or_else(|| opened(&mapping, has_inode))
            .or_else(|| opened(&inside, has_inode))
            .or_else(|| opened(name, has_inode))
    }

    /// Returns the id of a file, which is kept open if the limit allows; `None` if it is not an ELF file or cannot be mapped.
    fn keep(&self, file: File, file_id: DeviceInode) -> Option<BuildId> {
        let bytes = rperf_sys::map_open_file(&file).ok()?;
        if !bytes.starts_with(b"\x7fELF") {
            return None;
        }
        let id = build_id_of_elf(&bytes).or_else(|| generated(file_id))?;
        let mut files = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() < self.max_open {
            files.insert(id, file);
        }
        Some(id)
    }
}

/// Opens a regular file if `is_right` accepts its metadata.
fn opened(path: &Path, is_right: impl Fn(&Metadata) -> bool) -> Option<File> {
    let file = FoundFile::find(path).ok()?;
    is_right(file.metadata()).then(|| file.for_reading().ok())?
}

/// Major and minor number of `st_dev`.
fn device(number: u64) -> (u32, u32) {
    (libc::major(number), libc::minor(number))
}

/// Returns an id made of device, inode and the suffix `file`, for a file whose build-id is missing or unknown. A real build-id
/// ends with this suffix with a probability of one in four billion.
fn generated((major, minor, inode): DeviceInode) -> Option<BuildId> {
    let [major, minor] = [major, minor].map(u32::to_be_bytes);
    BuildId::from_bytes(&[&inode.to_be_bytes()[..], &major, &minor, b"file"].concat())
}

/// Returns the MMAP2 record with a build-id instead of device and inode.
fn with_build_id(record: &[u8], misc: Misc, id: &BuildId) -> Option<Vec<u8>> {
    let mut record = record.to_vec();
    let misc = misc.0 | Misc::MMAP_BUILD_ID.0;
    let place = record.get_mut(MISC..MISC + 2)?;
    place.copy_from_slice(&misc.to_ne_bytes());
    let place = record.get_mut(IDENTITY..BUILD_ID + BuildId::MAX_LEN)?;
    place.fill(0);
    let bytes = id.as_bytes();
    *place.first_mut()? = u8::try_from(bytes.len()).ok()?;
    let from = BUILD_ID - IDENTITY;
    place
        .get_mut(from..from + bytes.len())?
        .copy_from_slice(bytes);
    Some(record)
}

#[cfg(test)]
mod tests;
