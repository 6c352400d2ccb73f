//! The waits for a CPU in two recordings, compared, for `sched diff`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_analysis::LogHistogram;
use rperf_analysis::sched::latency::{LatencyRow, LatencyTable};
use rperf_hist::Estimate;

use super::delays::milliseconds;
use crate::table::{Cell, Column, Table, TextStyle};

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const SCHED_DIFF_JSON_VERSION: u32 = 1;

/// The two-sided 95 % quantile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.96;

/// A compared statistic of each task's waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayStatistic {
    /// The mean of the waits.
    Mean,
    /// The median.
    Median,
    /// The 99th percentile.
    P99,
}

/// A statistic of waits in nanoseconds, with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelayEstimate {
    /// The value of the statistic.
    pub value: f64,
    /// The interval; `None` with too few waits.
    pub interval: Option<DelayInterval>,
}

/// A 95 % confidence interval, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelayInterval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// A statistic of the waits of all tasks with one name, in two recordings. A recording without such waits has no estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedDelay {
    /// The name.
    pub comm: String,
    /// The statistic that is compared.
    pub statistic: DelayStatistic,
    /// The number of waits in the baseline and in the other recording.
    pub waits: [u64; 2],
    /// The estimates for the baseline and for the other recording.
    pub estimates: [Option<DelayEstimate>; 2],
    /// Whether the recordings differ; `None` if there are too few waits to decide. Means are compared by Welch's t-test,
    /// percentiles by their intervals.
    pub is_significant: Option<bool>,
}

impl DelayStatistic {
    const ALL: [Self; 3] = [Self::Mean, Self::Median, Self::P99];

    fn title(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "p50",
            Self::P99 => "p99",
        }
    }
}

impl ComparedDelay {
    /// Returns the difference in nanoseconds, if both recordings have waits.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let [before, after] = self.estimates;
        Some(after?.value - before?.value)
    }
}

/// Compares the tasks of two recordings by name. Both tables must have distributions (`LatencyOptions::with_distributions`) and
/// one row per name. Tasks whose mean differs significantly come first, those with too few waits to decide last; within each of
/// these groups, the largest absolute difference of the mean comes first.
#[must_use]
pub fn compare_delays(before: &LatencyTable, after: &LatencyTable) -> Vec<ComparedDelay> {
    let mut pairs: BTreeMap<&[u8], [Option<&LogHistogram>; 2]> = BTreeMap::new();
    for (file, table) in [before, after].into_iter().enumerate() {
        for LatencyRow { comm, sums, .. } in &table.rows {
            pairs.entry(comm).or_default()[file] = Some(&sums.delays);
        }
    }
    let mut tasks: Vec<[ComparedDelay; 3]> = pairs
        .into_iter()
        .map(|(comm, delays)| {
            DelayStatistic::ALL
                .map(|statistic| compared(&String::from_utf8_lossy(comm), statistic, delays))
        })
        .collect();
    // The sort is stable: tasks that compare equal remain sorted by name.
    tasks.sort_by(|[one, ..], [other, ..]| order(one, other));
    tasks.into_iter().flatten().collect()
}

/// Orders tasks by their means: by whether the difference is significant, then by its size.
fn order(one: &ComparedDelay, other: &ComparedDelay) -> Ordering {
    let rank = |row: &ComparedDelay| {
        row.is_significant
            .map_or(2, |is_significant| u8::from(!is_significant))
    };
    let size = |row: &ComparedDelay| row.difference().unwrap_or_default().abs();
    let by_rank = rank(one).cmp(&rank(other));
    by_rank.then_with(|| size(other).total_cmp(&size(one)))
}

fn compared(
    comm: &str,
    statistic: DelayStatistic,
    delays: [Option<&LogHistogram>; 2],
) -> ComparedDelay {
    let estimates = delays.map(|delays| delays.and_then(|delays| estimate(statistic, delays)));
    ComparedDelay {
        comm: comm.to_owned(),
        statistic,
        waits: delays.map(|delays| delays.map_or(0, LogHistogram::count)),
        is_significant: match (statistic, delays, estimates) {
            (DelayStatistic::Mean, [Some(before), Some(after)], _) => differ(before, after),
            (_, _, [Some(before), Some(after)]) => before
                .interval
                .zip(after.interval)
                .map(|(before, after)| before.high < after.low || after.high < before.low),
            _ => None,
        },
        estimates,
    }
}

/// Whether the means differ significantly; `None` if a recording has fewer than two waits.
fn differ(before: &LogHistogram, after: &LogHistogram) -> Option<bool> {
    let (before, after) = (mean_estimate(before)?, mean_estimate(after)?);
    let margin = before.margin_of_difference(&after);
    Some((after.mean - before.mean).abs() > margin)
}

fn estimate(statistic: DelayStatistic, delays: &LogHistogram) -> Option<DelayEstimate> {
    let per_mille = match statistic {
        DelayStatistic::Mean => {
            let interval = mean_estimate(delays).map(|estimate| DelayInterval {
                low: (estimate.mean - estimate.margin()).max(0.0),
                high: estimate.mean + estimate.margin(),
            });
            let value = (delays.count() > 0).then(|| delays.mean())?;
            return Some(DelayEstimate { value, interval });
        }
        DelayStatistic::Median => 500,
        DelayStatistic::P99 => 990,
    };
    let value = delays.percentile(per_mille)? as f64;
    let interval = percentile_interval(delays, per_mille);
    Some(DelayEstimate { value, interval })
}

/// Returns the mean with its variance; `None` with fewer than two waits. For the variance, waits are taken to be in the middle of
/// their bucket.
fn mean_estimate(delays: &LogHistogram) -> Option<Estimate> {
    let mean = delays.mean();
    let squares = delays.buckets().map(|bucket| {
        let middle = (bucket.from as f64 + bucket.to as f64) / 2.0;
        bucket.count as f64 * (middle - mean).powi(2)
    });
    (delays.count() > 1).then(|| Estimate::of_squares(delays.count() as f64, mean, squares.sum()))
}

/// Returns the confidence interval of a percentile. The number of waits up to the true percentile has a binomial distribution,
/// approximated by a normal one. With a probability of 95 %, this number is between two ranks: the bounds are the waits at these.
/// `None` if there are too few waits: 8 are enough for the median, 563 for the 99th percentile.
fn percentile_interval(delays: &LogHistogram, per_mille: u32) -> Option<DelayInterval> {
    let (count, fraction) = (delays.count() as f64, f64::from(per_mille) / 1000.0);
    let spread = NORMAL_QUANTILE * (count * fraction * (1.0 - fraction)).sqrt();
    let low = (count * fraction - spread).floor();
    let high = (count * fraction + spread).ceil() + 1.0;
    if low < 1.0 || high > count {
        return None;
    }
    let value = |rank: f64| delays.at_rank(rank as u64).map(|value| value as f64);
    Some(DelayInterval {
        low: value(low)?,
        high: value(high)?,
    })
}

/// Writes a row for each statistic of each task; times are in milliseconds.
///
/// # Errors
///
/// Those of `out`.
pub fn write_diff(out: &mut dyn Write, rows: &[ComparedDelay]) -> io::Result<()> {
    writeln!(
        out,
        "# Waits for a CPU, with 95% confidence intervals; * significant difference (mean: Welch's t), = not significant\n#"
    )?;
    let names = ["Task", "Statistic"].map(Column::left);
    let numbers = [
        "Waits",
        "New waits",
        "Baseline ms",
        "Interval",
        "New ms",
        "Interval",
        "Delta ms",
        "Sig",
    ];
    let columns = names.into_iter().chain(numbers.map(Column::right));
    let mut table = Table::new(columns.collect::<Vec<_>>());
    for row in rows {
        let mut cells: Vec<Cell> = vec![row.comm.clone().into(), row.statistic.title().into()];
        cells.extend(row.waits.map(Cell::from));
        for estimate in row.estimates {
            cells.extend(estimate_cells(estimate));
        }
        cells.push(row.difference().map_or(Cell::missing(), |delta| {
            let sign = if delta < 0.0 { "-" } else { "+" };
            format!("{sign}{}", milliseconds(delta.abs() as u64)).into()
        }));
        cells.push(match row.is_significant {
            Some(true) => "*".into(),
            Some(false) => "=".into(),
            None => Cell::missing(),
        });
        table.push(cells);
    }
    table.write_text(out, TextStyle::PLAIN)
}

fn estimate_cells(estimate: Option<DelayEstimate>) -> [Cell; 2] {
    let to_text = |time: f64| milliseconds(time as u64);
    let Some(DelayEstimate { value, interval }) = estimate else {
        return [Cell::missing(), Cell::missing()];
    };
    let interval =
        interval.map(|interval| format!("{}..{}", to_text(interval.low), to_text(interval.high)));
    [
        to_text(value).into(),
        interval.map_or(Cell::missing(), Cell::from),
    ]
}

/// Writes an object with the rows of [`write_diff`]; times are in nanoseconds.
///
/// # Errors
///
/// Those of `out`.
pub fn write_diff_json(out: &mut dyn Write, rows: &[ComparedDelay]) -> io::Result<()> {
    let estimate = |estimate: Option<DelayEstimate>| {
        estimate.map(|DelayEstimate { value, interval }| {
            serde_json::json!({
                "ns": value,
                "low_ns": interval.map(|interval| interval.low),
                "high_ns": interval.map(|interval| interval.high),
            })
        })
    };
    write!(out, "{{\"version\":{SCHED_DIFF_JSON_VERSION},\"rows\":[")?;
    for (number, row) in rows.iter().enumerate() {
        out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        let [baseline_waits, new_waits] = row.waits;
        let [baseline, new] = row.estimates.map(estimate);
        // The key `number` tells which statistic the row has: `mean`, `p50` or `p99`.
        let row = serde_json::json!({
            "comm": row.comm,
            "number": row.statistic.title(),
            "baseline_waits": baseline_waits,
            "new_waits": new_waits,
            "baseline": baseline,
            "new": new,
            "delta_ns": row.difference(),
            "significant": row.is_significant,
        });
        serde_json::to_writer(&mut *out, &row)?;
    }
    out.write_all(b"]}\n")
}
