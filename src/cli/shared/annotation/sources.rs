//! The source files of annotated functions, as far as they can be read.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_disasm::{FunctionCode, Listing};
use rperf_safefs::read;
use rperf_view::annotate::SourceText;

/// The maximum size of a source file, in bytes.
const MAX_SOURCE: u64 = 64 << 20;

/// How recorded source paths are mapped to local ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathPrefix {
    /// `--prefix`.
    pub(crate) directory: Option<PathBuf>,
    /// `--prefix-strip`: the number of leading directories to remove.
    pub(crate) strip: u64,
}

impl PathPrefix {
    /// Parses the options.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        Self {
            directory: matches.get_one::<String>("prefix").map(Into::into),
            strip: matches.get_one("prefix-strip").copied().unwrap_or_default(),
        }
    }

    /// Returns the local path of a source file that is `path` in the debug information. Relative paths, and without
    /// `--prefix` all paths, are unchanged.
    fn local_path(&self, path: &Path) -> PathBuf {
        let directory = match &self.directory {
            Some(directory) if path.is_absolute() => directory,
            _ => return path.to_owned(),
        };
        let parts = path
            .components()
            .filter(|part| matches!(part, Component::Normal(_)));
        let strip = usize::try_from(self.strip).unwrap_or(usize::MAX);
        directory.join(parts.skip(strip).collect::<PathBuf>())
    }
}

/// The texts of the files that listings refer to.
pub(crate) struct SourceTexts {
    prefix: PathPrefix,
    files: BTreeMap<String, SourceFile>,
}

/// A source file. Its lines are read when they are first requested; they are `None` if the file can't be read.
struct SourceFile {
    local_path: PathBuf,
    lines: OnceCell<Option<Arc<[String]>>>,
}

impl SourceTexts {
    /// Creates an empty set.
    pub(crate) fn new(prefix: PathPrefix) -> Self {
        let files = BTreeMap::new();
        Self { prefix, files }
    }

    /// Adds the files of a listing.
    pub(crate) fn add(&mut self, listing: &Listing<'_>) {
        let sites = listing.lines.iter().filter_map(|line| line.site);
        for (path, _) in sites.filter_map(|site| site.line) {
            self.add_file(path);
        }
    }

    /// Adds a file.
    fn add_file(&mut self, path: &str) {
        if !self.files.contains_key(path) {
            let local_path = self.prefix.local_path(Path::new(path));
            let lines = OnceCell::new();
            let file = SourceFile { local_path, lines };
            self.files.insert(path.to_owned(), file);
        }
    }

    /// Returns the lines of each file of [`FunctionCode::files`]; `None` for a file that can't be read.
    pub(crate) fn of(&mut self, code: &FunctionCode) -> Vec<Option<Arc<[String]>>> {
        let files = code.files.iter().map(|path| {
            self.add_file(path);
            self.read(path).cloned()
        });
        files.collect()
    }

    /// Returns the lines of a file; `None` if it can't be read.
    fn read(&self, path: &str) -> Option<&Arc<[String]>> {
        let file = self.files.get(path)?;
        let lines = file.lines.get_or_init(|| {
            let bytes = read(&file.local_path, MAX_SOURCE).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            Some(text.lines().map(str::to_owned).collect())
        });
        lines.as_ref()
    }
}

impl SourceText for SourceTexts {
    fn line(&self, path: &str, line: u32) -> Option<&str> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        self.read(path)?.get(index).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_get_the_prefix() {
        let moved = |strip| PathPrefix {
            directory: Some("/new".into()),
            strip,
        };
        let local = |prefix: &PathPrefix, path: &str| prefix.local_path(Path::new(path));
        assert_eq!(local(&moved(0), "/a/b.c"), Path::new("/new/a/b.c"));
        assert_eq!(local(&moved(1), "/a/b.c"), Path::new("/new/b.c"));
        assert_eq!(local(&moved(1), "a/b.c"), Path::new("a/b.c"));
    }
}
