//! The arguments of a call as text.

use std::io::{self, Write};

use crate::constants::{
    self as names, access_text, files, futex_text, policy_text, socket_type_text, system,
};
use crate::ioctl::write_request;
use crate::kernel_structures::{structure_name, zero_beyond_size};
use crate::messages::{write_message, write_messages};
use crate::mode::mode_text;
use crate::structures::{device_text, structure};
use crate::{
    Abi, Argument, ArgumentKind, CapturedBytes, StructureTexts, Syscall, write_buffer, write_name,
    write_quoted,
};

/// `AT_FDCWD`: the current working directory instead of a file descriptor.
const CWD: i32 = -100;

/// Names of the tasks and files that ids and descriptors refer to at the time of the call.
pub trait TaskNames {
    /// Returns the path of a file descriptor of the calling task; `None` if it is not known for certain.
    fn fd_path(&self, _fd: i32) -> Option<&[u8]> {
        None
    }

    /// Returns the name of a task; `None` if it is not known.
    fn comm(&self, _tid: u32) -> Option<&[u8]> {
        None
    }
}

/// How arguments are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArgumentOptions {
    /// Whether arguments that are 0 are printed.
    pub show_zeros: bool,
    /// Whether arguments and the fields of structures have no names, descriptors no paths and task ids no comms, as in strace's
    /// lines. Arguments that are 0 are printed then, since only the position of a value identifies it.
    pub hides_names: bool,
    /// Whether only arguments with captured memory are printed.
    pub captured_only: bool,
}

/// A call's arguments.
#[derive(Debug, Clone, Copy)]
pub struct CallArguments<'a> {
    /// The system call interface by which it was called.
    pub abi: Abi,
    /// The call; `None` if its number is unknown.
    pub syscall: Option<&'a Syscall>,
    /// The six argument registers, used or not.
    pub values: [u64; 6],
    /// The captured memory that arguments point to.
    pub captured: &'a [CapturedBytes<'a>],
    /// The layouts of the kernel's structures, if they are known.
    pub structures: Option<&'a dyn StructureTexts>,
}

impl CallArguments<'_> {
    pub(crate) fn value(&self, index: usize) -> u64 {
        self.values.get(index).copied().unwrap_or_default()
    }

    /// Returns the value of an argument by its name; 0 if there is none.
    pub(crate) fn named(&self, name: &str) -> u64 {
        let arguments = self.syscall.and_then(|call| call.arguments.as_ref());
        let index = arguments.and_then(|list| list.iter().position(|one| one.name == name));
        index.map_or(0, |index| self.value(index))
    }

    /// Returns the memory of an argument, sorted by [`CapturedBytes::item`]. If an item was read twice, the first reading is
    /// returned, unless that failed.
    fn captured(&self, index: usize) -> Vec<&CapturedBytes<'_>> {
        let mut of_argument: Vec<&CapturedBytes<'_>> = self
            .captured
            .iter()
            .filter(|bytes| bytes.argument == index)
            .collect();
        of_argument.sort_by_key(|bytes| bytes.item);
        of_argument.dedup_by(|later, earlier| {
            let is_same = later.item == earlier.item;
            if is_same && earlier.is_unreadable {
                *earlier = later;
            }
            is_same
        });
        of_argument
    }

    /// Returns the socket address among the arguments, without braces: `10.0.0.1:80`, a path, or the family. `None` if there is
    /// none, its memory was not captured or is too short, or it is an AF_LOCAL (AF_UNIX) address without a path.
    #[must_use]
    pub fn peer(&self) -> Option<String> {
        let arguments = self.syscall?.arguments.as_deref()?;
        let mut arguments = arguments.iter().enumerate();
        let (index, _) = arguments.find(|(_, one)| one.kind == ArgumentKind::SocketAddress)?;
        crate::structures::peer(self.captured(index).first()?.bytes)
    }

    pub(crate) fn name(&self) -> &str {
        self.syscall.map_or("", |call| call.name)
    }
}

/// Writes the arguments, separated by `, `, without parentheses. If they are unknown, writes the argument registers that are not
/// 0, or all with [`ArgumentOptions::show_zeros`], as `arg0: 1`; the other options have no effect on them.
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
        let Some(shown) = printed_argument(call, argument, index, options) else {
            continue;
        };
        to.write_all(separator.as_bytes())?;
        separator = ", ";
        if !options.hides_names {
            write!(to, "{}: ", argument.name)?;
        }
        write_one(to, call, &shown, task, options)?;
    }
    Ok(())
}

/// An argument as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentText {
    /// Its name in the kernel.
    pub name: &'static str,
    /// Its value, as [`write_arguments`] prints it.
    pub text: String,
}

/// Returns the arguments that [`write_arguments`] prints, one by one; none if the call or its arguments are unknown.
#[must_use]
pub fn argument_texts(
    call: &CallArguments<'_>,
    task: &dyn TaskNames,
    options: ArgumentOptions,
) -> Vec<ArgumentText> {
    let arguments = call.syscall.and_then(|call| call.arguments.as_deref());
    let arguments = arguments.unwrap_or_default().iter().enumerate();
    let texts = arguments.filter_map(|(index, argument)| {
        let shown = printed_argument(call, argument, index, options)?;
        let mut text = Vec::new();
        // Writing to a `Vec` does not fail.
        let _ = write_one(&mut text, call, &shown, task, options);
        Some(ArgumentText {
            name: argument.name,
            text: String::from_utf8_lossy(&text).into_owned(),
        })
    });
    texts.collect()
}

/// An argument that is printed.
#[derive(Debug)]
struct ShownArgument<'a> {
    argument: &'a Argument,
    value: u64,
    captured: Vec<&'a CapturedBytes<'a>>,
}

/// Returns an argument if it is printed.
fn printed_argument<'a>(
    call: &'a CallArguments<'_>,
    argument: &'a Argument,
    index: usize,
    options: ArgumentOptions,
) -> Option<ShownArgument<'a>> {
    let value = call.value(index);
    let shows_all_zeros = options.show_zeros || options.hides_names;
    let is_shown = shows_all_zeros || value != 0 || zero_is_meaningful(call, argument.kind);
    if !is_shown || is_unused(call, argument.name) {
        return None;
    }
    let captured = call.captured(index);
    (!options.captured_only || !captured.is_empty()).then_some(ShownArgument {
        argument,
        value,
        captured,
    })
}

fn write_one(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    shown: &ShownArgument<'_>,
    task: &dyn TaskNames,
    options: ArgumentOptions,
) -> io::Result<()> {
    let task = if options.hides_names { &NoNames } else { task };
    let ShownArgument {
        argument, value, ..
    } = shown;
    match shown.captured.is_empty() {
        true => write_value(to, call, argument.kind, argument.c_type, *value, task),
        false => {
            write_captured(to, call, shown, options)?;
            // Memory that was read after the call had begun may have changed.
            match shown.captured.iter().any(|captured| captured.is_late) {
                true => to.write_all(b" (late)"),
                false => Ok(()),
            }
        }
    }
}

/// Has no names.
struct NoNames;

impl TaskNames for NoNames {}

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

/// Whether 0 is a value like others for this argument. Then it is printed even without [`ArgumentOptions::show_zeros`].
fn zero_is_meaningful(call: &CallArguments<'_>, kind: ArgumentKind) -> bool {
    match kind {
        ArgumentKind::Value(_) => true,
        // F_SETFD, F_SETFL and F_SETLEASE.
        ArgumentKind::FcntlArgument => matches!(call.named("cmd"), 2 | 4 | 1024),
        _ => false,
    }
}

/// Whether an argument is not printed, since it has no meaning for this operation, or its value means none: the default
/// protocol of a socket, no file for mmap(2).
fn is_unused(call: &CallArguments<'_>, argument: &str) -> bool {
    match (call.name(), argument) {
        ("socket" | "socketpair", "protocol") => call.named("protocol") == 0,
        // The commands F_GETFD, F_GETFL, F_GETOWN, F_GETSIG, F_GETLEASE and F_GET_SEALS have no argument.
        ("fcntl" | "fcntl64", "arg") => matches!(call.named("cmd"), 1 | 3 | 9 | 11 | 1025 | 1034),
        // FUTEX_WAIT to FUTEX_REQUEUE, FUTEX_LOCK_PI to FUTEX_TRYLOCK_PI and FUTEX_LOCK_PI2 do not use it.
        ("futex" | "futex_time64", "val3") => {
            matches!(call.named("op") & 0x7f, 0..=3 | 6..=8 | 13)
        }
        // FUTEX_WAKE, FUTEX_FD, FUTEX_UNLOCK_PI, FUTEX_TRYLOCK_PI and FUTEX_WAKE_BITSET have no timeout.
        ("futex" | "futex_time64", "utime") => {
            matches!(call.named("op") & 0x7f, 1 | 2 | 7 | 8 | 10)
        }
        // Only FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP, FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI have a second
        // address.
        ("futex" | "futex_time64", "uaddr2") => {
            !matches!(call.named("op") & 0x7f, 3 | 4 | 5 | 11 | 12)
        }
        ("mmap" | "mmap2", "fd") => call.named("fd") as i32 == -1,
        // KCMP_FILE and KCMP_EPOLL_TFD; the other comparisons ignore the indices.
        ("kcmp", "idx1" | "idx2") => !matches!(call.named("type"), 0 | 7),
        // O_CREAT and O_TMPFILE.
        ("open" | "openat", "mode") => call.named("flags") & 0o20000100 == 0,
        // O_CREAT.
        ("mq_open", "mode" | "u_attr") => call.named("oflag") & 0o100 == 0,
        // A 64-bit register has the whole position.
        ("preadv" | "preadv2" | "pwritev" | "pwritev2", "pos_h") => call.abi != Abi::I386,
        // LINUX_REBOOT_CMD_RESTART2.
        ("reboot", "arg") => call.named("cmd") & 0xffff_ffff != 0xa1b2_c3d4,
        _ => false,
    }
}

fn write_captured(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    shown: &ShownArgument<'_>,
    options: ArgumentOptions,
) -> io::Result<()> {
    let ShownArgument {
        argument,
        value,
        captured,
    } = shown;
    let Some(first) = captured.first() else {
        return write!(to, "{value:#x}");
    };
    if captured.len() == 1 && first.is_unreadable {
        return write!(to, "{value:#x} (unreadable)");
    }
    let bytes = first.bytes;
    if argument.name == "mmsg" {
        return write_messages(to, call, captured, options);
    }
    if argument.name == "msg" {
        return write_message(to, call, captured, options);
    }
    let is_list = matches!(argument.name, "argv" | "vec" | "iov" | "uiov");
    match argument.kind {
        _ if is_list => write_items(to, captured),
        ArgumentKind::Path | ArgumentKind::Text => write_quoted(to, bytes, first.is_truncated),
        _ => match structure_text(call, argument, first, options) {
            Some(text) if options.hides_names => to.write_all(without_names(&text).as_bytes()),
            Some(text) => to.write_all(text.as_bytes()),
            None if is_text(call, argument.name) => write_quoted(to, bytes, first.is_truncated),
            None if is_content(argument) => write_content(to, call, first),
            None => write!(to, "{value:#x}"),
        },
    }
}

/// Returns the text of a structure, by the tables of this crate or by the kernel's types.
fn structure_text(
    call: &CallArguments<'_>,
    argument: &Argument,
    captured: &CapturedBytes<'_>,
    options: ArgumentOptions,
) -> Option<String> {
    let by_kernel = || {
        let name = structure_name(argument)?;
        let structures = call.structures?;
        let bytes = zero_beyond_size(name, call, captured.bytes);
        structures.text(name, &bytes, !options.hides_names)
    };
    match call.structures {
        Some(structures) if structures.is_preferred() => {
            by_kernel().or_else(|| structure(call, argument, captured))
        }
        _ => structure(call, argument, captured).or_else(by_kernel),
    }
}

/// Returns the text of a structure without the names of its fields: `{1, 0}`.
pub(crate) fn without_names(text: &str) -> String {
    let is_name = |word: &&str| word.starts_with('.') && word.ends_with(':');
    let values: Vec<&str> = text.split(' ').filter(|word| !is_name(word)).collect();
    values.join(" ").replace("{ ", "{").replace(" }", "}")
}

/// Whether an argument is a NUL-terminated text, although its type does not say so.
fn is_text(call: &CallArguments<'_>, argument: &str) -> bool {
    // FSCONFIG_SET_STRING, FSCONFIG_SET_PATH, FSCONFIG_SET_PATH_EMPTY.
    let is_value = (call.name(), argument) == ("fsconfig", "_value");
    if is_value && matches!(call.named("cmd"), 1 | 3 | 4) {
        return true;
    }
    matches!(
        (call.name(), argument),
        ("mount", "dev_name" | "dir_name" | "type")
            | ("umount" | "umount2", "name")
            | ("utime" | "utimes", "filename")
    )
}

/// Whether the captured memory of an argument is shown as bytes.
fn is_content(argument: &Argument) -> bool {
    let is_named = matches!(
        argument.name,
        "buf" | "ubuf" | "value" | "list" | "_payload" | "u_msg_ptr" | "name" | "optval"
    );
    argument.kind == ArgumentKind::Buffer || is_named
}

fn write_content(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    captured: &CapturedBytes<'_>,
) -> io::Result<()> {
    match call.name() {
        // A path. Only that of getcwd(2) ends with a NUL.
        "getcwd" | "readlink" | "readlinkat" => {
            let path = captured.bytes.strip_suffix(b"\0");
            write_quoted(to, path.unwrap_or(captured.bytes), captured.is_truncated)
        }
        _ => write_buffer(to, captured.bytes, captured.is_truncated),
    }
}

/// Writes the texts or buffers of a list.
pub(crate) fn write_items(to: &mut dyn Write, items: &[&CapturedBytes<'_>]) -> io::Result<()> {
    to.write_all(b"[")?;
    for (index, item) in items.iter().enumerate() {
        let separator: &[u8] = if index == 0 { b"" } else { b", " };
        to.write_all(separator)?;
        match (item.marks_more_items, item.is_unreadable) {
            (true, _) => to.write_all(b"...")?,
            (_, true) => to.write_all(b"(unreadable)")?,
            _ => write_quoted(to, item.bytes, item.is_truncated)?,
        }
    }
    to.write_all(b"]")
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
        Kind::Number | Kind::PrctlArg3 => return write_number(to, call, kind, c_type, value),
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
        // KCMP_FILE, the only type for which perf, too, prints the indices as descriptors.
        Kind::KcmpIndex if call.named("type") == 0 => return write_fd(to, Kind::Fd, value, task),
        Kind::KcmpIndex => (value as i64).to_string(),
        Kind::Mode => mode_text(value),
        Kind::NonZeroValue(_) if value == 0 => "0".to_owned(),
        Kind::Value(values) | Kind::NonZeroValue(values) => {
            values.text(value_of_type(c_type, value))
        }
        Kind::Flags(flags) => flags.text(value_of_type(c_type, value)),
        Kind::OpenFlags => open_flags(call.abi, value & 0xffff_ffff),
        Kind::AccessMode => access_text(value & 0xffff_ffff),
        Kind::SocketType => socket_type_text(value & 0xffff_ffff),
        // AF_INET and AF_INET6.
        Kind::Protocol if matches!(call.named("family"), 2 | 10) => names::IP_PROTOCOL.text(value),
        Kind::Protocol => (value as i64).to_string(),
        // SOL_SOCKET.
        Kind::SocketOption if call.named("level") == 1 => names::SOCKET_OPTION.text(value),
        Kind::SocketOption => (value as i32).to_string(),
        Kind::FutexOp => futex_text(value & 0xffff_ffff),
        Kind::FutexMask if value & 0xffff_ffff == 0xffff_ffff => "MATCH_ANY".to_owned(),
        Kind::FutexMask => format!("{:#x}", value & 0xffff_ffff),
        Kind::PrctlArg2 => prctl_text(call.named("option"), value),
        Kind::Policy => policy_text(value & 0xffff_ffff),
        Kind::Device => device_text(value & 0xffff_ffff),
        Kind::QuotaCommand => files::quota_text(value & 0xffff_ffff),
        Kind::IpcFlags(flags) => system::ipc_text(flags, value & 0xffff_ffff),
        Kind::IoPriority => system::io_priority_text(value & 0xffff_ffff),
        Kind::MemoryPolicy => system::memory_policy_text(value & 0xffff_ffff),
    };
    // Flags of which none is set.
    let text = if text.is_empty() { "0" } else { &text };
    to.write_all(text.as_bytes())
}

/// Returns the value of an argument of this type from its register: the lower half of the register if the type has 32 bits.
fn value_of_type(c_type: &str, value: u64) -> u64 {
    match c_type {
        "int" | "unsigned int" | "unsigned" | "u32" | "const __u32" | "clockid_t"
        | "const clockid_t" | "key_serial_t" | "rwf_t" => value & 0xffff_ffff,
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
    // PR_SET_MM, whose third argument is an address.
    if kind == ArgumentKind::PrctlArg3 && call.named("option") == 35 {
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

pub(crate) fn open_flags(abi: Abi, value: u64) -> String {
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
    write_name(to, path)?;
    to.write_all(b">")
}

/// Writes the id of a task, and its comm if it is known.
pub(crate) fn write_pid(to: &mut dyn Write, value: u64, task: &dyn TaskNames) -> io::Result<()> {
    let pid = value as i32;
    write!(to, "{pid}")?;
    let tid = u32::try_from(pid).ok().filter(|tid| *tid > 0);
    let Some(comm) = tid.and_then(|tid| task.comm(tid)) else {
        return Ok(());
    };
    to.write_all(b" (")?;
    write_name(to, comm)?;
    to.write_all(b")")
}

fn write_fcntl(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    value: u64,
    task: &dyn TaskNames,
) -> io::Result<()> {
    match call.named("cmd") {
        // F_SETFD
        2 if value == 1 => to.write_all(b"CLOEXEC"),
        // F_SETFL
        4 => write_open_flags(to, call.abi, value & 0xffff_ffff),
        // F_SETOWN
        8 => write_pid(to, value, task),
        // F_SETLEASE
        1024 => to.write_all(names::LEASE.text(value).as_bytes()),
        // The address of a `struct flock` (F_GETLK to F_SETLKW, F_OFD_GETLK to F_OFD_SETLKW), of a `struct f_owner_ex`
        // (F_SETOWN_EX, F_GETOWN_EX) or of a write lifetime hint (F_GET_RW_HINT to F_SET_FILE_RW_HINT). As in perf, its content
        // is not printed.
        5..=7 | 15 | 16 | 36..=38 | 1035..=1038 => write!(to, "{value:#x}"),
        _ => write!(to, "{}", value as i64),
    }
}

/// Returns the second argument of prctl(2) as text.
fn prctl_text(option: u64, value: u64) -> String {
    match option {
        // PR_SET_PDEATHSIG
        1 => names::SIGNAL.text(value),
        // PR_SET_NAME and PR_GET_NAME
        15 | 16 => format!("{value:#x}"),
        // PR_SET_MM
        35 => names::PRCTL_MM.text(value),
        _ => (value as i64).to_string(),
    }
}
