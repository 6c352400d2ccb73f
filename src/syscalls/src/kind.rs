//! How arguments are printed. This depends on their type and name, with exceptions for some calls.

use crate::constants::{self as names, FlagNames, ValueNames};
use crate::exceptions::exception;

/// How an argument is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A decimal number; signed, except for the types `unsigned int` and `u32`. (As in perf, even `unsigned long` is signed.)
    Number,
    /// A hexadecimal number.
    Hex,
    /// An address, whose content may be captured.
    Pointer,
    /// An address of a NUL-terminated path.
    Path,
    /// An address of a NUL-terminated text other than a path.
    Text,
    /// An address of bytes, whose count is another argument or the result.
    Buffer,
    /// An address of a socket address.
    SocketAddress,
    /// A file descriptor.
    Fd,
    /// A file descriptor of a directory, or `AT_FDCWD`.
    DirFd,
    /// A process id or thread id.
    Pid,
    /// The mode of a file.
    Mode,
    /// One value of a list; 0 is printed like other values.
    Value(&'static ValueNames),
    /// One value of a list; 0 is omitted, or printed as a number if arguments that are 0 are shown.
    NonZeroValue(&'static ValueNames),
    /// A set of flags.
    Flags(&'static FlagNames),
    /// The flags of open(2).
    OpenFlags,
    /// The mode of access(2).
    AccessMode,
    /// A socket's type.
    SocketType,
    /// A socket's protocol, whose meaning depends on the argument `family`.
    Protocol,
    /// A socket's option, whose meaning depends on the argument `level`.
    SocketOption,
    /// A futex operation.
    FutexOp,
    /// A bit mask of a futex operation.
    FutexMask,
    /// A request of ioctl(2).
    IoctlRequest,
    /// The third argument of fcntl(2), whose meaning depends on the command.
    FcntlArgument,
    /// The second argument of prctl(2), whose meaning depends on the option.
    PrctlArg2,
    /// The third argument of prctl(2), whose meaning depends on the option.
    PrctlArg3,
    /// `idx1` or `idx2` of kcmp(2), whose meaning depends on the argument `type`.
    KcmpIndex,
    /// A scheduling policy.
    Policy,
    /// A device number.
    Device,
    /// A command of quotactl(2).
    QuotaCommand,
    /// Flags of msgget(2), semget(2) or shmget(2), with permissions.
    IpcFlags(&'static FlagNames),
    /// An I/O priority.
    IoPriority,
    /// The mode of mbind(2) or set_mempolicy(2).
    MemoryPolicy,
}

/// Returns the kind of an argument.
pub(crate) fn argument_kind(call: &str, name: &str, c_type: &str) -> ArgumentKind {
    use ArgumentKind as Kind;
    if let Some(kind) = exception(call, name) {
        return kind;
    }
    // The asterisk may be followed by a qualifier: `void*const`.
    let is_pointer = c_type.contains('*');
    match (name, c_type) {
        ("u_msg_ptr", _) => Kind::Buffer,
        (_, "const char*") if is_path(call, name) => Kind::Path,
        (_, "const char*") if name == "buf" || name.ends_with("value") => Kind::Buffer,
        (_, "const char*") => Kind::Text,
        // A buffer that the kernel writes, or a text that it reads, depending on the call.
        (_, "char*") => Kind::Pointer,
        (_, "struct sockaddr*") => Kind::SocketAddress,
        ("buf" | "buff" | "ubuf", _) if is_pointer => Kind::Buffer,
        _ if is_pointer || c_type.ends_with("handler_t") => Kind::Pointer,
        // These types are pointers.
        (_, "cap_user_header_t" | "cap_user_data_t" | "const cap_user_data_t") => Kind::Pointer,
        (_, "pid_t") => Kind::Pid,
        (_, "umode_t") => Kind::Mode,
        ("mode", "mode_t") => Kind::Mode,
        (name, _) if name.ends_with("dfd") && name != "pidfd" => Kind::DirFd,
        ("sig", "int") => Kind::NonZeroValue(&names::SIGNAL),
        // Arguments with these names are descriptors, whatever their integer type.
        (
            "newfd" | "fd" | "oldfd" | "fd_in" | "fd_out" | "epfd" | "ufd" | "in_fd" | "out_fd",
            _,
        ) => Kind::Fd,
        (name, "int" | "unsigned int") if name.ends_with("fd") => Kind::Fd,
        ("addr" | "start" | "brk" | "newsp" | "tls", "unsigned long") if is_address(call) => {
            Kind::Hex
        }
        _ => Kind::Number,
    }
}

/// Whether an `unsigned long` with the name of an address is printed in hexadecimal in this call. As in perf, it is printed in
/// decimal in other calls.
fn is_address(call: &str) -> bool {
    matches!(
        call,
        "mmap"
            | "mmap2"
            | "munmap"
            | "mprotect"
            | "pkey_mprotect"
            | "mremap"
            | "brk"
            | "madvise"
            | "clone"
            | "mseal"
            | "remap_file_pages"
    )
}

/// Whether a `const char*` with this name is a path.
fn is_path(call: &str, name: &str) -> bool {
    // In these calls, only an argument with `path` in its name is a path. An argument called `name` is an attribute, others are
    // keys or values.
    let is_attribute_call = call.ends_with("xattr") || call.ends_with("xattrat");
    if is_attribute_call || matches!(call, "add_key" | "request_key" | "fsconfig") {
        return name.contains("path");
    }
    name.contains("path")
        || name.contains("filename")
        || matches!(
            name,
            "oldname"
                | "newname"
                | "specialfile"
                | "name"
                | "dir_name"
                | "dev_name"
                | "library"
                | "new_root"
                | "put_old"
                | "special"
        )
}
