//! `-s [LANGUAGE:]FILE`: the script, its language and its interpreter.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_scripting::ScriptLanguage;

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// A script to run.
#[derive(Debug)]
pub(super) struct ScriptFile {
    pub(super) language: ScriptLanguage,
    pub(super) path: PathBuf,
    /// Its arguments.
    pub(super) arguments: Vec<OsString>,
    /// The text of a script that is built in; `None` for a file.
    pub(super) source: Option<&'static str>,
}

impl ScriptFile {
    /// Reads `-s` and the words after it; `None` without `-s`.
    ///
    /// # Errors
    ///
    /// Status 129: an unknown language. Status 255: a file whose metadata cannot be read.
    pub(super) fn new(matches: &ArgMatches) -> Result<Option<Self>, CliError> {
        let Some(spec) = matches.get_one::<OsString>("script") else {
            return Ok(None);
        };
        let words = matches.get_many::<OsString>("script-word");
        let arguments = words.unwrap_or_default().cloned().collect();
        let (language, path) = parse(spec)?;
        if let Err(error) = path.metadata() {
            let path = path.display();
            return Err(CliError::message(255, format!("-s {path}: {error}"))
                .hint("-s takes the path of a script; scripts of --list are run with 'script report NAME'"));
        }
        Ok(Some(Self {
            language,
            path,
            arguments,
            source: None,
        }))
    }

    /// A script in Python that is built in.
    pub(super) fn built_in(name: &str, source: &'static str, arguments: Vec<OsString>) -> Self {
        Self {
            language: ScriptLanguage::Python,
            path: name.into(),
            arguments,
            source: Some(source),
        }
    }
}

/// Splits `LANGUAGE:FILE`. Without a language, the extension of the file determines it.
fn parse(spec: &OsStr) -> Result<(ScriptLanguage, PathBuf), CliError> {
    const LANGUAGES: &str = "the languages are python (py) and perl (pl)";
    let bytes = spec.as_bytes();
    let (name, path, message_if_unknown) = match bytes.iter().position(|&byte| byte == b':') {
        Some(colon) => {
            let (name, path) = bytes.split_at(colon);
            let path = path.get(1..).unwrap_or_default();
            (
                Some(OsStr::from_bytes(name)),
                OsStr::from_bytes(path),
                "invalid language specifier",
            )
        }
        None => (
            Path::new(spec).extension(),
            spec,
            "invalid script extension",
        ),
    };
    let name = name.unwrap_or_default().to_ascii_lowercase();
    let language = match name.as_bytes() {
        b"python" | b"py" => ScriptLanguage::Python,
        b"perl" | b"pl" => ScriptLanguage::Perl,
        _ => {
            return Err(
                CliError::usage(format!("{message_if_unknown}: -s {}", spec.display()))
                    .hint(LANGUAGES),
            );
        }
    };
    Ok((language, path.into()))
}

/// The interpreter of a Python script, from the first of these sources: `--python`, the active virtual environment, the
/// script's first line if it names an existing file `python3…`, python3 on PATH.
pub(super) fn python(matches: &ArgMatches, first_line: &[u8], context: &Context) -> PathBuf {
    if let Some(given) = matches.get_one::<OsString>("python") {
        return given.into();
    }
    if let Some(environment) = context.var("VIRTUAL_ENV") {
        let interpreter = Path::new(&environment).join("bin/python3");
        if interpreter.exists() {
            return interpreter;
        }
    }
    shebang(first_line, b"python3")
        .filter(|program| program.exists())
        .unwrap_or_else(|| "python3".into())
}

/// The interpreter of a Perl script: that of its first line if it is an existing file `perl…`, otherwise perl on PATH.
pub(super) fn perl(first_line: &[u8]) -> PathBuf {
    shebang(first_line, b"perl")
        .filter(|program| program.exists())
        .unwrap_or_else(|| "perl".into())
}

/// Returns the path after `#!`, if its file name begins with `prefix`; `None` for `env`, since the interpreter on
/// PATH is the default.
fn shebang(first_line: &[u8], prefix: &[u8]) -> Option<PathBuf> {
    let program = first_line.strip_prefix(b"#!")?.trim_ascii_start();
    let end = program.iter().position(u8::is_ascii_whitespace);
    let program = program.get(..end.unwrap_or(program.len()))?;
    let path = Path::new(OsStr::from_bytes(program));
    let name = path.file_name()?.as_bytes();
    name.starts_with(prefix).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_the_prefix_or_the_extension() {
        for (spec, expected, path) in [
            ("a.py", ScriptLanguage::Python, "a.py"),
            ("python:b", ScriptLanguage::Python, "b"),
            ("Py:c.txt", ScriptLanguage::Python, "c.txt"),
            ("a.pl", ScriptLanguage::Perl, "a.pl"),
            ("perl:b.py", ScriptLanguage::Perl, "b.py"),
        ] {
            let (language, found) = parse(OsStr::new(spec)).unwrap();
            assert_eq!((language, found.to_str().unwrap()), (expected, path));
        }
        for (spec, message) in [
            ("list", "invalid script extension: -s list"),
            ("ruby:a.py", "invalid language specifier: -s ruby:a.py"),
        ] {
            let error = parse(OsStr::new(spec)).unwrap_err();
            assert!(error.text().starts_with(message), "{}", error.text());
        }
    }

    #[test]
    fn first_line_names_an_interpreter_by_path() {
        for (line, program) in [
            (&b"#!/usr/bin/python3 -u\n"[..], Some("/usr/bin/python3")),
            (b"#! /opt/python3.12", Some("/opt/python3.12")),
            (b"#!/usr/bin/env python3\n", None),
            (b"#!/usr/bin/python2\n", None),
            (b"import os\n", None),
        ] {
            assert_eq!(
                shebang(line, b"python3"),
                program.map(PathBuf::from),
                "{}",
                line.escape_ascii()
            );
        }
        let found = shebang(b"#!/usr/bin/perl -w\n", b"perl");
        assert_eq!(found, Some(PathBuf::from("/usr/bin/perl")));
    }
}
