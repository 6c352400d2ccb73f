//! The text of `script`: one sample as a line, or as a line and its frames. Byte for byte that of perf 6.1.

mod late;
mod number;

use rperf_lines::{Field, Fields, Line, Spot};

pub use self::late::{Block, Clock, Join};

/// Columns of a comm that stands before a single line; with a callchain it isn't padded.
const COMM_COLUMNS: usize = 16;
/// Columns of ids of processes and threads.
const ID_COLUMNS: usize = 5;
/// Columns of an address.
const ADDRESS_COLUMNS: usize = 16;

/// How the samples of one event are written.
#[derive(Debug, Clone)]
pub struct Layout {
    fields: Fields,
    /// Whether frames follow on lines of their own, which changes the line before them.
    stacked: bool,
    style: Style,
    /// The event's name, padded, with what follows it.
    event: Vec<u8>,
}

/// What all layouts of a recording have in common.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns of the longest event name of the recording.
    pub name_columns: usize,
    /// `--ns`: nine digits behind the point.
    pub nanoseconds: bool,
    /// What times count from.
    pub clock: Clock,
}

impl Layout {
    /// The layout of an event called `name`, of which `fields` are shown; `stacked` where its callchains are.
    #[must_use]
    pub fn new(name: &str, fields: Fields, stacked: bool, style: Style) -> Self {
        let mut event = Vec::new();
        number::right(&mut event, name.as_bytes(), style.name_columns);
        event.extend_from_slice(b": ");
        Self {
            fields,
            stacked: stacked && fields.has(Field::Ip),
            style,
            event,
        }
    }

    /// Whether frames follow on lines of their own.
    #[must_use]
    pub fn is_stacked(&self) -> bool {
        self.stacked
    }

    /// The fields shown.
    #[must_use]
    pub fn fields(&self) -> Fields {
        self.fields
    }

    /// Appends everything up to the address: comm, ids, CPU, time, period, event.
    pub fn start(&self, line: &Line<'_>, block: &mut Block) {
        let has = |field| self.fields.has(field);
        let out = &mut block.text;
        if has(Field::Comm) {
            let columns = if self.stacked { 0 } else { COMM_COLUMNS };
            number::right(out, line.comm.as_bytes(), columns);
            out.push(b' ');
        }
        self.ids(line, out);
        if has(Field::Cpu) {
            cpu(line.cpu, out);
        }
        if has(Field::Time) {
            match self.style.clock {
                Clock::Recorded => late::time(out, line.time, self.style.nanoseconds),
                Clock::SinceFirst | Clock::SinceBefore => block.put_time_off(line.time),
            }
        }
        let out = &mut block.text;
        if has(Field::Period) {
            number::decimal(out, line.period, 10);
            out.push(b' ');
        }
        if has(Field::Event) {
            out.extend_from_slice(&self.event);
        }
    }

    /// Appends the sample's data address.
    pub fn data_address(&self, spot: &Spot<'_>, named: bool, out: &mut Vec<u8>) {
        number::hexadecimal(out, spot.ip, ADDRESS_COLUMNS);
        if named {
            self.names(spot, out);
        }
    }

    /// Appends the address of a sample without callchain, on the same line.
    pub fn address(&self, spot: &Spot<'_>, out: &mut Vec<u8>) {
        out.push(b' ');
        number::hexadecimal(out, spot.ip, ADDRESS_COLUMNS);
        self.names(spot, out);
    }

    /// Appends one frame of a callchain, with the end of its line.
    pub fn frame(&self, spot: &Spot<'_>, out: &mut Vec<u8>) {
        out.push(b'\t');
        number::hexadecimal(out, spot.in_stack, ADDRESS_COLUMNS);
        self.names(spot, out);
        out.push(b'\n');
    }

    /// `%5d/%-5d ` of both ids, or one of them.
    fn ids(&self, line: &Line<'_>, out: &mut Vec<u8>) {
        let (pid, tid) = (number::signed(line.pid), number::signed(line.tid));
        match (self.fields.has(Field::Pid), self.fields.has(Field::Tid)) {
            (true, true) => {
                number::right(out, pid.as_ref(), ID_COLUMNS);
                out.push(b'/');
                number::left(out, tid.as_ref(), ID_COLUMNS);
            }
            (true, false) => number::right(out, pid.as_ref(), ID_COLUMNS),
            (false, true) => number::right(out, tid.as_ref(), ID_COLUMNS),
            (false, false) => return,
        }
        out.push(b' ');
    }

    /// ` symbol+0xoffset (object)`.
    fn names(&self, spot: &Spot<'_>, out: &mut Vec<u8>) {
        if self.fields.has(Field::Sym) {
            out.push(b' ');
            match &spot.symbol {
                Some(symbol) => {
                    out.extend_from_slice(symbol.name.as_bytes());
                    if self.fields.has(Field::Symoff) {
                        out.extend_from_slice(b"+0x");
                        number::hexadecimal(out, symbol.offset, 0);
                    }
                }
                None => out.extend_from_slice(b"[unknown]"),
            }
        }
        if self.fields.has(Field::Dso) {
            out.extend_from_slice(b" (");
            out.extend_from_slice(spot.object.unwrap_or("[unknown]").as_bytes());
            out.push(b')');
        }
    }
}

/// `[%03d] `; a sample without CPU has -1.
fn cpu(number: u32, out: &mut Vec<u8>) {
    out.push(b'[');
    match u64::from(number) {
        number if number <= u64::from(u32::MAX >> 1) => number::decimal_zeros(out, number, 3),
        _ => {
            out.push(b'-');
            number::decimal_zeros(out, u64::from(number.cast_signed().unsigned_abs()), 2);
        }
    }
    out.extend_from_slice(b"] ");
}

#[cfg(test)]
mod tests;
