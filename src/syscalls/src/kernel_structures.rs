//! Structures in arguments, read and shown by the kernel's own type information (BTF).

use crate::capture::{Capture, CaptureLength, CaptureLimit, CaptureSource};
use crate::{Argument, CallArguments, Syscall};

/// The kernel's structures by their names without `struct`.
pub trait StructureTexts: std::fmt::Debug + Send + Sync {
    /// Returns the size in bytes of a structure; `None` if it is unknown.
    fn size(&self, name: &str) -> Option<u32>;

    /// Returns a structure as text, with or without the names of its members; `None` if the structure is unknown or
    /// `bytes` are too short.
    fn text(&self, name: &str, bytes: &[u8], with_names: bool) -> Option<String>;

    /// Whether these texts are preferred to those of this crate.
    fn is_preferred(&self) -> bool {
        false
    }
}

/// Structures that are not shown by the kernel's types: they are arrays, have a variable size, or are shown by other
/// code.
const EXCLUDED: &[&str] = &[
    "epoll_event",
    "file_handle",
    "futex_waitv",
    "getcpu_cache",
    "io_event",
    "iocb",
    "iovec",
    "linux_dirent",
    "linux_dirent64",
    "lsm_ctx",
    "mmsghdr",
    "msgbuf",
    "msqid_ds",
    "pollfd",
    "robust_list_head",
    "sembuf",
    "shmid_ds",
    "siginfo",
    "sockaddr",
    "statmount",
    "user_msghdr",
];

/// Calls that read their structures although the argument's type is not `const`. The structures are copied when the call begins,
/// except those of [`WRITTEN`].
const READERS: &[&str] = &[
    "cachestat",
    "file_setattr",
    "futex_wait",
    "futex_waitv",
    "futimesat",
    "getxattrat",
    "io_getevents",
    "io_pgetevents",
    "io_uring_setup",
    "mount_setattr",
    "mq_open",
    "open_tree_attr",
    "openat2",
    "perf_event_open",
    "pselect6",
    "rseq",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "select",
    "setitimer",
    "settimeofday",
    "timer_create",
    "utime",
    "utimes",
];

/// Arguments of [`READERS`] whose structures the kernel writes: call and argument.
const WRITTEN: &[(&str, &str)] = &[("cachestat", "cstat"), ("setitimer", "ovalue")];

/// Returns the bytes of a structure. If the program gives the structure's size, in a field of the structure or in an argument of
/// the call, bytes beyond this size are replaced by 0, as the kernel ignores them.
pub(crate) fn zero_beyond_size(name: &str, call: &CallArguments<'_>, bytes: &[u8]) -> Vec<u8> {
    let word = |at: usize| {
        let word = bytes.get(at..)?.first_chunk()?;
        Some(u64::from(u32::from_ne_bytes(*word)))
    };
    let size = match name {
        // The kernel takes 0 as PERF_ATTR_SIZE_VER0.
        "perf_event_attr" => word(4).map(|size| if size == 0 { 64 } else { size }),
        // The kernel takes 0 as SCHED_ATTR_SIZE_VER0.
        "sched_attr" => word(0).map(|size| if size == 0 { 48 } else { size }),
        "mount_attr" | "open_how" | "file_attr" | "xattr_args" => {
            // The kernel's name of the argument with the size; 0 if the call has no such argument.
            Some(call.named("usize")).filter(|size| *size > 0)
        }
        _ => None,
    };
    let size = size.and_then(|size| usize::try_from(size).ok());
    let given = bytes.get(..size.unwrap_or(bytes.len()));
    let mut part = given.unwrap_or(bytes).to_vec();
    part.resize(bytes.len(), 0);
    part
}

/// Whether a successful call may leave the memory of this argument unchanged.
fn is_optional(call: &str, argument: &str) -> bool {
    // `rmtp` is only written if the sleep is interrupted, `ru` only if a child has changed its state.
    argument == "rmtp" || matches!((call, argument), ("wait4" | "waitid", "ru"))
}

/// Returns the name in the kernel of the structure that an argument points to; `None` for other types and [`EXCLUDED`].
pub(crate) fn structure_name(argument: &Argument) -> Option<&'static str> {
    let c_type = argument.c_type;
    let name = c_type.strip_prefix("const ").unwrap_or(c_type);
    let name = name.strip_prefix("struct ")?.strip_suffix('*')?;
    if name.ends_with('*') || EXCLUDED.contains(&name) {
        return None;
    }
    Some(match name {
        // The kernel's name for the layout that 64-bit programs use.
        "timespec" => "__kernel_timespec",
        name => name,
    })
}

impl Syscall {
    /// Returns the names of the kernel's structures among the arguments.
    pub fn structure_names(&self) -> impl Iterator<Item = &'static str> {
        let arguments = self.arguments.as_deref().unwrap_or_default();
        arguments.iter().filter_map(structure_name)
    }

    /// Returns whether the memory of an argument is copied when the call begins rather than when it returns, and the memory to
    /// copy by the kernel's types; `None` if the argument is no known structure, or the call may leave its memory unchanged.
    pub(crate) fn kernel_structure_capture(
        &self,
        argument: &Argument,
        index: u8,
        structures: &dyn StructureTexts,
    ) -> Option<(bool, Capture)> {
        if is_optional(self.name, argument.name) {
            return None;
        }
        let size = structures.size(structure_name(argument)?)?;
        let is_written = WRITTEN.contains(&(self.name, argument.name));
        let is_read = argument.c_type.starts_with("const ") || READERS.contains(&self.name);
        let is_read = is_read && !is_written;
        let capture = Capture {
            argument: index,
            source: CaptureSource::Bytes(CaptureLength::Fixed(size)),
            limit: CaptureLimit::Bytes(size),
        };
        Some((is_read, capture))
    }
}
