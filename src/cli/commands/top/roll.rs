//! Blocks of lines, one for each interval and event: for files, pipes and readers of logs.

use std::io::{self, Write};

use rperf_sys::{unix_time, utc_offset};
use rperf_view::header::clock;
use rperf_view::report::Layout;
use rperf_view::top::{Room, Status, write_first_rows, write_json};

use super::code::LiveCode;
use super::session::Session;

/// What a block holds.
pub(super) struct Roll {
    pub(super) layout: Layout,
    pub(super) room: Room,
    /// Objects, one a line, instead of lines for people.
    pub(super) json: bool,
    /// The code of the watched function, in place of rows.
    pub(super) code: Option<LiveCode>,
}

impl Roll {
    /// Writes the last interval of every event, and flushes.
    pub(super) fn write(&mut self, out: &mut dyn Write, session: &mut Session) -> io::Result<()> {
        let now = i64::try_from(unix_time()).unwrap_or_default();
        for number in 0..session.tables() {
            let Some((_, table)) = session.table(number) else {
                continue;
            };
            let histogram = table.histogram();
            if self.json {
                let own_cost = session.interval().own_cost;
                session.status(number, |status| {
                    write_json(out, now, (&status, own_cost), (histogram, self.room))
                })?;
                continue;
            }
            session.status(number, |status| title(out, now, &status, session))?;
            if let Some(code) = &mut self.code {
                code.write(out, session, (number, 0))?;
                continue;
            }
            if histogram.rows.is_empty() {
                writeln!(out, "     ({})", session.why_empty())?;
            }
            write_first_rows(out, histogram, &self.layout, self.room)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }
}

/// `12:30:01  245 samples/s  kernel 2.6%  lost 0/0  [499Hz cpu-clock], (all, 2 CPUs)  own CPU 0.4%`.
fn title(out: &mut dyn Write, now: i64, status: &Status<'_>, session: &Session) -> io::Result<()> {
    let time = clock(now + utc_offset(now));
    write!(
        out,
        "{time}  {:.0} samples/s  kernel {:.1}%  lost {}/{}",
        status.per_second, status.kernel, status.lost.0, status.lost.1
    )?;
    writeln!(
        out,
        "  [{}], ({})  own CPU {:.1}%",
        status.event,
        status.scope,
        session.interval().own_cost
    )?;
    match session.interval().losses > 0 && status.lost.0 > 0 {
        true => writeln!(out, "     ({})", super::LOST),
        false => Ok(()),
    }
}
