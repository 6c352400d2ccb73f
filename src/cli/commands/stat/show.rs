//! Tables put together: title, rows, times.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use clap::ArgMatches;
use rperf_count::{Aggregation, Row, Sheet, State, Table};
use rperf_session::Target;
use rperf_sys::thousands_separator;
use rperf_view::stat::{
    Footer, Format, Prefix, Style, Times, write_footer, write_heading, write_metrics, write_table,
    write_title,
};

use super::plan::Plan;
use crate::cli::context::Context;
use crate::cli::options::flag;

/// Intervals below one heading.
const HEADING_EVERY: u64 = 25;

/// What tables are about.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    /// Whom they are about.
    pub(super) title: &'a str,
    /// What rows are of.
    pub(super) by: Aggregation,
    /// Names of the threads that rows are of.
    pub(super) threads: &'a BTreeMap<u32, String>,
    /// Whether there is a table for each interval.
    pub(super) in_intervals: bool,
}

/// How tables look.
pub(super) struct Look {
    separator: Option<String>,
    json: bool,
    thousands: String,
    /// Whether CSV calls the rows of everything `summary`.
    name_summary: bool,
    clear: bool,
    runs_table: bool,
    /// The names of metrics that were shown last, where these are shown alone.
    metrics: Option<RefCell<Vec<String>>>,
}

impl Look {
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Self {
        let separator = matches.get_one::<String>("field-separator");
        let asked = flag(matches, "big-num").or_else(|| context.config.flag("stat.big-num"));
        let wanted = asked != Some(false) && has_locale(context);
        Self {
            // A backslash and a t is what users can type.
            separator: separator.map(|text| {
                if text == "\\t" {
                    "\t".to_owned()
                } else {
                    text.clone()
                }
            }),
            json: flag(matches, "json-output") == Some(true),
            thousands: if wanted {
                thousands_separator()
            } else {
                String::new()
            },
            name_summary: flag(matches, "no-csv-summary") != Some(true),
            clear: flag(matches, "interval-clear") == Some(true),
            runs_table: flag(matches, "table") == Some(true),
            metrics: is_metrics_alone(matches).then(RefCell::default),
        }
    }

    /// Whether programs read it.
    pub(super) fn is_for_programs(&self) -> bool {
        self.json || self.separator.is_some()
    }

    fn format(&self) -> Format<'_> {
        match &self.separator {
            _ if self.json => Format::Json,
            Some(separator) => Format::Csv { separator },
            None => Format::Text {
                thousands: &self.thousands,
            },
        }
    }

    /// Whether each interval is shown on a cleared screen.
    pub(super) fn clears(&self) -> bool {
        self.clear
    }

    /// One interval, the `number`th from 0 on, that ended at `time`.
    pub(super) fn interval(
        &self,
        subject: Subject<'_>,
        (number, time): (u64, Duration),
        table: &Table,
    ) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let anew = !self.is_for_programs() && (self.clear || number.is_multiple_of(HEADING_EVERY));
        match &self.metrics {
            Some(shown) if anew => shown.borrow_mut().clear(),
            None if anew => write_heading(&mut out, subject.by)?,
            _ => {}
        }
        self.rows(&mut out, table, &self.style(subject, Prefix::Time(time)))?;
        Ok(out)
    }

    /// The table of everything.
    pub(super) fn whole(
        &self,
        subject: Subject<'_>,
        table: &Table,
        times: Times,
        runs: &[Duration],
    ) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let prefix = match subject.in_intervals && self.name_summary {
            true => Prefix::Summary,
            false => Prefix::None,
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
            runs: self.runs_table.then_some(runs),
        };
        write_footer(&mut out, &footer)?;
        Ok(out)
    }

    /// All rows, or what follows from them.
    fn rows(&self, out: &mut Vec<u8>, table: &Table, style: &Style<'_>) -> io::Result<()> {
        match &self.metrics {
            Some(shown) => write_metrics(out, table, style, &mut shown.borrow_mut()),
            None => write_table(out, table, style),
        }
    }

    fn style<'a>(&'a self, subject: Subject<'a>, prefix: Prefix) -> Style<'a> {
        Style {
            format: self.format(),
            by: subject.by,
            threads: subject.threads,
            prefix,
        }
    }
}

/// `--metric-only`, which `--topdown` implies.
fn is_metrics_alone(matches: &ArgMatches) -> bool {
    let on = |id| flag(matches, id);
    on("metric-only").unwrap_or(on("topdown") == Some(true))
}

/// The table of everything that was counted.
pub(super) fn table(plan: &Plan, sheet: &Sheet<'_>) -> Table {
    let mut table = sheet.table();
    plan.metrics.compute(&plan.specs(), &mut table);
    if plan.request.target == Target::Everyone {
        busiest_first(&mut table);
    }
    table
}

/// Of all threads of the system those that something was counted in, those with most first.
fn busiest_first(table: &mut Table) {
    let value = |row: &Row| match row.state {
        State::Counted(value) => value.value,
        _ => 0.0,
    };
    table.rows.retain(|row| value(row) > 0.0);
    table.rows.sort_by(|one, other| {
        let by_event = one.event.cmp(&other.event);
        by_event.then(value(other).total_cmp(&value(one)))
    });
}

/// Whether the environment names a locale other than that of programs.
fn has_locale(context: &Context) -> bool {
    let names = ["LC_ALL", "LC_NUMERIC", "LANG"];
    let name = names.into_iter().find_map(|name| context.var(name));
    // `C.UTF-8` has the numbers of `C`.
    let is_plain = |name: &str| name == "C" || name == "POSIX" || name.starts_with("C.");
    name.is_some_and(|name| !is_plain(&name.to_string_lossy()))
}
