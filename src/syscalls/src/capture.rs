//! The memory to copy when a call begins and when it returns.

mod shapes;

use crate::{Argument, ArgumentKind, StructureTexts, Syscall};
pub(crate) use shapes::epoll_event_size;
use shapes::{SHAPES, ShapeLength};

/// The maximum number of entries of each list of a [`CapturePlan`].
pub const MAX_CAPTURES: usize = 4;

/// Memory of one argument to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Index of the argument that is its address, from 0.
    pub argument: u8,
    /// The kind of content.
    pub source: CaptureSource,
    /// The maximum number of bytes to copy. If `source` has several texts or buffers, the limit applies to each.
    pub limit: CaptureLimit,
}

/// The kind of content at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureSource {
    /// Bytes.
    Bytes(CaptureLength),
    /// A NUL-terminated text.
    Text,
    /// An array of addresses of texts, which ends with the address 0.
    Texts,
    /// `struct iovec[]`. The argument with this index is the number of elements.
    Vectors(u8),
    /// `struct user_msghdr`. Its parts are captured one by one, as items with indexes: the structure as
    /// [`crate::captured_record::HEADER_ITEM`], the socket address (`msg_name`) as [`crate::captured_record::ADDRESS_ITEM`], and
    /// the buffers of `msg_iov` as the items from 0 on.
    Message,
    /// `struct mmsghdr[]`, at most [`crate::captured_record::MAX_MESSAGES`], each like [`CaptureSource::Message`]: the indexes of
    /// the items of message n begin at n times [`crate::captured_record::MESSAGE_ITEMS`]. The number of elements is the argument
    /// with this index when the call begins, and the call's result when it returns.
    Messages(u8),
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureLength {
    /// This number of bytes.
    Fixed(u32),
    /// The value of an argument, times `unit`.
    Argument {
        /// The index of the argument.
        argument: u8,
        /// The factor.
        unit: u32,
    },
    /// The call's result, times `unit`.
    Result {
        /// The factor.
        unit: u32,
    },
    /// An `int` that an argument points to.
    Pointed {
        /// The index of the argument.
        argument: u8,
    },
}

/// The maximum number of bytes to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureLimit {
    /// The limit of paths (`PATH_MAX`).
    Path,
    /// The limit of other texts and of buffers, which the user sets.
    StringSize,
    /// This number.
    Bytes(u32),
}

/// The memory to copy at one call. Each list has at most [`MAX_CAPTURES`] entries. At most one entry of a list has a source
/// with several items ([`CaptureSource::Texts`], [`CaptureSource::Vectors`], [`CaptureSource::Message`] or
/// [`CaptureSource::Messages`]); it is the first entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturePlan {
    /// Memory to copy when the call begins.
    pub at_entry: Vec<Capture>,
    /// Memory to copy when the call returns without an error.
    pub at_return: Vec<Capture>,
}

/// An argument that is a buffer, and the argument that points to its size: their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedMemory {
    /// The index of the buffer.
    pub memory_argument: usize,
    /// The index of the argument that points to the size in bytes, an `int`.
    pub length_argument: usize,
}

/// Whether the kernel reads the memory or writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

use Direction::{In, Out};

impl Syscall {
    /// Returns the memory to copy so that arguments can be printed by their content instead of their address.
    #[must_use]
    pub fn capture_plan(&self) -> CapturePlan {
        self.capture_plan_with(None)
    }

    /// Like [`Syscall::capture_plan`], but the plan also has structures that this crate does not know, if `structures`, the
    /// kernel's types, has their size.
    #[must_use]
    pub fn capture_plan_with(&self, structures: Option<&dyn StructureTexts>) -> CapturePlan {
        let mut plan = CapturePlan::default();
        let arguments = self.arguments.as_deref().unwrap_or_default();
        for (argument, index) in arguments.iter().zip(0_u8..) {
            let name = argument.name;
            // The argument points to a size, which is copied twice: at entry it is the size of the buffer, at return the size of
            // the value, stored by the kernel.
            if points_to_length(self.name, name) {
                let capture = Capture {
                    argument: index,
                    source: CaptureSource::Bytes(CaptureLength::Fixed(4)),
                    // Any limit of at least 4 serves.
                    limit: CaptureLimit::Bytes(MAX_STRUCTURE),
                };
                plan.at_entry.push(capture);
                plan.at_return.push(capture);
                continue;
            }
            let found = text(self.name, argument, index)
                .or_else(|| list(self.name, name, index))
                .or_else(|| self.buffer(argument.kind, index))
                .or_else(|| self.structure(name, argument.c_type, index))
                .or_else(|| {
                    let (is_read, capture) =
                        self.kernel_structure_capture(argument, index, structures?)?;
                    Some((if is_read { In } else { Out }, capture))
                });
            if let Some((direction, capture)) = found {
                match direction {
                    Direction::In => plan.at_entry.push(capture),
                    Direction::Out => plan.at_return.push(capture),
                }
            }
        }
        for captures in [&mut plan.at_entry, &mut plan.at_return] {
            // A source with several items comes first.
            captures.sort_by_key(|capture| !capture.has_several_items());
            captures.truncate(MAX_CAPTURES);
        }
        plan
    }

    /// Returns the buffer whose size another argument points to, and that argument; `None` if the call has no such buffer. When
    /// the call begins, the size is that of the buffer; when it returns, that of the value that the kernel stored.
    #[must_use]
    pub fn sized_memory(&self) -> Option<SizedMemory> {
        let arguments = self.arguments.as_deref()?.iter();
        let length = arguments
            .clone()
            .position(|argument| points_to_length(self.name, argument.name))?;
        let memory = length.checked_sub(1)?;
        Some(SizedMemory {
            memory_argument: memory,
            length_argument: length,
        })
    }

    fn index_of(&self, names: &[&str]) -> Option<u8> {
        let arguments = self.arguments.as_deref().unwrap_or_default();
        let found = arguments.iter().position(|one| names.contains(&one.name))?;
        u8::try_from(found).ok()
    }

    /// Returns how to capture a buffer of bytes whose size is another argument, or the result.
    fn buffer(&self, kind: ArgumentKind, index: u8) -> Option<(Direction, Capture)> {
        let capture = |argument, source| Capture {
            argument,
            source,
            limit: CaptureLimit::StringSize,
        };
        match (kind, self.name) {
            (
                ArgumentKind::Buffer | ArgumentKind::Pointer | ArgumentKind::Text,
                "write" | "pwrite64" | "sendto" | "send" | "setxattr" | "lsetxattr" | "fsetxattr"
                | "add_key" | "mq_timedsend" | "sethostname" | "setdomainname",
            ) => {
                let content = match self.name {
                    "sethostname" | "setdomainname" => &["name"][..],
                    _ => &["buf", "buff", "value", "_payload", "u_msg_ptr"],
                };
                let is_content = self.index_of(content) == Some(index);
                let size_argument = self.index_of(&["count", "len", "size", "plen", "msg_len"])?;
                let length = CaptureLength::Argument {
                    argument: size_argument,
                    unit: 1,
                };
                is_content.then(|| (Direction::In, capture(index, CaptureSource::Bytes(length))))
            }
            (
                ArgumentKind::Buffer | ArgumentKind::Pointer | ArgumentKind::Text,
                "read" | "pread64" | "recvfrom" | "recv" | "getrandom" | "readlink" | "readlinkat"
                | "getxattr" | "lgetxattr" | "fgetxattr" | "listxattr" | "llistxattr"
                | "flistxattr" | "mq_timedreceive" | "getcwd",
            ) => {
                let is_content =
                    self.index_of(&["buf", "ubuf", "value", "list", "u_msg_ptr"]) == Some(index);
                let length = CaptureLength::Result { unit: 1 };
                let found = capture(index, CaptureSource::Bytes(length));
                let is_path = matches!(self.name, "readlink" | "readlinkat" | "getcwd");
                let limit = if is_path {
                    CaptureLimit::Path
                } else {
                    found.limit
                };
                is_content.then_some((Direction::Out, Capture { limit, ..found }))
            }
            _ => None,
        }
    }

    /// Returns how to capture an argument that [`SHAPES`] lists.
    fn structure(&self, name: &str, c_type: &str, index: u8) -> Option<(Direction, Capture)> {
        let shape = SHAPES.iter().find(|shape| {
            shape.name.is_none_or(|wanted| wanted == name)
                && shape.calls.contains(&self.name)
                && (shape.c_type.is_empty() || c_type.contains(shape.c_type))
        })?;
        let length = match shape.length {
            ShapeLength::Fixed(bytes) => CaptureLength::Fixed(bytes),
            ShapeLength::FixedBy(size) => CaptureLength::Fixed(size(self.abi)),
            ShapeLength::Counted(count, unit) => CaptureLength::Argument {
                argument: self.index_of(&[count])?,
                unit,
            },
            ShapeLength::Returned(unit) => CaptureLength::Result { unit },
            ShapeLength::ReturnedBy(size) => CaptureLength::Result {
                unit: size(self.abi),
            },
            ShapeLength::Pointed(length) => CaptureLength::Pointed {
                argument: self.index_of(&[length])?,
            },
        };
        let capture = Capture {
            argument: index,
            source: CaptureSource::Bytes(length),
            limit: CaptureLimit::Bytes(MAX_STRUCTURE),
        };
        Some((shape.direction, capture))
    }
}

/// The maximum number of bytes of a structure, or of an array of structures.
const MAX_STRUCTURE: u32 = 512;

impl Capture {
    /// Whether its source has several items.
    fn has_several_items(&self) -> bool {
        matches!(
            self.source,
            CaptureSource::Texts
                | CaptureSource::Vectors(_)
                | CaptureSource::Message
                | CaptureSource::Messages(_)
        )
    }
}

fn text(call: &str, argument: &Argument, index: u8) -> Option<(Direction, Capture)> {
    let limit = match (argument.kind, call, argument.name) {
        (ArgumentKind::Path, ..) => CaptureLimit::Path,
        (ArgumentKind::Text, ..) => CaptureLimit::StringSize,
        // The types of these are not `const char*`.
        (_, "mount", "dev_name" | "dir_name")
        | (_, "umount" | "umount2", "name")
        | (_, "utime" | "utimes", "filename") => CaptureLimit::Path,
        (_, "mount", "type") | (_, "fsconfig", "_value") => CaptureLimit::StringSize,
        _ => return None,
    };
    Some((
        Direction::In,
        Capture {
            argument: index,
            source: CaptureSource::Text,
            limit,
        },
    ))
}

fn list(call: &str, name: &str, index: u8) -> Option<(Direction, Capture)> {
    // `index + 1` is the argument with the number of elements.
    let (direction, source) = match (call, name) {
        ("execve" | "execveat", "argv") => (Direction::In, CaptureSource::Texts),
        ("writev" | "pwritev" | "pwritev2" | "vmsplice", _) if is_vector(name) => {
            (Direction::In, CaptureSource::Vectors(index + 1))
        }
        ("readv" | "preadv" | "preadv2", _) if is_vector(name) => {
            (Direction::Out, CaptureSource::Vectors(index + 1))
        }
        ("sendmsg", "msg") => (Direction::In, CaptureSource::Message),
        ("recvmsg", "msg") => (Direction::Out, CaptureSource::Message),
        ("sendmmsg", "mmsg") => (Direction::In, CaptureSource::Messages(index + 1)),
        ("recvmmsg", "mmsg") => (Direction::Out, CaptureSource::Messages(index + 1)),
        _ => return None,
    };
    Some((
        direction,
        Capture {
            argument: index,
            source,
            limit: CaptureLimit::StringSize,
        },
    ))
}

/// Whether an argument points to the size of a buffer. The buffer is the argument before it.
pub(crate) fn points_to_length(call: &str, name: &str) -> bool {
    matches!(
        (call, name),
        ("accept" | "accept4", "upeer_addrlen")
            | ("getsockname" | "getpeername", "usockaddr_len")
            | ("recvfrom", "addr_len")
            | ("getsockopt", "optlen")
    )
}

fn is_vector(name: &str) -> bool {
    matches!(name, "vec" | "iov" | "uiov")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Abi, SyscallTable};

    fn plan(abi: Abi, name: &str) -> CapturePlan {
        let table = SyscallTable::of(abi);
        let call = table.get(table.number(name).unwrap()).unwrap();
        call.capture_plan()
    }

    fn length(captures: &[Capture]) -> CaptureLength {
        match captures {
            [one] => match one.source {
                CaptureSource::Bytes(length) => length,
                source => panic!("{source:?}"),
            },
            captures => panic!("{captures:?}"),
        }
    }

    /// The length of what the kernel reads, copied when the call begins.
    fn entry_length(abi: Abi, name: &str) -> CaptureLength {
        length(&plan(abi, name).at_entry)
    }

    /// The length of what the kernel writes, copied when the call returns.
    fn return_length(abi: Abi, name: &str) -> CaptureLength {
        length(&plan(abi, name).at_return)
    }

    /// The sizes are those of asm/stat.h, linux/eventpoll.h and asm-generic/signal.h.
    #[test]
    fn sizes_of_structures_are_those_of_the_architecture() {
        for (abi, stat, event, action) in [
            (Abi::X86_64, 144, 12, 32),
            (Abi::Arm64, 128, 16, 32),
            (Abi::Riscv64, 128, 16, 24),
        ] {
            assert_eq!(return_length(abi, "fstat"), CaptureLength::Fixed(stat));
            assert_eq!(entry_length(abi, "epoll_ctl"), CaptureLength::Fixed(event));
            let events = CaptureLength::Result { unit: event };
            assert_eq!(return_length(abi, "epoll_pwait"), events);
            let action = CaptureLength::Fixed(action);
            assert_eq!(entry_length(abi, "rt_sigaction"), action);
            assert_eq!(return_length(abi, "rt_sigaction"), action);
        }
        assert_eq!(
            entry_length(Abi::I386, "epoll_ctl"),
            CaptureLength::Fixed(12)
        );
    }
}
