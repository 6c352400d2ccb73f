//! Source files, as far as they are at hand.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_disasm::{Code, Listing};
use rperf_safefs::read;
use rperf_view::annotate::SourceText;

/// The largest source file that is shown, in bytes.
const MAX_SOURCE: u64 = 64 << 20;

/// Where source files are looked for instead of where the compiler found them.
#[derive(Debug, Clone, Default)]
pub(in crate::cli::commands) struct Prefix {
    /// `--prefix`.
    pub(super) directory: Option<PathBuf>,
    /// `--prefix-strip`: how many directories are left out first.
    pub(super) strip: u64,
}

impl Prefix {
    /// As the options say.
    pub(super) fn new(matches: &ArgMatches) -> Self {
        Self {
            directory: matches.get_one::<String>("prefix").map(Into::into),
            strip: matches.get_one("prefix-strip").copied().unwrap_or_default(),
        }
    }

    /// Where the file that was at `path` is now.
    fn place(&self, path: &Path) -> PathBuf {
        let Some(directory) = self.directory.as_ref().filter(|_| path.is_absolute()) else {
            return path.to_owned();
        };
        let parts = path
            .components()
            .filter(|part| matches!(part, Component::Normal(_)));
        let strip = usize::try_from(self.strip).unwrap_or(usize::MAX);
        directory.join(parts.skip(strip).collect::<PathBuf>())
    }
}

/// The text of the files that listings name.
pub(in crate::cli::commands) struct Sources {
    prefix: Prefix,
    files: BTreeMap<String, SourceFile>,
}

/// Where a file is, and its lines once they were asked for; `None` if it can't be read.
struct SourceFile {
    place: PathBuf,
    lines: OnceCell<Option<Arc<[String]>>>,
}

impl Sources {
    /// Of no listing yet.
    pub(in crate::cli::commands) fn new(prefix: Prefix) -> Self {
        let files = BTreeMap::new();
        Self { prefix, files }
    }

    /// Takes in the files of a listing.
    pub(in crate::cli::commands) fn add(&mut self, listing: &Listing<'_>) {
        let sites = listing.lines.iter().filter_map(|line| line.site);
        for (path, _) in sites.filter_map(|site| site.line) {
            self.add_file(path);
        }
    }

    /// Takes in a file.
    fn add_file(&mut self, path: &str) {
        if !self.files.contains_key(path) {
            let place = self.prefix.place(Path::new(path));
            let lines = OnceCell::new();
            let file = SourceFile { place, lines };
            self.files.insert(path.to_owned(), file);
        }
    }

    /// The lines of the files that some code names, as far as they are at hand.
    pub(in crate::cli::commands) fn of(&mut self, code: &Code) -> Vec<Option<Arc<[String]>>> {
        let files = code.files.iter().map(|path| {
            self.add_file(path);
            self.read(path).cloned()
        });
        files.collect()
    }

    /// The lines of a file; `None` if it can't be read.
    fn read(&self, path: &str) -> Option<&Arc<[String]>> {
        let file = self.files.get(path)?;
        let lines = file.lines.get_or_init(|| {
            let bytes = read(&file.place, MAX_SOURCE).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            Some(text.lines().map(str::to_owned).collect())
        });
        lines.as_ref()
    }
}

impl SourceText for Sources {
    fn line(&self, path: &str, line: u32) -> Option<&str> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        self.read(path)?.get(index).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_move_below_another_directory() {
        let moved = |strip| Prefix {
            directory: Some("/new".into()),
            strip,
        };
        let place = |prefix: &Prefix, path: &str| prefix.place(Path::new(path));
        assert_eq!(place(&moved(0), "/a/b.c"), Path::new("/new/a/b.c"));
        assert_eq!(place(&moved(1), "/a/b.c"), Path::new("/new/b.c"));
        assert_eq!(place(&moved(1), "a/b.c"), Path::new("a/b.c"));
    }
}
