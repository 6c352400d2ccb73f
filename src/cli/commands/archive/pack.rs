//! The archive: a tar file laid out like the build-id cache, compressed with bzip2. With `--all`, this archive and
//! the recording are the two members of an outer archive.
//!
//! ```text
//! .build-id/xx/yyyy…      -> ../../usr/bin/ls/ID
//! usr/bin/ls/ID/
//! usr/bin/ls/ID/elf
//! ```

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use bzip2::Compression;
use bzip2::write::BzEncoder;
use rperf_safefs::{Folder, open_regular};
use tar::{Builder, EntryType, Header};

/// An archive being written.
pub(super) struct Archive<W: Write> {
    tar: Builder<BzEncoder<W>>,
    /// Modification time of members that are not copies of files, in seconds since 1970.
    time: u64,
}

/// A file to add to an object's directory.
pub(super) struct PackedFile {
    /// Its name in that directory.
    name: OsString,
    /// The path from which it is read.
    path: PathBuf,
}

impl PackedFile {
    pub(super) fn new(name: &str, path: &Path) -> Self {
        Self {
            name: name.into(),
            path: path.to_owned(),
        }
    }

    /// Returns the path from which the file is read.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all complete files of a directory of the cache.
    pub(super) fn of_folder(folder: &Path) -> io::Result<Vec<Self>> {
        let mut files = Vec::new();
        let folder = Folder::open(folder)?;
        for name in folder.names()? {
            let path = folder.path().join(&name);
            // A `.tmp` file is still being written by another process.
            let is_unfinished = path.extension().is_some_and(|end| end == "tmp");
            if folder.has_file(&name) && !is_unfinished {
                files.push(Self { name, path });
            }
        }
        Ok(files)
    }
}

impl<W: Write> Archive<W> {
    /// Starts an archive; `time` is the modification time of members that are not copies of files, in seconds since 1970.
    pub(super) fn new(output: W, time: u64) -> Self {
        let tar = Builder::new(BzEncoder::new(output, Compression::best()));
        Self { tar, time }
    }

    /// Adds an object: the link to it, its directory and its files. `name` is its path, or the
    /// name that it has in the cache; `id` is its build-id in hexadecimal.
    pub(super) fn add_object(
        &mut self,
        name: &Path,
        id: &str,
        files: &[PackedFile],
    ) -> io::Result<()> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let (first, rest) = id.split_at_checked(2).ok_or_else(invalid)?;
        let folder = name.strip_prefix("/").unwrap_or(name).join(id);
        let mut parts = folder.components();
        if !parts.all(|part| matches!(part, Component::Normal(_))) {
            return Err(invalid());
        }
        let mut link = Header::new_gnu();
        link.set_entry_type(EntryType::Symlink);
        link.set_mode(0o777);
        link.set_size(0);
        link.set_mtime(self.time);
        let path = Path::new(".build-id").join(first).join(rest);
        let target = Path::new("../..").join(&folder);
        self.tar.append_link(&mut link, path, target)?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        header.set_mtime(self.time);
        // tar marks directories with a trailing slash.
        self.tar
            .append_data(&mut header, folder.join(""), io::empty())?;
        for packed in files {
            let mut file = open_regular(&packed.path)?;
            self.tar.append_file(folder.join(&packed.name), &mut file)?;
        }
        Ok(())
    }

    /// Adds a copy of a file under its name without directories.
    pub(super) fn add_file(&mut self, path: &Path) -> io::Result<()> {
        let mut file = open_regular(path)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        self.tar.append_file(name, &mut file)
    }

    /// Adds a file with these bytes.
    pub(super) fn add_bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        header.set_mtime(self.time);
        self.tar.append_data(&mut header, name, bytes)
    }

    /// Completes the archive and returns the output.
    pub(super) fn finish(self) -> io::Result<W> {
        self.tar.into_inner()?.finish()
    }
}
