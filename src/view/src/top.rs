//! The status line and the rows of `top`, as text in the layout of perf 6.1 or as JSON (`--json`).

use std::fmt;
use std::io::{self, Write};

use rperf_hist::{Histogram, HistogramRow};
use serde_json::{Value, json};

use crate::report::{ReportLayout, write_rows};
use crate::terminal::{Csi, escaped};

/// The version of the objects of `--json`. It changes when a member is removed or changes its meaning; new
/// members may be added at any time.
const JSON_VERSION: u32 = 1;

/// The status of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalStatus<'a> {
    /// Samples per second.
    pub samples_per_second: f64,
    /// Percentage of samples in the kernel.
    pub kernel_percent: f64,
    /// Percentage of samples with an exact instruction address.
    pub exact_percent: f64,
    /// Records lost, in the interval and in total.
    pub lost: (u64, u64),
    /// Samples that could not be decoded, in the interval and in total; `drop` in the status line.
    pub damaged: (u64, u64),
    /// The event or group of the rows.
    pub event: EventLabel<'a>,
    /// The target: `all, 2 CPUs`.
    pub scope: &'a str,
}

/// An event with its sampling rate, or a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLabel<'a> {
    /// The name of the event, or the names of a group's events.
    pub name: &'a str,
    /// The sampling rate, if shown.
    pub rate: Option<DisplayedRate>,
}

/// A sampling rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisplayedRate {
    /// Samples per second.
    Hertz(u64),
    /// The period: one sample per this number of events.
    Every(u64),
}

impl fmt::Display for EventLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(DisplayedRate::Hertz(rate)) => write!(f, "{rate}Hz {}", self.name),
            Some(DisplayedRate::Every(period)) => write!(f, "{period} {}", self.name),
            None => f.write_str(self.name),
        }
    }
}

impl fmt::Display for IntervalStatus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "   PerfTop:{:8.0} irqs/sec  kernel:{:4.1}%  exact: {:4.1}% lost: {}/{} drop: {}/{} [{}],  ({})",
            self.samples_per_second,
            self.kernel_percent,
            self.exact_percent,
            self.lost.0,
            self.lost.1,
            self.damaged.0,
            self.damaged.1,
            self.event,
            self.scope
        )
    }
}

/// Limits of the rows shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLimits {
    /// Maximum number of rows.
    pub max_rows: usize,
    /// Minimum number of samples of a row.
    pub min_samples: u64,
    /// Lines (including call graphs) and columns of the screen; `None` if unlimited.
    pub screen: Option<(usize, usize)>,
}

/// Writes the first rows, without titles; columns are as wide as these rows need.
pub fn write_first_rows(
    out: &mut dyn Write,
    histogram: &Histogram,
    layout: &ReportLayout,
    limits: RowLimits,
) -> io::Result<()> {
    let part = first_rows(histogram, limits);
    let Some((lines, columns)) = limits.screen else {
        return write_rows(out, &part, layout);
    };
    let mut text = Vec::new();
    write_rows(&mut text, &part, layout)?;
    let text = String::from_utf8_lossy(&text);
    for line in text.lines().take(lines) {
        write_truncated(out, line, columns, layout.colors)?;
    }
    Ok(())
}

/// Writes a line truncated to `columns`. Control characters are escaped, except tabs and the sequences of
/// `colors`. Each character counts as one column, even a tab: callers expand those of source code.
pub fn write_truncated(
    out: &mut dyn Write,
    line: &str,
    columns: usize,
    colors: Option<Csi>,
) -> io::Result<()> {
    writeln!(out, "{}", truncated(line, columns, colors))
}

/// Returns a copy of the histogram with only the rows within `max_rows` and `min_samples`; the screen is not considered.
#[must_use]
pub fn first_rows(histogram: &Histogram, limits: RowLimits) -> Histogram {
    Histogram {
        rows: rows_within(histogram, limits).cloned().collect(),
        events: histogram.events.clone(),
        totals: histogram.totals.clone(),
        columns: histogram.columns.clone(),
        ..*histogram
    }
}

fn rows_within(histogram: &Histogram, limits: RowLimits) -> impl Iterator<Item = &HistogramRow> {
    let rows = histogram.rows.iter();
    let rows = rows.filter(move |row| row.weights.samples >= limits.min_samples);
    rows.take(limits.max_rows)
}

/// Truncates a line to a number of columns. Colour sequences take no columns, and a line that is truncated
/// after one of them gets a sequence that ends the colour. Other control characters except tabs take the
/// columns of their escapes.
fn truncated(line: &str, columns: usize, colors: Option<Csi>) -> String {
    let (mut text, mut width) = (String::with_capacity(line.len()), 0);
    // Set from the first colour sequence on, even if a later one ends the colour: to end it twice does no harm.
    let mut colored = None;
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let (first, after_first) = rest.split_at(letter.len_utf8());
        let color = colors.and_then(|csi| Some((csi, csi.after_sequence(rest)?)));
        if let Some((csi, after_color)) = color {
            text.push_str(rest.strip_suffix(after_color).unwrap_or_default());
            (colored, rest) = (Some(csi), after_color);
            continue;
        }
        for letter in escaped(first).chars() {
            if width == columns {
                return match colored {
                    Some(csi) => format!("{text}{csi}m"),
                    None => text,
                };
            }
            text.push(letter);
            width += 1;
        }
        rest = after_first;
    }
    text
}

/// An interval in JSON.
#[derive(Debug, Clone, Copy)]
pub struct JsonInterval<'a> {
    /// The end of the interval, in seconds since 1970.
    pub time: i64,
    /// Its status.
    pub status: &'a IntervalStatus<'a>,
    /// CPU use of `top` itself, in percent of one CPU.
    pub own_cpu: f64,
}

/// Writes a JSON object: the interval, and the first rows as for [`first_rows`]. The numbers of a group are those of its leader.
pub fn write_json(
    out: &mut dyn Write,
    interval: &JsonInterval<'_>,
    histogram: &Histogram,
    limits: RowLimits,
) -> io::Result<()> {
    let status = interval.status;
    let total = histogram.totals.first().copied().unwrap_or_default();
    let rows: Vec<Value> = rows_within(histogram, limits)
        .map(|row| json_row(row, histogram, total.period))
        .collect();
    let object = json!({
        "version": JSON_VERSION,
        "time": interval.time,
        "event": status.event.name,
        "scope": status.scope,
        "samples_per_second": rounded(status.samples_per_second),
        "kernel_percent": rounded(status.kernel_percent),
        "exact_percent": rounded(status.exact_percent),
        "lost": status.lost.0,
        "lost_total": status.lost.1,
        "damaged": status.damaged.0,
        "damaged_total": status.damaged.1,
        "own_cpu_percent": rounded(interval.own_cpu),
        "period": total.period,
        "rows": rows,
    });
    writeln!(out, "{object}")
}

fn json_row(row: &HistogramRow, histogram: &Histogram, total_period: u64) -> Value {
    let share = |period: u64| rounded(period as f64 * 100.0 / total_period.max(1) as f64);
    let mut object = serde_json::Map::new();
    let weights = &row.weights;
    object.insert("overhead_percent".to_owned(), json!(share(weights.own)));
    if histogram.children {
        object.insert("children_percent".to_owned(), json!(share(weights.total)));
    }
    object.insert("samples".to_owned(), json!(weights.samples));
    object.insert("period".to_owned(), json!(weights.own));
    // `cells` has only the texts of the columns that are keys; the numbers were inserted above.
    let keys = histogram.columns.iter().filter_map(|field| field.key());
    for (key, cell) in keys.zip(&row.cells) {
        object.insert(key.name.to_owned(), json!(cell.trim()));
    }
    Value::Object(object)
}

/// Rounds to two decimals.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_truncated_by_visible_width() {
        let colored = |line, columns| truncated(line, columns, Some(Csi::PLAIN));
        assert_eq!(colored("abc", 3), "abc");
        assert_eq!(colored("abcd", 3), "abc");
        assert_eq!(colored("\x1b[31mäb\x1b[m", 2), "\x1b[31mäb\x1b[m");
        assert_eq!(colored("\x1b[31mäb\x1b[mc", 2), "\x1b[31mäb\x1b[m\x1b[m");
        assert_eq!(colored("\x1b[31mäb\x1b[m", 1), "\x1b[31mä\x1b[m");
    }

    #[test]
    fn colours_in_names_are_escaped() {
        // The mark, random bytes, distinguishes rperf's own colour sequences from those in names.
        let csi = Csi::marked();
        let line = format!("{csi}31m5%{csi}m a\x1b[31mb");
        let colored = format!("{csi}31m5%{csi}m");
        assert_eq!(
            truncated(&line, 99, Some(csi)),
            format!("{colored} a\\x1b[31mb")
        );
        assert_eq!(
            truncated(&line, 6, Some(csi)),
            format!("{colored} a\\x{csi}m")
        );
        assert_eq!(truncated("a\x1b[31mb", 5, None), "a\\x1b");
    }

    #[test]
    fn the_status_line_is_that_of_perf() {
        let mut status = IntervalStatus {
            samples_per_second: 114.4,
            kernel_percent: 2.63,
            exact_percent: 0.0,
            lost: (0, 0),
            damaged: (0, 0),
            event: EventLabel {
                name: "cpu-clock:ppp",
                rate: Some(DisplayedRate::Hertz(499)),
            },
            scope: "target_pid: 29705",
        };
        assert_eq!(
            status.to_string(),
            "   PerfTop:     114 irqs/sec  kernel: 2.6%  exact:  0.0% lost: 0/0 drop: 0/0 [499Hz cpu-clock:ppp],  \
             (target_pid: 29705)"
        );
        status.samples_per_second = 1_234_567.0;
        status.kernel_percent = 100.0;
        status.event = EventLabel {
            name: "cs",
            rate: Some(DisplayedRate::Every(1)),
        };
        status.lost = (3, 12);
        status.scope = "all, 2 CPUs";
        assert_eq!(
            status.to_string(),
            "   PerfTop: 1234567 irqs/sec  kernel:100.0%  exact:  0.0% lost: 3/12 drop: 0/0 [1 cs],  (all, 2 CPUs)"
        );
    }

    #[test]
    fn json_has_all_numbers_of_the_status_line() {
        let status = IntervalStatus {
            samples_per_second: 114.4,
            kernel_percent: 2.63,
            exact_percent: 12.5,
            lost: (3, 12),
            damaged: (1, 2),
            event: EventLabel {
                name: "cs",
                rate: None,
            },
            scope: "all, 2 CPUs",
        };
        let interval = JsonInterval {
            time: 7,
            status: &status,
            own_cpu: 0.5,
        };
        let limits = RowLimits {
            max_rows: 1,
            min_samples: 0,
            screen: None,
        };
        let mut out = Vec::new();
        write_json(&mut out, &interval, &Histogram::default(), limits).unwrap();
        let object: Value = serde_json::from_slice(&out).unwrap();
        for (name, number) in [
            ("samples_per_second", 114.4),
            ("kernel_percent", 2.63),
            ("exact_percent", 12.5),
            ("lost", 3.0),
            ("lost_total", 12.0),
            ("damaged", 1.0),
            ("damaged_total", 2.0),
        ] {
            assert_eq!(object[name].as_f64(), Some(number), "{name}");
        }
    }
}
