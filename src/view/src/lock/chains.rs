//! Who waits for whom, for `lock deadlock`: as text, and as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_analysis::lock::{FutexObject, WaitChains};
use rperf_names::counted;

use super::json::LOCK_JSON_VERSION;

/// A thread that waits for a futex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingThread {
    /// What the futex belongs to.
    pub object: FutexObject,
    /// The address of the futex.
    pub address: u64,
    /// The name of the variable at this address, if it is known.
    pub variable: Option<String>,
    /// The thread that holds the lock, or that is joined; `None` if unknown.
    pub holder: Option<u32>,
    /// Whether the wait ends by itself after some time.
    pub has_timeout: bool,
    /// The frames of the waiting thread, innermost first; empty if not shown.
    pub stack: Vec<String>,
}

/// A requested process, or one that holds locks that others wait for (see [`ProcessState::is_holder`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessState {
    /// The process id.
    pub pid: u32,
    /// The number of threads; `None` if they cannot be read.
    pub threads: Option<usize>,
    /// Whether it was not requested, but has locks that threads of requested processes wait for, directly or through others.
    pub is_holder: bool,
    /// Whether it is a Java virtual machine.
    pub is_java: bool,
}

/// The name and process of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadName {
    /// The id of the thread's process.
    pub pid: u32,
    /// The thread's name.
    pub comm: String,
}

/// The threads that wait for futexes, and their processes, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessWaits {
    /// The processes, the requested ones first.
    pub processes: Vec<ProcessState>,
    /// The names and processes of threads, waiting or not, by thread id.
    pub names: BTreeMap<u32, ThreadName>,
    /// The waiting threads, by thread id.
    pub waits: BTreeMap<u32, WaitingThread>,
}

impl ProcessWaits {
    /// Returns the chains and the cycles (deadlocks) of waits whose holders are known.
    #[must_use]
    pub fn chains(&self) -> WaitChains {
        let waits = self.waits.iter();
        WaitChains::of(
            &waits
                .filter_map(|(tid, wait)| Some((*tid, wait.holder?)))
                .collect(),
        )
    }

    /// Returns name and id of a thread. If there are several processes, the process id is added, except for main threads, whose
    /// id is the same.
    fn thread(&self, tid: u32) -> String {
        let id = tid.cast_signed();
        match self.names.get(&tid) {
            Some(name) if name.pid != tid && self.processes.len() > 1 => {
                format!("{} ({id}, process {})", name.comm, name.pid)
            }
            Some(name) => format!("{} ({id})", name.comm),
            None => format!(":{id} ({id})"),
        }
    }

    fn is_in(&self, tid: u32, pid: u32) -> bool {
        self.names.get(&tid).is_some_and(|name| name.pid == pid)
    }

    /// Whether the thread is one of a process whose threads cannot be read, so that it is unknown whether it waits.
    fn is_hidden(&self, tid: u32) -> bool {
        let mut processes = self.processes.iter();
        processes.any(|process| process.threads.is_none() && self.is_in(tid, process.pid))
    }

    fn write_process(&self, out: &mut dyn Write, process: &ProcessState) -> io::Result<()> {
        write!(out, "process {}", self.thread(process.pid))?;
        if process.is_holder {
            write!(out, ", which has locks that the others wait for")?;
        }
        let Some(threads) = process.threads else {
            writeln!(out, ": its threads cannot be read")?;
            return writeln!(out, "hint: run as root to see what they wait for");
        };
        let waiting = self
            .waits
            .keys()
            .filter(|tid| self.is_in(**tid, process.pid));
        let (all, waiting) = (counted(threads as u64, "thread"), waiting.count());
        writeln!(out, ": {all}, {waiting} waiting for futexes")
    }

    fn write_threads(&self, out: &mut dyn Write, tids: &[u32]) -> io::Result<()> {
        for tid in tids {
            if let Some(wait) = self.waits.get(tid) {
                write_wait(out, &|tid| self.thread(tid), *tid, wait)?;
            }
        }
        Ok(())
    }

    /// Writes a deadlock.
    fn write_cycle(&self, out: &mut dyn Write, cycle: &[u32]) -> io::Result<()> {
        let mut waits = cycle.iter().filter_map(|tid| self.waits.get(tid));
        let kind = match waits.any(|wait| wait.has_timeout) {
            true => "deadlock until a timeout",
            false => "deadlock",
        };
        match cycle.len() {
            1 => writeln!(out, "\n{kind}: a thread waits for itself")?,
            count => writeln!(
                out,
                "\n{kind}: {} wait for each other",
                counted(count as u64, "thread")
            )?,
        }
        self.write_threads(out, cycle)
    }

    fn write_chain(&self, out: &mut dyn Write, chain: &[u32]) -> io::Result<()> {
        let Some((last, waiting)) = chain.split_last() else {
            return Ok(());
        };
        writeln!(out, "\nchain:")?;
        self.write_threads(out, waiting)?;
        let end = match self.waits.get(last) {
            // The holder would be the next thread of the chain, unless this thread is in a cycle.
            Some(wait) if wait.holder.is_some() => "is in a deadlock",
            Some(_) => "waits for a futex whose holder is unknown",
            None if self.is_hidden(*last) => "cannot be read",
            None => "does not wait for a futex",
        };
        writeln!(out, "  {} {end}", self.thread(*last))
    }

    fn write_unknown(&self, out: &mut dyn Write, shows_unknown: bool) -> io::Result<()> {
        let unknown = self.waits.iter().filter(|(_, wait)| wait.holder.is_none());
        let unknown: Vec<u32> = unknown.map(|(tid, _)| *tid).collect();
        let verb = match unknown.len() {
            0 => return Ok(()),
            1 => "waits for a futex",
            _ => "wait for futexes",
        };
        let end = if shows_unknown { ":" } else { "" };
        let count = counted(unknown.len() as u64, "thread");
        writeln!(out, "\n{count} {verb} whose holder is unknown{end}")?;
        match shows_unknown {
            true => self.write_threads(out, &unknown),
            false => Ok(()),
        }
    }
}

/// Returns name and id of a thread.
pub(super) fn thread(comms: &BTreeMap<u32, String>, tid: u32) -> String {
    let id = tid.cast_signed();
    match comms.get(&tid) {
        Some(comm) => format!("{comm} ({id})"),
        None => format!(":{id} ({id})"),
    }
}

/// Writes a line for the wait of a thread, and its frames. `thread` returns name and id of a thread.
pub(super) fn write_wait(
    out: &mut dyn Write,
    thread: &dyn Fn(u32) -> String,
    tid: u32,
    wait: &WaitingThread,
) -> io::Result<()> {
    write!(out, "  {} waits for ", thread(tid))?;
    match (wait.object, wait.holder) {
        (FutexObject::Thread, Some(holder)) => write!(out, "the end of {}", thread(holder))?,
        (object, holder) => {
            write!(out, "{} {:#x}", object_name(object), wait.address)?;
            if let Some(name) = &wait.variable {
                write!(out, " ({name})")?;
            }
            if let Some(holder) = holder {
                write!(out, " held by {}", thread(holder))?;
            }
        }
    }
    let end = if wait.has_timeout {
        ", with a timeout"
    } else {
        ""
    };
    writeln!(out, "{end}")?;
    for frame in &wait.stack {
        writeln!(out, "      {frame}")?;
    }
    Ok(())
}

/// Returns the name of what a futex belongs to.
#[must_use]
pub fn object_name(object: FutexObject) -> &'static str {
    match object {
        FutexObject::Mutex => "mutex",
        FutexObject::RwLock => "rwlock",
        FutexObject::PriorityInheritance => "PI lock",
        FutexObject::Thread => "thread",
        FutexObject::Unknown => "futex",
    }
}

/// Writes the processes, the deadlocks, the chains, the number of waits whose holder is unknown (with `shows_unknown`, also these
/// waits), a line if there is no deadlock, and a note for each Java virtual machine.
///
/// # Errors
///
/// Those of `out`.
pub fn write_waits(
    out: &mut dyn Write,
    process_waits: &ProcessWaits,
    shows_unknown: bool,
) -> io::Result<()> {
    for process in &process_waits.processes {
        process_waits.write_process(out, process)?;
    }
    let WaitChains { cycles, chains } = process_waits.chains();
    for cycle in &cycles {
        process_waits.write_cycle(out, cycle)?;
    }
    for chain in &chains {
        process_waits.write_chain(out, chain)?;
    }
    process_waits.write_unknown(out, shows_unknown)?;
    if cycles.is_empty() {
        writeln!(out, "\nno deadlock among known holders")?;
    }
    for process in process_waits
        .processes
        .iter()
        .filter(|process| process.is_java)
    {
        let (name, pid) = (process_waits.thread(process.pid), process.pid);
        writeln!(
            out,
            "\nprocess {name} is a Java virtual machine, which implements the locks of Java code itself: \
             'jcmd {pid} Thread.print' lists them and their deadlocks"
        )?;
    }
    Ok(())
}

/// Writes processes as a JSON object.
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(out: &mut dyn Write, process_waits: &ProcessWaits) -> io::Result<()> {
    let chains = process_waits.chains();
    let comms = process_waits.names.iter();
    let comms = comms.map(|(tid, name)| (*tid, name.comm.clone())).collect();
    let processes = process_waits.processes.iter();
    let processes: Vec<serde_json::Value> = processes
        .map(|process| process_json(process_waits, &chains, &comms, process))
        .collect();
    let object = serde_json::json!({ "version": LOCK_JSON_VERSION, "processes": processes });
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

/// Returns a process as a JSON object, with its waits, the deadlocks that any of its threads is in, and the chains that begin in
/// it.
fn process_json(
    process_waits: &ProcessWaits,
    chains: &WaitChains,
    comms: &BTreeMap<u32, String>,
    process: &ProcessState,
) -> serde_json::Value {
    let is_in_process = |tid: &u32| process_waits.is_in(*tid, process.pid);
    let waits = process_waits
        .waits
        .iter()
        .filter(|(tid, _)| is_in_process(tid));
    let waits = waits.map(|(tid, wait)| {
        let holder = wait
            .holder
            .and_then(|holder| process_waits.names.get(&holder));
        let mut json = wait_json(comms, *tid, wait);
        json["holder_pid"] = holder.map(|holder| holder.pid).into();
        json
    });
    let WaitChains { cycles, chains } = chains;
    let cycles = cycles
        .iter()
        .filter(|cycle| cycle.iter().any(is_in_process));
    let chains = chains
        .iter()
        .filter(|chain| chain.first().is_some_and(is_in_process));
    serde_json::json!({
        "pid": process.pid,
        "comm": comms.get(&process.pid),
        "threads": process.threads,
        "waits": waits.collect::<Vec<_>>(),
        "deadlocks": cycles.collect::<Vec<_>>(),
        "chains": chains.collect::<Vec<_>>(),
        "holds_locks_of_others": process.is_holder,
        "java": process.is_java,
    })
}

/// Returns a wait as a JSON object.
pub(super) fn wait_json(
    comms: &BTreeMap<u32, String>,
    tid: u32,
    wait: &WaitingThread,
) -> serde_json::Value {
    serde_json::json!({
        "tid": tid.cast_signed(),
        "comm": comms.get(&tid),
        "type": object_name(wait.object),
        "address": format!("{:#x}", wait.address),
        "variable": wait.variable,
        "holder_tid": wait.holder.map(u32::cast_signed),
        "holder_comm": wait.holder.and_then(|holder| comms.get(&holder)),
        "timeout": wait.has_timeout,
        "stack": wait.stack,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `has_timeout` of [`wait`], for a wait with a timeout.
    const TIMEOUT: bool = true;
    /// `has_timeout` of [`wait`], for a wait without a timeout.
    const NO_TIMEOUT: bool = false;

    fn wait(object: FutexObject, holder: Option<u32>, has_timeout: bool) -> WaitingThread {
        WaitingThread {
            object,
            address: 0x4040,
            variable: holder.map(|_| "first".to_owned()),
            holder,
            has_timeout,
            stack: Vec::new(),
        }
    }

    /// Process 1 has 5 threads. With `has_others`, thread 2 is a process of its own, a Java virtual machine, and thread 4 is one
    /// of process 6, whose threads cannot be read.
    fn process_waits(waits: Vec<(u32, WaitingThread)>, has_others: bool) -> ProcessWaits {
        let mut processes = vec![ProcessState {
            pid: 1,
            threads: Some(5),
            ..ProcessState::default()
        }];
        if has_others {
            let holder = |pid, threads| ProcessState {
                pid,
                threads,
                is_holder: true,
                is_java: pid == 2,
            };
            processes.extend([holder(2, Some(1)), holder(6, None)]);
        }
        let pid = |tid: u32| match (has_others, tid) {
            (true, 4 | 6) => 6,
            (true, 2) => 2,
            _ => 1,
        };
        let names = (1..7).map(|tid| {
            let comm = format!("t{tid}");
            (
                tid,
                ThreadName {
                    pid: pid(tid),
                    comm,
                },
            )
        });
        ProcessWaits {
            processes,
            names: names.collect(),
            waits: waits.into_iter().collect(),
        }
    }

    fn text(waits: Vec<(u32, WaitingThread)>, shows_unknown: bool) -> String {
        let mut out = Vec::new();
        let has_others = false;
        let process_waits = process_waits(waits, has_others);
        write_waits(&mut out, &process_waits, shows_unknown).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn threads_of_several_processes_are_shown_with_their_process() {
        let waits = vec![
            (2, wait(FutexObject::Mutex, Some(3), NO_TIMEOUT)),
            (3, wait(FutexObject::Mutex, Some(2), NO_TIMEOUT)),
            (5, wait(FutexObject::Mutex, Some(4), NO_TIMEOUT)),
        ];
        let has_others = true;
        let process_waits = process_waits(waits, has_others);
        let mut out = Vec::new();
        let shows_unknown = false;
        write_waits(&mut out, &process_waits, shows_unknown).unwrap();
        let expected = "\
process t1 (1): 5 threads, 2 waiting for futexes
process t2 (2), which has locks that the others wait for: 1 thread, 1 waiting for futexes
process t6 (6), which has locks that the others wait for: its threads cannot be read
hint: run as root to see what they wait for

deadlock: 2 threads wait for each other
  t2 (2) waits for mutex 0x4040 (first) held by t3 (3, process 1)
  t3 (3, process 1) waits for mutex 0x4040 (first) held by t2 (2)

chain:
  t5 (5, process 1) waits for mutex 0x4040 (first) held by t4 (4, process 6)
  t4 (4, process 6) cannot be read

process t2 (2) is a Java virtual machine, which implements the locks of Java code itself: 'jcmd 2 Thread.print' lists them and their deadlocks
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        write_json(&mut out, &process_waits).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let [first, second, third] = [0, 1, 2].map(|place| &json["processes"][place]);
        assert_eq!(first["waits"][1]["holder_pid"], 6, "{json}");
        assert_eq!(first["chains"], serde_json::json!([[5, 4]]));
        for process in [first, second] {
            assert_eq!(process["deadlocks"], serde_json::json!([[2, 3]]));
        }
        assert_eq!(
            (&second["java"], &first["java"]),
            (&true.into(), &false.into())
        );
        assert_eq!(
            (&third["threads"], &third["waits"]),
            (&().into(), &serde_json::json!([]))
        );
    }

    #[test]
    fn deadlocks_come_first_then_chains_then_unknown_holders() {
        let mut with_stack = wait(FutexObject::Mutex, Some(3), NO_TIMEOUT);
        with_stack.stack = vec!["0x10  lock_both+0x4".to_owned()];
        let waits = vec![
            (1, wait(FutexObject::Thread, Some(2), NO_TIMEOUT)),
            (2, with_stack),
            (3, wait(FutexObject::PriorityInheritance, Some(2), TIMEOUT)),
            (4, wait(FutexObject::Unknown, None, NO_TIMEOUT)),
        ];
        let expected = "\
process t1 (1): 5 threads, 4 waiting for futexes

deadlock until a timeout: 2 threads wait for each other
  t2 (2) waits for mutex 0x4040 (first) held by t3 (3)
      0x10  lock_both+0x4
  t3 (3) waits for PI lock 0x4040 (first) held by t2 (2), with a timeout

chain:
  t1 (1) waits for the end of t2 (2)
  t2 (2) is in a deadlock

1 thread waits for a futex whose holder is unknown:
  t4 (4) waits for futex 0x4040
";
        let shows_unknown = true;
        assert_eq!(text(waits, shows_unknown), expected);
    }

    #[test]
    fn a_chain_is_no_deadlock_but_a_wait_for_itself_is_one() {
        let waits = vec![(2, wait(FutexObject::Mutex, Some(3), NO_TIMEOUT))];
        let expected = "\
process t1 (1): 5 threads, 1 waiting for futexes

chain:
  t2 (2) waits for mutex 0x4040 (first) held by t3 (3)
  t3 (3) does not wait for a futex

no deadlock among known holders
";
        let shows_unknown = false;
        assert_eq!(text(waits, shows_unknown), expected);
        // A thread that waits for itself is a cycle.
        let itself = vec![(2, wait(FutexObject::Mutex, Some(2), NO_TIMEOUT))];
        let itself = text(itself, shows_unknown);
        assert!(
            itself.contains("deadlock: a thread waits for itself\n"),
            "{itself}"
        );
    }
}
