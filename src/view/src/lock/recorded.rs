//! Who waited for whom in a recording, for `lock deadlock -i`: as text, and as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_names::counted;

use super::chains::{WaitingThread, thread, wait_json, write_wait};
use super::json::LOCK_JSON_VERSION;
use super::time;

/// Threads that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDeadlock {
    /// Thread ids with their waits: each thread waits for the next one, the last for the first.
    pub waits: Vec<(u32, WaitingThread)>,
    /// How often the cycle was closed: more than once if a timeout or signal ended a wait, and the wait began again.
    pub count: u64,
    /// When the cycle was closed for the first time, in ns of the recording's clock.
    pub from: u64,
    /// When it ended for the last time, in ns of the same clock; `None` if it lasted until the end of the recording.
    pub until: Option<u64>,
}

/// Threads of which each waits for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChain {
    /// Thread ids with their waits.
    pub waits: Vec<(u32, WaitingThread)>,
    /// Whether the chain leads into a deadlock.
    pub ends_in_deadlock: bool,
    /// How often the chain occurred.
    pub count: u64,
    /// How long the first thread waited in the chain, summed over all occurrences of the chain, in ns.
    pub total: u64,
    /// How long it waited at most in one occurrence, in ns.
    pub max: u64,
}

/// The waits of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedWaits {
    /// The names of threads, by thread id.
    pub names: BTreeMap<u32, String>,
    /// In order of time.
    pub deadlocks: Vec<RecordedDeadlock>,
    /// Longest total time first.
    pub chains: Vec<RecordedChain>,
    /// The number of waits.
    pub waits: u64,
    /// The number of waits whose holder was unknown when they began.
    pub unknown: u64,
    /// How often a chain was not counted, because there were too many different ones.
    pub skipped: u64,
    /// The time of the last event, in ns.
    pub end: u64,
    /// The number of records lost while recording.
    pub lost: u64,
}

impl RecordedWaits {
    fn write_deadlock(&self, out: &mut dyn Write, deadlock: &RecordedDeadlock) -> io::Result<()> {
        let mut waits = deadlock.waits.iter();
        let kind = match waits.any(|(_, wait)| wait.has_timeout) {
            true => "deadlock until a timeout",
            false => "deadlock",
        };
        match deadlock.waits.len() {
            1 => write!(out, "\n{kind}: a thread waits for itself")?,
            count => write!(
                out,
                "\n{kind}: {} wait for each other",
                counted(count as u64, "thread")
            )?,
        }
        write!(out, ", from {}", seconds(deadlock.from))?;
        match deadlock.until {
            Some(until) => write!(out, " to {}", seconds(until))?,
            None => write!(out, " to the end of the recording")?,
        }
        let until = deadlock.until.unwrap_or(self.end);
        let unpadded = 0;
        let duration = time(until.saturating_sub(deadlock.from), unpadded);
        // A blank follows units of one letter (`s `, `m `, `h `), also in an unpadded time.
        write!(out, " ({}", duration.trim_end())?;
        match deadlock.count {
            1 => writeln!(out, ")")?,
            count => writeln!(out, ", closed {count} times)")?,
        }
        self.write_waits(out, &deadlock.waits)
    }

    fn write_waits(&self, out: &mut dyn Write, waits: &[(u32, WaitingThread)]) -> io::Result<()> {
        for (tid, wait) in waits {
            write_wait(out, &|tid| thread(&self.names, tid), *tid, wait)?;
        }
        Ok(())
    }

    fn write_chain(&self, out: &mut dyn Write, chain: &RecordedChain) -> io::Result<()> {
        let unpadded = 0;
        let [total, max] = [chain.total, chain.max].map(|nanos| time(nanos, unpadded));
        writeln!(
            out,
            "\nchain: {}, {} in all, at most {}",
            match chain.count {
                1 => "once".to_owned(),
                count => format!("{count} times"),
            },
            total.trim(),
            max.trim()
        )?;
        self.write_waits(out, &chain.waits)?;
        let last_holder = chain.waits.last().and_then(|(_, wait)| wait.holder);
        match last_holder {
            Some(holder) if chain.ends_in_deadlock => {
                writeln!(out, "  {} is in a deadlock", thread(&self.names, holder))
            }
            Some(holder) => writeln!(
                out,
                "  {} does not wait for a futex with a known holder",
                thread(&self.names, holder)
            ),
            None => Ok(()),
        }
    }
}

/// Returns a time in seconds with six decimals, rounded down, and the unit.
fn seconds(nanoseconds: u64) -> String {
    let micros = nanoseconds / 1000;
    format!("{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
}

/// Writes the deadlocks, then at most `max_chains` chains.
///
/// # Errors
///
/// Those of `out`.
pub fn write_recorded(
    out: &mut dyn Write,
    recorded: &RecordedWaits,
    max_chains: usize,
) -> io::Result<()> {
    let RecordedWaits { waits, unknown, .. } = recorded;
    writeln!(
        out,
        "{} for futexes, {unknown} of them without a known holder",
        counted(*waits, "wait")
    )?;
    for deadlock in &recorded.deadlocks {
        recorded.write_deadlock(out, deadlock)?;
    }
    for chain in recorded.chains.iter().take(max_chains) {
        recorded.write_chain(out, chain)?;
    }
    let hidden = recorded.chains.len().saturating_sub(max_chains);
    if hidden > 0 {
        let hidden = counted(hidden as u64, "more chain");
        writeln!(out, "\n{hidden}, with less time")?;
    }
    if recorded.skipped > 0 {
        writeln!(
            out,
            "\nchains were not counted {}, since there were too many different ones",
            counted(recorded.skipped, "time")
        )?;
    }
    match recorded.deadlocks.is_empty() {
        true => writeln!(out, "\nno deadlock among known holders"),
        false => Ok(()),
    }
}

/// Writes the deadlocks and all chains as a JSON object; times in nanoseconds.
///
/// # Errors
///
/// Those of `out`.
pub fn write_recorded_json(out: &mut dyn Write, recorded: &RecordedWaits) -> io::Result<()> {
    let waits = |waits: &[(u32, WaitingThread)]| {
        let waits = waits.iter();
        waits
            .map(|(tid, wait)| wait_json(&recorded.names, *tid, wait))
            .collect::<Vec<_>>()
    };
    let deadlocks = recorded.deadlocks.iter().map(|deadlock| {
        serde_json::json!({
            "from_ns": deadlock.from,
            "until_ns": deadlock.until,
            "count": deadlock.count,
            "waits": waits(&deadlock.waits),
        })
    });
    let chains = recorded.chains.iter().map(|chain| {
        serde_json::json!({
            "count": chain.count,
            "total_ns": chain.total,
            "max_ns": chain.max,
            "ends_in_deadlock": chain.ends_in_deadlock,
            "waits": waits(&chain.waits),
        })
    });
    let object = serde_json::json!({
        "version": LOCK_JSON_VERSION,
        "lost_records": recorded.lost,
        "waits": recorded.waits,
        "unknown_holders": recorded.unknown,
        "end_ns": recorded.end,
        "deadlocks": deadlocks.collect::<Vec<_>>(),
        "chains": chains.collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use rperf_analysis::lock::FutexObject;

    use super::*;

    fn wait(holder: u32, stack: &[&str]) -> WaitingThread {
        WaitingThread {
            object: FutexObject::Mutex,
            address: 0x4040,
            variable: Some("first".to_owned()),
            holder: Some(holder),
            has_timeout: false,
            stack: stack.iter().map(|frame| (*frame).to_owned()).collect(),
        }
    }

    #[test]
    fn text_has_times_of_deadlocks_and_ends_of_chains() {
        let recorded = RecordedWaits {
            names: (1..5).map(|tid| (tid, format!("t{tid}"))).collect(),
            deadlocks: vec![RecordedDeadlock {
                waits: vec![(1, wait(2, &["0x10  both+0x4"])), (2, wait(1, &[]))],
                count: 2,
                from: 1_500_000_000,
                until: None,
            }],
            chains: vec![RecordedChain {
                waits: vec![(3, wait(1, &[])), (1, wait(2, &[])), (2, wait(1, &[]))],
                ends_in_deadlock: true,
                count: 1,
                total: 20_000,
                max: 20_000,
            }],
            waits: 3,
            unknown: 1,
            skipped: 0,
            end: 3_500_000_000,
            lost: 0,
        };
        let mut out = Vec::new();
        write_recorded(&mut out, &recorded, 10).unwrap();
        let expected = "\
3 waits for futexes, 1 of them without a known holder

deadlock: 2 threads wait for each other, from 1.500000 s to the end of the recording (2.00 s, closed 2 times)
  t1 (1) waits for mutex 0x4040 (first) held by t2 (2)
      0x10  both+0x4
  t2 (2) waits for mutex 0x4040 (first) held by t1 (1)

chain: once, 20.00 us in all, at most 20.00 us
  t3 (3) waits for mutex 0x4040 (first) held by t1 (1)
  t1 (1) waits for mutex 0x4040 (first) held by t2 (2)
  t2 (2) waits for mutex 0x4040 (first) held by t1 (1)
  t1 (1) is in a deadlock
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        write_recorded(&mut out, &RecordedWaits::default(), 0).unwrap();
        let none = String::from_utf8(out).unwrap();
        assert!(
            none.ends_with("\nno deadlock among known holders\n"),
            "{none}"
        );
    }
}
