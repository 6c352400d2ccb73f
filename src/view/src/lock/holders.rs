//! What holders of locks did, for `lock contention --holders`: as text, and as JSON.

use std::io::{self, Write};

use rperf_analysis::lock::HolderState;

use super::json::LOCK_JSON_VERSION;
use super::time;

/// The time of holders in one state and function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderSum {
    /// What the holders did.
    pub state: HolderState,
    /// The function; if unknown, its object in brackets or `[unknown]`; `Unknown` without a stack.
    pub name: String,
    /// If the holders ran: the number of samples. If they slept or were in the run queue: how often.
    pub count: u64,
    /// For how long the holders were in this state and function while others waited for them, in ns.
    pub nanos: u64,
    /// The frames that are shown, innermost first.
    pub stack: Vec<String>,
}

/// The contents of the table and of the JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HolderSums {
    /// Most time first.
    pub rows: Vec<HolderSum>,
    /// For how long at least one other thread waited for a holder, summed over the holders, in ns.
    pub waited: u64,
    /// The number of records lost while recording.
    pub lost: u64,
}

/// Returns the name of what a holder did.
#[must_use]
pub fn state_name(state: HolderState) -> &'static str {
    match state {
        HolderState::Running => "running",
        HolderState::Sleeping => "sleeping",
        HolderState::Queued => "run queue",
    }
}

/// Writes the table.
///
/// # Errors
///
/// Those of `out`.
pub fn write_holders(out: &mut dyn Write, sums: &HolderSums, with_titles: bool) -> io::Result<()> {
    if with_titles {
        // `time` pads units of one letter to two (`s `): this blank is trimmed.
        let unpadded = 0;
        let waited = time(sums.waited, unpadded);
        writeln!(out, "others waited {} for holders\n", waited.trim())?;
        writeln!(
            out,
            "{:>12} {:>8} {:>10} {:>10}   function of the holder\n",
            "time", "share", "count", "state"
        )?;
    }
    for row in &sums.rows {
        writeln!(
            out,
            "{} {:>7.2}% {:>10} {:>10}   {}",
            time(row.nanos, 12),
            share(row.nanos, sums.waited),
            row.count,
            state_name(row.state),
            row.name
        )?;
        for frame in &row.stack {
            writeln!(out, "\t\t\t{frame}")?;
        }
    }
    Ok(())
}

/// Returns a percentage.
#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64 * 100.0,
    }
}

/// Writes the rows as a JSON object; times in nanoseconds.
///
/// # Errors
///
/// Those of `out`.
pub fn write_holders_json(out: &mut dyn Write, sums: &HolderSums) -> io::Result<()> {
    let rows = sums.rows.iter().map(|row| {
        serde_json::json!({
            "state": state_name(row.state),
            "name": row.name,
            "count": row.count,
            "total_ns": row.nanos,
            "stack": row.stack,
        })
    });
    let object = serde_json::json!({
        "version": LOCK_JSON_VERSION,
        "lost_records": sums.lost,
        "waited_ns": sums.waited,
        "holders": rows.collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_that_others_waited() {
        let sums = HolderSums {
            rows: vec![HolderSum {
                state: HolderState::Sleeping,
                name: "hold+0x10".to_owned(),
                count: 3,
                nanos: 1_500_000,
                stack: vec!["0x10  hold+0x10".to_owned()],
            }],
            waited: 2_000_000,
            lost: 0,
        };
        let mut out = Vec::new();
        let with_titles = true;
        write_holders(&mut out, &sums, with_titles).unwrap();
        let expected = "others waited 2.00 ms for holders\n\n        \
time    share      count      state   function of the holder\n\n     \
1.50 ms   75.00%          3   sleeping   hold+0x10\n\t\t\t0x10  hold+0x10\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
