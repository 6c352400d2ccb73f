//! Distributions of allocations, for `kmem stat --histogram`.

use std::io::{self, Write};

use rperf_analysis::LogHistogram;
use rperf_analysis::kmem::{AllocationDistributions, AllocationRate, Allocator};
use serde_json::{Value, json};

use crate::sched::delay_histogram::{bar, counts_by_power};
use crate::table::{Cell, Column, Table, TextStyle};

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// How the values of a histogram are displayed.
#[derive(Debug, Clone, Copy)]
struct Quantity {
    /// The displayed unit.
    unit: &'static str,
    /// The number of units of the histogram in a displayed unit.
    divisor: u64,
    /// The first line counts all values below two to the power of this, in units of the histogram.
    first_power: u32,
}

const BYTES: Quantity = Quantity {
    unit: "bytes",
    divisor: 1,
    first_power: 3,
};
const MICROSECONDS: Quantity = Quantity {
    unit: "us",
    divisor: 1000,
    first_power: 10,
};

impl Quantity {
    /// Returns the text of a value, with three decimals unless the units are equal.
    fn text(self, value: u64) -> String {
        match self.divisor {
            1 => value.to_string(),
            divisor => format!("{}.{:03}", value / divisor, value % divisor),
        }
    }
}

/// Values with their percentiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct SummarizedValues<'v> {
    values: &'v LogHistogram,
    /// The 50th, 90th and 99th; `None` without values.
    percentiles: Option<[u64; 3]>,
}

impl<'v> SummarizedValues<'v> {
    /// Returns values with the percentiles that their histogram gives, which are not exact.
    pub(super) fn of(values: &'v LogHistogram) -> Self {
        let percentile = |per_mille| values.percentile(per_mille).unwrap_or_default();
        let percentiles = [500, 900, 990].map(percentile);
        Self {
            values,
            percentiles: (values.count() > 0).then_some(percentiles),
        }
    }
}

/// Writes the histograms and the rates of an allocator. `end` is the time of the last event, in nanoseconds.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    allocator: Allocator,
    distributions: &AllocationDistributions,
    end: u64,
) -> io::Result<()> {
    let (what, name) = match allocator {
        Allocator::Slab => ("objects", "SLAB allocator"),
        Allocator::Page => ("requests", "page allocator"),
    };
    let AllocationDistributions {
        sizes,
        size_percentiles,
        lifetimes,
        live,
        rates,
    } = distributions;
    // Not `SummarizedValues::of`: the percentiles of the sizes are exact.
    let sizes = SummarizedValues {
        values: sizes,
        percentiles: *size_percentiles,
    };
    writeln!(out, "\n# Sizes of {what} ({name})")?;
    write_histogram(out, sizes, BYTES, what)?;
    writeln!(
        out,
        "\n# Life times of {what} ({name}); {live} were not freed"
    )?;
    write_histogram(out, SummarizedValues::of(lifetimes), MICROSECONDS, what)?;
    writeln!(out, "\n# Rates ({name})")?;
    write_rates(out, rates, end)
}

fn write_histogram(
    out: &mut dyn Write,
    summarized: SummarizedValues<'_>,
    quantity: Quantity,
    what: &str,
) -> io::Result<()> {
    let values = summarized.values;
    let count = values.count();
    let [median, p90, p99] = summarized.percentiles.unwrap_or_default();
    writeln!(
        out,
        "# {count} {what}, mean {} {unit}, median {}, p90 {}, p99 {}, maximum {}",
        quantity.text(mean(values)),
        quantity.text(median),
        quantity.text(p90),
        quantity.text(p99),
        quantity.text(values.max().unwrap_or_default()),
        unit = quantity.unit,
    )?;
    if count == 0 {
        return Ok(());
    }
    let counts = counts_by_power(values, quantity.first_power);
    let most = counts.iter().copied().max().unwrap_or_default();
    let mut rows = Table::new([
        Column::right(format!("From {}", quantity.unit)),
        Column::right(format!("To {}", quantity.unit)),
        Column::right("Count"),
        Column::right("Share"),
        // The last column is not padded.
        Column::left("").fixed(0),
    ]);
    // The empty lines before the lowest value are omitted.
    let first_used = counts.iter().position(|count| *count > 0);
    let mut from = 0;
    // `line_count` is the number of values that a line shows.
    for (line, (power, line_count)) in (quantity.first_power..).zip(&counts).enumerate() {
        let to = 1_u64.checked_shl(power).unwrap_or(u64::MAX);
        if Some(line) >= first_used {
            rows.push([
                quantity.text(from).into(),
                quantity.text(to).into(),
                (*line_count).into(),
                Cell::share(*line_count, count),
                bar(*line_count, most).into(),
            ]);
        }
        from = to;
    }
    rows.write_text(out, TextStyle::PLAIN)
}

/// Returns the mean as an integer, rounded down, for [`Quantity::text`].
fn mean(values: &LogHistogram) -> u64 {
    let mean = values.sum().checked_div(values.count().into());
    u64::try_from(mean.unwrap_or_default()).unwrap_or(u64::MAX)
}

fn write_rates(out: &mut dyn Write, rates: &[AllocationRate], end: u64) -> io::Result<()> {
    let titles = ["Seconds", "Allocs/s", "Bytes/s", "Frees/s", "Freed bytes/s"];
    let mut rows = Table::new(Vec::from(titles.map(Column::right)));
    let begin = rates.first().map_or(0, |rate| rate.from);
    for rate in rates {
        // The last interval ends early, with the last event at `end`, but lasts at least a nanosecond.
        let to = rate.to.min(end.max(rate.from.saturating_add(1)));
        let duration = to.saturating_sub(rate.from);
        let per_second = |number: u64| {
            let scaled = u128::from(number) * u128::from(NANOSECONDS_PER_SECOND);
            u64::try_from(scaled / u128::from(duration.max(1))).unwrap_or(u64::MAX)
        };
        let micros = rate.from.saturating_sub(begin) / 1000;
        rows.push([
            format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000).into(),
            per_second(rate.allocated.requests).into(),
            per_second(rate.allocated.bytes).into(),
            per_second(rate.freed.requests).into(),
            per_second(rate.freed.bytes).into(),
        ]);
    }
    rows.write_text(out, TextStyle::PLAIN)
}

/// Writes the histograms, and the sums of each interval, as further keys of a JSON object: `slab_sizes`, `slab_lifetimes_ns`,
/// `slab_not_freed` and `slab_rates`, or the same with `page`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(
    out: &mut dyn Write,
    allocator: Allocator,
    distributions: &AllocationDistributions,
) -> io::Result<()> {
    let name = match allocator {
        Allocator::Slab => "slab",
        Allocator::Page => "page",
    };
    let rates: Vec<Value> = distributions
        .rates
        .iter()
        .map(|rate| {
            json!({
                "from_ns": rate.from,
                "to_ns": rate.to,
                "allocations": rate.allocated.requests,
                "allocated_bytes": rate.allocated.bytes,
                "frees": rate.freed.requests,
                "freed_bytes": rate.freed.bytes,
            })
        })
        .collect();
    let sizes = SummarizedValues {
        values: &distributions.sizes,
        percentiles: distributions.size_percentiles,
    };
    let sizes = histogram_json(sizes);
    let lifetimes = histogram_json(SummarizedValues::of(&distributions.lifetimes));
    write!(
        out,
        ",\"{name}_sizes\":{sizes},\"{name}_lifetimes_ns\":{lifetimes},\"{name}_not_freed\":{},\"{name}_rates\":{}",
        distributions.live,
        Value::from(rates),
    )
}

/// Returns a summary, and the counts by power of two without empty ranges: `[from, to, count]`, `to` exclusive unless it is the
/// maximum of `u64`.
pub(super) fn histogram_json(summarized: SummarizedValues<'_>) -> Value {
    let SummarizedValues {
        values,
        percentiles,
    } = summarized;
    let percentile = |place: usize| percentiles.and_then(|all| all.get(place).copied());
    let first_power = 0;
    let counts = counts_by_power(values, first_power);
    let ranges = (0..).zip(counts).filter(|(_, count)| *count > 0);
    let ranges = ranges.map(|(power, count)| {
        let from = if power == 0 { 0 } else { 1_u64 << (power - 1) };
        [from, 1_u64.checked_shl(power).unwrap_or(u64::MAX), count]
    });
    json!({
        "count": values.count(),
        "sum": u64::try_from(values.sum()).unwrap_or(u64::MAX),
        "mean": values.mean(),
        "min": values.min(),
        "max": values.max(),
        "p50": percentile(0),
        "p90": percentile(1),
        "p99": percentile(2),
        "histogram": ranges.collect::<Vec<[u64; 3]>>(),
    })
}
