//! Numbers, names and arguments of system calls.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::ArgumentKind;
use crate::kind::argument_kind;

/// One row for each system call, with its number on each architecture.
const CALLS: &str = include_str!("../calls.txt");

/// An architecture's system call interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Abi {
    /// x86-64.
    X86_64,
    /// 32-bit x86, including 32-bit programs on x86-64.
    I386,
    /// 64-bit ARM.
    Arm64,
    /// 64-bit RISC-V.
    Riscv64,
}

impl Abi {
    /// All interfaces, in the order of the columns of calls.txt.
    pub const ALL: [Self; 4] = [Self::X86_64, Self::I386, Self::Arm64, Self::Riscv64];

    /// Returns the interface by the machine's name in uname(2), as in the header of recordings; `None` if there is no table for
    /// it.
    #[must_use]
    pub fn of_machine(machine: &str) -> Option<Self> {
        Some(match machine {
            "x86_64" | "amd64" => Self::X86_64,
            "i386" | "i486" | "i586" | "i686" => Self::I386,
            "aarch64" | "arm64" => Self::Arm64,
            "riscv64" => Self::Riscv64,
            _ => return None,
        })
    }

    /// Returns the 64-bit interface of the machine that this program was built for; `None` if there is no table for it.
    #[must_use]
    pub fn native() -> Option<Self> {
        Self::of_machine(std::env::consts::ARCH)
    }
}

/// A system call.
#[derive(Debug, PartialEq, Eq)]
pub struct Syscall {
    /// Its name in unistd.h, such as `openat`.
    pub name: &'static str,
    /// Its arguments; `None` if the table does not know them.
    pub arguments: Option<Vec<Argument>>,
    /// The interface of its table, on which the sizes of structures depend.
    pub(crate) abi: Abi,
}

/// An argument of a system call.
#[derive(Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the kernel, such as `filename`.
    pub name: &'static str,
    /// Its C type, without blanks before `*`.
    pub c_type: &'static str,
    /// How it is printed.
    pub kind: ArgumentKind,
}

/// The system calls of one architecture.
#[derive(Debug)]
pub struct SyscallTable {
    by_number: HashMap<u32, Syscall>,
}

impl SyscallTable {
    /// Returns the table of `abi`, which is parsed on first use.
    #[must_use]
    pub fn of(abi: Abi) -> &'static Self {
        static TABLES: [OnceLock<SyscallTable>; 4] = [const { OnceLock::new() }; 4];
        let [x86_64, i386, arm64, riscv64] = &TABLES;
        let table = match abi {
            Abi::X86_64 => x86_64,
            Abi::I386 => i386,
            Abi::Arm64 => arm64,
            Abi::Riscv64 => riscv64,
        };
        table.get_or_init(|| Self::parse(abi))
    }

    /// Parses the rows that have a number in the column of `abi`.
    fn parse(abi: Abi) -> Self {
        let rows = CALLS.lines().filter(|line| !line.starts_with('#'));
        let by_number = rows.filter_map(|row| parse_row(row, abi)).collect();
        Self { by_number }
    }

    /// Returns the system call with this number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Syscall> {
        self.by_number.get(&number)
    }

    /// Returns all system calls with their numbers, sorted by number.
    #[must_use]
    pub fn all(&self) -> Vec<(u32, &Syscall)> {
        let mut calls: Vec<(u32, &Syscall)> = self
            .by_number
            .iter()
            .map(|(number, call)| (*number, call))
            .collect();
        calls.sort_unstable_by_key(|(number, _)| *number);
        calls
    }

    /// Returns the number of a system call by its name in unistd.h; if there is none, by the name that perf and the kernel's
    /// tracepoints use (`newstat`, `newuname`, `umount`).
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        self.unistd_number(name).or_else(|| {
            let (unistd, _) = TRACEPOINT_NAMES
                .iter()
                .find(|(_, kernel)| *kernel == name)?;
            self.unistd_number(unistd)
        })
    }

    fn unistd_number(&self, name: &str) -> Option<u32> {
        let mut calls = self.by_number.iter();
        calls.find_map(|(number, call)| (call.name == name).then_some(*number))
    }
}

/// System calls whose name in unistd.h (first) differs from that of the kernel's tracepoints (second).
const TRACEPOINT_NAMES: [(&str, &str); 6] = [
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("uname", "newuname"),
    ("umount2", "umount"),
    ("sendfile", "sendfile64"),
];

/// Returns a call and its number; `None` if the architecture does not have the call.
fn parse_row(row: &'static str, abi: Abi) -> Option<(u32, Syscall)> {
    let mut fields = row.split('|');
    let name = fields.next()?;
    // The columns are in the order of [`Abi::ALL`]. A call that the architecture does not have has a `-`.
    let number = fields.clone().nth(abi as usize)?.parse().ok()?;
    // The arguments follow the columns of numbers.
    let arguments = match fields.nth(Abi::ALL.len())? {
        "?" => None,
        "" => Some(Vec::new()),
        list => {
            let arguments = list.split(';');
            Some(arguments.filter_map(|text| argument(name, text)).collect())
        }
    };
    Some((
        number,
        Syscall {
            name,
            arguments,
            abi,
        },
    ))
}

fn argument(call: &str, text: &'static str) -> Option<Argument> {
    let (name, c_type) = text.split_once(':')?;
    Some(Argument {
        name,
        c_type,
        kind: argument_kind(call, name, c_type),
    })
}

/// Returns the names of the system calls of a group, sorted; `None` if there is no such group. The group's name may begin with a
/// `%`, as in strace.
#[must_use]
pub fn group_members(name: &str, table: &SyscallTable) -> Option<Vec<&'static str>> {
    let name = name.strip_prefix('%').unwrap_or(name);
    let is_member: fn(&Syscall) -> bool = match name {
        "file" => |call| has_kind(call, |kind| matches!(kind, ArgumentKind::Path)),
        "desc" => |call| {
            has_kind(call, |kind| {
                matches!(kind, ArgumentKind::Fd | ArgumentKind::DirFd)
            })
        },
        "net" | "network" => |call| NETWORK.contains(&call.name),
        "process" => |call| PROCESS.contains(&call.name),
        "signal" => |call| SIGNAL.contains(&call.name),
        "memory" => |call| MEMORY.contains(&call.name),
        _ => return None,
    };
    let calls = table.by_number.values();
    let mut names: Vec<&'static str> = calls
        .filter(|call| is_member(call))
        .map(|call| call.name)
        .collect();
    names.sort_unstable();
    Some(names)
}

fn has_kind(call: &Syscall, matches: impl Fn(ArgumentKind) -> bool) -> bool {
    let arguments = call.arguments.as_deref().unwrap_or_default();
    arguments.iter().any(|argument| matches(argument.kind))
}

const NETWORK: &[&str] = &[
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmmsg_time64",
    "recvmsg",
    "send",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socket",
    "socketcall",
    "socketpair",
];

const PROCESS: &[&str] = &[
    "clone",
    "clone3",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "kill",
    "pidfd_open",
    "pidfd_send_signal",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "tgkill",
    "tkill",
    "vfork",
    "wait4",
    "waitid",
    "waitpid",
];

const SIGNAL: &[&str] = &[
    "kill",
    "pause",
    "pidfd_send_signal",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "rt_tgsigqueueinfo",
    "sgetmask",
    "sigaction",
    "sigaltstack",
    "signal",
    "signalfd",
    "signalfd4",
    "sigpending",
    "sigprocmask",
    "sigreturn",
    "sigsuspend",
    "ssetmask",
    "tgkill",
    "tkill",
];

const MEMORY: &[&str] = &[
    "brk",
    "get_mempolicy",
    "madvise",
    "mbind",
    "migrate_pages",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mmap2",
    "move_pages",
    "mprotect",
    "mremap",
    "mseal",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_mprotect",
    "process_madvise",
    "remap_file_pages",
    "set_mempolicy",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_of_each_architecture() {
        let number = |abi, name| SyscallTable::of(abi).number(name);
        assert_eq!(number(Abi::X86_64, "openat"), Some(257));
        assert_eq!(number(Abi::I386, "openat"), Some(295));
        assert_eq!(number(Abi::Arm64, "openat"), Some(56));
        assert_eq!(number(Abi::Riscv64, "openat"), Some(56));
        assert_eq!(number(Abi::X86_64, "newstat"), Some(4));
        assert_eq!(number(Abi::Riscv64, "open"), None);
        assert_eq!(number(Abi::Arm64, "renameat"), Some(38));
        assert_eq!(number(Abi::X86_64, "sendfile64"), Some(40));
        assert_eq!(number(Abi::I386, "sendfile64"), Some(239));
    }

    #[test]
    fn every_row_is_parsed_and_no_number_is_used_twice() {
        for (column, abi) in Abi::ALL.into_iter().enumerate() {
            let rows = CALLS.lines().filter(|line| !line.starts_with('#'));
            let numbers = rows.filter(|row| row.split('|').nth(column + 1) != Some("-"));
            assert_eq!(
                SyscallTable::of(abi).all().len(),
                numbers.count(),
                "{abi:?}"
            );
        }
    }

    #[test]
    fn groups_have_the_calls_of_their_kind() {
        let table = SyscallTable::of(Abi::X86_64);
        let group = |name| group_members(name, table).unwrap_or_default();
        assert!(group("file").contains(&"openat"));
        assert!(group("%file").contains(&"execve"));
        assert!(!group("file").contains(&"read"));
        assert!(group("%desc").contains(&"read"));
        assert!(group("%net").contains(&"connect"));
        assert_eq!(group_members("%nothing", table), None);
    }
}
