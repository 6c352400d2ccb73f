//! Names of descriptors after system calls. In `openat` and `openat2`, the descriptor -100 is `AT_FDCWD`.

use super::*;

const PROCESS: u32 = 7;
/// The argument of [`FileTables::new`] (`names_files`) of all tests but one.
const NAMES_FILES: bool = true;

fn captured(argument: usize, bytes: &[u8]) -> CapturedArgument {
    CapturedArgument {
        argument,
        bytes: bytes.to_vec(),
        ..CapturedArgument::default()
    }
}

/// Applies a call of [`PROCESS`] that has returned. Where the tests give a pointer, its value 9 has no meaning.
#[track_caller]
fn call(
    files: &mut FileTables,
    name: &str,
    values: &[i64],
    memory: &[CapturedArgument],
    result: i64,
) {
    let mut arguments = [0; 6];
    for (argument, value) in arguments.iter_mut().zip(values) {
        *argument = *value as u64;
    }
    let call = ReturnedCall {
        name,
        arguments,
        memory,
        result,
        address: Some("10.0.0.1:80"),
    };
    files.returned(PROCESS, &call);
}

fn name(files: &FileTables, fd: i32) -> Option<&str> {
    files
        .name(PROCESS, fd)
        .map(|name| std::str::from_utf8(name).unwrap())
}

#[test]
fn names_follow_the_calls() {
    let files = &mut FileTables::new(NAMES_FILES);
    call(files, "openat", &[-100, 9, 0], &[captured(1, b"x")], 3);
    assert_eq!(name(files, 3), None, "the working directory is unknown");
    call(files, "chdir", &[9], &[captured(0, b"/tmp")], 0);
    call(files, "openat", &[-100, 9, 0], &[captured(1, b"./d")], 3);
    // O_CLOEXEC is 0o2000000.
    call(files, "openat", &[3, 9, 0o2000000], &[captured(1, b"f")], 4);
    assert_eq!(
        (name(files, 3), name(files, 4)),
        (Some("/tmp/d"), Some("/tmp/d/f"))
    );
    call(
        files,
        "openat",
        &[-100, 9, 0],
        &[captured(1, b"/nosuch")],
        -2,
    );
    // Unlike descriptor 4, its duplicate 1 does not close on exec.
    call(files, "dup2", &[4, 1], &[], 1);
    // F_DUPFD_CLOEXEC is 1030.
    call(files, "fcntl", &[3, 1030, 10], &[], 10);
    call(files, "close", &[4], &[], 0);
    assert_eq!(name(files, 4), None);
    assert_eq!(
        (name(files, 1), name(files, 10)),
        (Some("/tmp/d/f"), Some("/tmp/d"))
    );
    files.fork(PROCESS, 8);
    call(files, "execve", &[], &[], 0);
    assert_eq!((name(files, 1), name(files, 10)), (Some("/tmp/d/f"), None));
    call(files, "chdir", &[9], &[captured(0, b"/")], 0);
    // `..` is not resolved, so the path grows beyond `PATH_MAX`.
    for _ in 0..2000 {
        call(files, "chdir", &[9], &[captured(0, b"..")], 0);
    }
    assert_eq!(files.directory(PROCESS), None, "too long");
    assert_eq!(
        files.name(8, 10),
        Some(&b"/tmp/d"[..]),
        "the child has its own"
    );
    call(files, "close_range", &[0, 0xffff_ffff, 0], &[], 0);
    assert_eq!(name(files, 1), None);
}

#[test]
fn descriptors_that_close_on_exec_lose_their_names() {
    let files = &mut FileTables::new(NAMES_FILES);
    let how = |flags: u64| captured(2, &[flags, 0, 0].map(u64::to_ne_bytes).concat());
    call(
        files,
        "openat2",
        &[-100, 9, 9, 24],
        &[captured(1, b"/a"), how(0)],
        3,
    );
    let closes = how(CLOEXEC);
    call(
        files,
        "openat2",
        &[-100, 9, 9, 24],
        &[captured(1, b"/b"), closes],
        4,
    );
    for fd in 5..=6 {
        call(files, "open", &[9, 0], &[captured(0, b"/c")], fd);
    }
    // FIOCLEX is 0x5451, FIONCLEX 0x5450.
    call(files, "ioctl", &[5, 0x5451], &[], 0);
    call(files, "ioctl", &[6, 0x5451], &[], 0);
    call(files, "ioctl", &[6, 0x5450], &[], 0);
    call(files, "ioctl", &[3, 0x5451], &[], -9);
    call(files, "execve", &[], &[], 0);
    let names = [3, 4, 5, 6].map(|fd| name(files, fd));
    assert_eq!(names, [Some("/a"), None, None, Some("/c")]);
}

/// A message with control data may pass descriptors whose numbers are unknown, so all names are forgotten.
#[test]
fn messages_without_control_data_keep_the_names() {
    let files = &mut FileTables::new(NAMES_FILES);
    call(files, "socket", &[1], &[], 3);
    let header = |control: u8| {
        let mut bytes = [0; 56];
        // The offset of `msg_controllen`.
        bytes[40] = control;
        CapturedArgument {
            item: HEADER_ITEM.into(),
            ..captured(1, &bytes)
        }
    };
    // The contents of a buffer are not the header.
    let buffer = captured(1, &[0; 64]);
    call(files, "recvmsg", &[3, 9], &[header(0), buffer.clone()], 5);
    assert_eq!(name(files, 3), Some("socket"));
    call(files, "recvmsg", &[3, 9], &[header(24), buffer.clone()], 5);
    assert_eq!(name(files, 3), None);
    call(files, "socket", &[1], &[], 3);
    // A message whose header was not captured may have control data.
    call(files, "recvmsg", &[3, 9], &[buffer], 5);
    assert_eq!(name(files, 3), None);
    // Of several messages, each must have a header without control data.
    call(files, "socket", &[1], &[], 3);
    let second = CapturedArgument {
        item: usize::from(MESSAGE_ITEMS + HEADER_ITEM),
        ..header(0)
    };
    call(files, "recvmmsg", &[3, 9], &[header(0), second], 2);
    assert_eq!(name(files, 3), Some("socket"));
    call(files, "recvmmsg", &[3, 9], &[header(0)], 2);
    assert_eq!(name(files, 3), None);
}

#[test]
fn sockets_and_pipes_are_named() {
    let files = &mut FileTables::new(NAMES_FILES);
    call(files, "socket", &[2, 1], &[], 3);
    assert_eq!(name(files, 3), Some("socket"));
    // -115 is EINPROGRESS: the socket connects later.
    call(files, "connect", &[3], &[], -115);
    assert_eq!(name(files, 3), Some("socket: to 10.0.0.1:80"));
    call(files, "accept", &[3], &[], 4);
    assert_eq!(name(files, 4), Some("socket: from 10.0.0.1:80"));
    let pair = [5_i32.to_ne_bytes(), 6_i32.to_ne_bytes()].concat();
    call(files, "pipe2", &[9, 0], &[captured(0, &pair)], 0);
    assert_eq!(
        (name(files, 5), name(files, 6)),
        (Some("pipe"), Some("pipe"))
    );
    call(files, "pipe", &[9], &[], 0);
    assert_eq!(name(files, 3), None, "any number may be one of the pipe's");
}

#[test]
fn descriptors_of_processes_with_unseen_threads_have_no_names() {
    let mut files = FileTables::new(NAMES_FILES);
    call(
        &mut files,
        "pipe2",
        &[9],
        &[captured(0, &[3, 0, 0, 0, 4, 0, 0, 0])],
        0,
    );
    assert_eq!(name(&files, 3), Some("pipe"));
    // As for a process with a thread whose calls are not recorded.
    files.exclude(PROCESS);
    // Without effect, since the process is excluded.
    files.seed(PROCESS, ProcessFiles::default());
    call(&mut files, "socket", &[1], &[], 3);
    assert_eq!(name(&files, 3), None);
}

#[test]
fn descriptors_have_no_names_if_names_are_not_requested() {
    let mut files = FileTables::new(!NAMES_FILES);
    call(&mut files, "socket", &[1], &[], 3);
    assert_eq!(name(&files, 3), None);
}
