//! Another user of the machine prepares links, FIFOs and devices where rperf opens files; untrusted recordings name FIFOs and
//! devices as objects; untrusted archives contain files other than recordings and objects. The result must not depend on the
//! kernel's `fs.protected_*` settings: `tests/hostile_files.sh` runs these tests with all of them at 0 and at 1.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;

use rperf_testkit::{Bytes, Outcome, Run, Scratch, skip};

use super::generated_files::{Attr, file, record};
use crate::kernel::UnprivilegedUser;

/// Debian's user `nobody`, who prepares the files.
const OTHER: u32 = 65534;
/// `PERF_SAMPLE_IP | PERF_SAMPLE_TID`.
const SAMPLE_TYPE: u64 = 0x3;
/// `PERF_RECORD_MISC_USER`.
const USER: u16 = 2;

/// Whether the tests run as root, who can give files to another user; otherwise prints that the test is skipped.
fn is_root(test: &str) -> bool {
    let is_root = crate::kernel::is_root();
    if !is_root {
        skip(test, "only root can give files to another user");
    }
    is_root
}

fn make_fifo(path: &Path) {
    let made = Run::new("mkfifo")
        .args([path])
        .finish()
        .expect("mkfifo starts");
    assert_eq!(made.status, 0, "{}", made.stderr);
}

/// Makes [`OTHER`] the owner of a file; if it is a link, of the link itself, not of its target.
fn give_to_other(path: &Path) {
    lchown(path, Some(OTHER), Some(OTHER)).expect("a new owner");
}

const RPERF: &str = env!("CARGO_BIN_EXE_rperf");
/// Runs `record` with standard output redirected to /dev/null: if that were a pipe, `record` would write the recording to it.
const RECORD_WITHOUT_PIPE: &str = "exec \"$0\" record \"$@\" > /dev/null";

/// Runs rperf, which must exit within ten seconds.
fn rperf(scratch: &Scratch, words: &[&str]) -> Outcome {
    let words: Vec<&str> = match words {
        ["record", rest @ ..] => [&["sh", "-c", RECORD_WITHOUT_PIPE, RPERF][..], rest].concat(),
        words => [&[RPERF], words].concat(),
    };
    let run = Run::new("timeout").args(["-s", "KILL", "10"]).args(&words);
    let run = run.within(scratch.path()).env("HOME", scratch.path());
    let outcome = run
        .env_remove("PERF_CONFIG")
        .finish()
        .expect("timeout starts");
    assert_ne!(outcome.status, 137, "{words:?} hangs: {}", outcome.stderr);
    outcome
}

/// A recording of one process whose code is in a file of this name.
fn recording_with_object(path: &[u8]) -> Vec<u8> {
    // No other test uses this pid, which is also in the name of a perf map below.
    const PID: u32 = 4_190_001;
    let name = [path, &[0; 8][..8 - path.len() % 8]].concat();
    let mmap = Bytes::new()
        .u32(PID)
        .u32(PID)
        .u64(0x40_0000)
        .u64(0x1000)
        .u64(0);
    let sample = Bytes::new().u64(0x40_0010).u32(PID).u32(PID);
    let records = [record(1, USER, mmap.raw(name)), record(9, USER, sample)].concat();
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        no_sample_id_all: true,
        ..Attr::default()
    };
    file(&attr, "x86_64", &records)
}

#[test]
fn a_link_called_perf_data_old_loses_no_files() {
    let scratch = Scratch::new();
    // The victim looks like a recording that is a folder (`--threads`, `--kcore`): `record` removes such a perf.data.old.
    let victim = scratch.path().join("victim");
    fs::create_dir_all(victim.join("kcore_dir")).expect("folders");
    for name in ["data", "data.0", "kcore_dir/kcore"] {
        fs::write(victim.join(name), "PERFILE2 precious").expect("a file");
    }
    let old = scratch.path().join("perf.data.old");
    for options in [&["record", "-q"][..], &["record", "-q", "--threads"]] {
        // The second time, the first `record` below finds and renames a perf.data made with `options`: with `--threads`, a
        // folder.
        for _ in 0..2 {
            // Makes a perf.data (a file), which the `record` under test renames to perf.data.old.
            let _ = rperf(&scratch, &["record", "-q", "true"]);
            if fs::remove_file(&old).is_err() {
                let _ = fs::remove_dir_all(&old);
            }
            symlink(&victim, &old).expect("a link");
            let outcome = rperf(&scratch, &[options, &["true"]].concat());
            assert_eq!(outcome.status, 0, "{}", outcome.stderr);
            for name in ["data", "data.0", "kcore_dir/kcore"] {
                assert!(victim.join(name).is_file(), "{name} {options:?}");
            }
        }
        assert!(!old.is_symlink());
    }
}

#[test]
fn a_folder_that_is_no_recording_stays() {
    let scratch = Scratch::new();
    let old = scratch.path().join("perf.data.old");
    fs::create_dir_all(old.join("kcore_dir/deep")).expect("folders");
    fs::write(old.join("kcore_dir/deep/precious"), "kept").expect("a file");
    // A folder whose file `data` begins like a recording is no recording either if it contains other files.
    for header in ["not a recording", "PERFILE2"] {
        fs::write(old.join("data"), header).expect("a file");
        fs::write(scratch.path().join("perf.data"), "PERFILE2").expect("a file");
        let outcome = rperf(&scratch, &["record", "-q", "true"]);
        assert_eq!(outcome.status, 255, "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("perf.data.old"),
            "{}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
        assert!(old.join("kcore_dir/deep/precious").is_file());
    }
    let names = fs::read_dir(scratch.path()).expect("listed");
    let mut names: Vec<_> = names.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["perf.data", "perf.data.old"],
        "no other file is left"
    );
}

#[test]
fn outputs_are_not_written_to_another_users_fifo_or_device() {
    const TEST: &str =
        "commands::hostile_files::outputs_are_not_written_to_another_users_fifo_or_device";
    if !is_root(TEST) {
        return;
    }
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).expect("a new mode");
    let path = scratch.path().join("perf.data");
    let device = scratch.path().join("device");
    make_fifo(&path);
    symlink("/dev/zero", &device).expect("a link");
    give_to_other(&path);
    give_to_other(&device);
    for words in [
        &["record", "true"][..],
        &["record", "-o", "perf.data", "true"],
        &["record", "-o", "device", "true"],
        &["stat", "record", "-o", "perf.data", "-e", "cs", "true"],
        &["stat", "-o", "perf.data", "-e", "cs", "true"],
        &["stat", "-o", "device", "-e", "cs", "true"],
        &["record", "--control", "fifo:perf.data", "true"],
    ] {
        let outcome = rperf(&scratch, words);
        // 129 if the command line is refused, 255 if the output is.
        assert!(outcome.status > 128, "{words:?} {}", outcome.stderr);
        // With fs.protected_symlinks at 1 the kernel refuses to follow the link.
        let reasons = ["another user", "Permission denied"];
        let is_explained = reasons.iter().any(|reason| outcome.stderr.contains(reason));
        assert!(is_explained, "{words:?} {}", outcome.stderr);
    }
    let kind = fs::symlink_metadata(&path)
        .expect("still there")
        .file_type();
    assert!(kind.is_fifo());
    // The user's own FIFO is written to.
    lchown(&path, Some(0), Some(0)).expect("a new owner");
    let words = [
        "-c",
        "cat perf.data > copy & \"$0\" record -q -o perf.data true; wait",
    ];
    let shell = Run::new("sh")
        .args(words)
        .args([env!("CARGO_BIN_EXE_rperf")]);
    let outcome = shell.within(scratch.path()).finish().expect("sh starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let copy = fs::read(scratch.path().join("copy")).expect("a copy");
    assert!(copy.starts_with(b"PERFILE2"));
}

#[test]
fn outputs_are_not_written_through_links_of_others() {
    const TEST: &str = "commands::hostile_files::outputs_are_not_written_through_links_of_others";
    if !is_root(TEST) {
        return;
    }
    let scratch = Scratch::new();
    let precious = scratch.write("precious", "kept").expect("a file");
    let shared = scratch.path().join("shared");
    fs::create_dir(&shared).expect("a folder");
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).expect("a new mode");
    fs::hard_link(&precious, shared.join("hard")).expect("a link");
    symlink(&precious, shared.join("soft")).expect("a link");
    give_to_other(&shared.join("soft"));
    for output in ["shared/hard", "shared/soft"] {
        for append in [&["--append"][..], &[]] {
            let words = [&["stat", "-e", "cs", "-o", output], append, &["true"]].concat();
            let outcome = rperf(&scratch, &words);
            assert_eq!(outcome.status, 255, "{words:?} {}", outcome.stderr);
            assert!(outcome.stderr.contains(output), "{}", outcome.stderr);
        }
        assert_eq!(fs::read(&precious).expect("read"), b"kept");
    }
    // flamegraph renames a temporary file onto its output: this replaces the link itself.
    fs::write(
        scratch.path().join("x.data"),
        recording_with_object(b"/bin/true"),
    )
    .expect("a file");
    for output in ["shared/hard", "shared/soft"] {
        let outcome = rperf(&scratch, &["flamegraph", "-i", "x.data", "-o", output]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        assert_eq!(fs::read(&precious).expect("read"), b"kept");
        assert!(!scratch.path().join(output).is_symlink());
    }
}

/// The objects are FIFOs, devices, and files whose content the kernel generates.
#[test]
fn objects_that_are_not_regular_files_neither_block_nor_crash() {
    let scratch = Scratch::new();
    let pipe = scratch.path().join("pipe");
    make_fifo(&pipe);
    let pipe = pipe.as_os_str().as_bytes().to_vec();
    let names: [&[u8]; 5] = [
        &pipe,
        b"/dev/zero",
        b"/dev/ptmx",
        b"/proc/kmsg",
        b"/sys/kernel/tracing/trace_pipe",
    ];
    for name in names {
        fs::write(scratch.path().join("x.data"), recording_with_object(name)).expect("a file");
        let path = String::from_utf8_lossy(name);
        for words in [
            &["report", "--stdio", "-i", "x.data"][..],
            &["report", "--stdio", "-s", "srcline", "-i", "x.data"],
            &["script", "-i", "x.data"],
            &["annotate", "--stdio", "-i", "x.data"],
            &["flamegraph", "-i", "x.data", "-o", "x.svg"],
            &[
                "data",
                "convert",
                "--to-folded",
                "x.folded",
                "--force",
                "-i",
                "x.data",
            ],
            &["buildid-list", "--with-hits", "-i", "x.data"],
            &["archive", "x.data"],
            &["buildid-cache", "-a", &path],
            &["probe", "-x", &path, "-F"],
        ] {
            let outcome = rperf(&scratch, words);
            // Killed by a signal from SIGILL to SIGSEGV. 129, the status of a refused option, is not in this range.
            let is_crash = (128 + 4..=128 + 11).contains(&outcome.status);
            assert!(
                !is_crash && !outcome.stderr.contains("panicked"),
                "{words:?} {outcome:?}"
            );
        }
        let outcome = rperf(&scratch, &["report", "--stdio", "-i", "x.data"]);
        assert_eq!(outcome.status, 0, "{path} {}", outcome.stderr);
    }
}

#[test]
fn fifos_and_sparse_files_named_like_perf_maps_are_not_read() {
    /// Removes a file on drop.
    struct RemoveOnDrop<'p>(&'p Path);

    impl Drop for RemoveOnDrop<'_> {
        fn drop(&mut self) {
            let _ = fs::remove_file(self.0);
        }
    }

    let scratch = Scratch::new();
    // Named with the pid in `recording_with_object`.
    let map = Path::new("/tmp/perf-4190001.map");
    let _ = fs::remove_file(map);
    let _map = RemoveOnDrop(map);
    fs::write(
        scratch.path().join("x.data"),
        recording_with_object(b"//anon"),
    )
    .expect("a file");
    make_fifo(map);
    let outcome = rperf(&scratch, &["report", "--stdio", "-i", "x.data"]);
    fs::remove_file(map).expect("removed");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let sparse = fs::File::create_new(map).expect("a file");
    sparse.set_len(20 << 30).expect("a sparse file");
    let outcome = rperf(&scratch, &["report", "--stdio", "-i", "x.data"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("0x0000000000400010"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn other_files_in_archives_are_not_unpacked() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("packed");
    fs::create_dir_all(folder.join(".ssh")).expect("a folder");
    for (name, text) in [
        (".perfconfig", "[core]\n\tpager = touch owned\n"),
        (".ssh/authorized_keys", "ssh-rsa x\n"),
        ("Makefile", "all:\n"),
        ("run.sh", "#!/bin/sh\n"),
    ] {
        fs::write(folder.join(name), text).expect("a file");
    }
    fs::write(
        folder.join("perf.data"),
        recording_with_object(b"/bin/true"),
    )
    .expect("a file");
    let tar = Run::new("tar")
        .args(["-cjf", "../perf.x.tar.bz2", "."])
        .within(&folder);
    if !tar.finish().is_ok_and(|outcome| outcome.status == 0) {
        return skip(
            "commands::hostile_files::other_files_in_archives_are_not_unpacked",
            "no tar with bzip2",
        );
    }
    fs::remove_dir_all(&folder).expect("removed");
    let outcome = rperf(&scratch, &["archive", "--unpack"]);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    for name in [".perfconfig", "authorized_keys", "Makefile", "run.sh"] {
        assert!(outcome.stderr.contains(name), "{name}: {}", outcome.stderr);
        assert!(!scratch.path().join(name).exists(), "{name}");
    }
    assert!(!scratch.path().join(".ssh").exists());
    assert!(scratch.path().join("perf.data").is_file());
}

#[test]
fn settings_are_not_changed_through_another_users_link() {
    const TEST: &str =
        "commands::hostile_files::settings_are_not_changed_through_another_users_link";
    if !is_root(TEST) {
        return;
    }
    let scratch = Scratch::new();
    let precious = scratch.write("precious", "kept").expect("a file");
    let link = scratch.path().join(".perfconfig");
    symlink(&precious, &link).expect("a link");
    give_to_other(&link);
    let outcome = rperf(&scratch, &["config", "report.children=false"]);
    assert_ne!(outcome.status, 0);
    assert!(
        outcome.stderr.contains("another user"),
        "{}",
        outcome.stderr
    );
    assert_eq!(fs::read(&precious).expect("read"), b"kept");
    // A FIFO there does not block either.
    fs::remove_file(&link).expect("removed");
    make_fifo(&link);
    let outcome = rperf(&scratch, &["evlist", "-i", "none"]);
    assert!(
        outcome.stderr.contains("not a regular file"),
        "{}",
        outcome.stderr
    );
}

/// As root with the home of another user (sudo that keeps `HOME`).
#[test]
fn links_in_another_users_cache_are_not_followed() {
    const TEST: &str = "commands::hostile_files::links_in_another_users_cache_are_not_followed";
    if !is_root(TEST) {
        return;
    }
    let scratch = Scratch::new();
    let (home, target) = (scratch.path().join("home"), scratch.path().join("target"));
    fs::create_dir_all(home.join(".debug")).expect("folders");
    fs::create_dir(&target).expect("a folder");
    symlink(&target, home.join(".debug/bin")).expect("a link");
    symlink(&target, home.join(".debug/usr")).expect("a link");
    symlink(&target, home.join(".debug/.build-id")).expect("a link");
    for name in ["", ".debug", ".debug/bin", ".debug/usr", ".debug/.build-id"] {
        give_to_other(&home.join(name));
    }
    let run = |words: &[&str]| {
        let run = Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
        let run = run.within(scratch.path()).env("HOME", &home);
        run.finish().expect("rperf starts")
    };
    let outcome = run(&["buildid-cache", "-a", "/bin/sh"]);
    assert_ne!(outcome.status, 0, "{}", outcome.stderr);
    // A recording is complete without the cache.
    let outcome = run(&[
        "record",
        "-o",
        "x.data",
        "-e",
        "task-clock",
        "sh",
        "-c",
        "for i in 1 2 3; do :; done",
    ]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let checked = run(&["data", "check", "x.data"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    assert_eq!(fs::read_dir(&target).expect("listed").count(), 0);
    fs::remove_dir_all(home.join(".debug")).expect("removed");
    symlink(&target, home.join(".debug")).expect("a link");
    give_to_other(&home.join(".debug"));
    let outcome = run(&["buildid-cache", "-a", "/bin/sh"]);
    assert!(
        outcome.stderr.contains("another user"),
        "{}",
        outcome.stderr
    );
    assert_eq!(fs::read_dir(&target).expect("listed").count(), 0);
}

/// The checks do not affect an ordinary user in their own or shared folders.
#[test]
fn an_unprivileged_user_can_write_to_shared_folders() {
    const TEST: &str = "commands::hostile_files::an_unprivileged_user_can_write_to_shared_folders";
    let scratch = Scratch::new();
    // A user who is neither root nor `OTHER`.
    let Some(user) = UnprivilegedUser::new(TEST, &scratch) else {
        return;
    };
    let shared = scratch.path().join("shared");
    fs::create_dir(&shared).expect("a folder");
    for mode in [0o1777, 0o777] {
        fs::set_permissions(&shared, Permissions::from_mode(mode)).expect("a new mode");
        for words in [
            &[
                "./rperf",
                "record",
                "-q",
                "-e",
                "cs:u",
                "-o",
                "shared/x.data",
                "true",
            ][..],
            &[
                "./rperf",
                "record",
                "-q",
                "-e",
                "cs:u",
                "-o",
                "/dev/null",
                "true",
            ],
            &[
                "./rperf",
                "record",
                "-q",
                "-e",
                "cs:u",
                "--threads",
                "-o",
                "shared/y.data",
                "true",
            ],
            &["./rperf", "evlist", "-i", "shared/x.data"],
            &["./rperf", "evlist", "-i", "shared/y.data"],
            &[
                "./rperf",
                "stat",
                "-e",
                "cs:u",
                "-o",
                "shared/table",
                "true",
            ],
            &[
                "./rperf",
                "stat",
                "-e",
                "cs:u",
                "-o",
                "shared/table",
                "--append",
                "true",
            ],
            &[
                "sh",
                "-c",
                "./rperf stat -e cs:u -o /dev/stdout true | grep -q elapsed",
            ],
            &[
                "./rperf",
                "--buildid-dir",
                "shared/cache",
                "buildid-cache",
                "-a",
                "./rperf",
            ],
            &[
                "./rperf",
                "--buildid-dir",
                "shared/cache",
                "buildid-cache",
                "-P",
            ],
            &[
                "sh",
                "-c",
                "ln -sf table shared/link; ./rperf stat -e cs:u -o shared/link true",
            ],
            &[
                "sh",
                "-c",
                "mkfifo shared/pipe; cat shared/pipe >shared/copy & ./rperf stat -e cs:u -o shared/pipe true; wait; rm shared/pipe",
            ],
        ] {
            // The second time, the output already exists.
            for _ in 0..2 {
                let outcome = user.run(words);
                assert_eq!(outcome.status, 0, "{words:?} {}", outcome.stderr);
            }
        }
    }
}
