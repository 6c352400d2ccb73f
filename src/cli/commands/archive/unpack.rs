//! Unpacking: objects into the build-id cache, recordings into the current folder.
//!
//! Archives come from elsewhere. Nothing in them is written outside of these two folders, through no link, and no object
//! under a build-id that is not its own. A recording must begin like one, under a name that isn't hidden; everything else
//! is refused.

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
use rperf_sys::map;
use tar::{Archive, Entry, EntryType};

use super::member::{Member, ObjectFile, linked, member};

/// The archive with the objects inside one with a recording.
pub(super) const SYMBOLS: &str = "perf.symbols.tar.bz2";

/// Bytes of headers that may stand before a member's content: long names are kept in memory.
const MAX_HEADERS: u64 = 1 << 20;

/// What was unpacked, and what was not.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// Recordings, as they are called here.
    pub(super) recordings: Vec<PathBuf>,
    /// Objects of which the cache has the folder now.
    pub(super) objects: usize,
    /// Entries that were left out, and why.
    pub(super) refused: Vec<String>,
}

/// Why an entry is not unpacked.
enum Trouble {
    /// It is left out; the rest is unpacked.
    Refused(&'static str),
    /// The archive can't be read, or nothing be written.
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error
            .get_ref()
            .is_some_and(|cause| cause.is::<rperf_safefs::Refusal>())
        {
            true => Self::Refused("a link or something else than a folder is on its way"),
            false => Self::Io(error),
        }
    }
}

impl From<&'static str> for Trouble {
    fn from(why: &'static str) -> Self {
        Self::Refused(why)
    }
}

/// Where things go.
pub(super) struct Unpacker<'a> {
    /// The build-id cache.
    pub(super) cache: &'a Folder,
    /// The folder of recordings.
    pub(super) here: &'a Folder,
    /// Whether recordings may be written over others.
    pub(super) force: bool,
}

/// A link of the archive, which is made when its object is there.
struct Link {
    folder: PathBuf,
    id: String,
}

impl Unpacker<'_> {
    /// Unpacks all of an archive of either kind, adding to `done` as it goes.
    ///
    /// # Errors
    ///
    /// What reading and writing report. What was unpacked before that is of use.
    pub(super) fn unpack(&self, archive: impl Read, done: &mut Unpacked) -> io::Result<()> {
        self.unpack_level(&mut MultiBzDecoder::new(archive), done, true)
    }

    /// An archive of objects may be in one with a recording, but no deeper.
    fn unpack_level(
        &self,
        archive: &mut dyn Read,
        done: &mut Unpacked,
        is_outer: bool,
    ) -> io::Result<()> {
        let allowance = Rc::new(Cell::new(Some(MAX_HEADERS)));
        let mut archive = Archive::new(Limited {
            inner: archive,
            allowance: Rc::clone(&allowance),
        });
        let mut links = Vec::new();
        let ended = archive.entries()?.try_for_each(|entry| {
            let mut entry = entry?;
            allowance.set(None);
            let path = entry.path()?.into_owned();
            let taken = match path == Path::new(SYMBOLS) && is_outer {
                true => {
                    let inner: &mut dyn Read =
                        &mut MultiBzDecoder::new(&mut entry as &mut dyn Read);
                    self.unpack_level(inner, done, false).map_err(Trouble::Io)
                }
                false => self.entry(&path, &mut entry, &mut links, done),
            };
            match taken {
                Err(Trouble::Refused(why)) => {
                    done.refused.push(format!("{}: {why}", path.display()));
                }
                Err(Trouble::Io(error)) => return Err(error),
                Ok(()) => {}
            }
            // The rest of its content doesn't count as headers.
            io::copy(&mut entry, &mut io::sink())?;
            allowance.set(Some(MAX_HEADERS));
            Ok(())
        });
        for link in links {
            done.objects += usize::from(self.link(&link)?);
        }
        ended
    }

    fn entry(
        &self,
        path: &Path,
        entry: &mut Entry<'_, impl Read>,
        links: &mut Vec<Link>,
        done: &mut Unpacked,
    ) -> Result<(), Trouble> {
        let target = |entry: &Entry<'_, _>| -> io::Result<PathBuf> {
            Ok(entry.link_name()?.unwrap_or_default().into_owned())
        };
        match entry.header().entry_type() {
            // They are made for what they have.
            EntryType::Directory => Ok(()),
            EntryType::Symlink => {
                let (folder, id) = linked(path, &target(entry)?)?;
                links.push(Link { folder, id });
                Ok(())
            }
            EntryType::Link => match (member(path)?, member(&target(entry)?)?) {
                (Member::Object(object), Member::Object(same)) => self.same_file(&object, &same),
                _ => Err(Trouble::Refused(
                    "a second name of something else than an object",
                )),
            },
            EntryType::Regular | EntryType::Continuous => match member(path)? {
                Member::Object(object) => {
                    let mode = entry.header().mode().unwrap_or(0o644);
                    // What only its owner may read (a kernel's list of symbols) stays so.
                    self.object(&object, entry, mode & 0o755 | 0o400)
                }
                // The object has them, and the list is made of it where it is wanted.
                Member::Probes => Ok(()),
                Member::Recording(name) => self.recording(&name, entry, done),
            },
            _ => Err(Trouble::Refused("neither a file nor a link nor a folder")),
        }
    }

    fn recording(
        &self,
        name: &Path,
        entry: &mut impl Read,
        done: &mut Unpacked,
    ) -> Result<(), Trouble> {
        let mut head = Vec::new();
        entry.take(FileHeader::SIZE as u64).read_to_end(&mut head)?;
        if FileHeader::decode(&head).is_err() {
            return Err(Trouble::Refused(
                "neither a recording nor a file of an object",
            ));
        }
        let is_there = self.here.kind(name.as_os_str())?.is_some();
        if is_there && !self.force {
            return Err(Trouble::Refused(
                "there is such a file already; -f writes over it",
            ));
        }
        let written = self.here.write_whole(name.as_os_str(), 0o600, |out| {
            io::copy(&mut head.chain(entry), out).map(drop)
        });
        written.map_err(Trouble::Io)?;
        done.recordings.push(name.to_owned());
        Ok(())
    }

    /// A file of an object. What the cache has already stays.
    fn object(&self, object: &ObjectFile, entry: &mut impl Read, mode: u32) -> Result<(), Trouble> {
        let folder = self.cache.create_below(&object.folder, 0o777)?;
        let name = object.file.as_ref();
        if folder.kind(name)?.is_some() {
            return Ok(());
        }
        let mut is_right = true;
        let written = folder.write_whole(name, mode, |out| {
            io::copy(entry, out)?;
            io::Write::flush(out)?;
            out.get_ref()
                .set_permissions(Permissions::from_mode(mode))?;
            is_right = !object.has_build_id() || has_id(&map(out.get_ref())?, &object.id);
            match is_right {
                true => Ok(()),
                // It never gets its name.
                false => Err(io::ErrorKind::InvalidData.into()),
            }
        });
        match written {
            Err(_) if !is_right => Err(Trouble::Refused("its build-id is another")),
            written => Ok(written.map_err(Trouble::Io)?),
        }
    }

    /// Gives a file that the cache has a second name, if it is of that build, too.
    fn same_file(&self, object: &ObjectFile, same: &ObjectFile) -> Result<(), Trouble> {
        if object.id != same.id || !object.has_build_id() {
            return Err(Trouble::Refused("its build-id is another"));
        }
        let file = self.cache.below(&same.folder);
        let file = file.and_then(|folder| folder.open_file(same.file.as_ref()))?;
        if !has_id(&map(&file)?, &object.id) {
            return Err(Trouble::Refused("its build-id is another"));
        }
        let folder = self.cache.create_below(&object.folder, 0o777)?;
        match folder.link_file(&file, object.file.as_ref()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Makes the link by which an object is found. Returns whether there is such an object.
    fn link(&self, link: &Link) -> io::Result<bool> {
        let object = self.cache.below(&link.folder);
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

/// A reader that yields no more than what is allowed, where something is.
struct Limited<'r> {
    inner: &'r mut dyn Read,
    allowance: Rc<Cell<Option<u64>>>,
}

impl Read for Limited<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        if let Some(left) = self.allowance.get() {
            let left = left.checked_sub(count as u64).ok_or_else(|| {
                let error = format!("a name of more than {MAX_HEADERS} bytes");
                io::Error::new(io::ErrorKind::InvalidData, error)
            })?;
            self.allowance.set(Some(left));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
