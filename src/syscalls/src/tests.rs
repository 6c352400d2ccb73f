//! Calls as `perf trace` 6.1 prints them, calls with captured memory, and names that perf does not print.

use crate::*;

/// The name of one task, and the path of one file descriptor.
struct Names;

impl TaskNames for Names {
    fn fd_path(&self, fd: i32) -> Option<&[u8]> {
        (fd == 1).then_some(b"/dev/pts/2")
    }

    fn comm(&self, tid: u32) -> Option<&[u8]> {
        (tid == 25560).then_some(b"python3")
    }
}

/// Returns a call of x86-64 with its result as one line.
fn line(name: &str, values: &[i64], result: i64, captured: &[CapturedBytes<'_>]) -> String {
    let table = SyscallTable::of(Abi::X86_64);
    let mut registers = [0; 6];
    for (register, value) in registers.iter_mut().zip(values) {
        *register = *value as u64;
    }
    let call = CallArguments {
        abi: Abi::X86_64,
        syscall: table.number(name).and_then(|number| table.get(number)),
        values: registers,
        captured,
        // Without the kernel's BTF: the crate has its own layouts of common structures.
        structures: None,
    };
    let mut text = Vec::new();
    write_arguments(&mut text, &call, &Names, ArgumentOptions::default()).unwrap();
    text.extend(b" = ");
    write_result(&mut text, &call, result, &Names).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn calls_as_perf_prints_them() {
    let noent = "-1 ENOENT (No such file or directory)";
    for (name, values, result, expected) in [
        (
            "brk",
            &[][..],
            0x55e3_4d8e_0000,
            " = 0x55e34d8e0000".to_owned(),
        ),
        (
            "mmap",
            &[0, 8192, 3, 0x22, -1, 0],
            4096,
            "len: 8192, prot: READ|WRITE, flags: PRIVATE|ANONYMOUS = 0x1000".to_owned(),
        ),
        (
            "access",
            &[0x7f61_8fa3_12a0, 4],
            -2,
            format!("filename: 0x7f618fa312a0, mode: R = {noent}"),
        ),
        (
            "openat",
            &[-100, 16, 0o2000000],
            3,
            "dfd: CWD, filename: 0x10, flags: RDONLY|CLOEXEC = 3".to_owned(),
        ),
        (
            "newfstatat",
            &[3, 16, 32, 4096],
            0,
            "dfd: 3, filename: 0x10, statbuf: 0x20, flag: 4096 = 0".to_owned(),
        ),
        (
            "set_tid_address",
            &[16],
            25560,
            "tidptr: 0x10 = 25560 (python3)".to_owned(),
        ),
        (
            "socket",
            &[2, 0o2000001],
            3,
            "family: INET, type: STREAM|CLOEXEC = 3".to_owned(),
        ),
        (
            "poll",
            &[16, 1, 1],
            0,
            "ufds: 0x10, nfds: 1, timeout_msecs: 1 = 0 (Timeout)".to_owned(),
        ),
        (
            "kill",
            &[25560, 0],
            0,
            "pid: 25560 (python3) = 0".to_owned(),
        ),
        (
            "fcntl",
            &[1, 3],
            0,
            "fd: 1</dev/pts/2>, cmd: GETFL = RDONLY".to_owned(),
        ),
        (
            "lseek",
            &[99, 12, 0],
            0,
            "fd: 99, offset: 12, whence: SET = 0".to_owned(),
        ),
        (
            "rt_sigaction",
            &[2, 0, 16, 8],
            0,
            "sig: INT, oact: 0x10, sigsetsize: 8 = 0".to_owned(),
        ),
        (
            "futex",
            &[16, 0x81, 1],
            0,
            "uaddr: 0x10, op: WAKE|PRIVATE_FLAG, val: 1 = 0".to_owned(),
        ),
        (
            "clone",
            &[0x0120_0011, 0, 0, 16],
            0,
            "clone_flags: CHILD_CLEARTID|CHILD_SETTID|0x11, child_tidptr: 0x10 = 0".to_owned(),
        ),
        (
            "madvise",
            &[0x1000, 4096, 4],
            0,
            "start: 0x1000, len_in: 4096, behavior: MADV_DONTNEED = 0".to_owned(),
        ),
        (
            "ioctl",
            &[99, 0x5401, 16],
            0,
            "fd: 99, cmd: TCGETS, arg: 0x10 = 0".to_owned(),
        ),
        (
            "ioctl",
            &[99, 0xc0de_1234],
            0,
            "fd: 99, cmd: (READ|WRITE, 0x12, 0x34, 0xde) = 0".to_owned(),
        ),
        (
            "landlock_add_rule",
            &[11, 2, 16, 45],
            -22,
            "ruleset_fd: 11, rule_type: LANDLOCK_RULE_NET_PORT, rule_attr: 0x10, flags: 45 = -1 EINVAL (Invalid argument)".to_owned(),
        ),
        (
            "setsockopt",
            &[3, 1, 2, 0, 4],
            0,
            "fd: 3, level: SOCKET, optname: REUSEADDR, optlen: 4 = 0".to_owned(),
        ),
        ("prctl", &[1], 0, "option: SET_PDEATHSIG = 0".to_owned()),
        (
            "mkdirat",
            &[-100, 16, 0o755],
            0,
            "dfd: CWD, pathname: 0x10, mode: IRUGO|IXUGO|IWUSR = 0".to_owned(),
        ),
        (
            "getrlimit",
            &[3, 16],
            -600,
            "resource: STACK, rlim: 0x10 = -1 (error 600)".to_owned(),
        ),
        (
            "no_such_call",
            &[1, 0, 3],
            0,
            "arg0: 1, arg2: 3 = 0".to_owned(),
        ),
    ] {
        assert_eq!(line(name, values, result, &[]), expected, "{name}");
    }
}

fn bytes_of(argument: usize, bytes: &[u8]) -> CapturedBytes<'_> {
    CapturedBytes {
        argument,
        item: 0,
        bytes,
        is_truncated: false,
        is_unreadable: false,
        marks_more_items: false,
        is_late: false,
    }
}

/// The memory of a structure of 64-bit words.
fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// At the end: with `captured_only`, only the arguments whose memory was captured are printed.
#[test]
fn structures_are_decoded_and_names_may_be_hidden() {
    let time = words(&[1, 500]);
    let slept = line("clock_nanosleep", &[0, 0, 16, 32], 0, &[bytes_of(2, &time)]);
    assert_eq!(slept, "rqtp: { .tv_sec: 1, .tv_nsec: 500 }, rmtp: 0x20 = 0");
    let limits = words(&[8192, u64::MAX]);
    let limited = line("setrlimit", &[3, 16], 0, &[bytes_of(1, &limits)]);
    assert_eq!(
        limited,
        "resource: STACK, rlim: { .rlim_cur: 8192, .rlim_max: INFINITY } = 0"
    );
    let action = words(&[0x1000, 0x1400_0000, 0x2000, 2]);
    let acted = line("rt_sigaction", &[2, 16, 0, 8], 0, &[bytes_of(1, &action)]);
    let expected = "sig: INT, act: { .sa_handler: 0x1000, .sa_flags: RESTORER|RESTART, .sa_mask: [INT] }, sigsetsize: 8 = 0";
    assert_eq!(acted, expected);
    let table = SyscallTable::of(Abi::X86_64);
    let call = CallArguments {
        abi: Abi::X86_64,
        syscall: table
            .number("clock_nanosleep")
            .and_then(|number| table.get(number)),
        values: [1, 0, 16, 0, 0, 0],
        captured: &[bytes_of(2, &time)],
        structures: None,
    };
    let options = ArgumentOptions {
        hides_names: true,
        ..ArgumentOptions::default()
    };
    let mut text = Vec::new();
    write_arguments(&mut text, &call, &Names, options).unwrap();
    assert_eq!(text, b"MONOTONIC, 0, {1, 500}, 0x0");
    let captured_only = ArgumentOptions {
        captured_only: true,
        ..ArgumentOptions::default()
    };
    let mut text = Vec::new();
    write_arguments(&mut text, &call, &Names, captured_only).unwrap();
    assert_eq!(text, b"rqtp: { .tv_sec: 1, .tv_nsec: 500 }");
}

#[test]
fn plans_name_the_memory_of_arguments() {
    let table = SyscallTable::of(Abi::X86_64);
    let plan = |name| {
        let call = table.number(name).and_then(|number| table.get(number));
        call.unwrap().capture_plan()
    };
    let arguments = |captures: &[Capture]| -> Vec<u8> {
        captures.iter().map(|capture| capture.argument).collect()
    };
    for (name, at_entry, at_return) in [
        ("openat", &[1][..], &[][..]),
        ("renameat2", &[1, 3], &[]),
        ("execve", &[1, 0], &[]),
        ("read", &[], &[1]),
        ("setxattr", &[0, 1, 2], &[]),
        ("readlinkat", &[1], &[2]),
        ("rt_sigaction", &[1], &[2]),
        ("sendto", &[1, 4], &[]),
        ("recvfrom", &[5], &[1, 4, 5]),
        ("accept", &[2], &[1, 2]),
        ("getsockopt", &[4], &[3, 4]),
        ("mq_timedsend", &[1, 4], &[]),
        ("getcwd", &[], &[0]),
        ("mount", &[0, 1, 2], &[]),
        ("close", &[], &[]),
    ] {
        let plan = plan(name);
        assert_eq!(arguments(&plan.at_entry), at_entry, "{name}");
        assert_eq!(arguments(&plan.at_return), at_return, "{name}");
    }
    for (_, call) in table.all() {
        let plan = call.capture_plan();
        for capture in plan.at_entry.iter().chain(&plan.at_return) {
            if let CaptureSource::Bytes(CaptureLength::Argument { argument, .. }) = capture.source {
                assert!(argument < 6, "{}", call.name);
            }
        }
    }
}

/// The content of buffers is printed without quotes, unlike paths. The length of an address is captured twice: the room for it
/// when the call begins, and its size when the call returns. The `odd` address is too short: it has one byte.
#[test]
fn captured_memory_replaces_addresses() {
    let opened = line("openat", &[-100, 16, 0], 3, &[bytes_of(1, b"/etc/passwd")]);
    assert_eq!(opened, "dfd: CWD, filename: \"/etc/passwd\" = 3");
    let long = CapturedBytes {
        is_truncated: true,
        ..bytes_of(1, b"ab")
    };
    let written = line("write", &[1, 16, 9], 9, &[long]);
    assert_eq!(written, "fd: 1</dev/pts/2>, buf: ab..., count: 9 = 9");
    let (room, size) = (8_i32.to_ne_bytes(), 16_i32.to_ne_bytes());
    let address = CapturedBytes {
        is_truncated: true,
        ..bytes_of(1, b"\x01\0/tmp/x")
    };
    let captured = [bytes_of(2, &room), address, bytes_of(2, &size)];
    let accepted = line("accept", &[3, 16, 32], 4, &captured);
    let expected =
        "fd: 3, upeer_sockaddr: { .family: LOCAL, path: /tmp/x... }, upeer_addrlen: [8 => 16] = 4";
    assert_eq!(accepted, expected);
    let accepted = line("accept", &[3, 16, 32], -11, &captured[..1]);
    let expected = "fd: 3, upeer_sockaddr: 0x10, upeer_addrlen: [8] = -1 EAGAIN (Resource temporarily unavailable)";
    assert_eq!(accepted, expected);
    let events = CapturedBytes {
        is_truncated: true,
        ..bytes_of(1, &[0; 12])
    };
    let waited = line("epoll_wait", &[3, 16, 9], 2, &[events]);
    let expected = "epfd: 3, events: [{ .events: 0, .data: 0x0 }, ...], maxevents: 9 = 2";
    assert_eq!(waited, expected);
    let odd = line("connect", &[3, 16, 1], 0, &[bytes_of(1, b"\xff")]);
    assert_eq!(odd, "fd: 3, uservaddr: 0x10, addrlen: 1 = 0");
    let unreadable = CapturedBytes {
        is_unreadable: true,
        ..bytes_of(1, b"")
    };
    let opened = line("openat", &[-100, 16, 0], -14, &[unreadable]);
    let expected = "dfd: CWD, filename: 0x10 (unreadable) = -1 EFAULT (Bad address)";
    assert_eq!(opened, expected);
    // A path that was unreadable when the call began, but not when it returned.
    let opened = line(
        "openat",
        &[-100, 16, 0],
        3,
        &[unreadable, bytes_of(1, b"x")],
    );
    assert_eq!(opened, "dfd: CWD, filename: \"x\" = 3");
    let item = |item, bytes: &'static [u8]| CapturedBytes {
        item,
        ..bytes_of(1, bytes)
    };
    let more = CapturedBytes {
        marks_more_items: true,
        ..item(2, b"")
    };
    let arguments = [item(1, b"-l"), more, item(0, b"ls")];
    let executed = line("execve", &[0, 16, 0], 0, &arguments);
    assert_eq!(executed, "argv: [\"ls\", \"-l\", ...] = 0");
}

#[test]
fn any_argument_values_are_printed_on_one_line() {
    for abi in Abi::ALL {
        for (_, syscall) in SyscallTable::of(abi).all() {
            for value in [0, 1, u64::MAX, 0x8000_0000, 0x1234_5678_9abc_def0] {
                let call = CallArguments {
                    abi,
                    syscall: Some(syscall),
                    values: [value; 6],
                    captured: &[],
                    structures: None,
                };
                let options = ArgumentOptions {
                    show_zeros: true,
                    ..ArgumentOptions::default()
                };
                let mut text = Vec::new();
                write_arguments(&mut text, &call, &Names, options).unwrap();
                write_result(&mut text, &call, value as i64, &Names).unwrap();
                assert!(!text.contains(&b'\n'));
            }
        }
    }
}

/// A kernel with three structures, each of four bytes. A text has the first and the last of the bytes.
#[derive(Debug)]
struct FourByteStructures {
    /// Whether these texts are preferred to those of the crate.
    is_preferred: bool,
}

impl StructureTexts for FourByteStructures {
    fn size(&self, name: &str) -> Option<u32> {
        matches!(name, "__kernel_timespec" | "sysinfo" | "perf_event_attr").then_some(4)
    }

    fn text(&self, name: &str, bytes: &[u8], with_names: bool) -> Option<String> {
        let (first, last) = (bytes.first()?, bytes.last()?);
        Some(format!("{name} {first} {last} {with_names}"))
    }

    fn is_preferred(&self) -> bool {
        self.is_preferred
    }
}

#[test]
fn kernel_structures_are_captured_and_printed() {
    let table = SyscallTable::of(Abi::X86_64);
    let call = |name| {
        table
            .number(name)
            .and_then(|number| table.get(number))
            .unwrap()
    };
    let structures = FourByteStructures {
        is_preferred: false,
    };
    let plan = |name| call(name).capture_plan_with(Some(&structures));
    assert_eq!(call("sysinfo").capture_plan(), CapturePlan::default());
    assert_eq!(plan("sysinfo").at_return.len(), 1);
    assert_eq!(plan("perf_event_open").at_entry.len(), 1);
    assert_eq!(plan("nanosleep"), call("nanosleep").capture_plan());
    let text = |name, is_preferred, memory: &[u8]| {
        let captured = [bytes_of(0, memory)];
        let call = CallArguments {
            abi: Abi::X86_64,
            syscall: Some(call(name)),
            values: [16, 0, 0, 0, 0, 0],
            captured: &captured,
            structures: Some(&FourByteStructures { is_preferred }),
        };
        let mut text = Vec::new();
        write_arguments(&mut text, &call, &Names, ArgumentOptions::default()).unwrap();
        String::from_utf8(text).unwrap()
    };
    let (preferred, fallback) = (true, false);
    assert_eq!(text("sysinfo", fallback, &[7]), "info: sysinfo 7 7 true");
    assert_eq!(text("sysinfo", fallback, &[]), "info: 0x10");
    // The size field, the second 32-bit word, is 8: the ninth byte is replaced by 0.
    let attr = [1, 0, 0, 0, 8, 0, 0, 0, 5];
    let opened = text("perf_event_open", fallback, &attr);
    assert!(
        opened.starts_with("attr_uptr: perf_event_attr 1 0 true"),
        "{opened}"
    );
    let time = words(&[1, 2]);
    assert_eq!(
        text("nanosleep", fallback, &time),
        "rqtp: { .tv_sec: 1, .tv_nsec: 2 }"
    );
    assert_eq!(
        text("nanosleep", preferred, &time),
        "rqtp: __kernel_timespec 1 0 true"
    );
}

#[test]
fn constants_are_named_where_perf_prints_numbers() {
    for (name, values, expected) in [
        (
            "faccessat2",
            &[-100, 16, 4, 0x200][..],
            "dfd: CWD, filename: 0x10, mode: R, flags: EACCESS",
        ),
        (
            "fallocate",
            &[1, 3, 0, 5],
            "fd: 1</dev/pts/2>, mode: KEEP_SIZE|PUNCH_HOLE, len: 5",
        ),
        (
            "quotactl",
            &[0x8000_0700, 16, 5, 0],
            "cmd: QCMD(GETQUOTA, USRQUOTA), special: 0x10, id: 5",
        ),
        (
            "mknod",
            &[16, 0o20600, 0x103],
            "filename: 0x10, mode: IFCHR|IRUSR|IWUSR, dev: 1:3",
        ),
        (
            "shmget",
            &[5, 4096, 0o1600],
            "key: 5, size: 4096, shmflg: CREAT|0600",
        ),
        ("msgget", &[5, 0], "key: 5"),
        ("semctl", &[1, 0, 0], "semid: 1, cmd: RMID"),
        (
            "ioprio_set",
            &[1, 5, 0x4005],
            "which: PROCESS, who: 5, ioprio: PRIO_VALUE(BE, 5)",
        ),
        (
            "mbind",
            &[4096, 4096, 0x8002, 0, 0, 3],
            "start: 4096, len: 4096, mode: BIND|STATIC_NODES, flags: STRICT|MOVE",
        ),
        (
            "add_key",
            &[16, 16, 16, 7, -3],
            "_type: 0x10, _description: 0x10, _payload: 0x10, plen: 7, ringid: SESSION_KEYRING",
        ),
        ("getrusage", &[-1, 16], "who: CHILDREN, ru: 0x10"),
        ("ptrace", &[0x4206, 5], "request: SEIZE, pid: 5"),
        (
            "preadv2",
            &[1, 16, 2, 5, -1, 8],
            "fd: 1</dev/pts/2>, vec: 0x10, vlen: 2, pos_l: 5, flags: NOWAIT",
        ),
        (
            "reboot",
            &[0xfee1_dead, 672_274_793, 0x4321_fedc, 16],
            "magic1: MAGIC1, magic2: MAGIC2, cmd: POWER_OFF",
        ),
        ("mq_open", &[16, 2, 0o600], "u_name: 0x10, oflag: RDWR"),
        (
            "delete_module",
            &[16, 0o4000],
            "name_user: 0x10, flags: NONBLOCK",
        ),
        ("capget", &[16], "header: 0x10"),
    ] {
        assert_eq!(
            line(name, values, 0, &[]),
            format!("{expected} = 0"),
            "{name}"
        );
    }
}

#[test]
fn messages_with_their_address_and_buffers() {
    let item = |item, bytes| CapturedBytes {
        argument: 1,
        item,
        bytes,
        is_truncated: false,
        is_unreadable: false,
        marks_more_items: false,
        is_late: false,
    };
    let address = [2, 0, 0, 53, 127, 0, 0, 1];
    let address = item(usize::from(captured_record::ADDRESS_ITEM), &address);
    let memory = [address, item(0, b"ab"), item(1, b"")];
    let first_text = r#"{ .name: { .family: INET, port: 53, addr: 127.0.0.1 }, .iov: ["ab", ""] }"#;
    assert_eq!(
        line("sendmsg", &[9, 16], 2, &memory),
        format!("fd: 9, msg: {first_text} = 2")
    );
    assert_eq!(
        line("sendmmsg", &[9, 16, 3], 1, &memory),
        format!("fd: 9, mmsg: [{first_text}, ...], vlen: 3 = 1")
    );
    // The first item of the second message.
    let second_message = usize::from(captured_record::MESSAGE_ITEMS);
    let both = [memory[0], memory[1], memory[2], item(second_message, b"c")];
    let second_text = r#"{ .iov: ["c"] }"#;
    // Two of three messages were sent or received. The third is only marked when sending: when receiving, it does not exist.
    for (call, more) in [("sendmmsg", ", ..."), ("recvmmsg", "")] {
        let printed = line(call, &[9, 16, 3, 0, 0], 2, &both);
        let expected = format!("fd: 9, mmsg: [{first_text}, {second_text}{more}], vlen: 3");
        assert!(printed.starts_with(&expected), "{printed}");
    }
    let mut header = [0; 56];
    // `msg_controllen` and `msg_flags`.
    (header[40], header[48]) = (24, 0x20);
    let header = item(usize::from(captured_record::HEADER_ITEM), &header);
    let expected = r#"fd: 9, msg: { .iov: ["ab"], .controllen: 24, .flags: TRUNC } = 2"#;
    assert_eq!(line("recvmsg", &[9, 16], 2, &[memory[1], header]), expected);
}

/// Structures that the kernel writes are captured when a call returns, also for calls that read another structure.
#[test]
fn written_structures_are_captured_at_the_return() {
    #[derive(Debug)]
    struct Sizes;
    impl StructureTexts for Sizes {
        fn size(&self, _: &str) -> Option<u32> {
            Some(32)
        }

        fn text(&self, _: &str, _: &[u8], _: bool) -> Option<String> {
            None
        }
    }
    let table = SyscallTable::of(Abi::X86_64);
    for (name, read, written) in [("setitimer", 1, 2), ("cachestat", 1, 2)] {
        let call = table.number(name).and_then(|number| table.get(number));
        let plan = call.unwrap().capture_plan_with(Some(&Sizes));
        let arguments = |captures: &[Capture]| -> Vec<u8> {
            captures.iter().map(|capture| capture.argument).collect()
        };
        assert_eq!(arguments(&plan.at_entry), [read], "{name}");
        assert_eq!(arguments(&plan.at_return), [written], "{name}");
    }
}
