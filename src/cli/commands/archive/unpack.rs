//! Unpacking: objects into the build-id cache, recordings into the current directory.
//!
//! Archives are untrusted. Nothing is written outside these two directories, links are not followed, and the build-id of an
//! ELF file must match its path. A recording must have a recording's header and a name that isn't hidden; everything
//! else is skipped.

use std::cell::Cell;
use std::fs::Permissions;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bzip2::read::MultiBzDecoder;
use rperf_perfdata::FileHeader;
use rperf_safefs::Folder;
use rperf_symbol::build_id_of_elf;
use rperf_sys::map_open_file;
use tar::{Archive, Entry, EntryType};

use super::member::{ArchiveMember, ObjectFile, linked_object, member};

/// The name of the nested archive with objects, in an archive with a recording.
pub(super) const SYMBOLS_ARCHIVE: &str = "perf.symbols.tar.bz2";

/// Maximum size in bytes of the headers before an entry's content: `tar` keeps long names in memory.
const MAX_HEADERS: u64 = 1 << 20;

/// The unpacked and the refused entries of an archive.
#[derive(Debug, Default)]
pub(super) struct ArchiveSummary {
    /// The names of the unpacked recordings in the current directory.
    pub(super) recordings: Vec<PathBuf>,
    /// The number of links in the archive whose object is in the cache after unpacking.
    pub(super) object_count: usize,
    /// The paths of refused entries, each with the reason.
    pub(super) refused: Vec<String>,
}

/// Why an entry is not unpacked.
enum EntryFault {
    /// The entry is skipped, for this reason; the others are unpacked.
    Refused(&'static str),
    /// Reading the archive or writing failed.
    Io(io::Error),
}

impl From<io::Error> for EntryFault {
    fn from(error: io::Error) -> Self {
        match error
            .get_ref()
            .is_some_and(|cause| cause.is::<rperf_safefs::Refusal>())
        {
            true => Self::Refused("its path contains a link or a file instead of a directory"),
            false => Self::Io(error),
        }
    }
}

impl From<&'static str> for EntryFault {
    fn from(why: &'static str) -> Self {
        Self::Refused(why)
    }
}

/// Where and how archives are unpacked.
pub(super) struct ArchiveUnpacker<'a> {
    /// The build-id cache.
    pub(super) cache: &'a Folder,
    /// The directory for recordings.
    pub(super) recording_folder: &'a Folder,
    /// Whether existing recordings are overwritten.
    pub(super) force: bool,
}

/// A symbolic link of the archive, created after all entries are unpacked, if its object is in the cache then.
struct PendingLink {
    /// `NAME/ID`, the target of the link.
    folder: PathBuf,
    /// The build-id in hexadecimal.
    id: String,
}

impl ArchiveUnpacker<'_> {
    /// Unpacks an archive with or without a recording, and adds the results to `done`.
    ///
    /// # Errors
    ///
    /// Errors of reading and writing. Files that were unpacked before the error remain, and get their links.
    pub(super) fn unpack(&self, archive: impl Read, done: &mut ArchiveSummary) -> io::Result<()> {
        let is_outer = true;
        self.unpack_level(&mut MultiBzDecoder::new(archive), done, is_outer)
    }

    /// Unpacks the outer archive (`is_outer`) or the archive of objects nested in it, which may not contain another archive.
    fn unpack_level(
        &self,
        archive: &mut dyn Read,
        done: &mut ArchiveSummary,
        is_outer: bool,
    ) -> io::Result<()> {
        let allowance = Rc::new(Cell::new(Some(MAX_HEADERS)));
        let mut archive = Archive::new(LimitedReader {
            inner: archive,
            allowance: Rc::clone(&allowance),
        });
        let mut links = Vec::new();
        let result = archive.entries()?.try_for_each(|entry| {
            let mut entry = entry?;
            // The headers are read; the size of the content is not limited.
            allowance.set(None);
            let path = entry.path()?.into_owned();
            let unpacked = match path == Path::new(SYMBOLS_ARCHIVE) && is_outer {
                true => {
                    let inner: &mut dyn Read =
                        &mut MultiBzDecoder::new(&mut entry as &mut dyn Read);
                    let is_outer = false;
                    self.unpack_level(inner, done, is_outer)
                        .map_err(EntryFault::Io)
                }
                false => self.entry(&path, &mut entry, &mut links, done),
            };
            match unpacked {
                Err(EntryFault::Refused(why)) => {
                    done.refused.push(format!("{}: {why}", path.display()));
                }
                Err(EntryFault::Io(error)) => return Err(error),
                Ok(()) => {}
            }
            // The content that is still unread is skipped here, before the limit for the next headers is set.
            io::copy(&mut entry, &mut io::sink())?;
            allowance.set(Some(MAX_HEADERS));
            Ok(())
        });
        // Also after an error: some objects may be unpacked.
        for link in links {
            done.object_count += usize::from(self.link(&link)?);
        }
        result
    }

    /// Unpacks one entry; a symbolic link is added to `links` instead. Directories and lists of probes are ignored.
    fn entry(
        &self,
        path: &Path,
        entry: &mut Entry<'_, impl Read>,
        links: &mut Vec<PendingLink>,
        done: &mut ArchiveSummary,
    ) -> Result<(), EntryFault> {
        let target = |entry: &Entry<'_, _>| -> io::Result<PathBuf> {
            Ok(entry.link_name()?.unwrap_or_default().into_owned())
        };
        match entry.header().entry_type() {
            // A directory is created when a file in it is unpacked.
            EntryType::Directory => Ok(()),
            EntryType::Symlink => {
                let (folder, id) = linked_object(path, &target(entry)?)?;
                links.push(PendingLink { folder, id });
                Ok(())
            }
            EntryType::Link => match (member(path)?, member(&target(entry)?)?) {
                (ArchiveMember::Object(object), ArchiveMember::Object(existing)) => {
                    self.hard_link(&object, &existing)
                }
                _ => Err(EntryFault::Refused(
                    "a hard link to something other than an object",
                )),
            },
            EntryType::Regular | EntryType::Continuous => match member(path)? {
                ArchiveMember::Object(object) => {
                    let mode = entry.header().mode().unwrap_or(0o644);
                    // Only the owner may write. Other permissions are kept, so that a file that only its owner may read, such as
                    // a kernel's kallsyms, stays private.
                    self.object(&object, entry, mode & 0o755 | 0o400)
                }
                // Never unpacked: the list determines where the kernel places probes.
                ArchiveMember::Probes => Ok(()),
                ArchiveMember::Recording(name) => self.recording(&name, entry, done),
            },
            _ => Err(EntryFault::Refused("not a file, link or directory")),
        }
    }

    /// Unpacks a recording into the current directory.
    fn recording(
        &self,
        name: &Path,
        entry: &mut impl Read,
        done: &mut ArchiveSummary,
    ) -> Result<(), EntryFault> {
        let mut head = Vec::new();
        entry.take(FileHeader::SIZE as u64).read_to_end(&mut head)?;
        if FileHeader::decode(&head).is_err() {
            return Err(EntryFault::Refused("neither a recording nor an object"));
        }
        let exists = self.recording_folder.kind(name.as_os_str())?.is_some();
        if exists && !self.force {
            return Err(EntryFault::Refused("the file exists; -f overwrites it"));
        }
        let written = self
            .recording_folder
            .write_atomic(name.as_os_str(), 0o600, |out| {
                io::copy(&mut head.chain(entry), out).map(drop)
            });
        written.map_err(EntryFault::Io)?;
        done.recordings.push(name.to_owned());
        Ok(())
    }

    /// Unpacks a file of an object. Files that are in the cache already are kept.
    fn object(
        &self,
        object: &ObjectFile,
        entry: &mut impl Read,
        mode: u32,
    ) -> Result<(), EntryFault> {
        let folder = self.cache.create_below(&object.folder, 0o777)?;
        let name = object.file.as_ref();
        if folder.kind(name)?.is_some() {
            return Ok(());
        }
        let mut is_matching = true;
        let written = folder.write_atomic(name, mode, |out| {
            io::copy(entry, out)?;
            io::Write::flush(out)?;
            // Adds the permissions that the umask removed.
            out.get_ref()
                .set_permissions(Permissions::from_mode(mode))?;
            is_matching =
                !object.has_build_id() || has_id(&map_open_file(out.get_ref())?, &object.id);
            match is_matching {
                true => Ok(()),
                // The error discards the file.
                false => Err(io::ErrorKind::InvalidData.into()),
            }
        });
        match written {
            Err(_) if !is_matching => {
                Err(EntryFault::Refused("its build-id does not match its path"))
            }
            written => Ok(written.map_err(EntryFault::Io)?),
        }
    }

    /// Creates `object` as a hard link to `target`, a file in the cache with the same build-id.
    fn hard_link(&self, object: &ObjectFile, target: &ObjectFile) -> Result<(), EntryFault> {
        if object.id != target.id || !object.has_build_id() {
            return Err(EntryFault::Refused(
                "a hard link to a file with another build-id or without one",
            ));
        }
        let file = self.cache.open_below(&target.folder);
        let file = file.and_then(|folder| folder.open_file(target.file.as_ref()))?;
        if !has_id(&map_open_file(&file)?, &object.id) {
            return Err(EntryFault::Refused("its build-id does not match its path"));
        }
        let folder = self.cache.create_below(&object.folder, 0o777)?;
        match folder.link_file(&file, object.file.as_ref()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Creates the link from a build-id to its object if the object is in the cache. Returns whether the object is there.
    fn link(&self, link: &PendingLink) -> io::Result<bool> {
        let object = self.cache.open_below(&link.folder);
        if !object.is_ok_and(|folder| folder.names().is_ok_and(|names| !names.is_empty())) {
            return Ok(false);
        }
        let (first, rest) = link.id.split_at(2);
        let folder = self
            .cache
            .create_below(&Path::new(".build-id").join(first), 0o777)?;
        match folder.symlink(&Path::new("../..").join(&link.folder), rest.as_ref()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(true),
        }
    }
}

fn has_id(bytes: &[u8], id: &str) -> bool {
    build_id_of_elf(bytes).is_some_and(|found| found.to_string() == id)
}

/// A reader that fails after `allowance` bytes; `None` for no limit.
struct LimitedReader<'r> {
    inner: &'r mut dyn Read,
    allowance: Rc<Cell<Option<u64>>>,
}

impl Read for LimitedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        if let Some(left) = self.allowance.get() {
            let left = left.checked_sub(count as u64).ok_or_else(|| {
                let error = format!("the headers of a member are longer than {MAX_HEADERS} bytes");
                io::Error::new(io::ErrorKind::InvalidData, error)
            })?;
            self.allowance.set(Some(left));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
