//! Build-id caches with links that lead elsewhere.

use std::fs;
use std::os::unix::fs::symlink;

use crate::case::{Case, CaseInputs};
use crate::names;

const COMMANDS: &[&str] = &[
    "buildid-cache -l",
    "buildid-cache -v -P",
    "buildid-cache -v -l --max-size 1K",
    "buildid-cache -v -p /usr/bin/program",
    "buildid-cache -v -p program -l",
    "buildid-cache -v -r program",
    "buildid-cache -v -a program -l",
    "buildid-cache -v -u program",
    "buildid-cache -v -M perf.data",
    "probe --cache --list",
    "probe --cache --del *:*",
    "probe -x program -n --cache --add work",
    "report --stdio -i perf.data",
    "script -F ip,sym,insn -i perf.data",
    "archive --all perf.data",
    "list sdt",
];

/// Paths in a cache.
const ENTRIES: [&str; 9] = [
    ".build-id",
    ".build-id/12",
    ".build-id/12/34567890123456789012345678901234567890",
    ".build-id/zz/x",
    "usr",
    "usr/bin/program/1234567890123456789012345678901234567890",
    "usr/bin/program/1234567890123456789012345678901234567890/elf",
    "[kernel.kallsyms]/1234567890123456789012345678901234567890",
    "[vdso]",
];

/// A cache in which some entries are links that may lead outside, files in place of folders, or folders in place of files.
pub(crate) fn with_links(inputs: &mut CaseInputs<'_>) -> Case {
    let sandbox = inputs.sandbox;
    let program = inputs
        .seeds
        .object("plain")
        .map_or(&b"none"[..], |seed| &seed.bytes);
    sandbox.write("program", program);
    let recordings = &inputs.seeds.recordings;
    let random = &mut *inputs.random;
    sandbox.write("perf.data", &random.pick(recordings).bytes);
    let cache = sandbox.working_directory().join("home/.debug");
    let object_folder = "usr/bin/program/1234567890123456789012345678901234567890";
    // Where a target with `../` leads depends on the depth of the link: `../../../` leads out of the working directory from links
    // directly in the cache (`home/.debug`), but stays inside from deeper ones.
    let targets = [
        "../../../outside".to_owned(),
        "../../../outside/folder".to_owned(),
        sandbox
            .working_directory()
            .with_file_name("outside")
            .display()
            .to_string(),
        sandbox
            .working_directory()
            .join(names::FIFO)
            .display()
            .to_string(),
        "../../../../../outside/keep".to_owned(),
        format!("../../{object_folder}"),
        ".".to_owned(),
        "..".to_owned(),
    ];
    for _ in 0..1 + random.below(5) {
        let path = cache.join(random.pick(&ENTRIES));
        // Existing files stay, and nothing is created outside.
        let existing = path.ancestors().skip(1).find(|folder| folder.exists());
        let is_inside = existing
            .and_then(|folder| folder.canonicalize().ok())
            .is_some_and(|folder| folder.starts_with(sandbox.working_directory()));
        let has_folder = is_inside
            && path
                .parent()
                .is_some_and(|folder| fs::create_dir_all(folder).is_ok());
        let is_new = path.symlink_metadata().is_err();
        if has_folder && is_new {
            let _ = match random.below(4) {
                0 => fs::write(path, program),
                1 => fs::create_dir(path),
                _ => symlink(random.pick(&targets), path),
            };
        }
    }
    let mut case = Case::new("build-id cache", random.pick::<&str>(COMMANDS));
    // For instance if the cache has nothing to list.
    case.may_be_silent = true;
    case
}
