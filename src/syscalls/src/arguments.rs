//! The arguments of a call as text.

use std::io::{self, Write};

use crate::captured::{socket_address, timespec};
use crate::constants::{self as names, access_text, futex_text, policy_text, socket_type_text};
use crate::ioctl::write_request;
use crate::mode::mode_text;
use crate::{Abi, ArgumentKind, CapturedBytes, Syscall, write_quoted};

/// `AT_FDCWD`: the current working directory instead of a file descriptor.
const CWD: i32 = -100;

/// Names of the tasks and files that numbers refer to at the time of the call.
pub trait TaskNames {
    /// Returns the path of a file descriptor of the calling task; `None` if it is not known for certain.
    fn fd_path(&self, _fd: i32) -> Option<&[u8]> {
        None
    }

    /// Returns the name of a task.
    fn comm(&self, _tid: u32) -> Option<&[u8]> {
        None
    }
}

/// How arguments are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArgumentOptions {
    /// Whether arguments that are 0 are printed.
    pub show_zeros: bool,
}

/// A call's arguments.
#[derive(Debug, Clone, Copy)]
pub struct CallArguments<'a> {
    /// The interface by which it was called.
    pub abi: Abi,
    /// The call; `None` if its number is unknown.
    pub syscall: Option<&'a Syscall>,
    /// All registers for arguments, used or not.
    pub values: [u64; 6],
    /// Memory that arguments point to.
    pub captured: &'a [CapturedBytes<'a>],
}

impl CallArguments<'_> {
    fn value(&self, index: usize) -> u64 {
        self.values.get(index).copied().unwrap_or_default()
    }

    /// Returns the value of an argument by its name; 0 if there is none.
    fn named(&self, name: &str) -> u64 {
        let arguments = self.syscall.and_then(|call| call.arguments.as_ref());
        let index = arguments.and_then(|list| list.iter().position(|one| one.name == name));
        index.map_or(0, |index| self.value(index))
    }

    fn captured(&self, index: usize) -> Option<&CapturedBytes<'_>> {
        self.captured.iter().find(|bytes| bytes.argument == index)
    }

    fn name(&self) -> &str {
        self.syscall.map_or("", |call| call.name)
    }
}

/// Writes the arguments, separated by `, `, without parentheses.
///
/// # Errors
/// Errors of `to`.
pub fn write_arguments(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    task: &dyn TaskNames,
    options: ArgumentOptions,
) -> io::Result<()> {
    let Some(arguments) = call.syscall.and_then(|call| call.arguments.as_ref()) else {
        return write_unnamed(to, call, options);
    };
    let mut separator = "";
    for (index, argument) in arguments.iter().enumerate() {
        let value = call.value(index);
        let is_shown = options.show_zeros || value != 0 || shows_zero(call, argument.kind);
        if !is_shown || is_unused(call, argument.name) {
            continue;
        }
        write!(to, "{separator}{}: ", argument.name)?;
        separator = ", ";
        match call.captured(index) {
            Some(bytes) => write_captured(to, argument.kind, argument.c_type, value, bytes)?,
            None => write_value(to, call, argument.kind, argument.c_type, value, task)?,
        }
    }
    Ok(())
}

/// Writes the registers of a call whose arguments are unknown.
fn write_unnamed(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    options: ArgumentOptions,
) -> io::Result<()> {
    let mut separator = "";
    for (index, value) in call.values.iter().enumerate() {
        if *value != 0 || options.show_zeros {
            write!(to, "{separator}arg{index}: {}", *value as i64)?;
            separator = ", ";
        }
    }
    Ok(())
}

/// Whether 0 is a name worth printing.
fn shows_zero(call: &CallArguments<'_>, kind: ArgumentKind) -> bool {
    match kind {
        ArgumentKind::Value(_) => true,
        ArgumentKind::OpenFlags => false,
        ArgumentKind::FcntlArgument => matches!(call.named("cmd"), 2 | 4 | 1024),
        _ => false,
    }
}

/// Whether an argument has no meaning for this operation.
fn is_unused(call: &CallArguments<'_>, argument: &str) -> bool {
    match (call.name(), argument) {
        ("socket" | "socketpair", "protocol") => call.named("protocol") == 0,
        // The commands F_GETFD, F_GETFL, F_GETOWN, F_GETSIG and F_GETLEASE have no argument.
        ("fcntl" | "fcntl64", "arg") => matches!(call.named("cmd"), 1 | 3 | 9 | 11 | 1025 | 1034),
        ("futex" | "futex_time64", "val3") => !uses_futex_mask(call.named("op") & 0x7f),
        ("futex" | "futex_time64", "utime") => {
            matches!(call.named("op") & 0x7f, 1 | 2 | 7 | 8 | 10)
        }
        ("futex" | "futex_time64", "uaddr2") => {
            !matches!(call.named("op") & 0x7f, 3 | 4 | 5 | 11 | 12)
        }
        ("mmap" | "mmap2", "fd") => call.named("fd") as i32 == -1,
        ("kcmp", "idx1" | "idx2") => !matches!(call.named("type"), 0 | 7),
        ("open", "mode") => call.named("flags") & 0o20000100 == 0,
        ("openat", "mode") => call.named("flags") & 0o20000100 == 0,
        _ => false,
    }
}

fn uses_futex_mask(op: u64) -> bool {
    !matches!(op, 0..=3 | 6..=8 | 13)
}

fn write_captured(
    to: &mut dyn Write,
    kind: ArgumentKind,
    c_type: &str,
    value: u64,
    captured: &CapturedBytes<'_>,
) -> io::Result<()> {
    let bytes = captured.bytes;
    let decoded = match kind {
        ArgumentKind::SocketAddress => socket_address(bytes),
        _ if c_type.contains("timespec") => timespec(bytes),
        _ => None,
    };
    match (decoded, kind) {
        (Some(text), _) => to.write_all(text.as_bytes())?,
        (None, ArgumentKind::Path | ArgumentKind::Text | ArgumentKind::Buffer) => {
            write_quoted(to, bytes, captured.is_truncated)?;
        }
        (None, _) => write!(to, "{value:#x}")?,
    }
    match captured.is_late {
        true => to.write_all(b" (read late)"),
        false => Ok(()),
    }
}

fn write_value(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    kind: ArgumentKind,
    c_type: &str,
    value: u64,
    task: &dyn TaskNames,
) -> io::Result<()> {
    use ArgumentKind as Kind;
    let text = match kind {
        Kind::Number | Kind::PrctlValue => return write_number(to, call, kind, c_type, value),
        Kind::Pointer
        | Kind::Path
        | Kind::Text
        | Kind::Buffer
        | Kind::SocketAddress
        | Kind::Hex => {
            return write!(to, "{value:#x}");
        }
        Kind::Fd | Kind::DirFd => return write_fd(to, kind, value, task),
        Kind::Pid => return write_pid(to, value, task),
        Kind::IoctlRequest => return write_request(to, value & 0xffff_ffff),
        Kind::FcntlArgument => return write_fcntl(to, call, value, task),
        Kind::KcmpIndex if call.named("type") == 0 => return write_fd(to, Kind::Fd, value, task),
        Kind::KcmpIndex => (value as i64).to_string(),
        Kind::Mode => mode_text(value),
        Kind::Value(names) | Kind::NonZeroValue(names) => names.text(truncated(c_type, value)),
        Kind::Flags(names) => names.text(truncated(c_type, value)),
        Kind::OpenFlags => open_flags(call.abi, value & 0xffff_ffff),
        Kind::AccessMode => access_text(value & 0xffff_ffff),
        Kind::SocketType => socket_type_text(value & 0xffff_ffff),
        Kind::Protocol if matches!(call.named("family"), 2 | 10) => names::IP_PROTOCOL.text(value),
        Kind::Protocol => (value as i64).to_string(),
        Kind::FutexOp => futex_text(value & 0xffff_ffff),
        Kind::FutexMask if value & 0xffff_ffff == 0xffff_ffff => "MATCH_ANY".to_owned(),
        Kind::FutexMask => format!("{:#x}", value & 0xffff_ffff),
        Kind::PrctlArgument => prctl_text(call.named("option"), value),
        Kind::Policy => policy_text(value & 0xffff_ffff),
    };
    to.write_all(text.as_bytes())
}

/// The upper half of a register is not part of an `int`.
fn truncated(c_type: &str, value: u64) -> u64 {
    match c_type {
        "int" | "unsigned int" | "u32" | "clockid_t" | "const clockid_t" => value & 0xffff_ffff,
        _ => value,
    }
}

fn write_number(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    kind: ArgumentKind,
    c_type: &str,
    value: u64,
) -> io::Result<()> {
    if kind == ArgumentKind::PrctlValue && call.named("option") == 35 {
        return write!(to, "{value:#x}");
    }
    match c_type {
        "int" | "uid_t" | "gid_t" | "clockid_t" | "qid_t" | "key_t" => {
            write!(to, "{}", value as i32)
        }
        "unsigned int" | "u32" => write!(to, "{}", value as u32),
        _ => write!(to, "{}", value as i64),
    }
}

fn open_flags(abi: Abi, value: u64) -> String {
    match abi {
        Abi::Arm64 => names::OPEN_ARM.text(value),
        _ => names::OPEN.text(value),
    }
}

pub(crate) fn write_open_flags(to: &mut dyn Write, abi: Abi, value: u64) -> io::Result<()> {
    to.write_all(open_flags(abi, value).as_bytes())
}

pub(crate) fn write_fd(
    to: &mut dyn Write,
    kind: ArgumentKind,
    value: u64,
    task: &dyn TaskNames,
) -> io::Result<()> {
    let fd = value as i32;
    if kind == ArgumentKind::DirFd && fd == CWD {
        return to.write_all(b"CWD");
    }
    write!(to, "{fd}")?;
    let Some(path) = task.fd_path(fd) else {
        return Ok(());
    };
    to.write_all(b"<")?;
    to.write_all(path)?;
    to.write_all(b">")
}

/// Writes a task with its name.
pub(crate) fn write_pid(to: &mut dyn Write, value: u64, task: &dyn TaskNames) -> io::Result<()> {
    let pid = value as i32;
    write!(to, "{pid}")?;
    let comm = u32::try_from(pid).ok().filter(|pid| *pid > 0);
    let Some(comm) = comm.and_then(|pid| task.comm(pid)) else {
        return Ok(());
    };
    to.write_all(b" (")?;
    to.write_all(comm)?;
    to.write_all(b")")
}

fn write_fcntl(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    value: u64,
    task: &dyn TaskNames,
) -> io::Result<()> {
    match call.named("cmd") {
        2 if value == 1 => to.write_all(b"CLOEXEC"),
        4 => write_open_flags(to, call.abi, value & 0xffff_ffff),
        8 => write_pid(to, value, task),
        1024 => to.write_all(names::LEASE.text(value).as_bytes()),
        5..=7 | 15 | 16 | 36..=38 => write!(to, "{value:#x}"),
        _ => write!(to, "{}", value as i64),
    }
}

/// Returns the second argument of prctl(2).
fn prctl_text(option: u64, value: u64) -> String {
    match option {
        // PR_SET_PDEATHSIG, PR_SET_NAME, PR_GET_NAME, PR_SET_MM.
        1 => names::SIGNAL.text(value),
        15 | 16 => format!("{value:#x}"),
        35 => names::PRCTL_MM.text(value),
        _ => (value as i64).to_string(),
    }
}
