//! Writes the annotation of each function to a file.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::cli::error::CliError;
use rperf_safefs::Folder;

/// The annotation files in an output directory, one for each function.
pub(crate) struct AnnotationFiles<'d> {
    directory: &'d Path,
    /// File names already used for a function. Files of earlier runs are replaced.
    taken: BTreeSet<String>,
}

/// The maximum size of a function's name in a file name, in bytes: with the extension and the suffix of a temporary file, the
/// file name stays below `NAME_MAX` (255).
const MAX_NAME: usize = 120;

impl<'d> AnnotationFiles<'d> {
    pub(crate) fn new(directory: &'d Path) -> Self {
        Self {
            directory,
            taken: BTreeSet::new(),
        }
    }

    /// Creates or replaces a function's file with the output of `write`, and returns its path.
    ///
    /// # Errors
    ///
    /// Status 1: the file can't be written.
    pub(crate) fn write(
        &mut self,
        function: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, CliError> {
        let path = self.path(function);
        let written = Folder::open_own_or_create(self.directory, 0o777).and_then(|folder| {
            let name = path.file_name().unwrap_or_default();
            folder.write_atomic(name, 0o666, |out| write(out))
        });
        match written {
            Ok(()) => Ok(path),
            Err(error) => Err(CliError::message(1, format!("{}: {error}", path.display()))),
        }
    }

    /// Returns `NAME.annotation`, as in perf's browser, or `NAME-2.annotation` and so on if that was returned before.
    fn path(&mut self, function: &str) -> PathBuf {
        let name = function.chars().map(|letter| match letter {
            '/' => '_',
            letter if letter.is_control() => '_',
            letter => letter,
        });
        let mut name: String = name.collect();
        while name.len() > MAX_NAME {
            name.pop();
        }
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
        let mut files = AnnotationFiles::new(Path::new("out"));
        assert_eq!(files.path("leaf"), Path::new("out/leaf.annotation"));
        assert_eq!(files.path("leaf"), Path::new("out/leaf-2.annotation"));
        assert_eq!(files.path("../a/b"), Path::new("out/.._a_b.annotation"));
        for letter in ["x", "é", "語"] {
            let long = files.path(&letter.repeat(5000));
            // `MAX_NAME` and a few bytes for the directory, the number and the extension.
            assert!(long.to_string_lossy().len() < 200);
        }
    }
}
