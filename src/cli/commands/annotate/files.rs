//! A file for each function.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::cli::error::CliError;
use rperf_safefs::Folder;

/// Where files of functions go.
pub(super) struct Files<'d> {
    directory: &'d Path,
    /// Names that were given out.
    taken: BTreeSet<String>,
}

/// Characters that the name of a file takes of a function's.
const NAME: usize = 120;

impl<'d> Files<'d> {
    pub(super) fn new(directory: &'d Path) -> Self {
        Self {
            directory,
            taken: BTreeSet::new(),
        }
    }

    /// Makes a file for a function out of what `write` writes, and returns its path.
    ///
    /// # Errors
    ///
    /// Status 1: it can't be written.
    pub(super) fn write(
        &mut self,
        function: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, CliError> {
        let path = self.path(function);
        let written = Folder::open_own_or_create(self.directory, 0o777).and_then(|folder| {
            let name = path.file_name().unwrap_or_default();
            folder.write_whole(name, 0o666, |out| write(out))
        });
        match written {
            Ok(()) => Ok(path),
            Err(error) => Err(CliError::message(1, format!("{}: {error}", path.display()))),
        }
    }

    /// `NAME.annotation`, as perf's browser calls it, with a number where there are several.
    fn path(&mut self, function: &str) -> PathBuf {
        let name = function.chars().take(NAME).map(|letter| match letter {
            '/' => '_',
            letter if letter.is_control() => '_',
            letter => letter,
        });
        let name: String = name.collect();
        let mut file = format!("{name}.annotation");
        let mut number = 2;
        while !self.taken.insert(file.clone()) {
            file = format!("{name}-{number}.annotation");
            number += 1;
        }
        self.directory.join(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_a_file_of_its_own() {
        let mut files = Files::new(Path::new("out"));
        assert_eq!(files.path("leaf"), Path::new("out/leaf.annotation"));
        assert_eq!(files.path("leaf"), Path::new("out/leaf-2.annotation"));
        assert_eq!(files.path("../a/b"), Path::new("out/.._a_b.annotation"));
        let long = files.path(&"x".repeat(5000));
        assert!(long.to_string_lossy().len() < 200);
    }
}
