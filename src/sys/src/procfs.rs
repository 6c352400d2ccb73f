//! `/proc`: tasks, their names and mappings, and the machine's processors, memory, modules and boot id.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes read from a maps file at once: the kernel returns at most a page.
const MAPS_PAGE: usize = 4096;

/// A proc file system at a root chosen by the caller.
#[derive(Debug, Clone)]
pub struct Proc {
    root: PathBuf,
}

/// Fields of `/proc/PID/task/TID/status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskStatus {
    /// Thread name (comm), without blanks at its ends; the kernel escapes newline and backslash.
    pub name: Vec<u8>,
    /// Process the thread belongs to.
    pub tgid: u32,
    /// Parent process.
    pub ppid: u32,
    /// Whether the thread has no address space: a kernel thread, or a dying one.
    pub is_kernel: bool,
    /// Whether a seccomp filter may refuse its system calls, as in most containers.
    pub has_seccomp_filter: bool,
    /// Its id in its own PID namespace, which gettid(2) returns to it; 0 if unknown (before Linux 4.1).
    pub own_tid: u32,
    /// The number of PID namespaces in which the thread has an id, counted from that of this proc file system inwards: 1 if the
    /// thread belongs to that one, 0 if unknown.
    pub pid_namespace_depth: usize,
    /// The number of times that the thread was taken off a CPU. If a waiting thread has the same number later, it has not run
    /// in between.
    pub switches: u64,
}

/// The system call in which a thread waits, from `/proc/PID/task/TID/syscall` (proc_pid_syscall(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockedCall {
    /// The number of the call.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// One line of `/proc/PID/maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapEntry<'a> {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// `r`, `w` and `x`, each `-` if not permitted, then `s` (shared) or `p` (private).
    pub permissions: [u8; 4],
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Major and minor device number.
    pub device: (u32, u32),
    /// Inode, 0 without a file.
    pub inode: u64,
    /// File name, or a name in brackets; empty for anonymous memory.
    pub name: &'a [u8],
}

impl Proc {
    /// The proc file system mounted at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// A path below the root.
    #[must_use]
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// The text of `schedstat`, the scheduler's statistics.
    ///
    /// # Errors
    /// What reading the file reports: [`io::ErrorKind::NotFound`] if the kernel was built without CONFIG_SCHEDSTATS.
    pub fn schedstat(&self) -> io::Result<String> {
        fs::read_to_string(self.path("schedstat"))
    }

    /// All processes, ascending; some may have ended since.
    ///
    /// # Errors
    /// What opening and reading the root report.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        numeric_entries(&self.root)
    }

    /// The threads of a process, ascending.
    ///
    /// # Errors
    /// What reading `/proc` reports: [`io::ErrorKind::NotFound`] when there is no such process.
    pub fn threads(&self, pid: u32) -> io::Result<Vec<u32>> {
        numeric_entries(&self.path(format!("{pid}/task")))
    }

    /// The status of a thread.
    ///
    /// # Errors
    /// What reading `/proc` reports: [`io::ErrorKind::NotFound`] when there is no such thread.
    pub fn status(&self, pid: u32, tid: u32) -> io::Result<TaskStatus> {
        let bytes = fs::read(self.path(format!("{pid}/task/{tid}/status")))?;
        Ok(parse_status(&bytes))
    }

    /// The system call in which a thread waits; `None` if the thread runs, or waits for something else.
    ///
    /// # Errors
    /// What reading the file reports: [`io::ErrorKind::NotFound`] when there is no such thread, `EPERM` or `EACCES` for threads
    /// of other users.
    pub fn blocked_call(&self, pid: u32, tid: u32) -> io::Result<Option<BlockedCall>> {
        let text = fs::read_to_string(self.path(format!("{pid}/task/{tid}/syscall")))?;
        Ok(parse_call(&text))
    }

    /// The process that thread `tid` belongs to.
    ///
    /// # Errors
    /// What reading `/proc` reports: [`io::ErrorKind::NotFound`] when there is no such thread.
    pub fn process_of(&self, tid: u32) -> io::Result<u32> {
        let bytes = fs::read(self.path(format!("{tid}/status")))?;
        Ok(parse_status(&bytes).tgid)
    }

    /// The inode number of a process's PID namespace (namespaces(7)).
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is no such process, `EACCES` for processes of other users.
    pub fn pid_namespace(&self, pid: u32) -> io::Result<u64> {
        let target = fs::read_link(self.path(format!("{pid}/ns/pid")))?;
        let text = target.to_str().and_then(|text| text.strip_prefix("pid:["));
        let number = text.and_then(|text| text.strip_suffix(']')?.parse().ok());
        number.ok_or(io::ErrorKind::InvalidData.into())
    }

    /// The child processes of all threads of `pid`; empty if they can't be listed.
    #[must_use]
    pub fn children(&self, pid: u32) -> Vec<u32> {
        let children_of = |tid: u32| {
            let list = fs::read_to_string(self.path(format!("{pid}/task/{tid}/children")));
            let list = list.unwrap_or_default();
            let ids = list.split_whitespace().filter_map(|word| word.parse().ok());
            ids.collect::<Vec<u32>>()
        };
        let threads = self.threads(pid).unwrap_or_default();
        threads.into_iter().flat_map(children_of).collect()
    }

    /// The effective user id of process `pid`: the owner of its folder, even if the process isn't dumpable.
    ///
    /// # Errors
    /// What reading `/proc` reports: [`io::ErrorKind::NotFound`] when there is no such process.
    pub fn owner(&self, pid: u32) -> io::Result<u32> {
        fs::metadata(self.path(pid.to_string())).map(|metadata| metadata.uid())
    }

    /// Returns the text of `/proc/PID/maps` in complete lines, as far as it can be read within the
    /// time limit, and whether it is complete; [`map_entries`] parses it. The kernel generates the
    /// text while it is read, a page at a time, and may have to wait for the process.
    ///
    /// # Errors
    /// What opening and reading the file report; `EACCES` for other users' processes.
    pub fn maps(&self, pid: u32, limit: Duration) -> io::Result<(Vec<u8>, bool)> {
        // As in perf, the main thread's file: before Linux 4.5, the process's file searches all threads to mark their stacks,
        // which is slow.
        let mut file = File::open(self.path(format!("{pid}/task/{pid}/maps")))?;
        let began = Instant::now();
        let (mut text, mut page) = (Vec::new(), [0; MAPS_PAGE]);
        while began.elapsed() < limit {
            let size = file.read(&mut page)?;
            text.extend_from_slice(page.get(..size).unwrap_or_default());
            if size == 0 {
                return Ok((text, true));
            }
        }
        let end = text.iter().rposition(|byte| *byte == b'\n');
        text.truncate(end.map_or(0, |end| end + 1));
        Ok((text, false))
    }

    /// The random identifier of the current boot: `/proc/sys/kernel/random/boot_id` (random(4)).
    ///
    /// # Errors
    /// What reading the file reports.
    pub fn boot_id(&self) -> io::Result<String> {
        let text = fs::read_to_string(self.path("sys/kernel/random/boot_id"))?;
        Ok(text.trim_end().to_owned())
    }

    /// The text of `/proc/modules` (proc(5)); empty for a kernel without loadable modules.
    ///
    /// # Errors
    /// What reading the file reports.
    pub fn modules_text(&self) -> io::Result<String> {
        match fs::read_to_string(self.path("modules")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text,
        }
    }

    /// Total memory in kilobytes (`MemTotal`).
    ///
    /// # Errors
    /// What reading `/proc/meminfo` reports; [`io::ErrorKind::InvalidData`] without the line.
    pub fn total_memory(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.path("meminfo"))?;
        let value = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let number = value.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        number.ok_or(io::ErrorKind::InvalidData.into())
    }

    /// The processor description: the value of the first of `keys` that `/proc/cpuinfo` has.
    ///
    /// # Errors
    /// What reading the file reports; [`io::ErrorKind::NotFound`] if it has none of the keys.
    pub fn cpu_description(&self, keys: &[&str]) -> io::Result<String> {
        let text = fs::read_to_string(self.path("cpuinfo"))?;
        let value = |key: &&str| {
            text.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name.trim_end() == *key).then(|| value.trim().to_owned())
            })
        };
        keys.iter()
            .find_map(value)
            .ok_or(io::ErrorKind::NotFound.into())
    }
}

fn numeric_entries(directory: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn parse_status(bytes: &[u8]) -> TaskStatus {
    let mut status = TaskStatus {
        is_kernel: true,
        ..TaskStatus::default()
    };
    for line in bytes.split(|&byte| byte == b'\n') {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let (key, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let text = || std::str::from_utf8(value).ok();
        let number = || text()?.parse::<u32>().ok();
        match key {
            b"Name" => status.name = value.to_vec(),
            b"Tgid" => status.tgid = number().unwrap_or_default(),
            b"PPid" => status.ppid = number().unwrap_or_default(),
            b"VmPeak" => status.is_kernel = false,
            // SECCOMP_MODE_FILTER
            b"Seccomp" => status.has_seccomp_filter = value == b"2",
            b"NSpid" => {
                let ids = value.split(u8::is_ascii_whitespace);
                status.pid_namespace_depth = ids.filter(|id| !id.is_empty()).count();
                status.own_tid = last_number(value);
            }
            b"voluntary_ctxt_switches" | b"nonvoluntary_ctxt_switches" => {
                let count = text().and_then(|text| text.parse::<u64>().ok());
                status.switches += count.unwrap_or_default();
            }
            _ => {}
        }
    }
    status
}

/// The last of several numbers; 0 if there is none.
fn last_number(value: &[u8]) -> u32 {
    let last = value.rsplit(u8::is_ascii_whitespace).next();
    let text = last.and_then(|last| std::str::from_utf8(last).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Parses the text of `/proc/PID/task/TID/syscall`: `running`, `-1 SP PC`, or the number, six arguments, SP and PC.
fn parse_call(text: &str) -> Option<BlockedCall> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        let digits = words.next()?.strip_prefix("0x")?;
        *argument = u64::from_str_radix(digits, 16).ok()?;
    }
    // Stack pointer and instruction pointer.
    let is_complete = words.count() == 2;
    is_complete.then_some(BlockedCall { number, arguments })
}

/// Parses a `/proc/PID/maps` text; malformed lines are skipped.
pub fn map_entries(text: &[u8]) -> impl Iterator<Item = MapEntry<'_>> {
    text.split(|&byte| byte == b'\n').filter_map(map_entry)
}

fn map_entry(line: &[u8]) -> Option<MapEntry<'_>> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_ascii_start();
        let end = rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then_some(word)
    };
    let (start, end) = pair(word()?, b'-')?;
    let permissions = *word()?.first_chunk()?;
    let offset = hex(word()?)?;
    let (major, minor) = pair(word()?, b':')?;
    let inode = std::str::from_utf8(word()?).ok()?.parse().ok()?;
    Some(MapEntry {
        start,
        end,
        permissions,
        offset,
        device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
        inode,
        name: rest.trim_ascii_start(),
    })
}

fn pair(word: &[u8], between: u8) -> Option<(u64, u64)> {
    let at = word.iter().position(|&byte| byte == between)?;
    Some((hex(word.get(..at)?)?, hex(word.get(at + 1..)?)?))
}

fn hex(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

impl MapEntry<'_> {
    /// The name as a path.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_maps_line_with_blanks_in_its_name() {
        let text = b"55d0-55e0 r-xp 0000a000 fe:01 1234    /opt/a b (deleted)\n7f00-7f10 rw-p 00000000 00:00 0 \nbad\n";
        let entries: Vec<_> = map_entries(text).collect();
        let [first, second] = entries[..] else {
            panic!("{entries:?}")
        };
        assert_eq!(first.name, b"/opt/a b (deleted)");
        assert_eq!(
            (first.start, first.end, first.offset),
            (0x55d0, 0x55e0, 0xa000)
        );
        assert_eq!((first.device, first.inode), ((0xfe, 1), 1234));
        assert_eq!(first.permissions, *b"r-xp");
        assert_eq!((second.name, second.inode), (&b""[..], 0));
    }

    #[test]
    fn this_process_is_read_from_proc() {
        let proc = Proc::new("/proc");
        let pid = std::process::id();
        assert!(proc.processes().unwrap().contains(&pid));
        assert!(proc.threads(pid).unwrap().contains(&pid));
        let status = proc.status(pid, pid).unwrap();
        assert_eq!((status.tgid, status.is_kernel), (pid, false));
        let (maps, is_complete) = proc.maps(pid, Duration::from_secs(60)).unwrap();
        assert!(is_complete && map_entries(&maps).any(|entry| entry.permissions[2] == b'x'));
        assert_eq!(proc.maps(pid, Duration::ZERO).unwrap(), (Vec::new(), false));
        assert!(proc.total_memory().unwrap() > 0);
        assert_eq!(
            proc.threads(u32::MAX).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_status_without_memory_is_a_kernel_thread() {
        let status = parse_status(b"Name:\tkworker/0:1 x\nTgid:\t7\nPPid:\t2\n");
        assert_eq!(
            status,
            TaskStatus {
                name: b"kworker/0:1 x".to_vec(),
                tgid: 7,
                ppid: 2,
                is_kernel: true,
                ..TaskStatus::default()
            }
        );
    }

    #[test]
    fn a_pid_namespace_has_a_number() {
        let proc = Proc::new("/proc");
        let own = std::process::id();
        let number = proc.pid_namespace(own).unwrap();
        let link = fs::read_link("/proc/self/ns/pid").unwrap();
        assert_eq!(link, Path::new(&format!("pid:[{number}]")));
        let status = proc.status(own, own).unwrap();
        assert_eq!((status.own_tid, status.pid_namespace_depth), (own, 1));
    }

    #[test]
    fn ids_of_the_innermost_namespace_and_all_switches_are_read() {
        let text =
            b"NSpid:\t70\t8\t3\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n";
        let status = parse_status(text);
        assert_eq!((status.own_tid, status.pid_namespace_depth), (3, 3));
        assert_eq!(status.switches, 42);
    }

    #[test]
    fn a_call_has_six_arguments_and_two_pointers() {
        let call = parse_call("202 0x7f12 0x80 0x2 0x0 0x5 0xff 0x7ffc 0x4011\n").unwrap();
        assert_eq!(
            (call.number, call.arguments),
            (202, [0x7f12, 0x80, 2, 0, 5, 0xff])
        );
        for text in [
            "running\n",
            "-1 0x7ffc 0x4011\n",
            "",
            "202 0x1",
            "202 1 2 3 4 5 6 7 8",
        ] {
            assert_eq!(parse_call(text), None, "{text}");
        }
    }
}
