//! The text of source files, for the field `srccode` of `script`.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rperf_resolve::SourceLine;
use rperf_symbol::{FileBytes, Files};
use rustc_hash::FxHashMap;

/// Source files, loaded on first use. Shared by all threads.
pub struct SourceFiles<'f> {
    files: &'f dyn Files,
    /// By path; `None` if the file can't be read.
    loaded: RwLock<FxHashMap<Box<str>, Option<Arc<SourceFile>>>>,
}

/// One file.
#[derive(Debug)]
struct SourceFile {
    /// Number of paths in [`SourceFiles::loaded`] before this one, including files that can't be read; part of the ids of its
    /// lines.
    number: u32,
    bytes: FileBytes,
    /// Offsets in bytes at which the lines begin.
    starts: Vec<usize>,
}

/// One line of a source file.
#[derive(Debug, Clone)]
pub struct SourceFileLine {
    file: Arc<SourceFile>,
    line: u32,
}

impl<'f> SourceFiles<'f> {
    /// Creates a cache of files read through `files`.
    #[must_use]
    pub fn new(files: &'f dyn Files) -> Self {
        Self {
            files,
            loaded: RwLock::default(),
        }
    }

    /// The text of a line, if the file can be read and has that line.
    #[must_use]
    pub fn line(&self, location: SourceLine<'_>) -> Option<SourceFileLine> {
        let line = location.line;
        let file = self.file(location.path)?;
        file.line(line)
            .is_some()
            .then_some(SourceFileLine { file, line })
    }

    fn file(&self, path: &str) -> Option<Arc<SourceFile>> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = loaded.get(path) {
            return known.clone();
        }
        drop(loaded);
        // Read without the lock: if another thread has added the file meanwhile, that one is returned.
        let bytes = self.files.read(Path::new(path)).ok();
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        let number = u32::try_from(loaded.len()).unwrap_or(u32::MAX);
        let create = || bytes.map(|bytes| Arc::new(SourceFile::new(number, bytes)));
        loaded.entry(path.into()).or_insert_with(create).clone()
    }
}

impl SourceFile {
    fn new(number: u32, bytes: FileBytes) -> Self {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let after = ends.map(|(end, _)| end + 1);
        // No line begins at the end of the file: neither after its last newline, nor in an empty file.
        let starts = std::iter::once(0)
            .chain(after)
            .filter(|start| *start < bytes.len());
        let starts = starts.collect();
        Self {
            number,
            bytes,
            starts,
        }
    }

    /// The text of line `line`, counted from 1; `None` if the file has no such line.
    fn line(&self, line: u32) -> Option<&[u8]> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let rest = self.bytes.get(*self.starts.get(index)?..)?;
        rest.split(|byte| *byte == b'\n').next()
    }
}

impl SourceFileLine {
    /// The line number, from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.line
    }

    /// The text of the line, without the newline.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.file.line(self.line).unwrap_or_default()
    }

    /// An id of the line, unique among the lines of one [`SourceFiles`].
    #[must_use]
    pub fn id(&self) -> u64 {
        u64::from(self.file.number) << 32 | u64::from(self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_symbol::MemoryFiles;

    #[test]
    fn lines_by_file_and_number() {
        let mut files = MemoryFiles::new();
        files.insert("/src/a.c", b"one\n\n\tthree\nfour".to_vec());
        files.insert("/src/b.c", b"one\n".to_vec());
        files.insert("/src/empty.c", Vec::new());
        let sources = SourceFiles::new(&files);
        let line = |path, line| sources.line(SourceLine { path, line });
        let text = |path, number| {
            let line = line(path, number)?;
            assert_eq!(line.number(), number);
            Some(String::from_utf8(line.bytes().to_vec()).unwrap())
        };
        for (number, expected) in [
            (0, None),
            (1, Some("one")),
            (2, Some("")),
            (3, Some("\tthree")),
            (4, Some("four")),
            (5, None),
        ] {
            assert_eq!(text("/src/a.c", number).as_deref(), expected);
        }
        assert_eq!(text("/src/b.c", 2), None);
        assert_eq!(text("/src/empty.c", 1), None);
        assert_eq!(text("/src/gone.c", 1), None);
        let ids = [("/src/a.c", 1), ("/src/a.c", 2), ("/src/b.c", 1)];
        let ids = ids.map(|(path, number)| line(path, number).unwrap().id());
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
        assert_eq!(line("/src/a.c", 1).unwrap().id(), ids[0]);
    }
}
