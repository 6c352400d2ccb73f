//! Source files, as far as they are at hand.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use rperf_disasm::Listing;
use rperf_view::annotate::SourceText;

/// Where source files are looked for instead of where the compiler found them.
pub(super) struct Prefix {
    /// `--prefix`.
    pub(super) directory: Option<PathBuf>,
    /// `--prefix-strip`: how many directories are left out first.
    pub(super) strip: u64,
}

impl Prefix {
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

/// The text of the files that a listing names.
pub(super) struct Sources(BTreeMap<String, SourceFile>);

/// Where a file is, and its lines once they were asked for; `None` if it can't be read.
struct SourceFile {
    place: PathBuf,
    lines: OnceCell<Option<Vec<String>>>,
}

impl Sources {
    /// Of one listing.
    pub(super) fn of(listing: &Listing, prefix: &Prefix) -> Self {
        let sites = listing.lines.iter().filter_map(|line| line.site.as_ref());
        let paths = sites.filter_map(|site| site.line.as_ref());
        let files = paths.map(|(path, _)| {
            let place = prefix.place(Path::new(path));
            let lines = OnceCell::new();
            (path.clone(), SourceFile { place, lines })
        });
        Self(files.collect())
    }
}

impl SourceText for Sources {
    fn line(&self, path: &str, line: u32) -> Option<&str> {
        let file = self.0.get(path)?;
        let lines = file.lines.get_or_init(|| {
            let bytes = fs::read(&file.place).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            Some(text.lines().map(str::to_owned).collect())
        });
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        lines.as_ref()?.get(index).map(String::as_str)
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
