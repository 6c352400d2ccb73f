//! Hostile paths and names.

use crate::random::Random;

// Paths next to the working directory, relative to it.

/// The folder with files that must not change.
pub(crate) const OUTSIDE: &str = "../outside";
pub(crate) const FIFO: &str = "../special/fifo";
/// A symbolic link to itself.
pub(crate) const LOOP: &str = "../special/loop";
pub(crate) const FOLDER: &str = "../special/folder";

/// The name of files that must not be created; such files are searched for at the end.
pub(crate) const TAG: &str = "rperf-hostile-was-here";

const NAMES: [&str; 36] = [
    "",
    ".",
    "..",
    "/",
    "//anon",
    "[heap]",
    "[stack]",
    "[vdso]",
    "[vdso32]",
    "[vsyscall]",
    "[kernel.kallsyms]_text",
    "[kernel.kallsyms]_stext",
    "[guest.kernel.kallsyms]",
    "[a_module]",
    "[bpf_prog_1]",
    "/memfd:name (deleted)",
    "/SYSV00000000 (deleted)",
    "(deleted)",
    " (deleted)",
    "/anon_hugepage",
    "jit-1.dump",
    "/tmp/jit-77.dump",
    "/tmp/perf-1.map",
    "/dev/zero",
    "/dev/full",
    "/dev/stdin",
    "/dev/tty",
    "/proc/kmsg",
    "/proc/self/mem",
    "/proc/self/pagemap",
    "/proc/self/exe",
    "/sys/kernel/tracing/trace_pipe",
    "../special/fifo",
    "../special/loop",
    "a\n\tb\r",
    "name with \"quotes\", <angles> & 'more'\\",
];

/// A random hostile path or name.
pub(crate) fn hostile(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0 => format!("{OUTSIDE}/{TAG}").into_bytes(),
        1 => format!("{}tmp/{TAG}", "../".repeat(1 + random.below(24))).into_bytes(),
        2 => format!("/tmp/{TAG}").into_bytes(),
        // A file that exists and must not change.
        3 => format!("{OUTSIDE}/keep").into_bytes(),
        4 => format!("$(touch {OUTSIDE}/{TAG})").into_bytes(),
        5 => format!("`touch {OUTSIDE}/{TAG}`;touch {OUTSIDE}/{TAG}").into_bytes(),
        6 => vec![b'A'; 1 << random.below(17)],
        7 => b"\xff\xc0\x80\xed\xa0\x80%s%n\x1b]0;x\x07".to_vec(),
        8 => "a/".repeat(random.below(3000)).into_bytes(),
        _ => (*random.pick(&NAMES)).into(),
    }
}
