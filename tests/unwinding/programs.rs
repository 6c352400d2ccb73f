//! The programs whose stacks are unwound, and their recordings.

use std::path::{Path, PathBuf};
use std::process::Command;

use rperf_testkit::{Outcome, Run, Scratch};

use crate::tidy::root;

/// Maximum number of recordings of a program until each of its functions is sampled: the timing of samples depends on the
/// machine.
pub(super) const RECORDINGS: usize = 5;

/// A folder that is home and working directory of all programs.
pub(super) struct ProgramFolder {
    pub(super) scratch: Scratch,
}

/// A program to compile.
pub(super) struct Program {
    pub(super) name: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
    source: &'static str,
}

/// Returns a program that is compiled from stacks.c.
const fn stacks(name: &'static str, flags: &'static [&'static str]) -> Program {
    let (compiler, source) = ("cc", "stacks.c");
    Program {
        name,
        compiler,
        flags,
        source,
    }
}

pub(super) const OPTIMISED: Program = stacks("optimised", &["-O2", "-g", "-pthread"]);
pub(super) const PLAIN: Program = stacks("plain", &["-O0", "-g", "-pthread"]);
pub(super) const STATIC: Program = stacks("static", &["-O2", "-static", "-pthread"]);
pub(super) const STRIPPED: Program = stacks("stripped", &["-O2", "-s", "-pthread"]);
/// Stripped after compilation, with a link to a separate debug file.
pub(super) const SEPARATE_DEBUG: Program = stacks("separate_debug", &["-O2", "-g", "-pthread"]);
/// A program with a function that recurses as often as the program's argument says. Its test records it, not
/// [`ProgramFolder::record_with`].
pub(super) const RECURSION: Program = Program {
    source: "recursion.c",
    ..stacks("recursion", &["-O1", "-g"])
};
/// A program without build-id.
pub(super) const NAMELESS: Program =
    stacks("nameless", &["-O2", "-pthread", "-Wl,--build-id=none"]);
/// A program with unwind information only in `.debug_frame`.
pub(super) const DEBUG_FRAME: Program = stacks(
    "debug-frame",
    &["-O2", "-g", "-pthread", "-fno-asynchronous-unwind-tables"],
);
/// A program without unwind information, but with frame pointers.
pub(super) const FRAME_POINTERS: Program = stacks(
    "frame-pointers",
    &[
        "-O0",
        "-pthread",
        "-fno-asynchronous-unwind-tables",
        "-fno-omit-frame-pointer",
    ],
);
pub(super) const PANICS: Program = Program {
    name: "panics",
    compiler: "rustc",
    flags: &["-O", "-g"],
    source: "panics.rs",
};
pub(super) const PANICS_STATIC: Program = Program {
    name: "panics-static",
    flags: &[
        "-O",
        "-g",
        "-C",
        "target-feature=+crt-static",
        "--crate-name",
        "panics",
    ],
    ..PANICS
};
/// A 32-bit program, only on x86-64: compilers for x86-64 build such programs, and most x86-64 kernels run them.
pub(super) const IA32: Program = Program {
    name: "ia32",
    compiler: "cc",
    flags: &[
        "-m32",
        "-O2",
        "-nostdlib",
        "-static",
        "-ffreestanding",
        "-fno-stack-protector",
        "-fasynchronous-unwind-tables",
    ],
    source: "ia32.c",
};
pub(super) const CPLUSPLUS: Program = Program {
    name: "shapes",
    compiler: "c++",
    flags: &["-std=c++17", "-O2", "-g"],
    source: "shapes.cpp",
};

/// A program linked statically with the musl C library, whose functions have no frame pointers.
pub(super) const PANICS_MUSL: Program = Program {
    name: "panics-musl",
    flags: &[
        "-O",
        "-g",
        "--target",
        if cfg!(target_arch = "aarch64") {
            "aarch64-unknown-linux-musl"
        } else {
            "x86_64-unknown-linux-musl"
        },
        "--crate-name",
        "panics",
    ],
    ..PANICS
};
pub(super) const GO: Program = Program {
    name: "go",
    compiler: "go",
    flags: &["build"],
    source: "stacks.go",
};
/// A Go program without DWARF: it has frame pointers, but no DWARF unwind information.
pub(super) const GO_PLAIN: Program = Program {
    name: "go-plain",
    flags: &["build", "-ldflags=-w"],
    ..GO
};

impl ProgramFolder {
    pub(super) fn new() -> Self {
        Self {
            scratch: Scratch::new(),
        }
    }

    pub(super) fn run(&self, program: &Path, words: &[&str]) -> Outcome {
        let home = self.scratch.path();
        let run = Run::new(program).args(words).within(home);
        let finished = run.env("HOME", home).finish();
        finished.unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()))
    }

    pub(super) fn rperf(&self, words: &[&str]) -> Outcome {
        self.run(Path::new(env!("CARGO_BIN_EXE_rperf")), words)
    }

    /// Compiles `program`; returns the reason if the compiler, its target or binutils are missing.
    pub(super) fn compile(&self, program: &Program) -> Result<(), String> {
        let folder = self.scratch.path();
        let compiled = Command::new(program.compiler)
            .args(program.flags)
            .arg("-o")
            .arg(folder.join(program.name))
            .arg(root().join("tests/workloads").join(program.source))
            // Go needs a folder for its build cache.
            .env("GOCACHE", folder.join("go-cache"))
            .output();
        let compiled =
            compiled.map_err(|error| format!("{} does not start: {error}", program.compiler))?;
        let message = String::from_utf8_lossy(&compiled.stderr);
        if message.contains("target may not be installed") {
            return Err(message.into_owned());
        }
        assert!(compiled.status.success(), "{}: {message}", program.source);
        if program.name == SEPARATE_DEBUG.name {
            self.separate_debug_file(program.name)?;
        }
        Ok(())
    }

    /// Moves the symbols of `name` into a separate debug file, and links to it.
    fn separate_debug_file(&self, name: &str) -> Result<(), String> {
        let debug = format!("{name}.debug");
        let link = format!("--add-gnu-debuglink={debug}");
        for words in [
            &["objcopy", "--only-keep-debug", name, &debug][..],
            &["strip", name],
            &["objcopy", &link, name],
        ] {
            let mut command = Command::new(words[0]);
            let command = command.args(&words[1..]).current_dir(self.scratch.path());
            let status = command
                .status()
                .map_err(|error| format!("{}: {error}", words[0]))?;
            assert!(status.success(), "{words:?}");
        }
        Ok(())
    }

    /// Compiles `program` and records it with stack copies; returns the file name of the recording, or why there is none.
    pub(super) fn record(&self, program: &Program) -> Result<String, String> {
        self.record_as(program, "dwarf,16384")
    }

    /// Like `record`, with callchains of another kind.
    pub(super) fn record_as(&self, program: &Program, kind: &str) -> Result<String, String> {
        self.record_with(program, kind, &[])
    }

    /// Like `record_as`, with further options.
    pub(super) fn record_with(
        &self,
        program: &Program,
        kind: &str,
        options: &[&str],
    ) -> Result<String, String> {
        self.compile(program)?;
        let file = format!("{}.data", program.name);
        let command = PathBuf::from(".").join(program.name);
        let command = command.to_string_lossy();
        let line = [
            "record",
            "-q",
            "-o",
            &file,
            "-e",
            "cpu-clock:u",
            "-F",
            "2500",
        ];
        // The argument of programs other than `RECURSION` is the CPU time to take, in milliseconds; ia32.c ignores it.
        let workload = ["--call-graph", kind, "--", &command, "300"];
        let line = [&line[..], options, &workload].concat();
        let recorded = self.rperf(&line);
        match recorded.status {
            0 => Ok(file),
            _ => Err(recorded.stderr),
        }
    }
}
