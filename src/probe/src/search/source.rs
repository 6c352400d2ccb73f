//! Source files: path matching, and lines that match a pattern.

use std::path::{Path, PathBuf};

use rperf_names::matches_pattern;
use rperf_symbol::FileBytes;

use super::SearchOptions;
use crate::error::Error;
use crate::object::ProbeObject;

/// Whether `path` ends in `end`, and `end` begins at a component of `path` or at the slash before one.
pub(crate) fn is_path_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/') || end.starts_with('/'))
}

/// The lines of a source file.
#[derive(Debug)]
pub(crate) struct SourceText {
    /// The path it was read from.
    pub(crate) path: String,
    bytes: FileBytes,
}

impl SourceText {
    /// Reads the file whose path at compile time was `path`. If there is a source root, the file is only searched below it:
    /// first at the full path, then without leading components.
    pub(crate) fn read(
        object: &ProbeObject<'_>,
        options: &SearchOptions,
        path: &str,
    ) -> Result<Self, Error> {
        let files = object.inputs.files;
        let source = candidates(options.source_root.as_deref(), path)
            .into_iter()
            .find_map(|candidate| {
                let bytes = files.read(&candidate).ok()?;
                let path = candidate.to_string_lossy().into_owned();
                Some(Self { path, bytes })
            });
        source.ok_or_else(|| Error::NoSource { path: path.into() })
    }

    /// Returns the lines without line terminators.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let bytes: &[u8] = &self.bytes;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        bytes.split(|byte| *byte == b'\n')
    }

    /// Returns the numbers of the lines that match `pattern` as a whole or, if there are none, of those with a part that matches.
    /// Whitespace is ignored.
    pub(crate) fn matching(&self, pattern: &str) -> Vec<u32> {
        let bare = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace()).collect() };
        let bare_pattern = bare(pattern);
        let pattern_anywhere = format!("*{bare_pattern}*");
        let matching_lines = |pattern: &str| -> Vec<u32> {
            let numbered = (1_u32..).zip(self.lines());
            numbered
                .filter(|(_, line)| matches_pattern(pattern, &bare(&String::from_utf8_lossy(line))))
                .map(|(number, _)| number)
                .collect()
        };
        let lines = matching_lines(&bare_pattern);
        match lines.is_empty() {
            true => matching_lines(&pattern_anywhere),
            false => lines,
        }
    }
}

/// Returns the paths at which the file may be, in search order.
fn candidates(root: Option<&Path>, path: &str) -> Vec<PathBuf> {
    let Some(root) = root else {
        return vec![PathBuf::from(path)];
    };
    let path = Path::new(path.trim_start_matches('/'));
    let parts: Vec<_> = path.components().collect();
    let ends = (0..parts.len()).map(|from| parts.iter().skip(from).collect::<PathBuf>());
    ends.map(|end| root.join(end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_suffixes_match_full_components() {
        assert!(is_path_end("/src/calc.c", "calc.c"));
        assert!(is_path_end("/src/calc.c", "src/calc.c"));
        assert!(is_path_end("/src/calc.c", "/src/calc.c"));
        assert!(!is_path_end("/src/calc.c", "alc.c"));
    }

    #[test]
    fn patterns_ignore_whitespace_and_may_match_parts_of_lines() {
        let bytes = b"int f(void)\n{\n\ttotal += s;\n\treturn total;\n}\n".to_vec();
        let text = SourceText {
            path: "a.c".to_owned(),
            bytes: bytes.into(),
        };
        assert_eq!(text.matching("total+=*"), [3]);
        assert_eq!(text.matching("total += s;"), [3]);
        assert_eq!(text.matching("total"), [3, 4]);
        assert_eq!(text.matching("nowhere"), [0; 0]);
    }

    #[test]
    fn sources_are_searched_below_another_folder() {
        let paths = candidates(Some(Path::new("/new")), "/old/src/a.c");
        let expected = ["/new/old/src/a.c", "/new/src/a.c", "/new/a.c"];
        assert_eq!(paths, expected.map(PathBuf::from));
    }
}
