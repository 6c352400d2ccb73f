//! `histogram`: counts of values by range, as text and as JSON.

use std::io::{self, Write};

use rperf_analysis::{ValueHistogram, ValueRange, ValueSummary};
use serde_json::{Value, json};

use crate::padding::{LeftAligned, RightAligned};

/// The version of the JSON format, increased when a field changes its meaning.
pub const HISTOGRAM_JSON_VERSION: u32 = 1;

/// The length of the longest bar in characters.
const BAR: u64 = 38;
/// Minimum widths of the columns: lower bound, upper bound and count.
const LOWER: usize = 13;
const UPPER: usize = 9;
const COUNT: usize = 8;

/// A histogram with the names of what it counts.
#[derive(Debug, Clone, Copy)]
pub struct HistogramView<'a> {
    /// The event, or the pair of events.
    pub event: &'a str,
    /// The name of the value: a field, `period` or `latency`.
    pub value_name: &'a str,
    /// The unit of the values; empty if there is none.
    pub unit: &'a str,
    /// The counts.
    pub histogram: &'a ValueHistogram,
}

impl HistogramView<'_> {
    /// The event and the value's name with its unit.
    #[must_use]
    pub fn title(&self) -> String {
        match self.unit {
            "" => format!("{} {}", self.event, self.value_name),
            unit => format!("{} {} in {unit}", self.event, self.value_name),
        }
    }

    /// The summary in one line; empty without values.
    #[must_use]
    pub fn summary(&self) -> String {
        let Some(summary) = self.histogram.summary() else {
            return String::new();
        };
        let ValueSummary {
            count,
            min,
            max,
            mean,
            percentiles: [median, p90, p99],
            ..
        } = summary;
        format!(
            "{count} values, mean {mean:.1}, min {min}, median {median}, p90 {p90}, p99 {p99}, max {max}"
        )
    }

    /// Writes title, summary and a line with a bar for each range.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let ranges: Vec<ValueRange> = self.histogram.ranges().collect();
        let largest_count = ranges.iter().map(|range| range.count).max();
        let bound = |bound: Option<i128>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        let width = |least: usize, cell_widths: &mut dyn Iterator<Item = usize>| {
            cell_widths.fold(least, usize::max)
        };
        let lower_width = width(
            LOWER,
            &mut ranges.iter().map(|range| bound(range.from).len()),
        );
        let upper_width = width(UPPER, &mut ranges.iter().map(|range| bound(range.to).len()));
        let count_width = width(
            COUNT,
            &mut ranges.iter().map(|range| range.count.to_string().len()),
        );
        writeln!(out, "# {}: {}\n#", self.title(), self.summary())?;
        let heading = RightAligned("Range", lower_width).to_string();
        writeln!(
            out,
            "{heading}    {} : {} Distribution",
            LeftAligned("", upper_width),
            LeftAligned("Count", count_width)
        )?;
        for range in &ranges {
            let length = range
                .count
                .saturating_mul(BAR)
                .div_ceil(largest_count.unwrap_or(1).max(1));
            let bar = "#".repeat(usize::try_from(length).unwrap_or_default());
            writeln!(
                out,
                "{} -> {} : {} |{}|",
                RightAligned(&bound(range.from), lower_width),
                LeftAligned(&bound(range.to), upper_width),
                LeftAligned(&range.count.to_string(), count_width),
                LeftAligned(&bar, BAR as usize),
            )?;
        }
        Ok(())
    }

    /// Writes summary and ranges as a JSON document and a newline. The bounds of ranges are inclusive; the first range has no
    /// lower bound and the last one no upper bound (`null`). Without values, all numbers of the summary but `count` are `null`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let summary = self.histogram.summary();
        let of_summary =
            |part: fn(&ValueSummary) -> i128| summary.as_ref().map(|all| number(part(all)));
        let range = |range: ValueRange| {
            json!({
                "from": range.from.map(number),
                "to": range.to.map(number),
                "count": range.count,
            })
        };
        let document = json!({
            "version": HISTOGRAM_JSON_VERSION,
            "event": self.event,
            "number": self.value_name,
            "unit": self.unit,
            "count": self.histogram.count(),
            "sum": of_summary(|all| all.sum),
            "mean": summary.map(|all| all.mean),
            "min": of_summary(|all| all.min),
            "max": of_summary(|all| all.max),
            "p50": of_summary(|all| all.percentiles[0]),
            "p90": of_summary(|all| all.percentiles[1]),
            "p99": of_summary(|all| all.percentiles[2]),
            "ranges": self.histogram.ranges().map(range).collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }
}

/// A JSON integer; a float if more than 64 bits are needed.
#[expect(
    clippy::cast_precision_loss,
    reason = "JSON's numbers are floats for most readers"
)]
fn number(number: i128) -> Value {
    let signed = i64::try_from(number).map(Value::from);
    let unsigned = || u64::try_from(number).map(Value::from);
    signed
        .or_else(|_| unsigned())
        .unwrap_or_else(|_| Value::from(number as f64))
}

#[cfg(test)]
mod tests {
    use rperf_analysis::power_edges;

    use super::*;

    fn histogram() -> ValueHistogram {
        let mut histogram = ValueHistogram::new(power_edges(4, 1000));
        let numbers = (0..40).map(|_| 20).chain([-3, 0, 5]);
        numbers.for_each(|number| histogram.add(number));
        // Merges the empty ranges from 64 on.
        histogram.trim();
        histogram
    }

    #[test]
    fn ranges_have_bars() {
        let histogram = histogram();
        let view = HistogramView {
            event: "net:net_dev_xmit",
            value_name: "len",
            unit: "",
            histogram: &histogram,
        };
        let mut out = Vec::new();
        view.write_text(&mut out)
            .expect("writing to memory succeeds");
        let bar = |count: usize| format!("|{:<38}|", "#".repeat(count));
        let expected = [
            "# net:net_dev_xmit len: 43 values, mean 18.7, min -3, median 20, p90 20, p99 20, max 20".to_owned(),
            "#".to_owned(),
            "        Range              : Count    Distribution".to_owned(),
            format!("              -> -1        : 1        {}", bar(1)),
            format!("            0 -> 0         : 1        {}", bar(1)),
            format!("            1 -> 3         : 0        {}", bar(0)),
            format!("            4 -> 15        : 1        {}", bar(1)),
            format!("           16 -> 63        : 40       {}", bar(38)),
            format!("           64 ->           : 0        {}", bar(0)),
        ];
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn json_has_bounds_and_summary() {
        let histogram = histogram();
        let view = HistogramView {
            event: "e",
            value_name: "latency",
            unit: "us",
            histogram: &histogram,
        };
        let mut out = Vec::new();
        view.write_json(&mut out)
            .expect("writing to memory succeeds");
        let json: Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(
            json["ranges"][0],
            json!({"from": null, "to": -1, "count": 1})
        );
        assert_eq!(json["ranges"][5]["to"], Value::Null);
        assert_eq!(
            (&json["unit"], &json["max"], &json["count"]),
            (&json!("us"), &json!(20), &json!(43))
        );
        assert_eq!(number(i128::from(u64::MAX)), json!(u64::MAX));
    }
}
