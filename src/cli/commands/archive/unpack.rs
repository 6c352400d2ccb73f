//! Unpacking: objects into the build-id cache, recordings into the current folder.
//!
//! Archives come from elsewhere. Nothing in them is written outside of these two folders, through no link, and no object
//! under a build-id that is not its own.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use bzip2::read::MultiBzDecoder;
use rperf_symbol::{Files as _, build_id_of_elf};
use rperf_sys::write_whole;
use tar::{Archive, Entry, EntryType};

use crate::cli::files::DiskFiles;

/// The archive with the objects inside one with a recording.
pub(super) const SYMBOLS: &str = "perf.symbols.tar.bz2";

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
        Self::Io(error)
    }
}

/// Where things go.
pub(super) struct Unpacker<'a> {
    /// The build-id cache.
    pub(super) cache: &'a Path,
    /// The folder of recordings.
    pub(super) here: &'a Path,
    /// Whether recordings may be written over others.
    pub(super) force: bool,
}

impl Unpacker<'_> {
    /// Unpacks all of an archive of either kind, adding to `done` as it goes.
    ///
    /// # Errors
    ///
    /// What reading and writing report. What was unpacked before that is of use.
    pub(super) fn unpack(&self, archive: impl Read, done: &mut Unpacked) -> io::Result<()> {
        let mut archive = Archive::new(MultiBzDecoder::new(archive));
        for entry in archive.entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            if path == Path::new(SYMBOLS) {
                self.unpack(&mut entry as &mut dyn Read, done)?;
                continue;
            }
            let is_recording = entry.header().entry_type().is_file() && !self.is_of_cache(&path);
            let taken = match is_recording {
                true => self.recording(&path, &mut entry, done),
                false => self.object(&path, &mut entry, done),
            };
            match taken {
                Err(Trouble::Refused(why)) => {
                    done.refused.push(format!("{}: {why}", path.display()));
                }
                Err(Trouble::Io(error)) => return Err(error),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Files of the cache lie in a folder that is called by their build-id.
    fn is_of_cache(&self, path: &Path) -> bool {
        let folder = path.parent().and_then(Path::file_name);
        folder.and_then(OsStr::to_str).is_some_and(is_id)
    }

    fn recording(
        &self,
        path: &Path,
        entry: &mut dyn Read,
        done: &mut Unpacked,
    ) -> Result<(), Trouble> {
        let to = below(self.here, path)?;
        if to.symlink_metadata().is_ok() && !self.force {
            return Err(Trouble::Refused(
                "there is such a file already; -f writes over it",
            ));
        }
        write(entry, &to, 0o600)?;
        done.recordings.push(path.to_owned());
        Ok(())
    }

    fn object<R: Read>(
        &self,
        path: &Path,
        entry: &mut Entry<'_, R>,
        done: &mut Unpacked,
    ) -> Result<(), Trouble> {
        let to = below(self.cache, path)?;
        match entry.header().entry_type() {
            EntryType::Directory => Ok(fs::create_dir_all(to)?),
            EntryType::Symlink => {
                let target = entry.link_name()?.unwrap_or_default().into_owned();
                self.link(path, &target, &to)?;
                done.objects += 1;
                Ok(())
            }
            EntryType::Link => {
                let target = entry.link_name()?.unwrap_or_default().into_owned();
                match to.exists() {
                    true => Ok(()),
                    false => Ok(fs::hard_link(below(self.cache, &target)?, to)?),
                }
            }
            kind if kind.is_file() => {
                let mode = entry.header().mode().unwrap_or(0o644);
                // What only its owner may read (a kernel's list of symbols) stays so.
                self.content(path, entry, (&to, mode & 0o755 | 0o400))
            }
            _ => Err(Trouble::Refused("neither a file nor a link nor a folder")),
        }
    }

    /// The link by which an object is found: `.build-id/xx/yyyy…`, to `../../NAME/ID`.
    fn link(&self, path: &Path, target: &Path, to: &Path) -> Result<(), Trouble> {
        let names: Vec<&OsStr> = path.iter().collect();
        let id = match names[..] {
            [links, first, rest] if links == ".build-id" => {
                format!("{}{}", first.to_string_lossy(), rest.to_string_lossy())
            }
            _ => return Err(Trouble::Refused("a link at this place")),
        };
        let folder = target.strip_prefix("../..").ok();
        let leads = folder.is_some_and(|folder| is_plain(folder) && folder.ends_with(&id));
        if !leads || !is_id(&id) {
            return Err(Trouble::Refused("a link that leads elsewhere"));
        }
        match symlink(target, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => Ok(other?),
        }
    }

    /// A file of an object. What the cache has already stays.
    fn content(
        &self,
        path: &Path,
        entry: &mut dyn Read,
        (to, mode): (&Path, u32),
    ) -> Result<(), Trouble> {
        if to.exists() {
            return Ok(());
        }
        write(entry, to, mode)?;
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        let is_object = path.file_name() == Some(OsStr::new("elf"));
        let found = DiskFiles.read(to).ok();
        let found = found.and_then(|bytes| build_id_of_elf(&bytes));
        if is_object && found.is_none_or(|found| *found.to_string() != *folder) {
            fs::remove_file(to)?;
            return Err(Trouble::Refused("its build-id is another"));
        }
        Ok(())
    }
}

/// `path` below `root`, with the folders before it made. No part of it may be a link.
fn below(root: &Path, path: &Path) -> Result<PathBuf, Trouble> {
    if !is_plain(path) {
        return Err(Trouble::Refused("a path that leads elsewhere"));
    }
    let mut at = root.to_owned();
    for name in path.parent().unwrap_or(Path::new("")) {
        at.push(name);
        match at.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(Trouble::Refused(
                    "something else than a folder is on its way",
                ));
            }
            Err(_) => fs::create_dir(&at)?,
        }
    }
    Ok(root.join(path))
}

/// A path of names alone.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    let plain = parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    plain && path.file_name().is_some()
}

fn is_id(text: &str) -> bool {
    let digits = |byte: u8| byte.is_ascii_hexdigit();
    (8..=64).contains(&text.len()) && text.bytes().all(digits)
}

/// Writes a file that appears whole or not at all.
fn write(entry: &mut dyn Read, to: &Path, mode: u32) -> io::Result<()> {
    write_whole(to, |file| {
        let mode = fs::Permissions::from_mode(mode);
        file.get_ref().set_permissions(mode)?;
        io::copy(entry, file).map(drop)
    })
}

#[cfg(test)]
mod tests;
