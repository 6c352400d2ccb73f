//! Batch output for files and pipes: a block of lines, or a JSON object, for each interval and each event or group.

use std::io::{self, Write};

use rperf_sys::{unix_time, utc_offset};
use rperf_view::header::time_of_day;
use rperf_view::report::ReportLayout;
use rperf_view::top::{IntervalStatus, JsonInterval, RowLimits, write_first_rows, write_json};

use super::code::LiveCode;
use super::session::TopSession;

/// The minimum percentage of instructions to print; 0 prints all.
const ALL_INSTRUCTIONS: u8 = 0;

/// The settings of batch output.
pub(super) struct BatchOutput {
    pub(super) layout: ReportLayout,
    pub(super) limits: RowLimits,
    /// Whether JSON objects are written instead of text.
    pub(super) json: bool,
    /// If given, the annotation of the first watched function (`--sym-annotate`) is written instead of rows. Never with JSON.
    pub(super) code: Option<LiveCode>,
}

impl BatchOutput {
    /// Writes the last interval of every table, and flushes.
    pub(super) fn write(
        &mut self,
        out: &mut dyn Write,
        session: &mut TopSession,
    ) -> io::Result<()> {
        let now = i64::try_from(unix_time()).unwrap_or_default();
        for number in 0..session.table_count() {
            let Some((_, table)) = session.table(number) else {
                continue;
            };
            let histogram = table.histogram();
            if self.json {
                let own_cpu = session.interval().own_cpu;
                session.status(number, |status| {
                    let interval = JsonInterval {
                        time: now,
                        status: &status,
                        own_cpu,
                    };
                    write_json(out, &interval, histogram, self.limits)
                })?;
                continue;
            }
            session.status(number, |status| title(out, now, &status, session))?;
            if let Some(code) = &mut self.code {
                code.write(out, session, number, ALL_INSTRUCTIONS)?;
                continue;
            }
            if histogram.rows.is_empty() {
                writeln!(out, "     ({})", session.why_empty())?;
            }
            write_first_rows(out, histogram, &self.layout, self.limits)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }
}

/// Writes the title of a block, and a hint if records were lost in the last interval. The title:
/// `12:30:01  245 samples/s  kernel 2.6%  lost 0/0  [499Hz cpu-clock], (all, 2 CPUs)  own CPU 0.4%`;
/// `lost` has the records lost in the interval and in total.
fn title(
    out: &mut dyn Write,
    now: i64,
    status: &IntervalStatus<'_>,
    session: &TopSession,
) -> io::Result<()> {
    let time = time_of_day(now + utc_offset(now));
    write!(
        out,
        "{time}  {:.0} samples/s  kernel {:.1}%  lost {}/{}",
        status.samples_per_second, status.kernel_percent, status.lost.0, status.lost.1
    )?;
    writeln!(
        out,
        "  [{}], ({})  own CPU {:.1}%",
        status.event,
        status.scope,
        session.interval().own_cpu
    )?;
    match session.interval().has_losses() {
        true => writeln!(out, "     ({})", super::LOST),
        false => Ok(()),
    }
}
