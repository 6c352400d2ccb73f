//! The scripts of Linux perf that are built into `script`.

use std::ffi::{OsStr, OsString};

/// A script, implemented by `flamegraph`.
pub(crate) struct BuiltInScript {
    pub(crate) name: &'static str,
    /// The arguments shown after the name in the list of scripts.
    pub(crate) arguments: &'static str,
    pub(crate) description: &'static str,
    /// The options of `record` for the samples of the script.
    pub(crate) record: &'static [&'static str],
    /// The options of `flamegraph` that implement it.
    pub(crate) words: &'static [&'static str],
    /// The options of the script, each with the words that replace it.
    pub(crate) options: &'static [(&'static str, &'static [&'static str])],
}

/// All built-in scripts.
pub(crate) const SCRIPTS: [BuiltInScript; 2] = [
    BuiltInScript {
        name: "flamegraph",
        arguments: "[-f format] [-o file]",
        description: "stacks as a picture, or as a tree in JSON",
        record: &["-g"],
        words: &[],
        options: &[
            ("-f", &["--format"]),
            ("--format", &["--format"]),
            ("--colorscheme", &["--colors"]),
        ],
    },
    BuiltInScript {
        name: "stackcollapse",
        arguments: "",
        description: "stacks in lines, with their samples at the end",
        record: &[],
        words: &["--folded"],
        options: &[
            ("--include-pid", &["--root", "pid"]),
            ("--include-tid", &["--root", "tid"]),
            ("--no-comm", &["--root", "none"]),
            ("--kernel", &["--marks"]),
        ],
    },
];

impl BuiltInScript {
    /// Returns the words that replace a word given to the script.
    pub(crate) fn translated(&self, word: &OsStr) -> Vec<OsString> {
        match self.options.iter().find(|(own, _)| word == *own) {
            Some((_, words)) => words.iter().map(OsString::from).collect(),
            None => vec![word.to_owned()],
        }
    }
}
