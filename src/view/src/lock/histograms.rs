//! The distribution of the waits of a row, for `lock contention --histogram`.

use std::io::{self, Write};

use rperf_analysis::lock::LockRow;

use super::time;
use crate::sched::delay_histogram::{counts_by_power, write_counts};

/// The first line counts all waits shorter than two to the power of this, in nanoseconds: waits for spin locks are often shorter
/// than 1 us.
const FIRST_POWER: u32 = 7;
/// The beginning of each line, so that the histogram is indented below its row.
const INDENTATION: &str = "        ";

/// Writes percentiles, if they are known, and a line with a bar for each power of two nanoseconds, from that of the shortest wait
/// to that of the longest; nothing if no wait has ended.
///
/// # Errors
///
/// Those of `out`.
pub(super) fn write_histogram(out: &mut dyn Write, row: &LockRow) -> io::Result<()> {
    let counts = counts(row);
    let wait_count: u64 = counts.iter().sum();
    if wait_count == 0 {
        return Ok(());
    }
    let mut text = Vec::new();
    let percentiles = [("median", 500), ("p90", 900), ("p99", 990)];
    let percentiles = percentiles.iter().filter_map(|(name, per_mille)| {
        let value = row.waits.percentile(*per_mille)?;
        let unpadded_width = 0;
        // `trim`: a unit of one letter is followed by a blank, as in `1.50 s `.
        Some(format!("{name} {}", time(value, unpadded_width).trim()))
    });
    let percentiles: Vec<String> = percentiles.collect();
    if !percentiles.is_empty() {
        writeln!(text, "# {}", percentiles.join(", "))?;
    }
    write_counts(&mut text, &counts, FIRST_POWER, wait_count)?;
    for line in String::from_utf8_lossy(&text).lines() {
        writeln!(out, "{}", format!("{INDENTATION}{line}").trim_end())?;
    }
    Ok(())
}

/// Returns the number of waits below two to the power of [`FIRST_POWER`], and in each power of two from there on, up to the
/// longest wait.
fn counts(row: &LockRow) -> Vec<u64> {
    // Waits that were summed in the kernel are only known by power of two; otherwise the distribution is in `row.waits`.
    let Some(waits_by_power) = &row.waits_by_power else {
        return counts_by_power(&row.waits, FIRST_POWER);
    };
    let mut counts = Vec::new();
    // The waits of an element are shorter than two to the power of `end_power`.
    for (end_power, count) in (1..).zip(waits_by_power).filter(|(_, count)| **count > 0) {
        let line = u32::saturating_sub(end_power, FIRST_POWER) as usize;
        if counts.len() <= line {
            counts.resize(line + 1, 0);
        }
        if let Some(sum) = counts.get_mut(line) {
            *sum += *count;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use rperf_analysis::lock::{LockKey, LockStack, LockSums};

    use super::*;

    fn row(waits_by_power: Vec<u64>) -> LockRow {
        let sums = LockSums {
            count: waits_by_power.iter().sum(),
            total: 0,
            max: 0,
            min: 0,
            waits_by_power,
            // `LCB_F_MUTEX`; not shown in histograms.
            flags: 32,
            address: 1,
            lock_name: None,
            run_queue: 0,
        };
        LockRow::of_sums(LockKey::Address(1), sums, LockStack::default(), Vec::new())
    }

    fn histogram_lines(row: &LockRow) -> Vec<String> {
        let mut out = Vec::new();
        write_histogram(&mut out, row).expect("writing to memory succeeds");
        let text = String::from_utf8(out).expect("text");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn sums_of_the_kernel_and_single_waits_have_equal_lines() {
        // 0, 100 and 127 ns; 128 ns; 1023 ns; 1024 ns twice.
        let waits = [0, 100, 127, 128, 1023, 1024, 1024];
        let mut waits_by_power = vec![0; 64];
        let mut single = row(Vec::new());
        single.waits_by_power = None;
        for wait in waits {
            waits_by_power[u64::checked_ilog2(wait).unwrap_or(0) as usize] += 1;
            single.waits.add(wait);
        }
        let bar = |length: usize| "#".repeat(length);
        let lines = [
            "        # From us  To us  Waits   Share".to_owned(),
            format!("            0.000  0.128      3  42.86%  {}", bar(40)),
            format!("            0.128  0.256      1  14.29%  {}", bar(14)),
            "            0.256  0.512      0   0.00%".to_owned(),
            format!("            0.512  1.024      1  14.29%  {}", bar(14)),
            format!("            1.024  2.048      2  28.57%  {}", bar(27)),
        ];
        assert_eq!(histogram_lines(&row(waits_by_power)), lines);
        let with_percentiles = histogram_lines(&single);
        // A percentile is the middle of a bucket of `LogHistogram` (that of 128 ns ends before 130 ns), but at most the longest
        // wait, 1024 ns.
        assert_eq!(
            with_percentiles[0],
            "        # median 129 ns, p90 1.02 us, p99 1.02 us"
        );
        assert_eq!(with_percentiles[1..], lines);
    }

    #[test]
    fn rows_without_ended_waits_have_no_lines() {
        assert!(histogram_lines(&row(vec![0; 64])).is_empty());
    }
}
