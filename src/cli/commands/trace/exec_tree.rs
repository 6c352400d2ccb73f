//! `--exec-tree`: the processes of a trace with their programs, working directories, times and exit statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write};

use rperf_analysis::trace::{LineDetails, TraceLine};
use rperf_syscalls::write_quoted;

/// The flag of clone(2) and clone3(2) for a new thread of the same process.
const CLONE_THREAD: u64 = 0x1_0000;

/// The calls from which the tree is built. Those of chdir(2) and fchdir(2) are not handled here: they are observed for
/// [`LineDetails::directory`].
pub(super) const TREE_CALLS: &[&str] = &[
    "chdir",
    "clone",
    "clone3",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fchdir",
    "fork",
    "vfork",
    "wait4",
    "waitid",
];

/// A tree under construction.
#[derive(Debug, Default)]
pub(super) struct ExecTree {
    /// The quoted words of the traced command. Its exec begins before the trace, so the arguments of that call are not seen.
    command: String,
    processes: Vec<Process>,
    /// The latest process with each pid, as an index of `processes`.
    latest: BTreeMap<u32, usize>,
}

#[derive(Debug, Default)]
struct Process {
    pid: u32,
    /// The parent's index in [`ExecTree::processes`].
    parent: Option<usize>,
    /// The time in nanoseconds at which the parent began the call that created the process; if that call was not seen, the
    /// time at which the first call of the process returned (began, if it never returns).
    begin: u64,
    /// The time of the exit in nanoseconds; `None` if no exit was seen.
    end: Option<u64>,
    comm: String,
    programs: Vec<String>,
    directory: Option<String>,
    status: Option<String>,
    /// The threads that have not ended, as far as they were seen.
    threads: BTreeSet<u32>,
    /// The exit status of the main thread, whose tid is the pid. If all threads end one by one, the process has this status.
    main_thread_status: Option<String>,
    /// Whether `end` is only assumed, because all known threads exited one by one.
    is_end_assumed: bool,
}

impl ExecTree {
    /// Creates an empty tree. `words` are those of the command, empty if running processes are traced.
    pub(super) fn new(words: &[OsString]) -> Self {
        let mut command = Vec::new();
        for word in words {
            if !command.is_empty() {
                command.extend(b", ");
            }
            let is_truncated = false;
            // Writing to memory does not fail.
            let _ = write_quoted(&mut command, word.as_encoded_bytes(), is_truncated);
        }
        Self {
            command: String::from_utf8_lossy(&command).into_owned(),
            ..Self::default()
        }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, line: &TraceLine<'_>) {
        let Some(details) = line.details else { return };
        // When the call returned; when it began if it never returns, as exit(2). `line.time` is when it began.
        let time = details.moment;
        let index = self.process_index(line, details);
        let Some(process) = self.processes.get_mut(index) else {
            return;
        };
        process.note_call(line.tid, line.comm);
        match (details.name.as_str(), details.result) {
            ("execve" | "execveat", Some(0)) => {
                let program = program(details).unwrap_or_else(|| self.command.clone());
                process.programs.push(program);
                process.directory.clone_from(&details.directory);
            }
            ("exit_group", _) => process.end(time, exit_status(details)),
            ("exit", _) => process.exit_thread(line.tid, time, details),
            ("clone" | "clone3" | "fork" | "vfork", Some(child))
                if child > 0 && !is_thread(details) =>
            {
                self.link(index, child, line.time.unwrap_or(time));
            }
            ("clone" | "clone3", Some(thread)) if thread > 0 => {
                process.threads.extend(u32::try_from(thread));
            }
            ("wait4", Some(child)) if child > 0 => self.end_by_wait4(child, time, details),
            ("waitid", Some(0)) => self.end_by_waitid(time, details),
            _ => {}
        }
    }

    /// Returns the index of the process that made a call. A new process is added.
    fn process_index(&mut self, line: &TraceLine<'_>, details: &LineDetails) -> usize {
        let known = self.latest.get(&details.process).copied();
        let known = known.filter(|index| {
            let process = self.processes.get(*index);
            process.is_some_and(|process| !process.is_followed_by(line, details))
        });
        known.unwrap_or_else(|| self.add_process(details.process, details.moment))
    }

    fn add_process(&mut self, pid: u32, time: u64) -> usize {
        let index = self.processes.len();
        self.processes.push(Process {
            pid,
            begin: time,
            ..Process::default()
        });
        self.latest.insert(pid, index);
        index
    }

    /// Sets the parent of a process that was created at `time`. The process is added, unless it has made calls since then.
    fn link(&mut self, parent: usize, child: i64, time: u64) {
        let Ok(child) = u32::try_from(child) else {
            return;
        };
        let known = self.latest.get(&child).copied();
        let known = known.filter(|index| {
            let process = self.processes.get(*index);
            process.is_some_and(|process| process.begin >= time && process.parent.is_none())
        });
        let index = known.unwrap_or_else(|| self.add_process(child, time));
        if let Some(process) = self.processes.get_mut(index) {
            process.parent = Some(parent);
            process.begin = process.begin.min(time);
        }
    }

    /// Ends a child with the status of its parent's wait4(2): a child that was ended by a signal makes no call at its
    /// end.
    fn end_by_wait4(&mut self, child: i64, time: u64, details: &LineDetails) {
        let status = argument(details, "stat_addr").unwrap_or_default();
        let status = status.trim_start_matches("{ .").trim_end_matches(" }");
        let status = match status.split_once(": ") {
            Some(("exited", code)) => code.to_owned(),
            Some(("signaled", signal)) => format!("SIG{signal}"),
            _ => return,
        };
        self.end_child(child, time, status);
    }

    /// Ends a child with the status that its parent's waitid(2) writes to `siginfo_t`.
    fn end_by_waitid(&mut self, time: u64, details: &LineDetails) {
        let information = argument(details, "infop").unwrap_or_default();
        let field = |name: &str| {
            let (_, rest) = information.split_once(&format!(".{name}: "))?;
            rest.split([',', ' ']).next()
        };
        let child = field("si_pid").and_then(|child| child.parse().ok());
        let (Some(child), Some(status)) = (child, field("si_status")) else {
            return;
        };
        let status = match field("si_code") {
            Some("EXITED") => status.to_owned(),
            Some("KILLED" | "DUMPED") => format!("SIG{status}"),
            _ => return,
        };
        self.end_child(child, time, status);
    }

    fn end_child(&mut self, child: i64, time: u64, status: String) {
        let index = u32::try_from(child)
            .ok()
            .and_then(|child| self.latest.get(&child));
        let process = index.and_then(|index| self.processes.get_mut(*index));
        if let Some(process) = process {
            process.end(time, status);
        }
    }

    /// Writes a line per process, children below their parent in the order in which they began.
    ///
    /// # Errors
    /// Errors of `to`.
    pub(super) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let base = self.processes.iter().map(|process| process.begin).min();
        let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (index, process) in self.processes.iter().enumerate() {
            children.entry(process.parent).or_default().push(index);
        }
        for siblings in children.values_mut() {
            siblings.sort_by_key(|index| self.processes.get(*index).map(|process| process.begin));
        }
        writeln!(
            to,
            "{:>10} {:>10} {:>8}  program [directory] = status",
            "begin", "ms", "pid"
        )?;
        // The processes that are still to be written, the next one last.
        let mut pending: Vec<PendingProcess> = Vec::new();
        let push_children =
            |pending: &mut Vec<PendingProcess>, parent: Option<usize>, depth: usize| {
                let siblings = children.get(&parent).into_iter().flatten().rev();
                pending.extend(siblings.map(|index| PendingProcess {
                    index: *index,
                    depth,
                }));
            };
        let no_parent = None;
        push_children(&mut pending, no_parent, 0);
        while let Some(PendingProcess { index, depth }) = pending.pop() {
            if let Some(process) = self.processes.get(index) {
                process.write(to, base.unwrap_or_default(), depth)?;
                push_children(&mut pending, Some(index), depth + 1);
            }
        }
        Ok(())
    }
}

/// A process to write.
#[derive(Debug)]
struct PendingProcess {
    index: usize,
    depth: usize,
}

impl Process {
    /// Whether a call was made by a later process with the same pid. A return or an exit after the end does not prove it: other
    /// threads of this process may return from calls and exit after its exit_group(2).
    fn is_followed_by(&self, line: &TraceLine<'_>, details: &LineDetails) -> bool {
        let Some(end) = self.end else { return false };
        // The end was assumed wrongly: this thread of the process was not seen before.
        if self.is_end_assumed && line.tid != self.pid {
            return false;
        }
        match (details.name.as_str(), line.time) {
            ("exit" | "exit_group", _) => false,
            // A new process returns from the call with which its parent created it.
            ("clone" | "clone3" | "fork" | "vfork", None) => details.result == Some(0),
            (_, begin) => begin.is_some_and(|begin| begin > end),
        }
    }

    fn end(&mut self, time: u64, status: String) {
        // Other threads may exit after the first end that is seen.
        if self.status.is_none() {
            self.end = Some(time);
            self.status = Some(status);
        }
    }

    /// Notes a call of a thread. An assumed end is dropped, as the process has not ended.
    fn note_call(&mut self, thread: u32, comm: &[u8]) {
        self.comm = String::from_utf8_lossy(comm).into_owned();
        self.threads.insert(thread);
        if self.is_end_assumed {
            (self.end, self.status, self.is_end_assumed) = (None, None, false);
        }
    }

    /// Notes exit(2) of a thread. If it is the last known one, the process is assumed to end.
    fn exit_thread(&mut self, thread: u32, time: u64, details: &LineDetails) {
        if thread == self.pid {
            self.main_thread_status = Some(exit_status(details));
        }
        self.threads.remove(&thread);
        if self.threads.is_empty() && self.status.is_none() {
            let status = self.main_thread_status.clone();
            let status = status.unwrap_or_else(|| "?".to_owned());
            self.end(time, status);
            self.is_end_assumed = true;
        }
    }

    fn write(&self, to: &mut dyn Write, base: u64, depth: usize) -> io::Result<()> {
        let begin = self.begin.saturating_sub(base) as f64 / 1e6;
        let duration = match self.end {
            Some(end) => format!("{:.3}", end.saturating_sub(self.begin) as f64 / 1e6),
            None => "?".to_owned(),
        };
        let program = match self.programs.is_empty() {
            true => format!("({})", self.comm),
            false => self.programs.join(" -> "),
        };
        let indent = "  ".repeat(depth);
        write!(
            to,
            "{begin:10.3} {duration:>10} {:>8}  {indent}{program}",
            self.pid
        )?;
        if let Some(directory) = &self.directory {
            write!(to, " [{directory}]")?;
        }
        writeln!(to, " = {}", self.status.as_deref().unwrap_or("?"))
    }
}

fn argument<'a>(details: &'a LineDetails, name: &str) -> Option<&'a str> {
    let argument = details
        .arguments
        .iter()
        .find(|argument| argument.name == name)?;
    Some(&argument.text)
}

/// Returns the arguments of a program as quoted words, or its file name if they are unknown.
fn program(details: &LineDetails) -> Option<String> {
    let words = argument(details, "argv");
    let words = words.and_then(|words| words.strip_prefix('[')?.strip_suffix(']'));
    let program = words.or_else(|| argument(details, "filename"));
    program.map(str::to_owned)
}

fn exit_status(details: &LineDetails) -> String {
    let code = details.registers.first().copied().unwrap_or_default();
    (code & 0xff).to_string()
}

/// Whether a call of clone(2) or clone3(2) created a thread, not a process.
fn is_thread(details: &LineDetails) -> bool {
    // If the trace does not show that the new thread began, the flags decide.
    if details.starts_thread {
        return true;
    }
    let flags = details.registers.first().copied().unwrap_or_default();
    match details.name.as_str() {
        "clone" => flags & CLONE_THREAD != 0,
        "clone3" => argument(details, "uargs").is_some_and(|text| text.contains("THREAD")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_analysis::trace::{CallText, NamedText};

    fn add(tree: &mut ExecTree, process: u32, time: u64, details: LineDetails) {
        add_of(tree, process, process, time, details);
    }

    /// Adds a call of a process and thread.
    fn add_of(tree: &mut ExecTree, process: u32, tid: u32, time: u64, details: LineDetails) {
        let details = LineDetails {
            process,
            moment: time * 1_000_000,
            ..details
        };
        tree.add(&TraceLine {
            time: Some(time * 1_000_000),
            duration: Some(0),
            tid,
            comm: b"c",
            text: CallText::Call("", None),
            details: Some(&details),
            stack: &[],
        });
    }

    /// Returns a call whose first argument has the value `first`. `argument` is the name and the text of one argument, empty if
    /// the text does not matter.
    fn call(name: &str, first: u64, result: Option<i64>, argument: (&str, &str)) -> LineDetails {
        LineDetails {
            name: name.to_owned(),
            registers: vec![first],
            result,
            arguments: vec![NamedText {
                name: argument.0.to_owned(),
                text: argument.1.to_owned(),
            }],
            ..LineDetails::default()
        }
    }

    #[test]
    fn calls_after_the_end_of_a_process() {
        let mut tree = ExecTree::default();
        let word = ("argv", "[\"sh\"]");
        add(&mut tree, 10, 1, call("execve", 0, Some(0), word));
        let thread = LineDetails {
            starts_thread: true,
            ..call("clone3", 0, Some(11), ("", ""))
        };
        add(&mut tree, 10, 2, thread);
        add(&mut tree, 10, 3, call("exit_group", 0, None, ("", "")));
        // An exit(2) after exit_group(2) belongs to the same process, whichever thread makes it (here the main thread).
        add(&mut tree, 10, 4, call("exit", 0, None, ("", "")));
        // The pid is used again.
        add(&mut tree, 10, 6, call("execve", 0, Some(0), word));
        let mut text = Vec::new();
        tree.write(&mut text).unwrap();
        let expected = "     begin         ms      pid  program [directory] = status
     0.000      2.000       10  \"sh\" = 0
     5.000          ?       10  \"sh\" = ?
";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    /// The main thread may exit while other threads still run.
    #[test]
    fn threads_that_end_one_by_one() {
        let mut tree = ExecTree::default();
        let word = ("argv", "[\"sh\"]");
        add(&mut tree, 10, 1, call("execve", 0, Some(0), word));
        add(
            &mut tree,
            10,
            2,
            call("clone", CLONE_THREAD, Some(11), ("", "")),
        );
        add(&mut tree, 10, 3, call("exit", 7, None, ("", "")));
        add_of(&mut tree, 10, 11, 4, call("execve", 0, Some(-2), word));
        add_of(&mut tree, 10, 11, 6, call("exit", 0, None, ("", "")));
        // A thread that was not seen before.
        add_of(&mut tree, 10, 12, 7, call("exit", 0, None, ("", "")));
        assert_eq!(text(&tree), ["     0.000      6.000       10  \"sh\" = 7"]);
    }

    #[test]
    fn children_that_waitid_waits_for() {
        let mut tree = ExecTree::default();
        add(&mut tree, 10, 1, call("fork", 0, Some(11), ("", "")));
        add(&mut tree, 10, 1, call("fork", 0, Some(12), ("", "")));
        for (time, code, child, status) in [(3, "KILLED", 11, "KILL"), (4, "STOPPED", 12, "STOP")] {
            let information = format!(
                "{{ .si_signo: CHLD, .si_code: {code}, .si_pid: {child}, .si_uid: 0, .si_status: {status} }}"
            );
            let waited = call("waitid", 0, Some(0), ("infop", &information));
            add(&mut tree, 10, time, waited);
        }
        let expected = [
            "     0.000          ?       10  (c) = ?",
            "     0.000      2.000       11    () = SIGKILL",
            "     0.000          ?       12    () = ?",
        ];
        assert_eq!(text(&tree), expected);
    }

    /// Returns the lines without the heading.
    fn text(tree: &ExecTree) -> Vec<String> {
        let mut text = Vec::new();
        tree.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn processes_are_below_their_parents() {
        let mut tree = ExecTree::default();
        add(
            &mut tree,
            10,
            1,
            call("execve", 0, Some(0), ("argv", "[\"sh\"]")),
        );
        // The first call of the child may be seen before its parent returns from vfork(2).
        add(
            &mut tree,
            11,
            3,
            call("execve", 0, Some(0), ("argv", "[\"cat\", \"x\"]")),
        );
        add(&mut tree, 10, 2, call("vfork", 0, Some(11), ("", "")));
        add(&mut tree, 11, 4, call("exit_group", 257, None, ("", "")));
        add(
            &mut tree,
            10,
            5,
            call("clone", CLONE_THREAD, Some(12), ("", "")),
        );
        add(&mut tree, 10, 6, call("fork", 0, Some(13), ("", "")));
        add(
            &mut tree,
            10,
            8,
            call("wait4", 0, Some(13), ("stat_addr", "{ .signaled: KILL }")),
        );
        let mut text = Vec::new();
        tree.write(&mut text).unwrap();
        let expected = "     begin         ms      pid  program [directory] = status
     0.000          ?       10  \"sh\" = ?
     1.000      2.000       11    \"cat\", \"x\" = 1
     5.000      2.000       13    () = SIGKILL
";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
