//! Sources of symbols: listings and folders given on the command line.

use std::fs;
use std::path::Path;

use rperf_testkit::skip;

use super::recordings::{Recording, Target};
use super::report::compare_report;
use super::workloads::Workloads;
use super::{Tool, Tools, assert_alike, difference};
use crate::tidy::root;

/// Recordings made on another machine, and commands that read them, each with `--kallsyms` and the file of [`listing`].
const LISTED: &[(&str, &[&str])] = &[
    ("cycles.data", &["report", "--stdio"]),
    (
        "cycles.data",
        &[
            "report",
            "--stdio",
            "-g",
            "none",
            "--no-children",
            "-s",
            "sym",
        ],
    ),
    ("cycles.data", &["script"]),
    ("cycles.data", &["report", "--stdio", "-v", "-g", "caller"]),
    ("memory.data", &["report", "--stdio", "--mem-mode"]),
    ("memory.data", &["script", "-F", "ip,sym,symoff,dso"]),
    ("branches.data", &["report", "--stdio"]),
    ("kprobe.data", &["script"]),
];

/// Options of `report` for a recording of the program `frames` (tests/workloads/frames.c). They are used with `--dsos frames`,
/// which leaves out libraries and the kernel.
const FRAMES_OPTIONS: &[&[&str]] = &[
    &["-s", "sym"],
    &["-s", "srcline"],
    // With `dso`: otherwise perf puts samples without a source file into one row, regardless of their dso, and `--dsos` keeps or
    // drops that whole row.
    &["-s", "dso,srcfile", "--full-source-path"],
    &["-s", "srcline,sym", "--full-source-path", "-v"],
    &["--demangle-kernel", "--ignore-vmlinux"],
];

/// A kallsyms listing in which functions and variables alternate at equal distances.
fn listing() -> String {
    let mut text = "ffffffff81000000 T _text\nffffffff81000000 T _stext\n".to_owned();
    for address in (0xffff_ffff_8100_0100_u64..0xffff_ffff_8220_0000).step_by(0x4_0000) {
        let kind = if address & 0x4_0000 == 0 { 't' } else { 'd' };
        text += &format!("{address:x} {kind} name_{:x}\n", address & 0x0fff_ffff);
    }
    text + "ffffffff82200000 T _etext\n"
}

#[test]
fn names_of_a_kallsyms_file_are_the_same() {
    let Some(tools) = Tools::find() else {
        return skip("names_of_a_kallsyms_file_are_the_same", "there is no perf");
    };
    let kallsyms = tools.path().join("kallsyms");
    fs::write(&kallsyms, listing()).expect("the folder takes a file");
    let kallsyms = kallsyms.to_str().expect("text");
    let folder = root().join("tests/fixtures/x86_64");
    let mismatches = LISTED.iter().filter_map(|(file, words)| {
        let file = folder.join(file);
        let options = ["-f", "--kallsyms", kallsyms, "-i", file.to_str()?];
        compare(&tools, &[words, &options[..]].concat())
    });
    assert_alike(&mismatches.collect::<Vec<_>>());
}

/// Compares the rows of a `report`, or the text of another command.
fn compare(tools: &Tools, line: &[&str]) -> Option<String> {
    // The second word is `--stdio`, which `compare_report` adds again.
    if let ["report", _, words @ .., "-i", file] = line {
        return compare_report(tools, file, words);
    }
    let [perf, rperf] = tools.outcomes(line, b"");
    assert!(!perf.stdout.is_empty(), "{line:?}: {perf:?}");
    let mismatch = difference(&perf.stdout, &rperf.stdout)?;
    Some(format!("{}\n{mismatch}", line.join(" ")))
}

#[test]
fn names_of_a_program_match_perf_also_below_symfs() {
    const NAME: &str = "names_of_a_program_match_perf_also_below_symfs";
    const RECORDING: Recording = Recording {
        // Without callchains.
        name: "frames, flat",
        options: &["-F", "999", "-e", "cpu-clock:u"],
        // It runs for 150 ms.
        target: Target::Command(&["frames", "150"]),
    };
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    let workloads = Workloads::build(tools.path());
    let compare_names = |file: &str| {
        let per_options = FRAMES_OPTIONS.iter().map(|words| {
            let words = [words, &["--dsos", "frames"][..]].concat();
            compare_report(&tools, file, &words)
        });
        let mut mismatches: Vec<String> = per_options.flatten().collect();
        let symfs = tools.path().join("symfs");
        copy_below(&symfs, &workloads.path("frames").expect("it was compiled"));
        let symfs = symfs.to_str().expect("text");
        mismatches.extend(compare_report(&tools, file, &["--symfs", symfs]));
        mismatches
    };
    let recorder = Tool::Perf;
    let mismatches = RECORDING.differences(&tools, &workloads, recorder, compare_names);
    workloads.clean_up();
    assert_alike(&mismatches);
}

/// Copies a program to its path below a `--symfs` folder.
fn copy_below(folder: &Path, program: &Path) {
    let place = folder.join(program.strip_prefix("/").unwrap_or(program));
    fs::create_dir_all(place.parent().expect("a folder")).expect("the folder is made");
    fs::copy(program, place).expect("the program is copied");
}
