//! Tests, some with files that belong to another, hostile user. Only root can change the owner of a file: for other users, tests
//! and parts of tests that need such files are skipped.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use rperf_testkit::Scratch;
use rustix::fs::{CWD, Mode};

use super::*;

/// The user `nobody` of Debian.
const OTHER: u32 = 65534;

/// Whether the user is root; otherwise reports that `test`, or the rest of it, is skipped.
fn is_root_or_skips(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        rperf_testkit::skip(test, "only root can give files to another user");
    }
    root
}

fn fifo(path: &Path) {
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(CWD, path, kind, Mode::from_bits_truncate(0o666), 0).expect("a FIFO");
}

/// Makes [`OTHER`] the owner of a file, folder or link.
fn give(path: &Path) {
    std::os::unix::fs::lchown(path, Some(OTHER), Some(OTHER)).expect("a new owner");
}

fn refusal(error: &io::Error) -> Option<Refusal> {
    error.get_ref()?.downcast_ref().copied()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: io::Result<T>) -> Refusal {
    let error = result.expect_err("refused");
    refusal(&error).unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn fifos_devices_and_folders_are_not_opened() {
    let scratch = Scratch::new();
    let path = scratch.path().join("fifo");
    fifo(&path);
    symlink(&path, scratch.path().join("link")).expect("a link");
    for path in [
        path,
        scratch.path().join("link"),
        "/dev/zero".into(),
        "/".into(),
    ] {
        assert_eq!(
            refused(open_regular(&path)),
            Refusal::NotRegular,
            "{path:?}"
        );
    }
}

#[test]
fn virtual_files_are_refused() {
    for path in ["/proc/self/status", "/sys/kernel/notes"] {
        if Path::new(path).exists() {
            assert_eq!(refused(open_regular(Path::new(path))), Refusal::Virtual);
        }
    }
    // The target of the link is on a disk file system.
    let mut magic = [0; 4];
    let mut program = open_regular(Path::new("/proc/self/exe")).expect("a program");
    program.read_exact(&mut magic).expect("four bytes");
    assert_eq!(&magic, b"\x7fELF");
}

#[test]
fn the_checked_file_is_read() {
    let scratch = Scratch::new();
    let path = scratch.write("file", "checked").expect("a file");
    let found = FoundFile::find(&path).expect("it is there");
    fs::remove_file(&path).expect("removed");
    fifo(&path);
    let mut text = String::new();
    let mut file = found.for_reading().expect("opened");
    file.read_to_string(&mut text).expect("read");
    assert_eq!(text, "checked");
}

#[test]
fn reading_has_a_limit() {
    let scratch = Scratch::new();
    let path = scratch.write("file", "12345").expect("a file");
    assert_eq!(read(&path, 5).expect("within the limit"), b"12345");
    assert_eq!(refused(read(&path, 4)), Refusal::TooLarge { limit: 4 });
}

#[test]
fn a_lease_does_not_block_for_long() {
    let scratch = Scratch::new();
    let path = scratch.write("file", "leased").expect("a file");
    // Run in another process: the default action of SIGIO, sent to the holder of a lease, would end
    // this one.
    let holder = std::process::Command::new("python3")
        .args(["-c", LEASE])
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut holder) = holder else {
        rperf_testkit::skip(
            "a_lease_does_not_block_for_long",
            "no python3 to hold a lease",
        );
        return;
    };
    let mut ready = [0; 1];
    let mut out = holder.stdout.take().expect("a pipe");
    out.read_exact(&mut ready).expect("the holder runs");
    let started = std::time::Instant::now();
    let opened = open_regular(&path);
    let waited = started.elapsed();
    drop(holder.stdin.take());
    holder.wait().expect("it ends");
    if ready == *b"y" {
        assert_eq!(refused(opened), Refusal::Leased);
        assert!(
            waited < std::time::Duration::from_secs(20),
            "the kernel's limit is 45 seconds"
        );
    }
}

/// Takes a write lease and prints `y`, or `n` if the lease is refused; then holds it until the end of input.
const LEASE: &str = "\
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1], 'r+')
try:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    answer = 'y'
except OSError:
    answer = 'n'
sys.stdout.write(answer)
sys.stdout.flush()
sys.stdin.read()
";

#[test]
fn links_and_paths_out_of_a_folder_are_refused() {
    let scratch = Scratch::new();
    let outside = scratch.path().join("outside");
    fs::create_dir_all(outside.join("deep")).expect("folders");
    let root = Folder::open_own_or_create(&scratch.path().join("root"), 0o700).expect("a folder");
    symlink(&outside, root.path().join("link")).expect("a link");
    scratch.write("root/file", "").expect("a file");
    for path in ["link", "link/deep", "file", "file/deep"] {
        assert_eq!(
            refused(root.open_below(Path::new(path))),
            Refusal::NotFolder,
            "{path}"
        );
        assert_eq!(
            refused(root.create_below(Path::new(path), 0o700)),
            Refusal::NotFolder,
            "{path}"
        );
    }
    for path in ["..", "/etc", "a/../../b"] {
        assert_eq!(
            refused(root.create_below(Path::new(path), 0o700)),
            Refusal::Outside,
            "{path}"
        );
    }
    let created = root.create_below(Path::new("a/b"), 0o700).expect("folders");
    assert_eq!(created.path(), root.path().join("a/b"));
    for name in ["", ".", "..", "a/b", "/"] {
        assert_eq!(
            refused(root.create_file(name.as_ref(), 0o600)),
            Refusal::Outside,
            "{name}"
        );
        assert_eq!(
            refused(root.remove_file(name.as_ref())),
            Refusal::Outside,
            "{name}"
        );
    }
    // `deep` only: nothing was created there.
    assert_eq!(fs::read_dir(&outside).expect("listed").count(), 1);
}

#[test]
fn an_open_folder_stays_the_same_folder() {
    let scratch = Scratch::new();
    let path = scratch.path().join("folder");
    let folder = Folder::open_own_or_create(&path, 0o700).expect("a folder");
    fs::rename(&path, scratch.path().join("moved")).expect("moved");
    let elsewhere = scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    symlink(&elsewhere, &path).expect("a link");
    folder
        .write_atomic("file".as_ref(), 0o600, |out| out.write_all(b"kept"))
        .expect("written");
    assert_eq!(
        fs::read(scratch.path().join("moved/file")).expect("read"),
        b"kept"
    );
    assert_eq!(fs::read_dir(elsewhere).expect("listed").count(), 0);
}

#[test]
fn removing_a_tree_follows_no_links_and_has_a_depth_limit() {
    let scratch = Scratch::new();
    for folder in ["outside", "tree/a/b"] {
        fs::create_dir_all(scratch.path().join(folder)).expect("a folder");
    }
    scratch.write("outside/precious", "kept").expect("a file");
    scratch.write("tree/a/b/file", "").expect("a file");
    symlink(
        scratch.path().join("outside"),
        scratch.path().join("tree/a/link"),
    )
    .expect("a link");
    let folder = Folder::open(scratch.path()).expect("a folder");
    folder.remove_tree("tree".as_ref()).expect("removed");
    symlink("outside", scratch.path().join("tree")).expect("a link");
    folder.remove_tree("tree".as_ref()).expect("removed");
    assert_eq!(folder.names().expect("names"), ["outside"]);
    assert!(scratch.path().join("outside/precious").is_file());
    let deep = "d/".repeat(200);
    fs::create_dir_all(scratch.path().join(&deep)).expect("folders");
    let error = folder.remove_tree("d".as_ref()).expect_err("too deep");
    assert_eq!(error.kind(), io::ErrorKind::DirectoryNotEmpty);
}

#[test]
fn a_cache_linked_by_another_user_is_not_used() {
    let scratch = Scratch::new();
    let link = scratch.path().join("cache");
    symlink(scratch.path(), &link).expect("a link");
    Folder::open_own_or_create(&link, 0o700).expect("the user's own link");
    if is_root_or_skips("a_cache_linked_by_another_user_is_not_used") {
        give(&link);
        assert_eq!(
            refused(Folder::open_own_or_create(&link, 0o700)),
            Refusal::ForeignLink
        );
    }
}

#[test]
fn replacing_replaces_the_link_and_a_failure_changes_nothing() {
    let scratch = Scratch::new();
    let target = scratch.write("target", "precious").expect("a file");
    let link = scratch.path().join("link");
    symlink(&target, &link).expect("a link");
    write_atomic(&link, |out| out.write_all(b"new")).expect("written");
    assert_eq!(fs::read(&target).expect("read"), b"precious");
    assert_eq!(fs::read(&link).expect("read"), b"new");
    assert!(!link.is_symlink());
    let failed = write_atomic(&link, |out| {
        out.write_all(b"part")?;
        Err::<(), _>(io::ErrorKind::UnexpectedEof.into())
    });
    assert_eq!(
        failed.expect_err("as given").kind(),
        io::ErrorKind::UnexpectedEof
    );
    assert_eq!(fs::read(&link).expect("read"), b"new");
    assert_eq!(
        fs::read_dir(scratch.path()).expect("listed").count(),
        2,
        "nothing is left"
    );
}

#[test]
fn a_file_being_written_has_no_name() {
    let scratch = Scratch::new();
    let folder = Folder::open(scratch.path()).expect("a folder");
    // Without O_TMPFILE the file has a temporary name.
    let temporary_names = usize::from(folder.create_unnamed(0o600).is_none());
    let seen = folder.write_atomic("file".as_ref(), 0o640, |out| {
        out.write_all(&[7; 100_000])?;
        Ok(folder.names()?.len())
    });
    assert_eq!(seen.expect("written"), temporary_names);
    let metadata = fs::metadata(scratch.path().join("file")).expect("there");
    // The umask may remove permissions.
    let excess = metadata.mode() & 0o777 & !0o640;
    assert_eq!((metadata.len(), excess), (100_000, 0));
}

#[test]
fn unnamed_files_have_no_link() {
    let mut file = unnamed_file(&std::env::temp_dir()).expect("a file");
    file.write_all(b"gone").expect("written");
    assert_eq!(file.metadata().expect("there").nlink(), 0);
}

#[test]
fn temporary_names_differ() {
    let one = temporary::temporary_name("perf.data".as_ref()).expect("a name");
    let two = temporary::temporary_name("perf.data".as_ref()).expect("a name");
    assert_ne!(one, two);
}

#[test]
fn replaceable_files_are_not_opened_in_place() {
    let scratch = Scratch::new();
    let file = scratch.write("file", "").expect("a file");
    let link = scratch.path().join("dangling");
    symlink("nowhere", &link).expect("a link");
    for path in [
        file.as_path(),
        scratch.path(),
        &link,
        Path::new("/no/such"),
        Path::new("/"),
    ] {
        let found = find_in_place(path, PathOrigin::Default).expect("no refusal");
        assert!(found.is_none(), "{path:?}");
    }
    assert!(
        find_in_place(Path::new("/dev/null"), PathOrigin::Given)
            .expect("no refusal")
            .is_some()
    );
}

/// Creates a folder with this mode and owner; `None` for root, who runs the test. In it, `fifo` and `link` belong to
/// [`OTHER`]; the link leads to `own`, a FIFO of root.
fn exposed(scratch: &Scratch, owner: Option<u32>, mode: u32) -> PathBuf {
    let folder = scratch.path().join(format!("{owner:?}-{mode:o}"));
    fs::create_dir(&folder).expect("a folder");
    fifo(&folder.join("fifo"));
    fifo(&folder.join("own"));
    symlink("own", folder.join("link")).expect("a link");
    give(&folder.join("fifo"));
    give(&folder.join("link"));
    chown(&folder, owner, None).expect("a new owner");
    fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("a new mode");
    folder
}

#[test]
fn fifos_of_other_users_are_refused_unless_given_in_a_safe_folder() {
    if !is_root_or_skips("fifos_of_other_users_are_refused_unless_given_in_a_safe_folder") {
        return;
    }
    let scratch = Scratch::new();
    for (owner, mode, found_if_given) in [
        (None, 0o1777, false),
        (None, 0o777, false),
        (None, 0o775, false),
        (None, 0o755, true),
        (Some(OTHER), 0o755, true),
        // A folder of a third user.
        (Some(1), 0o755, false),
    ] {
        let folder = exposed(&scratch, owner, mode);
        let find = |name: &str, origin| find_in_place(&folder.join(name), origin);
        assert_eq!(
            refused(find("fifo", PathOrigin::Default)),
            Refusal::ForeignPipe
        );
        match found_if_given {
            true => assert!(
                find("fifo", PathOrigin::Given)
                    .expect("no refusal")
                    .is_some()
            ),
            false => assert_eq!(
                refused(find("fifo", PathOrigin::Given)),
                Refusal::ForeignPipe
            ),
        }
        for origin in [PathOrigin::Default, PathOrigin::Given] {
            assert!(find("own", origin).expect("no refusal").is_some());
            assert_eq!(refused(find("link", origin)), Refusal::ForeignLink);
        }
    }
    let null = scratch.path().join("null");
    symlink("/dev/null", &null).expect("a link");
    give(&null);
    assert_eq!(
        refused(find_in_place(&null, PathOrigin::Given)),
        Refusal::ForeignLink
    );
}

#[test]
fn descriptors_of_this_process_are_written_regardless_of_the_owner() {
    if !is_root_or_skips("descriptors_of_this_process_are_written_regardless_of_the_owner") {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.write("file", "before").expect("a file");
    chown(&path, Some(OTHER), None).expect("a new owner");
    let file = fs::File::open(&path).expect("opened");
    let find = |folder: &str| {
        let link = format!("{folder}/{}", file.as_raw_fd());
        find_in_place(Path::new(&link), PathOrigin::Given)
    };
    for (folder, expected) in [("/proc/self/fd", "beforea"), ("/dev/fd", "beforeaa")] {
        let found = find(folder).expect("no refusal").expect("a file");
        // Appends, as to any regular file.
        let mut opened = found.for_writing().expect("opened");
        opened.write_all(b"a").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), expected);
    }
    // Descriptors of this process are recognised by the folder in the path, as written: `/proc/PID/fd` is not recognised.
    // `ForeignPipe` is also the refusal for a regular file of another user behind a link below `/proc`.
    let of_process = format!("/proc/{}/fd", std::process::id());
    assert_eq!(refused(find(&of_process)), Refusal::ForeignPipe);
}

#[test]
fn foreign_links_below_dev_are_not_followed() {
    if !is_root_or_skips("foreign_links_below_dev_are_not_followed") {
        return;
    }
    let scratch = Scratch::new();
    let precious = scratch.write("precious", "kept").expect("a file");
    let link = PathBuf::from(format!("/dev/shm/rperf-link-{}", std::process::id()));
    if symlink(&precious, &link).is_err() {
        return;
    }
    give(&link);
    let found = find_in_place(&link, PathOrigin::Given);
    let opened = open_output(&link, WriteMode::Truncate);
    fs::remove_file(&link).expect("removed");
    // With `fs.protected_symlinks` the kernel reports an error.
    assert!(!matches!(found, Ok(Some(_))), "{found:?}");
    assert!(opened.is_err(), "{opened:?}");
    assert_eq!(fs::read(&precious).expect("read"), b"kept");
}

#[test]
fn an_own_descriptor_of_a_file_is_appended_to_and_truncated() {
    let scratch = Scratch::new();
    let path = scratch.write("file", "before").expect("a file");
    let file = fs::File::open(&path).expect("opened");
    let descriptor = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    for (writing, expected) in [
        (WriteMode::Append, &b"beforenew"[..]),
        (WriteMode::Truncate, &b"new"[..]),
    ] {
        open_output(&descriptor, writing)
            .expect("opened")
            .write_all(b"new")
            .expect("written");
        assert_eq!(fs::read(&path).expect("read"), expected);
    }
}

#[test]
fn links_and_files_of_others_in_a_shared_folder_are_not_written() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("shared");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, Permissions::from_mode(0o1777)).expect("a new mode");
    let precious = scratch.write("precious", "kept").expect("a file");
    let path = folder.join("out");
    for text in ["one", "two"] {
        open_output(&path, WriteMode::Append)
            .expect("opened")
            .write_all(text.as_bytes())
            .expect("written");
    }
    assert_eq!(fs::read(&path).expect("read"), b"onetwo");
    open_output(&path, WriteMode::Truncate)
        .expect("opened")
        .write_all(b"x")
        .expect("written");
    assert_eq!(fs::read(&path).expect("read"), b"x");
    fs::hard_link(&precious, folder.join("hard")).expect("a link");
    // Refused although the file is this user's: another user may have made the hard link.
    assert_eq!(
        refused(open_output(&folder.join("hard"), WriteMode::Truncate)),
        Refusal::ForeignFile
    );
    if !is_root_or_skips("links_and_files_of_others_in_a_shared_folder_are_not_written") {
        return;
    }
    symlink(&precious, folder.join("soft")).expect("a link");
    give(&folder.join("soft"));
    assert_eq!(
        refused(open_output(&folder.join("soft"), WriteMode::Append)),
        Refusal::ForeignLink
    );
    give(&path);
    assert_eq!(
        refused(open_output(&path, WriteMode::Append)),
        Refusal::ForeignFile
    );
    // In that user's own folder, root may append to the user's file.
    give(&folder);
    open_output(&path, WriteMode::Append).expect("opened");
    // Root's own file is still refused there, because of its second hard link.
    assert_eq!(
        refused(open_output(&folder.join("hard"), WriteMode::Truncate)),
        Refusal::ForeignFile
    );
}
