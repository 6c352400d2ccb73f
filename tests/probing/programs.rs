//! The probed programs, compiled once.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use rperf_testkit::{Outcome, Run, Scratch};

use crate::tidy::root;

/// Name, compiler, flags and source. With `-gno-statement-frontiers` and `-gno-variable-location-views`, the line table has only
/// one row at the entry of a function. `-fcf-protection=none` and `-z lazy` make a plain PLT, for probes of library functions.
const PROGRAMS: &[(&str, &str, &[&str], &str)] = &[
    ("plain", "cc", &["-O0", "-g"], "probed.c"),
    ("optimised", "cc", &["-O2", "-g"], "probed.c"),
    ("fixed", "cc", &["-O2", "-g", "-no-pie"], "probed.c"),
    ("compressed", "cc", &["-O2", "-g", "-gz"], "probed.c"),
    (
        "debug_frame",
        "cc",
        &["-O0", "-g", "-fno-asynchronous-unwind-tables"],
        "probed.c",
    ),
    (
        "debug_frame_compressed",
        "cc",
        &["-O0", "-g", "-fno-asynchronous-unwind-tables", "-gz"],
        "probed.c",
    ),
    (
        "dwarf2",
        "cc",
        &[
            "-O2",
            "-gdwarf-2",
            "-gno-statement-frontiers",
            "-gno-variable-location-views",
        ],
        "probed.c",
    ),
    (
        "dwarf3",
        "cc",
        &[
            "-O2",
            "-gdwarf-3",
            "-gno-statement-frontiers",
            "-gno-variable-location-views",
        ],
        "probed.c",
    ),
    (
        "dwarf4_one_row",
        "cc",
        &[
            "-O2",
            "-gdwarf-4",
            "-gno-statement-frontiers",
            "-gno-variable-location-views",
        ],
        "probed.c",
    ),
    ("dwarf4", "cc", &["-O2", "-gdwarf-4"], "probed.c"),
    ("split", "cc", &["-O2", "-g", "-gsplit-dwarf"], "probed.c"),
    (
        "type_units",
        "cc",
        &["-O2", "-g", "-fdebug-types-section"],
        "probed.c",
    ),
    ("separate_debug", "cc", &["-O2", "-g"], "probed.c"),
    ("nodebug", "cc", &["-O2"], "probed.c"),
    ("marked", "cc", &["-O2"], "marked.c"),
    ("variants", "cc", &["-O2", "-g", "-no-pie"], "variants.c"),
    (
        "scopes",
        "cc",
        &["-O2", "-g", "-fcf-protection=none", "-Wl,-z,lazy"],
        "scopes.c",
    ),
    ("scopes-nodebug", "cc", &["-O2", "-rdynamic"], "scopes.c"),
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

/// The commands that copy the debug information of the program `separate_debug` to a debug file, strip the program, and add a
/// link to the debug file.
const SEPARATE_DEBUG: [&[&str]; 3] = [
    &[
        "objcopy",
        "--only-keep-debug",
        "separate_debug",
        "separate_debug.debug",
    ],
    &["strip", "separate_debug"],
    &[
        "objcopy",
        "--add-gnu-debuglink=separate_debug.debug",
        "separate_debug",
    ],
];

/// The folder with the programs.
pub(super) fn programs() -> &'static Path {
    static FOLDER: OnceLock<Scratch> = OnceLock::new();
    FOLDER.get_or_init(compile).path()
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
    // Another copy of the source, for `probe --source`.
    let moved = scratch.path().join("moved");
    fs::create_dir(&moved).expect("a folder");
    let source = root().join("tests/workloads/probed.c");
    fs::copy(source, moved.join("probed.c")).expect("a source");
    for args in SEPARATE_DEBUG {
        let (program, args) = args.split_first().expect("a command has a name");
        let mut command = Command::new(program);
        let status = command.args(args).current_dir(scratch.path()).status();
        assert!(status.expect("binutils start").success(), "{args:?}");
    }
    scratch
}

/// Runs `tool probe` with these arguments in the folder of the programs.
pub(super) fn probe(tool: &Path, args: &[&str]) -> Outcome {
    let run = Run::new(tool).args(["probe"]).args(args);
    // Not the HOME of the user, whose settings and probe cache could change the output.
    run.within(programs())
        .env("HOME", programs())
        .finish()
        .expect("the tool starts")
}

/// The binary under test.
pub(super) fn rperf() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rperf"))
}
