//! The programs that are probed, compiled once.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use rperf_testkit::{Outcome, Run, Scratch};

use crate::tidy::root;

/// Name, compiler, flags and source.
const PROGRAMS: &[(&str, &str, &[&str], &str)] = &[
    ("plain", "cc", &["-O0", "-g"], "probed.c"),
    ("optimised", "cc", &["-O2", "-g"], "probed.c"),
    ("fixed", "cc", &["-O2", "-g", "-no-pie"], "probed.c"),
    ("packed", "cc", &["-O2", "-g", "-gz"], "probed.c"),
    ("old", "cc", &["-O2", "-gdwarf-4"], "probed.c"),
    ("split", "cc", &["-O2", "-g", "-gsplit-dwarf"], "probed.c"),
    (
        "typed",
        "cc",
        &["-O2", "-g", "-fdebug-types-section"],
        "probed.c",
    ),
    ("apart", "cc", &["-O2", "-g"], "probed.c"),
    ("bare", "cc", &["-O2"], "probed.c"),
    ("marked", "cc", &["-O2"], "marked.c"),
    ("variants", "cc", &["-O2", "-g", "-no-pie"], "variants.c"),
    (
        "scopes",
        "cc",
        &["-O2", "-g", "-fcf-protection=none", "-Wl,-z,lazy"],
        "scopes.c",
    ),
    ("scopes-bare", "cc", &["-O2", "-rdynamic"], "scopes.c"),
    ("plain++", "c++", &["-O0", "-g"], "probed.cpp"),
    ("optimised++", "c++", &["-O2", "-g"], "probed.cpp"),
    (
        "plain-rs",
        "rustc",
        &["-g", "--crate-name", "probed"],
        "probed.rs",
    ),
    (
        "optimised-rs",
        "rustc",
        &["-g", "-O", "--crate-name", "probed"],
        "probed.rs",
    ),
];

/// What strips the program `apart`, and leaves a link to its debug information.
const APART: [&[&str]; 3] = [
    &["objcopy", "--only-keep-debug", "apart", "apart.debug"],
    &["strip", "apart"],
    &["objcopy", "--add-gnu-debuglink=apart.debug", "apart"],
];

/// The folder with the programs.
pub(super) fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<Scratch> = OnceLock::new();
    PROGRAMS.get_or_init(compile).path()
}

fn compile() -> Scratch {
    let scratch = Scratch::new();
    let compilers = PROGRAMS.iter().map(|(name, compiler, flags, source)| {
        let mut command = Command::new(compiler);
        command.args(*flags).args(["-o", name]);
        command.arg(root().join("tests/workloads").join(source));
        let child = command.current_dir(scratch.path()).spawn();
        (name, child.expect("a compiler starts"))
    });
    let compilers: Vec<_> = compilers.collect();
    for (name, mut child) in compilers {
        let status = child.wait().expect("a compiler ends");
        assert!(status.success(), "{name} is compiled");
    }
    let moved = scratch.path().join("moved");
    fs::create_dir(&moved).expect("a folder");
    let source = root().join("tests/workloads/probed.c");
    fs::copy(source, moved.join("probed.c")).expect("a source");
    for words in APART {
        let (program, words) = words.split_first().expect("a command has a name");
        let mut command = Command::new(program);
        let status = command.args(words).current_dir(scratch.path()).status();
        assert!(status.expect("binutils start").success(), "{words:?}");
    }
    scratch
}

/// What `tool probe` makes of these words, in the folder of the programs.
pub(super) fn probe(tool: &Path, words: &[&str]) -> Outcome {
    let run = Run::new(tool).args(["probe"]).args(words);
    run.within(programs())
        .env("HOME", programs())
        .finish()
        .expect("the tool starts")
}

/// The binary under test.
pub(super) fn rperf() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rperf"))
}
