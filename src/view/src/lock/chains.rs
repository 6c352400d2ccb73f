//! Who waits for whom, for `lock deadlock`: as text, and as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_analysis::lock::{FutexObject, WaitChains};

use super::json::LOCK_JSON_VERSION;

/// A thread that waits for a futex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingThread {
    /// What the futex belongs to.
    pub object: FutexObject,
    /// Its address.
    pub address: u64,
    /// The variable at this address, if it has a name.
    pub variable: Option<String>,
    /// The thread that holds it, or that is joined; `None` if it is unknown.
    pub holder: Option<u32>,
    /// Whether the wait ends by itself after some time.
    pub has_timeout: bool,
    /// The frames of the waiting thread, innermost first; empty if not shown.
    pub stack: Vec<String>,
}

/// The threads of a process that wait for futexes, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessWaits {
    /// The process id.
    pub pid: u32,
    /// The number of threads.
    pub threads: usize,
    /// The names of threads that wait or are waited for.
    pub names: BTreeMap<u32, String>,
    /// By thread id.
    pub waits: BTreeMap<u32, WaitingThread>,
}

impl ProcessWaits {
    /// Returns the chains of threads whose holders are known.
    #[must_use]
    pub fn chains(&self) -> WaitChains {
        let held = self.waits.iter();
        WaitChains::of(
            &held
                .filter_map(|(tid, wait)| Some((*tid, wait.holder?)))
                .collect(),
        )
    }

    fn thread(&self, tid: u32) -> String {
        thread(&self.names, tid)
    }

    fn write_threads(&self, out: &mut dyn Write, tids: &[u32]) -> io::Result<()> {
        for tid in tids {
            if let Some(wait) = self.waits.get(tid) {
                write_wait(out, &self.names, *tid, wait)?;
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
            count => writeln!(out, "\n{kind}: {} wait for each other", thread_count(count))?,
        }
        self.write_threads(out, cycle)
    }
}

/// Returns name and id of a thread.
pub(super) fn thread(names: &BTreeMap<u32, String>, tid: u32) -> String {
    match names.get(&tid) {
        Some(name) => format!("{name} ({tid})"),
        None => format!(":{tid} ({tid})"),
    }
}

/// Writes a line for the wait of a thread, and its frames.
pub(super) fn write_wait(
    out: &mut dyn Write,
    names: &BTreeMap<u32, String>,
    tid: u32,
    wait: &WaitingThread,
) -> io::Result<()> {
    write!(out, "  {} waits for ", thread(names, tid))?;
    match (wait.object, wait.holder) {
        (FutexObject::Thread, Some(holder)) => write!(out, "the end of {}", thread(names, holder))?,
        (object, holder) => {
            write!(out, "{} {:#x}", object_name(object), wait.address)?;
            if let Some(name) = &wait.variable {
                write!(out, " ({name})")?;
            }
            if let Some(holder) = holder {
                write!(out, " held by {}", thread(names, holder))?;
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

/// Returns the name of an object.
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

/// Returns `1 thread`, `2 threads`.
pub(super) fn thread_count(count: usize) -> String {
    match count {
        1 => "1 thread".to_owned(),
        count => format!("{count} threads"),
    }
}

/// Writes the deadlocks of a process, its other chains, and, with `shows_unknown`, the waits whose holder is unknown.
///
/// # Errors
///
/// Those of `out`.
pub fn write_waits(
    out: &mut dyn Write,
    process: &ProcessWaits,
    shows_unknown: bool,
) -> io::Result<()> {
    let name = process.thread(process.pid);
    let (all, waiting) = (thread_count(process.threads), process.waits.len());
    writeln!(out, "process {name}: {all}, {waiting} waiting for futexes")?;
    let WaitChains { cycles, chains } = process.chains();
    for cycle in &cycles {
        process.write_cycle(out, cycle)?;
    }
    for chain in &chains {
        writeln!(out, "\nchain:")?;
        let Some((last, waiting)) = chain.split_last() else {
            continue;
        };
        process.write_threads(out, waiting)?;
        let end = match process.waits.get(last) {
            Some(wait) if wait.holder.is_some() => "is in a deadlock",
            Some(_) => "waits for a futex whose holder is unknown",
            None => "does not wait for a futex",
        };
        writeln!(out, "  {} {end}", process.thread(*last))?;
    }
    let unknown: Vec<u32> = process
        .waits
        .iter()
        .filter(|(_, wait)| wait.holder.is_none())
        .map(|(tid, _)| *tid)
        .collect();
    if !unknown.is_empty() {
        let end = if shows_unknown { ":" } else { "" };
        let verb = if unknown.len() == 1 {
            "waits for a futex"
        } else {
            "wait for futexes"
        };
        writeln!(
            out,
            "\n{} {verb} whose holder is unknown{end}",
            thread_count(unknown.len())
        )?;
        if shows_unknown {
            process.write_threads(out, &unknown)?;
        }
    }
    match cycles.is_empty() {
        true => writeln!(out, "\nno deadlock among known holders"),
        false => Ok(()),
    }
}

/// Writes processes as a JSON object.
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(out: &mut dyn Write, processes: &[ProcessWaits]) -> io::Result<()> {
    let processes: Vec<serde_json::Value> = processes.iter().map(process_json).collect();
    let all = serde_json::json!({ "version": LOCK_JSON_VERSION, "processes": processes });
    serde_json::to_writer(&mut *out, &all)?;
    writeln!(out)
}

fn process_json(process: &ProcessWaits) -> serde_json::Value {
    let waits = process.waits.iter();
    let waits = waits.map(|(tid, wait)| wait_json(&process.names, *tid, wait));
    let WaitChains { cycles, chains } = process.chains();
    serde_json::json!({
        "pid": process.pid,
        "comm": process.names.get(&process.pid),
        "threads": process.threads,
        "waits": waits.collect::<Vec<_>>(),
        "deadlocks": cycles,
        "chains": chains,
    })
}

/// Returns a wait as a JSON object.
pub(super) fn wait_json(
    names: &BTreeMap<u32, String>,
    tid: u32,
    wait: &WaitingThread,
) -> serde_json::Value {
    serde_json::json!({
        "tid": tid,
        "comm": names.get(&tid),
        "type": object_name(wait.object),
        "address": format!("{:#x}", wait.address),
        "variable": wait.variable,
        "holder_tid": wait.holder,
        "holder_comm": wait.holder.and_then(|holder| names.get(&holder)),
        "timeout": wait.has_timeout,
        "stack": wait.stack,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn text(waits: Vec<(u32, WaitingThread)>, shows_unknown: bool) -> String {
        let process = ProcessWaits {
            pid: 1,
            threads: 5,
            names: (1..5).map(|tid| (tid, format!("t{tid}"))).collect(),
            waits: waits.into_iter().collect(),
        };
        let mut out = Vec::new();
        write_waits(&mut out, &process, shows_unknown).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn deadlocks_come_first_then_chains_then_unknown_holders() {
        let mut first = wait(FutexObject::Mutex, Some(3), false);
        first.stack = vec!["0x10  lock_both+0x4".to_owned()];
        let waits = vec![
            (1, wait(FutexObject::Thread, Some(2), false)),
            (2, first),
            (3, wait(FutexObject::PriorityInheritance, Some(2), true)),
            (4, wait(FutexObject::Unknown, None, false)),
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
        assert_eq!(text(waits, true), expected);
    }

    #[test]
    fn without_a_cycle_no_deadlock_is_claimed() {
        let waits = vec![(2, wait(FutexObject::Mutex, Some(3), false))];
        let expected = "\
process t1 (1): 5 threads, 1 waiting for futexes

chain:
  t2 (2) waits for mutex 0x4040 (first) held by t3 (3)
  t3 (3) does not wait for a futex

no deadlock among known holders
";
        assert_eq!(text(waits, false), expected);
        let itself = text(vec![(2, wait(FutexObject::Mutex, Some(2), false))], false);
        assert!(
            itself.contains("deadlock: a thread waits for itself\n"),
            "{itself}"
        );
    }
}
