//! `diff` of files of `stat record`: counts of events, their means and the confidence intervals of their differences.

use std::io::{self, Write};

use rperf_hist::Estimate;
use serde_json::{Value, json};

use super::{DIFF_JSON_VERSION, DiffLayout, escaped_name};
use crate::table::{Cell, Column, Table, TextStyle};

/// The counts or rates of an event in one of the two groups of files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventValues {
    /// The event's name.
    pub event: String,
    /// The unit; may be empty.
    pub unit: String,
    /// The count of each run, or the rate of each interval.
    pub values: Vec<f64>,
}

/// What each of the [`EventValues::values`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountObservation {
    /// The total count of a run.
    Run,
    /// The count per second in an interval of one run.
    Interval,
}

/// An event in both groups.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCount {
    /// Values of the baseline; not empty.
    pub baseline: EventValues,
    /// Values of the other group; not empty.
    pub other: EventValues,
}

/// Pairs the events of two groups by name, in the order of the baseline. Events that lack values in one of the groups are
/// skipped.
#[must_use]
pub fn compare_counts(baseline: &[EventValues], other: &[EventValues]) -> Vec<ComparedCount> {
    let pairs = baseline.iter().filter_map(|values| {
        let other_values = other.iter().find(|other| other.event == values.event)?;
        let has_values = !values.values.is_empty() && !other_values.values.is_empty();
        has_values.then(|| ComparedCount {
            baseline: values.clone(),
            other: other_values.clone(),
        })
    });
    pairs.collect()
}

impl EventValues {
    /// The mean; 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }

    /// The standard deviation of the values; `None` for fewer than two.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = self
            .values
            .len()
            .checked_sub(1)
            .filter(|freedom| *freedom > 0)?;
        Some((squares / freedom as f64).sqrt())
    }
}

impl ComparedCount {
    /// The difference of the means.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.other.mean() - self.baseline.mean()
    }

    /// The difference in percent of the baseline's mean; `None` if that mean is 0.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        self.in_percent(self.difference())
    }

    /// Half the width of the 95 % confidence interval of the difference (Welch's t-test); `None` if a group has fewer than two
    /// values.
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        let groups = [&self.baseline.values, &self.other.values];
        let has_variance = groups.iter().all(|values| values.len() > 1);
        let [before, after] = groups.map(|values| Estimate::of(values));
        has_variance.then(|| before.margin_of_difference(&after))
    }

    /// Whether the confidence interval of the difference excludes 0; `None` without one.
    #[must_use]
    pub fn is_significant(&self) -> Option<bool> {
        Some(self.difference().abs() > self.margin()?)
    }

    /// Returns a difference, or its margin, in percent of the baseline's mean; `None` if that mean is 0.
    fn in_percent(&self, part: f64) -> Option<f64> {
        let mean = self.baseline.mean();
        (mean != 0.0).then(|| 100.0 * part / mean.abs())
    }
}

/// The table of two groups.
#[derive(Debug, Clone, Copy)]
pub struct CountsView<'a> {
    /// The names of the files of each group.
    pub files: [&'a [String]; 2],
    /// What each value is.
    pub kind: CountObservation,
    /// The events.
    pub rows: &'a [ComparedCount],
    /// Whether the text omits events whose difference has a confidence interval and is not significant.
    pub only_significant: bool,
}

impl CountsView<'_> {
    /// Writes the table as text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, out: &mut dyn Write, layout: &DiffLayout) -> io::Result<()> {
        let is_hidden =
            |row: &&ComparedCount| self.only_significant && row.is_significant() == Some(false);
        let table = self.table(layout, |row| !is_hidden(&row));
        let hidden = self.rows.iter().filter(is_hidden).count();
        if let Some(separator) = &layout.separator {
            let with_titles = !layout.quiet;
            return table.write_separated(out, separator, with_titles);
        }
        let style = TextStyle {
            rule: true,
            colors: layout.colors,
            ..TextStyle::PLAIN
        };
        if layout.quiet {
            return table.write_rows(out, style);
        }
        writeln!(out, "# {}\n#", self.heading())?;
        table.write_text(out, style)?;
        match hidden {
            0 => Ok(()),
            hidden => writeln!(
                out,
                "#\n# Events that are not shown because their difference is not significant: {hidden} (--all shows them)"
            ),
        }
    }

    /// The heading: the kind and number of the values, and the kind of interval if any difference has one.
    fn heading(&self) -> String {
        // Some events may have fewer values than others.
        let most_values = |group: fn(&ComparedCount) -> &EventValues| {
            let counts = self.rows.iter().map(|row| group(row).values.len());
            counts.max().unwrap_or_default()
        };
        let (before, after) = (
            most_values(|row| &row.baseline),
            most_values(|row| &row.other),
        );
        let interval = match self.has_margins() {
            true => "; 95% confidence interval of the difference (Welch's t)",
            false => "",
        };
        match self.kind {
            CountObservation::Run if before == 1 && after == 1 => {
                "Counts of one run each".to_owned()
            }
            CountObservation::Run => {
                format!("Mean counts of {before} and {after} runs{interval}")
            }
            CountObservation::Interval => {
                format!("Mean counts per second in {before} and {after} intervals{interval}")
            }
        }
    }

    /// Whether the difference of any event has a confidence interval.
    fn has_margins(&self) -> bool {
        self.rows.iter().any(|row| row.margin().is_some())
    }

    fn table(&self, layout: &DiffLayout, is_shown: impl Fn(&ComparedCount) -> bool) -> Table {
        let has_margins = self.has_margins();
        let number_titles = ["Baseline", "Spread", "New", "Spread", "Delta", "95% CI"];
        let titles = number_titles
            .iter()
            .filter(|title| has_margins || !matches!(**title, "Spread" | "95% CI"));
        let mut columns: Vec<Column> = titles.map(|title| Column::right(*title)).collect();
        if has_margins {
            columns.push(Column::left("Sig"));
        }
        columns.push(Column::left("Event"));
        let mut table = Table::new(columns);
        for row in self.rows.iter().filter(|row| is_shown(row)) {
            let percent = |part: Option<f64>| part.and_then(|part| row.in_percent(part));
            // The standard deviation in percent of the mean; `spread` of the JSON document is the deviation itself.
            let spread = |group: &EventValues| {
                let deviation = group.standard_deviation().filter(|_| group.mean() != 0.0);
                let spread = deviation.map(|deviation| 100.0 * deviation / group.mean().abs());
                Cell::from(spread.map_or(String::new(), |spread| format!("+-{spread:.2}%")))
            };
            let delta = percent(Some(row.difference()));
            let delta = delta.map_or_else(|| "N/A".to_owned(), |delta| format!("{delta:+.2}%"));
            let name = match &*row.baseline.unit {
                "" => row.baseline.event.clone(),
                unit => format!("{} ({unit})", row.baseline.event),
            };
            let name = escaped_name(&name, layout).into_owned();
            let mut cells: Vec<Cell> = vec![count(row.baseline.mean()).into()];
            if has_margins {
                cells.push(spread(&row.baseline));
            }
            cells.push(count(row.other.mean()).into());
            if has_margins {
                cells.push(spread(&row.other));
            }
            cells.push(delta.into());
            if has_margins {
                let margin = percent(row.margin());
                let margin = margin.map_or(String::new(), |margin| format!("+-{margin:.2}%"));
                let is_significant = row.is_significant() == Some(true);
                let mark = if is_significant { "*" } else { "" };
                cells.push(margin.into());
                cells.push(mark.into());
            }
            cells.push(name.into());
            table.push(cells);
        }
        table
    }

    /// Writes the comparison as one JSON document and a newline.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let group = |values: &EventValues| {
            json!({
                "mean": values.mean(),
                "spread": values.standard_deviation(),
                "values": values.values,
            })
        };
        let row = |row: &ComparedCount| {
            json!({
                "event": row.baseline.event,
                "unit": row.baseline.unit,
                "baseline": group(&row.baseline),
                "new": group(&row.other),
                "delta": row.difference(),
                "percent": row.percent(),
                "margin": row.margin(),
                "significant": row.is_significant(),
            })
        };
        let [baseline, other] = self.files;
        let document = json!({
            "version": DIFF_JSON_VERSION,
            "baseline": baseline,
            "new": other,
            "confidence": 0.95,
            "values": match self.kind {
                CountObservation::Run => "counts",
                CountObservation::Interval => "counts per second",
            },
            "counts": self.rows.iter().map(row).collect::<Vec<Value>>(),
        });
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }
}

/// Formats a mean count: integers and values from 1000 on without decimals, others with two.
fn count(value: f64) -> String {
    match value.fract() == 0.0 || value.abs() >= 1000.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(event: &str, values: &[f64]) -> EventValues {
        EventValues {
            event: event.to_owned(),
            unit: String::new(),
            values: values.to_vec(),
        }
    }

    fn text(baseline: &[EventValues], other: &[EventValues], only_significant: bool) -> String {
        let rows = compare_counts(baseline, other);
        let view = CountsView {
            files: [&[], &[]],
            kind: CountObservation::Run,
            rows: &rows,
            only_significant,
        };
        let mut out = Vec::new();
        view.write_text(&mut out, &DiffLayout::default())
            .expect("writing to memory succeeds");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn single_runs_have_no_intervals_and_events_of_one_group_are_skipped() {
        let before = [
            values("faults", &[100.0]),
            values("gone", &[1.0]),
            values("none", &[0.0]),
        ];
        let after = [values("none", &[5.0]), values("faults", &[150.0])];
        let only_significant = false;
        let table = text(&before, &after, only_significant);
        let lines: Vec<&str> = table.lines().map(str::trim_end).collect();
        let expected = [
            "# Counts of one run each",
            "#",
            "# Baseline  New    Delta  Event",
            "# ........  ...  .......  ......",
            "#",
            "       100  150  +50.00%  faults",
            "         0    5      N/A  none",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn insignificant_changes_are_omitted_on_request() {
        let before = [
            values("grown", &[10.0, 10.1, 9.9]),
            values("noise", &[1.0, 9.0, 5.0]),
        ];
        let after = [
            values("grown", &[20.0, 20.2, 19.8]),
            values("noise", &[2.0, 9.5, 6.0]),
        ];
        let only_significant = true;
        let shown = text(&before, &after, only_significant);
        assert!(
            shown.contains("+100.00%") && shown.contains("*    grown"),
            "{shown}"
        );
        assert!(
            !shown.contains("noise") && shown.contains("not significant: 1 ("),
            "{shown}"
        );
        let all = text(&before, &after, !only_significant);
        assert!(all.contains("noise") && !all.contains("not shown"), "{all}");
        let rows = compare_counts(&before, &after);
        assert_eq!(rows[0].is_significant(), Some(true));
        assert_eq!(rows[1].is_significant(), Some(false));
        let spread = rows[0].baseline.standard_deviation().expect("three values");
        // 0.1 but for rounding.
        assert!((spread - 0.1).abs() < 1e-12, "{spread}");
    }
}
