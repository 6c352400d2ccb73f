//! Formats tables: title, rows, times.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use clap::ArgMatches;
use rperf_count::{Aggregation, Aggregator, CountRow, CountState, CountTable};
use rperf_session::Target;
use rperf_sys::thousands_separator;
use rperf_view::stat::{
    Footer, StatFormat, StatPrefix, StatStyle, Times, write_footer, write_heading, write_metrics,
    write_table, write_title,
};

use super::plan::StatPlan;
use crate::cli::context::Context;
use crate::cli::options::flag;

/// The number of intervals after which the heading is repeated.
const HEADING_EVERY: u64 = 25;

/// The subject of tables.
#[derive(Clone, Copy)]
pub(super) struct TableSubject<'a> {
    /// What was counted: a description of the target, or the recorded command line.
    pub(super) title: &'a str,
    /// The aggregation of rows.
    pub(super) by: Aggregation,
    /// Names of threads by tid, for aggregation by thread.
    pub(super) threads: &'a BTreeMap<u32, String>,
    /// Whether the rows of the final table may be marked `summary` in CSV: intervals were printed before it; always false
    /// in `stat report`.
    pub(super) may_be_summary: bool,
}

/// The format of tables.
pub(super) struct TableFormat {
    separator: Option<String>,
    json: bool,
    /// The separator of thousands; empty for none.
    thousands: String,
    /// Whether final tables with [`TableSubject::may_be_summary`] are marked (unless `--no-csv-summary` is given).
    marks_summary: bool,
    /// Whether each interval is shown on a cleared screen (`--interval-clear`).
    clear: bool,
    /// Whether the time of each run is shown below the final table (`--table`).
    runs_table: bool,
    /// If only metrics are shown: the metrics of the heading that was printed last; empty if a heading has to be printed.
    last_metrics: Option<RefCell<Vec<String>>>,
}

impl TableFormat {
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Self {
        let separator = matches.get_one::<String>("field-separator");
        let big_num = flag(matches, "big-num").or_else(|| context.config.flag("stat.big-num"));
        let has_thousands = big_num != Some(false) && has_locale(context);
        let no_summary_mark = flag(matches, "no-csv-summary");
        let no_summary_mark =
            no_summary_mark.or_else(|| context.config.flag("stat.no-csv-summary"));
        Self {
            // A backslash and a t on the command line mean a tab.
            separator: separator.map(|text| {
                if text == "\\t" {
                    "\t".to_owned()
                } else {
                    text.clone()
                }
            }),
            json: flag(matches, "json-output") == Some(true),
            thousands: if has_thousands {
                thousands_separator()
            } else {
                String::new()
            },
            marks_summary: no_summary_mark != Some(true),
            clear: flag(matches, "interval-clear") == Some(true),
            runs_table: flag(matches, "table") == Some(true),
            last_metrics: shows_only_metrics(matches).then(RefCell::default),
        }
    }

    /// Whether the format is CSV or JSON.
    pub(super) fn is_for_programs(&self) -> bool {
        self.json || self.separator.is_some()
    }

    fn format(&self) -> StatFormat<'_> {
        match &self.separator {
            _ if self.json => StatFormat::Json,
            Some(separator) => StatFormat::Csv { separator },
            None => StatFormat::Text {
                thousands: &self.thousands,
            },
        }
    }

    /// Whether each interval is shown on a cleared screen.
    pub(super) fn clears_screen(&self) -> bool {
        self.clear
    }

    /// Returns the text of an interval that ended at `time`; `number` counts intervals from 0.
    pub(super) fn interval_table(
        &self,
        subject: TableSubject<'_>,
        number: u64,
        time: Duration,
        table: &CountTable,
    ) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let needs_heading =
            !self.is_for_programs() && (self.clear || number.is_multiple_of(HEADING_EVERY));
        match &self.last_metrics {
            Some(last_metrics) if needs_heading => last_metrics.borrow_mut().clear(),
            None if needs_heading => write_heading(&mut out, subject.by)?,
            _ => {}
        }
        self.rows(
            &mut out,
            table,
            &self.style(subject, StatPrefix::Time(time)),
        )?;
        Ok(out)
    }

    /// Returns the text of the final table. `runs` are the elapsed times of the runs, for `--table` (`table.runs` is a number).
    pub(super) fn final_table(
        &self,
        subject: TableSubject<'_>,
        table: &CountTable,
        times: Times,
        runs: &[Duration],
    ) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let prefix = match subject.may_be_summary && self.marks_summary {
            true => StatPrefix::Summary,
            false => StatPrefix::None,
        };
        let style = self.style(subject, prefix);
        if self.is_for_programs() {
            self.rows(&mut out, table, &style)?;
            return Ok(out);
        }
        write_title(&mut out, subject.title, table.runs)?;
        self.rows(&mut out, table, &style)?;
        let footer = Footer {
            times,
            below_rows: !table.rows.is_empty(),
            listed_runs: self.runs_table.then_some(runs),
        };
        write_footer(&mut out, &footer)?;
        Ok(out)
    }

    /// Writes all rows, or the metrics only.
    fn rows(&self, out: &mut Vec<u8>, table: &CountTable, style: &StatStyle<'_>) -> io::Result<()> {
        match &self.last_metrics {
            Some(last_metrics) => write_metrics(out, table, style, &mut last_metrics.borrow_mut()),
            None => write_table(out, table, style),
        }
    }

    fn style<'a>(&'a self, subject: TableSubject<'a>, prefix: StatPrefix) -> StatStyle<'a> {
        StatStyle {
            format: self.format(),
            by: subject.by,
            threads: subject.threads,
            prefix,
        }
    }
}

/// Whether only metrics are shown: `--metric-only`, which `--topdown` implies unless `--no-metric-only` is given.
fn shows_only_metrics(matches: &ArgMatches) -> bool {
    let on = |id| flag(matches, id);
    on("metric-only").unwrap_or(on("topdown") == Some(true))
}

/// Returns the table of counts, with metrics. With `-a --per-thread`, only rows with a count, in descending order.
pub(super) fn table(plan: &StatPlan, aggregator: &Aggregator<'_>) -> CountTable {
    let mut table = aggregator.table();
    plan.metrics.compute(&plan.specs(), &mut table);
    // All threads of all processes, each with counters of its own; `-a` alone is `Target::Cpus`.
    if plan.request.target == Target::Everyone {
        busiest_first(&mut table);
    }
    table
}

/// Drops rows whose count is zero or missing, and sorts the rows of each event by count in descending order.
fn busiest_first(table: &mut CountTable) {
    let value = |row: &CountRow| match row.state {
        CountState::Counted(value) => value.value,
        _ => 0.0,
    };
    table.rows.retain(|row| value(row) > 0.0);
    table.rows.sort_by(|one, other| {
        let by_event = one.event.cmp(&other.event);
        by_event.then(value(other).total_cmp(&value(one)))
    });
}

/// Whether the environment selects a locale other than C or POSIX.
fn has_locale(context: &Context) -> bool {
    let names = ["LC_ALL", "LC_NUMERIC", "LANG"];
    let name = names.into_iter().find_map(|name| context.var(name));
    // `C.UTF-8` formats numbers like `C`.
    let is_plain = |name: &str| name == "C" || name == "POSIX" || name.starts_with("C.");
    name.is_some_and(|name| !is_plain(&name.to_string_lossy()))
}
