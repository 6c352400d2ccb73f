//! The tables of `lock` as JSON.

use std::io::{self, Write};

use rperf_analysis::lock::{LockKey, LockRow};

use super::{NamedRow, NamedThread, kind};

/// The version of all JSON objects of `lock`; it changes if a key of any of them is removed or gets another meaning.
pub const LOCK_JSON_VERSION: u32 = 1;

/// Writes rows as a JSON object, times in nanoseconds. `lost` is the number of records lost while recording, or of waits missing
/// in the sums of BPF programs.
///
/// # Errors
///
/// Those of `out`.
pub fn write_rows(out: &mut dyn Write, rows: &[NamedRow], lost: u64) -> io::Result<()> {
    let rows: Vec<serde_json::Value> = rows.iter().map(row).collect();
    let object = serde_json::json!({
        "version": LOCK_JSON_VERSION,
        "lost_records": lost,
        "rows": rows,
    });
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

/// Returns a row as a JSON object. The field `row` of `named` is the row without names.
fn row(named: &NamedRow) -> serde_json::Value {
    let NamedRow {
        row,
        name,
        owner_process,
        container,
        stack,
        wakers,
        owners,
    } = named;
    let tid = match row.key {
        LockKey::Thread(tid) => Some(tid),
        LockKey::Owner(tid) => tid,
        _ => None,
    };
    let cgroup = match row.key {
        LockKey::Cgroup(id) => Some(id),
        _ => None,
    };
    // Rows of lockdep's events have a class instead of flags.
    let kind = row.class.is_none().then(|| kind(row.flags));
    let percentile = |per_mille| row.waits.percentile(per_mille);
    serde_json::json!({
        "name": name,
        "type": kind,
        "address": format!("{:#x}", row.address),
        "tid": tid.map(u32::cast_signed),
        "process": row.process,
        "owner_process": owner_process,
        "cgroup": cgroup,
        "container": container,
        "contended": row.contended,
        "acquired": row.acquired,
        "total_ns": row.total,
        "max_ns": row.max,
        "min_ns": row.min,
        "mean_ns": row.average(),
        "run_queue_ns": row.run_queue,
        "p50_ns": percentile(500),
        "p90_ns": percentile(900),
        "p99_ns": percentile(990),
        "histogram": histogram(row),
        "owners": threads(owners),
        "wakers": threads(wakers),
        "stack": stack,
    })
}

fn threads(threads: &[NamedThread]) -> Vec<serde_json::Value> {
    let threads = threads.iter().map(
        |thread| serde_json::json!({"tid": thread.tid.cast_signed(), "comm": thread.comm, "waits": thread.waits}),
    );
    threads.collect()
}

/// Returns the number of waits by power of two, without empty ranges: `[from, to, count]`, in nanoseconds, `to` exclusive unless
/// it is the maximum of `u64`. Waits of 0 ns have a range of their own, except in counts of BPF programs (`waits_by_power`):
/// there, the first range is 0 to 2.
fn histogram(row: &LockRow) -> Vec<[u64; 3]> {
    if let Some(powers) = &row.waits_by_power {
        let counts = (0..).zip(powers).filter(|(_, count)| **count > 0);
        let bounds = counts.map(|(power, count)| {
            let from = if power == 0 { 0 } else { 1_u64 << power };
            [from, 2_u64.saturating_pow(power + 1), *count]
        });
        return bounds.collect();
    }
    let mut ranges: Vec<[u64; 3]> = Vec::new();
    for bucket in row.waits.buckets() {
        // A bucket is within one range between two consecutive powers of two.
        let from = match bucket.from {
            0 => 0,
            from => 1 << from.ilog2(),
        };
        match ranges.last_mut() {
            Some([last_from, _, count]) if *last_from == from => *count += bucket.count,
            _ => ranges.push([from, from.saturating_mul(2).max(1), bucket.count]),
        }
    }
    ranges
}

/// Writes threads and locks as a JSON object, for `lock info`; a list that is not requested is `null`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_info(
    out: &mut dyn Write,
    threads: Option<&[(u32, String)]>,
    locks: Option<&[NamedRow]>,
) -> io::Result<()> {
    let threads = threads.map(|threads| {
        let rows = threads.iter();
        let rows =
            rows.map(|(tid, comm)| serde_json::json!({"tid": tid.cast_signed(), "comm": comm}));
        rows.collect::<Vec<_>>()
    });
    let locks = locks.map(|rows| {
        let rows = rows.iter().map(|named| {
            serde_json::json!({
                "address": format!("{:#x}", named.row.address),
                "class": named.name,
            })
        });
        rows.collect::<Vec<_>>()
    });
    let object = serde_json::json!({
        "version": LOCK_JSON_VERSION,
        "threads": threads,
        "locks": locks,
    });
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}
