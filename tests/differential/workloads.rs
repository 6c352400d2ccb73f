//! Small programs to record, compiled from tests/workloads by the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tidy::root;

/// Compiler, flags, source and the program's name.
const PROGRAMS: &[(&str, &[&str], &str, &str)] = &[
    (
        "cc",
        &["-O1", "-g", "-fno-omit-frame-pointer"],
        "frames.c",
        "frames",
    ),
    (
        "cc",
        &["-O1", "-s", "-fno-omit-frame-pointer"],
        "frames.c",
        "stripped",
    ),
    ("cc", &["-O1", "-fno-omit-frame-pointer"], "jit.c", "jit"),
    (
        "cc",
        &["-O1", "-fno-omit-frame-pointer", "-pthread"],
        "family.c",
        "family",
    ),
    (
        "cc",
        &["-O1", "-fno-omit-frame-pointer"],
        "unlinked.c",
        "unlinked",
    ),
    (
        "c++",
        &["-std=c++17", "-O1", "-fno-omit-frame-pointer"],
        "shapes.cpp",
        "shapes",
    ),
    (
        "rustc",
        &["-O", "-C", "force-frame-pointers=yes"],
        "traits.rs",
        "traits",
    ),
];

/// The folder with the compiled programs.
pub(crate) struct Workloads {
    folder: Option<PathBuf>,
}

impl Workloads {
    /// Compiles all programs in parallel.
    ///
    /// # Panics
    ///
    /// If a program cannot be compiled: the tests need a C, a C++ and a Rust compiler anyway.
    pub(crate) fn build(folder: &Path) -> Self {
        let sources = root().join("tests/workloads");
        let running = PROGRAMS.iter().map(|(compiler, flags, source, name)| {
            let child = Command::new(compiler)
                .args(*flags)
                .arg(sources.join(source))
                .arg("-o")
                .arg(folder.join(name))
                .spawn()
                .unwrap_or_else(|error| panic!("{compiler} does not start: {error}"));
            (child, source)
        });
        for (mut child, source) in running.collect::<Vec<_>>() {
            let status = child.wait().expect("a compiler can be waited for");
            assert!(status.success(), "{source} can't be compiled");
        }
        Self {
            folder: Some(folder.to_path_buf()),
        }
    }

    /// No programs, for recordings of other commands.
    pub(crate) fn none() -> Self {
        Self { folder: None }
    }

    /// The path of the program called `name`, if it exists.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        let path = self.folder.as_ref()?.join(name);
        path.is_file().then_some(path)
    }

    /// Removes the perf maps that `jit` left in /tmp for readers of its recordings.
    pub(crate) fn clean_up(&self) {
        for entry in fs::read_dir("/tmp").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_map = name.starts_with("perf-") && name.ends_with(".map");
            let is_of_jit = || {
                fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(" jitted first\n"))
            };
            if is_map && is_of_jit() {
                // A leftover map does no harm.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}
