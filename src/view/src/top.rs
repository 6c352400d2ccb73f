//! `top --stdio`: the line over the rows, and the rows, in the layout of perf 6.1.

use std::fmt;
use std::io::{self, Write};

use rperf_hist::{Histogram, Row};
use serde_json::{Value, json};

use crate::report::{Layout, write_rows};
use crate::terminal::{Csi, escaped};

/// What is told of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Status<'a> {
    /// Samples in a second.
    pub per_second: f64,
    /// Percent of them in the kernel.
    pub kernel: f64,
    /// Percent of them whose instruction is known exactly.
    pub exact: f64,
    /// Records that found no room, in the interval and in all.
    pub lost: (u64, u64),
    /// Samples that were not counted, in the interval and in all.
    pub dropped: (u64, u64),
    /// Whose rows these are.
    pub event: EventRate<'a>,
    /// Whom they are of: `all, 2 CPUs`.
    pub scope: &'a str,
}

/// An event, and how often it is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRate<'a> {
    /// Its name.
    pub name: &'a str,
    /// How often, where that is told.
    pub rate: Option<Rate>,
}

/// How often an event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// So often a second.
    Hertz(u64),
    /// Once every so many.
    Every(u64),
}

impl fmt::Display for EventRate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(Rate::Hertz(rate)) => write!(f, "{rate}Hz {}", self.name),
            Some(Rate::Every(period)) => write!(f, "{period} {}", self.name),
            None => f.write_str(self.name),
        }
    }
}

impl fmt::Display for Status<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "   PerfTop:{:8.0} irqs/sec  kernel:{:4.1}%  exact: {:4.1}% lost: {}/{} drop: {}/{} [{}],  ({})",
            self.per_second,
            self.kernel,
            self.exact,
            self.lost.0,
            self.lost.1,
            self.dropped.0,
            self.dropped.1,
            self.event,
            self.scope
        )
    }
}

/// Which rows there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Most rows.
    pub rows: usize,
    /// Samples that a row needs to be shown.
    pub samples: u64,
    /// Lines, those of call graphs too, and columns of a screen; `None` where there is no end of them.
    pub screen: Option<(usize, usize)>,
}

/// Writes the first rows, without titles; columns are as wide as these need.
pub fn write_first_rows(
    out: &mut dyn Write,
    histogram: &Histogram,
    layout: &Layout,
    room: Room,
) -> io::Result<()> {
    let part = first_rows(histogram, room);
    let Some((lines, columns)) = room.screen else {
        return write_rows(out, &part, layout);
    };
    let mut text = Vec::new();
    write_rows(&mut text, &part, layout)?;
    let text = String::from_utf8_lossy(&text);
    for line in text.lines().take(lines) {
        write_cut(out, line, columns, layout.colors)?;
    }
    Ok(())
}

/// Writes a line, as much of it as so many columns of a terminal show. Control characters are escaped, but those of `colors`.
pub fn write_cut(
    out: &mut dyn Write,
    line: &str,
    columns: usize,
    colors: Option<Csi>,
) -> io::Result<()> {
    writeln!(out, "{}", cut(line, columns, colors))
}

/// A histogram with no more rows than there is room for.
#[must_use]
pub fn first_rows(histogram: &Histogram, room: Room) -> Histogram {
    let rows = histogram.rows.iter();
    let shown = rows.filter(|row| row.weights.samples >= room.samples);
    Histogram {
        rows: shown.take(room.rows).map(Row::clone).collect(),
        events: histogram.events.clone(),
        wholes: histogram.wholes.clone(),
        columns: histogram.columns.clone(),
        ..*histogram
    }
}

/// The part of a line that takes so many columns. Colours of our own take none, and end with the line; other control
/// characters take what they are escaped to.
fn cut(line: &str, columns: usize, colors: Option<Csi>) -> String {
    let (mut kept, mut taken, mut painted) = (String::with_capacity(line.len()), 0, None);
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let (first, behind) = rest.split_at(letter.len_utf8());
        let color = colors.and_then(|csi| Some((csi, csi.behind_sequence(rest)?)));
        if let Some((csi, behind)) = color {
            kept.push_str(rest.strip_suffix(behind).unwrap_or_default());
            (painted, rest) = (Some(csi), behind);
            continue;
        }
        for letter in escaped(first).chars() {
            if taken == columns {
                return match painted {
                    Some(csi) => format!("{kept}{csi}m"),
                    None => kept,
                };
            }
            kept.push(letter);
            taken += 1;
        }
        rest = behind;
    }
    kept
}

/// Writes an object: when (seconds since 1970) and of what the interval is, with the share of one CPU that observing it
/// took, and its first rows.
pub fn write_json(
    out: &mut dyn Write,
    time: i64,
    (status, own_cost): (&Status<'_>, f64),
    (histogram, room): (&Histogram, Room),
) -> io::Result<()> {
    let whole = histogram.whole();
    let rows = histogram.rows.iter();
    let shown = rows.filter(|row| row.weights.samples >= room.samples);
    let rows: Vec<Value> = shown
        .take(room.rows)
        .map(|row| json_row(row, histogram, whole.period))
        .collect();
    let object = json!({
        "time": time,
        "event": status.event.name,
        "scope": status.scope,
        "samples_per_second": rounded(status.per_second),
        "kernel_percent": rounded(status.kernel),
        "lost": status.lost.0,
        "lost_total": status.lost.1,
        "own_cpu_percent": rounded(own_cost),
        "period": whole.period,
        "rows": rows,
    });
    writeln!(out, "{object}")
}

fn json_row(row: &Row, histogram: &Histogram, whole: u64) -> Value {
    let share = |part: u64| rounded(part as f64 * 100.0 / (whole.max(1)) as f64);
    let mut object = serde_json::Map::new();
    let weights = &row.weights;
    object.insert("overhead_percent".to_owned(), json!(share(weights.own)));
    if histogram.children {
        object.insert("children_percent".to_owned(), json!(share(weights.total)));
    }
    object.insert("samples".to_owned(), json!(weights.samples));
    object.insert("period".to_owned(), json!(weights.own));
    let keys = histogram.columns.iter().filter_map(|field| field.key());
    for (key, cell) in keys.zip(&row.cells) {
        object.insert(key.name.to_owned(), json!(cell.trim()));
    }
    Value::Object(object)
}

/// To two decimals.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_what_is_seen_of_them() {
        let painted = |line, columns| cut(line, columns, Some(Csi::PLAIN));
        assert_eq!(painted("abc", 3), "abc");
        assert_eq!(painted("abcd", 3), "abc");
        assert_eq!(painted("\x1b[31mäb\x1b[m", 2), "\x1b[31mäb\x1b[m");
        assert_eq!(painted("\x1b[31mäb\x1b[mc", 2), "\x1b[31mäb\x1b[m\x1b[m");
        assert_eq!(painted("\x1b[31mäb\x1b[m", 1), "\x1b[31mä\x1b[m");
    }

    #[test]
    fn names_have_no_colours() {
        let csi = Csi::marked();
        let line = format!("{csi}31m5%{csi}m a\x1b[31mb");
        let painted = format!("{csi}31m5%{csi}m");
        assert_eq!(cut(&line, 99, Some(csi)), format!("{painted} a\\x1b[31mb"));
        assert_eq!(cut(&line, 6, Some(csi)), format!("{painted} a\\x{csi}m"));
        assert_eq!(cut("a\x1b[31mb", 5, None), "a\\x1b");
    }

    #[test]
    fn the_line_is_perfs() {
        let mut status = Status {
            per_second: 114.4,
            kernel: 2.63,
            exact: 0.0,
            lost: (0, 0),
            dropped: (0, 0),
            event: EventRate {
                name: "cpu-clock:ppp",
                rate: Some(Rate::Hertz(499)),
            },
            scope: "target_pid: 29705",
        };
        assert_eq!(
            status.to_string(),
            "   PerfTop:     114 irqs/sec  kernel: 2.6%  exact:  0.0% lost: 0/0 drop: 0/0 [499Hz cpu-clock:ppp],  \
             (target_pid: 29705)"
        );
        status.per_second = 1_234_567.0;
        status.kernel = 100.0;
        status.event = EventRate {
            name: "cs",
            rate: Some(Rate::Every(1)),
        };
        status.lost = (3, 12);
        status.scope = "all, 2 CPUs";
        assert_eq!(
            status.to_string(),
            "   PerfTop: 1234567 irqs/sec  kernel:100.0%  exact:  0.0% lost: 3/12 drop: 0/0 [1 cs],  (all, 2 CPUs)"
        );
    }
}
