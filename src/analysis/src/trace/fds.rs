//! The files that the descriptors of each process refer to: the state read from procfs, changed by system calls.
//!
//! A wrong name is worse than none: a descriptor has no name if neither procfs nor a seen call gives one, and a loss of
//! records removes all names.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use rperf_syscalls::captured_record::{HEADER_ITEM, MESSAGE_ITEMS};
use rustc_hash::{FxHashMap, FxHashSet};

use super::CapturedArgument;

/// `PATH_MAX`: longer joined paths are dropped.
const PATH_MAX: usize = 4096;
/// `AT_FDCWD`.
const CWD: i32 = -100;
/// `O_CLOEXEC`, `SOCK_CLOEXEC` and other flags of this value.
const CLOEXEC: u64 = 0o2000000;
/// `FD_CLOEXEC` and `MFD_CLOEXEC`.
const OTHER_CLOEXEC: u64 = 1;
/// `PERF_FLAG_FD_CLOEXEC`.
const PERF_CLOEXEC: u64 = 8;
/// Commands of fcntl(2).
const F_DUPFD: u64 = 0;
const F_SETFD: u64 = 2;
const F_DUPFD_CLOEXEC: u64 = 1030;
/// Requests of ioctl(2) that clear and set `FD_CLOEXEC` (asm-generic/ioctls.h).
const FIONCLEX: u64 = 0x5450;
const FIOCLEX: u64 = 0x5451;
/// `CLOSE_RANGE_CLOEXEC`.
const RANGE_CLOEXEC: u64 = 4;
/// `-EINPROGRESS`: connect(2) of a non-blocking socket.
const IN_PROGRESS: i64 = -115;
/// The bytes of `msg_controllen` in a `struct user_msghdr`.
const MSG_CONTROLLEN: Range<usize> = 40..48;

/// The file that a descriptor refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// A path, or the kind of a file without a path: `pipe`, `socket: to 10.0.0.1:80`.
    pub name: Vec<u8>,
    /// Whether execve(2) closes it.
    pub closes_on_exec: bool,
}

/// The file descriptors and the working directory of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFiles {
    /// The open descriptors with a name, by number.
    pub open: BTreeMap<i32, OpenFile>,
    /// The working directory, if it is known.
    pub cwd: Option<Vec<u8>>,
}

/// The files of all processes.
#[derive(Debug)]
pub(super) struct FileTables {
    tables: FxHashMap<u32, ProcessFiles>,
    /// Processes that never have a table, since their descriptors can be changed by calls that are not seen, or by calls of
    /// another process. `None` if no process ever has a table.
    excluded: Option<FxHashSet<u32>>,
}

/// A call that has returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReturnedCall<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: [u64; 6],
    pub(super) memory: &'a [CapturedArgument],
    pub(super) result: i64,
    /// The text of a socket address among the arguments.
    pub(super) address: Option<&'a str>,
}

impl ReturnedCall<'_> {
    fn argument(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or_default()
    }

    fn fd(&self, index: usize) -> i32 {
        self.argument(index) as i32
    }

    fn has(&self, index: usize, flag: u64) -> bool {
        self.argument(index) & flag != 0
    }

    /// Returns the last readable capture of an argument's memory: that of the return, if any, follows that of the start. `None`
    /// if there is none or it is truncated.
    fn memory(&self, argument: usize) -> Option<&[u8]> {
        let mut captures = self.memory.iter().rev();
        let last =
            captures.find(|captured| captured.argument == argument && !captured.is_unreadable)?;
        (!last.is_truncated).then_some(&last.bytes[..])
    }

    /// Returns the two `int`s in the captured memory of an argument; `None` unless all of it was copied.
    fn fd_pair(&self, argument: usize) -> Option<[i32; 2]> {
        let (first, rest) = self.memory(argument)?.split_first_chunk()?;
        let second = rest.first_chunk()?;
        Some([i32::from_ne_bytes(*first), i32::from_ne_bytes(*second)])
    }
}

/// Names of the calls that are followed: they change the file descriptors or the working directory of a process, or create a
/// process that copies or shares them. Descriptors that any other call creates have no name.
pub const FILE_CALLS: &[&str] = &[
    "accept",
    "accept4",
    "bind",
    "chdir",
    "clone",
    "clone3",
    "close",
    "close_range",
    "connect",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "eventfd2",
    "execve",
    "execveat",
    "fchdir",
    "fcntl",
    "fork",
    "inotify_init",
    "inotify_init1",
    "io_uring_setup",
    "ioctl",
    "memfd_create",
    "open",
    "open_by_handle_at",
    "open_tree",
    "openat",
    "openat2",
    "perf_event_open",
    "pidfd_getfd",
    "pidfd_open",
    "pipe",
    "pipe2",
    "recvmsg",
    "recvmmsg",
    "signalfd",
    "signalfd4",
    "socket",
    "socketpair",
    "timerfd_create",
    "userfaultfd",
    "vfork",
];

impl FileTables {
    /// Creates empty tables. Unless `names_files`, no process ever gets a table.
    pub(super) fn new(names_files: bool) -> Self {
        Self {
            tables: FxHashMap::default(),
            excluded: names_files.then(FxHashSet::default),
        }
    }

    /// Sets the table of a process, unless it is excluded.
    pub(super) fn seed(&mut self, process: u32, files: ProcessFiles) {
        if self.is_followed(process) {
            self.tables.insert(process, files);
        }
    }

    /// Removes the table of a process for good. Required if not all of its calls are seen, or if it shares its descriptors with
    /// another process.
    pub(super) fn exclude(&mut self, process: u32) {
        self.tables.remove(&process);
        if let Some(excluded) = &mut self.excluded {
            excluded.insert(process);
        }
    }

    /// Whether the process can have a table.
    fn is_followed(&self, process: u32) -> bool {
        let excluded = self.excluded.as_ref();
        excluded.is_some_and(|excluded| !excluded.contains(&process))
    }

    /// Copies the table of a process for its child, unless the child is excluded. A child that has a table already keeps
    /// the table: the child existed before the trace, and its fork is synthesized. Does nothing for a new thread, for which
    /// `parent` and `child` are the same process.
    pub(super) fn fork(&mut self, parent: u32, child: u32) {
        if parent == child || self.tables.contains_key(&child) || !self.is_followed(child) {
            return;
        }
        if let Some(files) = self.tables.get(&parent).cloned() {
            self.tables.insert(child, files);
        }
    }

    /// Removes the descriptors that a successful execve(2) closes, for a call whose start was not seen; for other calls,
    /// [`Self::returned`] does so.
    pub(super) fn exec(&mut self, process: u32) {
        if let Some(files) = self.tables.get_mut(&process) {
            files.exec();
        }
    }

    /// Removes the table of a process.
    pub(super) fn remove(&mut self, process: u32) {
        self.tables.remove(&process);
    }

    /// Removes all tables, since calls were lost.
    pub(super) fn clear(&mut self) {
        self.tables.clear();
    }

    /// Returns the name of a descriptor; `None` if it is unknown.
    pub(super) fn name(&self, process: u32, fd: i32) -> Option<&[u8]> {
        let file = self.tables.get(&process)?.open.get(&fd)?;
        Some(&file.name)
    }

    /// Returns the working directory of a process; `None` if it is unknown.
    pub(super) fn directory(&self, process: u32) -> Option<&[u8]> {
        self.tables.get(&process)?.cwd.as_deref()
    }

    /// Updates the table of the calling process after a call has returned.
    pub(super) fn returned(&mut self, process: u32, call: &ReturnedCall<'_>) {
        if !self.is_followed(process) {
            return;
        }
        let files = self.tables.entry(process).or_default();
        if call.result < 0 {
            let is_connecting = call.name == "connect" && call.result == IN_PROGRESS;
            // close(2) closes the descriptor even if it reports an error.
            if !is_connecting && call.name != "close" {
                return;
            }
        }
        match call.name {
            "open" | "creat" | "openat" | "openat2" | "open_tree" => files.opened(call),
            "close" => drop(files.open.remove(&call.fd(0))),
            "close_range" => files.close_range(call),
            "dup" | "dup2" | "dup3" => {
                let closes = call.name == "dup3" && call.has(2, CLOEXEC);
                files.duplicate(call.fd(0), call.result, closes);
            }
            "fcntl" => files.fcntl(call),
            "ioctl" => files.ioctl(call),
            "pipe" | "pipe2" => {
                let has_flags = call.name == "pipe2";
                files.name_pair(call, 0, "pipe", has_flags);
            }
            "socketpair" => {
                // The flags are in the type of the socket.
                let has_flags = true;
                files.name_pair(call, 3, "socket: pair", has_flags);
            }
            "chdir" => {
                let path = call.memory(0).and_then(|path| files.absolute(CWD, path));
                files.cwd = path;
            }
            "fchdir" => files.cwd = files.open.get(&call.fd(0)).map(|file| file.name.clone()),
            "execve" | "execveat" => files.exec(),
            // The numbers of received descriptors are unknown, so all names are removed.
            "recvmsg" | "recvmmsg" if has_descriptors(call) => files.open.clear(),
            "socket" | "bind" | "connect" | "accept" | "accept4" => files.socket(call),
            _ => files.anonymous(call),
        }
    }
}

/// Whether received messages may carry descriptors: `msg_controllen` of a `struct user_msghdr` is unknown or not 0.
fn has_descriptors(call: &ReturnedCall<'_>) -> bool {
    // Argument 1 has the messages. The captured items of message n begin at n times `MESSAGE_ITEMS`.
    let is_header = |captured: &&CapturedArgument| {
        let item = captured.item % usize::from(MESSAGE_ITEMS);
        captured.argument == 1 && item == usize::from(HEADER_ITEM) && !captured.is_unreadable
    };
    let headers = call.memory.iter().filter(is_header);
    let sizes = headers.map(|header| header.bytes.get(MSG_CONTROLLEN));
    let without_control = sizes.filter(|size| *size == Some(&[0; 8])).count();
    let messages = match call.name {
        "recvmmsg" => usize::try_from(call.result).unwrap_or_default(),
        _ => 1,
    };
    without_control != messages
}

impl ProcessFiles {
    /// Removes the descriptors that a successful execve(2) closes.
    fn exec(&mut self) {
        self.open.retain(|_, file| !file.closes_on_exec);
    }

    /// Sets the name of a descriptor, or removes the descriptor if `name` is `None`.
    fn set(&mut self, fd: i64, name: Option<Vec<u8>>, closes_on_exec: bool) {
        let Ok(fd) = i32::try_from(fd) else { return };
        match name {
            Some(name) => {
                let file = OpenFile {
                    name,
                    closes_on_exec,
                };
                self.open.insert(fd, file);
            }
            None => drop(self.open.remove(&fd)),
        }
    }

    /// Returns `path` if it is absolute, otherwise the path below a directory, which is a descriptor or [`CWD`]. `None` if `path`
    /// is empty, the directory is unknown, or the joined path is longer than [`PATH_MAX`].
    fn absolute(&self, directory: i32, path: &[u8]) -> Option<Vec<u8>> {
        let base = match (path.first()?, directory) {
            (b'/', _) => return Some(path.to_vec()),
            (_, CWD) => self.cwd.as_ref()?,
            (_, fd) => &self.open.get(&fd)?.name,
        };
        let path = path.strip_prefix(b"./").unwrap_or(path);
        let separator: &[u8] = if base.ends_with(b"/") { b"" } else { b"/" };
        let name = match path {
            b"." => base.clone(),
            _ => [base, separator, path].concat(),
        };
        // Each chdir("..") makes the name longer: `..` cannot be removed, since it may follow a symbolic link.
        (name.len() <= PATH_MAX).then_some(name)
    }

    fn opened(&mut self, call: &ReturnedCall<'_>) {
        let (directory, path_argument, closes) = match call.name {
            "open" => (CWD, 0, call.has(1, CLOEXEC)),
            "creat" => (CWD, 0, false),
            "openat" | "open_tree" => (call.fd(0), 1, call.has(2, CLOEXEC)),
            // openat2(2) has its flags in a structure. If they are unknown, the name is dropped at the next exec.
            _ => {
                let flags = call.memory(2).and_then(|how| how.first_chunk());
                let flags = flags.map(|flags| u64::from_ne_bytes(*flags));
                (
                    call.fd(0),
                    1,
                    flags.is_none_or(|flags| flags & CLOEXEC != 0),
                )
            }
        };
        let path = call.memory(path_argument);
        let path = path.and_then(|path| self.absolute(directory, path));
        self.set(call.result, path, closes);
    }

    fn close_range(&mut self, call: &ReturnedCall<'_>) {
        let (first, last) = (call.argument(0) as u32, call.argument(1) as u32);
        let is_inside = |fd: i32| (first..=last).contains(&fd.cast_unsigned());
        match call.has(2, RANGE_CLOEXEC) {
            true => {
                for (_, file) in self.open.iter_mut().filter(|(fd, _)| is_inside(**fd)) {
                    file.closes_on_exec = true;
                }
            }
            false => self.open.retain(|fd, _| !is_inside(*fd)),
        }
    }

    fn duplicate(&mut self, from: i32, to: i64, closes_on_exec: bool) {
        // dup2(2) of a descriptor to itself changes nothing.
        if i64::from(from) != to {
            let name = self.open.get(&from).map(|file| file.name.clone());
            self.set(to, name, closes_on_exec);
        }
    }

    fn fcntl(&mut self, call: &ReturnedCall<'_>) {
        match call.argument(1) & 0xffff_ffff {
            command @ (F_DUPFD | F_DUPFD_CLOEXEC) => {
                self.duplicate(call.fd(0), call.result, command == F_DUPFD_CLOEXEC);
            }
            F_SETFD => {
                if let Some(file) = self.open.get_mut(&call.fd(0)) {
                    file.closes_on_exec = call.has(2, OTHER_CLOEXEC);
                }
            }
            _ => {}
        }
    }

    fn ioctl(&mut self, call: &ReturnedCall<'_>) {
        let request = call.argument(1) & 0xffff_ffff;
        if let (FIOCLEX | FIONCLEX, Some(file)) = (request, self.open.get_mut(&call.fd(0))) {
            file.closes_on_exec = request == FIOCLEX;
        }
    }

    /// Names the two descriptors that the call wrote to the memory of `argument`. If they are unknown, all names of the process
    /// are removed. If `has_flags`, argument 1 has the close-on-exec flag.
    fn name_pair(&mut self, call: &ReturnedCall<'_>, argument: usize, name: &str, has_flags: bool) {
        let Some(pair) = call.fd_pair(argument) else {
            self.open.clear();
            return;
        };
        let closes = has_flags && call.has(1, CLOEXEC);
        for fd in pair {
            self.set(fd.into(), Some(name.into()), closes);
        }
    }

    fn socket(&mut self, call: &ReturnedCall<'_>) {
        match call.name {
            "socket" => self.set(call.result, Some("socket".into()), call.has(1, CLOEXEC)),
            "accept" | "accept4" => {
                let name = match call.address {
                    Some(address) => format!("socket: from {address}"),
                    None => "socket".to_owned(),
                };
                let closes = call.name == "accept4" && call.has(3, CLOEXEC);
                self.set(call.result, Some(name.into()), closes);
            }
            // bind(2) or connect(2). If the descriptor had no name before, its close-on-exec flag is unknown: it loses its new
            // name at the next exec.
            _ => {
                let word = if call.name == "bind" { "at" } else { "to" };
                let closes = self.open.get(&call.fd(0)).map(|file| file.closes_on_exec);
                let name = match call.address {
                    Some(address) => format!("socket: {word} {address}"),
                    None => "socket".to_owned(),
                };
                let fd = call.fd(0).into();
                self.set(fd, Some(name.into()), closes.unwrap_or(true));
            }
        }
    }

    /// Names the descriptors of the calls that [`FileTables::returned`] does not handle itself, mostly as procfs names files
    /// without a path.
    fn anonymous(&mut self, call: &ReturnedCall<'_>) {
        let (name, closes) = match call.name {
            "eventfd" => ("anon_inode:[eventfd]", false),
            "eventfd2" => ("anon_inode:[eventfd]", call.has(1, CLOEXEC)),
            "epoll_create" => ("anon_inode:[eventpoll]", false),
            "epoll_create1" => ("anon_inode:[eventpoll]", call.has(0, CLOEXEC)),
            "inotify_init" => ("anon_inode:inotify", false),
            "inotify_init1" => ("anon_inode:inotify", call.has(0, CLOEXEC)),
            "timerfd_create" => ("anon_inode:[timerfd]", call.has(1, CLOEXEC)),
            "userfaultfd" => ("anon_inode:[userfaultfd]", call.has(0, CLOEXEC)),
            "io_uring_setup" => ("anon_inode:[io_uring]", true),
            "pidfd_open" => ("anon_inode:[pidfd]", true),
            "perf_event_open" => ("anon_inode:[perf_event]", call.has(4, PERF_CLOEXEC)),
            // These only create a descriptor if argument 0 is -1; otherwise they change the signals of an existing one.
            "signalfd" | "signalfd4" if call.fd(0) != -1 => return,
            "signalfd" => ("anon_inode:[signalfd]", false),
            "signalfd4" => ("anon_inode:[signalfd]", call.has(3, CLOEXEC)),
            "memfd_create" => {
                let name = call.memory(0).map(|name| [b"/memfd:", name].concat());
                self.set(call.result, name, call.has(1, OTHER_CLOEXEC));
                return;
            }
            // The files of these descriptors are unknown.
            "open_by_handle_at" | "pidfd_getfd" => {
                // Without a name, the flag has no effect.
                let closes_on_exec = false;
                self.set(call.result, None, closes_on_exec);
                return;
            }
            _ => return,
        };
        self.set(call.result, Some(name.into()), closes);
    }
}
