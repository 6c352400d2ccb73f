//! The text of `script`: one sample as a line, or as a line and its frames. Byte for byte that of perf 6.1.

pub(crate) mod branch;
mod data_source;
mod details;
mod flow;
mod join;
mod late;
mod number;
pub(crate) mod record;
mod registers;

use rperf_lines::{Field, Fields, Line, Source, Spot};
use rperf_wire::{Misc, RecordKind, name_bytes};

use self::late::{Late, What};

pub use self::join::Join;
pub use self::late::{Block, Clock, TimeOfDay};
pub use self::record::{write_record, write_text_poke};
pub use self::registers::Architecture;

/// Columns of a comm that stands before a single line; with a callchain it isn't padded.
const COMM_COLUMNS: usize = 16;
/// Columns of a comm with `-L`, which cuts it.
const BRIEF_COLUMNS: usize = 8;
/// Columns of ids of processes and threads.
const ID_COLUMNS: usize = 5;
/// Columns of an address.
const ADDRESS_COLUMNS: usize = 16;

/// Columns of a branch's kind, which only samples decoded from a hardware trace have.
const FLAGS_COLUMNS: usize = 24;

/// One event, as far as its samples are shown otherwise than those of others.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is shown.
    pub fields: Fields,
    /// Whether its callchains are shown.
    pub stacked: bool,
    /// Whether weights consist of parts (`PERF_SAMPLE_WEIGHT_STRUCT`).
    pub weight_parts: bool,
    /// Whether its raw data are what a BPF program put out.
    pub bpf_output: bool,
}

/// How the samples of one event are written.
#[derive(Debug, Clone)]
pub struct Layout {
    fields: Fields,
    /// Whether frames follow on lines of their own, which changes the line before them.
    stacked: bool,
    weight_parts: bool,
    bpf_output: bool,
    style: Style,
    /// The event's name, padded, with what follows it; empty where it is not shown.
    event: Vec<u8>,
}

/// What all layouts of a recording have in common.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns of the longest event name of the recording.
    pub name_columns: usize,
    /// Source files by their whole path.
    pub full_paths: bool,
    /// `-L`: names in eight columns, CPUs without brackets.
    pub brief: bool,
    /// `--ns`: nine digits behind the point.
    pub nanoseconds: bool,
    /// What times count from.
    pub clock: Clock,
    /// The time of day, if it is shown.
    pub time_of_day: Option<TimeOfDay>,
    /// Whose registers were recorded.
    pub architecture: Architecture,
}

impl Layout {
    /// The layout of an event.
    #[must_use]
    pub fn new(event: &Event<'_>, style: Style) -> Self {
        let fields = event.fields;
        let mut text = Vec::new();
        if fields.has(Field::Event) {
            number::right(&mut text, event.name.as_bytes(), style.name_columns);
            text.extend_from_slice(b": ");
        }
        if fields.has(Field::Flags) {
            number::blanks(&mut text, FLAGS_COLUMNS);
        }
        Self {
            fields,
            stacked: event.stacked && fields.has(Field::Ip),
            weight_parts: event.weight_parts,
            bpf_output: event.bpf_output,
            style,
            event: text,
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
        self.who(line, RecordKind::SAMPLE, block);
        let out = &mut block.text;
        if self.fields.has(Field::Period) {
            number::decimal(out, line.period, 10);
            out.push(b' ');
        }
        out.extend_from_slice(&self.event);
    }

    /// Appends comm, ids, CPU and time, which records of any kind have.
    pub fn who(&self, line: &Line<'_>, kind: RecordKind, block: &mut Block) {
        self.up_to_time(line, kind, &mut block.text);
        if self.fields.has(Field::Time) {
            match self.style.clock {
                Clock::Recorded => late::time(&mut block.text, line.time, self.style.nanoseconds),
                Clock::SinceFirst | Clock::SinceBefore => block.put_time_off(line.time),
            }
        }
    }

    /// Has [`Join`] count a sample of the event at place `event`, and show what the counters of its group say.
    pub fn metric(&self, line: &Line<'_>, event: usize, block: &mut Block) {
        let offset = block.text.len();
        self.up_to_time(line, RecordKind::SAMPLE, &mut block.text);
        let what = What::Metric {
            event,
            period: line.period,
            cpu: line.cpu,
            time: self.fields.has(Field::Time).then_some(line.time),
            length: block.text.len() - offset,
        };
        block.late.push(Late { offset, what });
    }

    fn up_to_time(&self, line: &Line<'_>, kind: RecordKind, out: &mut Vec<u8>) {
        let has = |field| self.fields.has(field);
        if has(Field::Comm) {
            let (columns, longest) = match self.stacked {
                _ if self.style.brief => (BRIEF_COLUMNS, BRIEF_COLUMNS),
                true => (0, usize::MAX),
                false => (COMM_COLUMNS, usize::MAX),
            };
            let comm = &*name_bytes(line.comm);
            number::right(out, comm.get(..longest).unwrap_or(comm), columns);
            out.push(b' ');
        }
        self.ids(line, out);
        match has(Field::Cpu) {
            true if self.style.brief => {
                number::signed(out, line.cpu, 3);
                out.push(b' ');
            }
            true => cpu(line.cpu, out),
            false => {}
        }
        if has(Field::Misc) {
            misc(line.misc, kind, out);
        }
        if let Some(time_of_day) = &self.style.time_of_day
            && has(Field::Tod)
        {
            time_of_day.write(line.time, self.style.nanoseconds, out);
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
        self.source(spot, b"\n  ", out);
    }

    /// Appends where a branch led to, behind the address that it came from.
    pub fn target(&self, spot: &Spot<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b" => ");
        number::hexadecimal(out, spot.ip, ADDRESS_COLUMNS);
        self.names(spot, out);
    }

    /// Appends one frame of a callchain, with the end of its line.
    pub fn frame(&self, spot: &Spot<'_>, out: &mut Vec<u8>) {
        out.push(b'\t');
        number::hexadecimal(out, spot.in_stack, ADDRESS_COLUMNS);
        self.names(spot, out);
        self.source(spot, b"\n  ", out);
        if spot.inlined {
            out.extend_from_slice(b" (inlined)");
        }
        out.push(b'\n');
    }

    /// `%5d/%-5d ` of both ids, or one of them.
    fn ids(&self, line: &Line<'_>, out: &mut Vec<u8>) {
        match (self.fields.has(Field::Pid), self.fields.has(Field::Tid)) {
            (true, true) => {
                number::signed(out, line.pid, ID_COLUMNS);
                out.push(b'/');
                number::signed_left(out, line.tid, ID_COLUMNS);
            }
            (true, false) => number::signed(out, line.pid, ID_COLUMNS),
            (false, true) => number::signed(out, line.tid, ID_COLUMNS),
            (false, false) => return,
        }
        out.push(b' ');
    }

    /// ` symbol+0xoffset (object)`.
    fn names(&self, spot: &Spot<'_>, out: &mut Vec<u8>) {
        if self.fields.has(Field::Sym) {
            out.push(b' ');
            Self::symbol(spot, self.fields.has(Field::Symoff), out);
        }
        if self.fields.has(Field::Dso) && !spot.inlined {
            out.push(b' ');
            self.object(spot, out);
        }
    }

    /// `FILE:LINE` behind what parts it from the address.
    fn source(&self, spot: &Spot<'_>, parted: &[u8], out: &mut Vec<u8>) {
        if !self.fields.has(Field::Srcline) {
            return;
        }
        match spot.source {
            Source::None => {}
            Source::Line(line) => {
                let path = match self.style.full_paths {
                    true => line.path,
                    false => line.file_name(),
                };
                out.extend_from_slice(parted);
                out.extend_from_slice(path.as_bytes());
                out.push(b':');
                number::decimal(out, u64::from(line.line), 0);
            }
            Source::Address { object, address } => {
                out.extend_from_slice(parted);
                out.extend_from_slice(object.as_bytes());
                out.push(b'[');
                number::hexadecimal(out, address, 0);
                out.push(b']');
            }
        }
    }

    /// `symbol+0xoffset`.
    fn symbol(spot: &Spot<'_>, with_offset: bool, out: &mut Vec<u8>) {
        let Some(symbol) = &spot.symbol else {
            return out.extend_from_slice(b"[unknown]");
        };
        out.extend_from_slice(symbol.name.as_bytes());
        if with_offset {
            out.extend_from_slice(b"+0x");
            number::hexadecimal(out, symbol.offset, 0);
        }
    }

    /// `(object)`, `(object+0xoffset)`.
    fn object(&self, spot: &Spot<'_>, out: &mut Vec<u8>) {
        out.push(b'(');
        out.extend_from_slice(spot.object.unwrap_or("[unknown]").as_bytes());
        if spot.in_object && self.fields.has(Field::Dsoff) {
            out.extend_from_slice(b"+0x");
            number::hexadecimal(out, spot.in_stack, 0);
        }
        out.push(b')');
    }
}

/// The mode in letters, in six columns. As in perf, letters stand for bits of the mode's number: a hypervisor is `KUH`.
fn misc(misc: Misc, kind: RecordKind, out: &mut Vec<u8>) {
    let start = out.len();
    for (bits, letter) in [(1, b'K'), (2, b'U'), (3, b'H'), (4, b'G'), (5, b'g')] {
        if misc.contains(Misc(bits)) {
            out.push(letter);
        }
    }
    let more: &[_] = match kind {
        RecordKind::MMAP | RecordKind::MMAP2 => &[(Misc::MMAP_DATA, b'M')],
        RecordKind::COMM => &[(Misc::COMM_EXEC, b'E')],
        RecordKind::SWITCH | RecordKind::SWITCH_CPU_WIDE if misc.contains(Misc::SWITCH_OUT) => {
            &[(Misc::SWITCH_OUT, b'S'), (Misc::SWITCH_OUT_PREEMPT, b'p')]
        }
        _ => &[],
    };
    for (bit, letter) in more {
        if misc.contains(*bit) {
            out.push(*letter);
        }
    }
    number::blanks(out, 6_usize.saturating_sub(out.len() - start));
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
