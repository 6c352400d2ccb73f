//! The text of `script`, in the layout of perf 6.1: a sample as one line, or as a line and its frames; other records; the counts
//! of `stat record`.

mod block_joiner;
pub(crate) mod branch;
mod counts;
mod data_source;
mod details;
mod flow;

pub(crate) mod record;
mod registers;
mod text_gaps;

use crate::digits;
use rperf_lines::{LineField, LineFields, ResolvedAddress, SampleLine, SourceLocation};
use rperf_wire::{Misc, RecordKind, name_bytes};

use self::text_gaps::{LateField, TextGap};

pub use self::block_joiner::BlockJoiner;
pub use self::counts::{write_count, write_count_titles};
pub use self::record::{write_record, write_text_poke};
pub use self::registers::Architecture;
pub use self::text_gaps::{Clock, ScriptBlock, TimeOfDay};

/// Columns of a comm. In the line before a callchain it is not padded.
const COMM_COLUMNS: usize = 16;
/// Columns of a comm with `-L`, which truncates it.
const BRIEF_COLUMNS: usize = 8;
/// Columns of process and thread ids.
const ID_COLUMNS: usize = 5;
/// Columns of an address.
const ADDRESS_COLUMNS: usize = 16;

/// Columns of a branch's type (the field `flags`) with the blanks before and after it. Only samples decoded from a hardware trace
/// have a type.
const FLAGS_COLUMNS: usize = 24;
/// Blanks before a branch's type.
const FLAGS_INDENT: usize = 2;

/// The per-event settings of samples.
#[derive(Debug, Clone, Copy)]
pub struct ScriptEvent<'a> {
    /// The event's name.
    pub name: &'a str,
    /// The fields shown.
    pub fields: LineFields,
    /// Whether its samples have callchains that are shown.
    pub shows_callchains: bool,
    /// Whether weights consist of parts (`PERF_SAMPLE_WEIGHT_STRUCT`).
    pub weight_parts: bool,
    /// Whether its raw data are the output of a BPF program.
    pub bpf_output: bool,
}

/// The layout of one event's samples. It appends to a [`ScriptBlock`], the text of consecutive records; text that depends on
/// earlier records is left out as a gap, which [`BlockJoiner`] fills later.
#[derive(Debug, Clone)]
pub struct ScriptLayout {
    fields: LineFields,
    /// Whether frames follow on separate lines, which changes the line before them.
    has_frame_lines: bool,
    weight_parts: bool,
    bpf_output: bool,
    style: ScriptStyle,
    /// The event's name, padded, and `: `; empty if it is not shown.
    event: Vec<u8>,
}

/// Settings shared by all layouts of a recording.
#[derive(Debug, Clone, Copy)]
pub struct ScriptStyle {
    /// Width of the longest event name of the recording.
    pub event_name_width: usize,
    /// Whether source files are shown with full paths.
    pub full_paths: bool,
    /// `-L`: comms in eight columns, CPUs without brackets.
    pub brief: bool,
    /// `--ns`: nine digits after the point.
    pub nanoseconds: bool,
    /// The origin of times.
    pub clock: Clock,
    /// The conversion of times to times of day; `None` if the recording has no reference time.
    pub time_of_day: Option<TimeOfDay>,
    /// The architecture of recorded registers.
    pub architecture: Architecture,
}

impl ScriptLayout {
    /// The layout of an event.
    #[must_use]
    pub fn new(event: &ScriptEvent<'_>, style: ScriptStyle) -> Self {
        let fields = event.fields;
        let mut text = Vec::new();
        if fields.has(LineField::Event) {
            digits::right(&mut text, event.name.as_bytes(), style.event_name_width);
            text.extend_from_slice(b": ");
        }
        Self {
            fields,
            has_frame_lines: event.shows_callchains && fields.has(LineField::Ip),
            weight_parts: event.weight_parts,
            bpf_output: event.bpf_output,
            style,
            event: text,
        }
    }

    /// Whether frames follow on separate lines.
    #[must_use]
    pub fn has_frame_lines(&self) -> bool {
        self.has_frame_lines
    }

    /// The fields shown.
    #[must_use]
    pub fn fields(&self) -> LineFields {
        self.fields
    }

    /// Appends the first fields of a sample: those of [`ScriptLayout::common_fields`], period, event, and the branch's type.
    pub fn start(&self, line: &SampleLine<'_>, block: &mut ScriptBlock) {
        self.common_fields(line, RecordKind::SAMPLE, block);
        let out = &mut block.text;
        if self.fields.has(LineField::Period) {
            digits::decimal(out, line.period, 10);
            out.push(b' ');
        }
        out.extend_from_slice(&self.event);
        if self.fields.has(LineField::Flags) {
            digits::blanks(out, FLAGS_INDENT);
            let name = line.branch_flags.name();
            out.extend_from_slice(name.as_bytes());
            digits::blanks(out, FLAGS_COLUMNS - FLAGS_INDENT - name.len());
        }
    }

    /// Appends the fields that all record types have: comm, ids, CPU, letters of `misc`, time of day, and
    /// time.
    pub fn common_fields(&self, line: &SampleLine<'_>, kind: RecordKind, block: &mut ScriptBlock) {
        self.up_to_time(line, kind, &mut block.text);
        if self.fields.has(LineField::Time) {
            match self.style.clock {
                Clock::Recorded => {
                    text_gaps::time(&mut block.text, line.time, self.style.nanoseconds)
                }
                Clock::SinceFirst | Clock::SinceBefore => block.defer_time(line.time),
            }
        }
    }

    /// Marks a sample of the event at index `event`, so that [`BlockJoiner`] prints the metrics of the event's group. Appends the
    /// prefix of a metric's line; the joiner writes it before each metric that this sample completes, or drops it.
    pub fn metric(&self, line: &SampleLine<'_>, event: usize, block: &mut ScriptBlock) {
        let offset = block.text.len();
        self.up_to_time(line, RecordKind::SAMPLE, &mut block.text);
        let content = LateField::Metric {
            event,
            period: line.period,
            cpu: line.cpu,
            time: self.fields.has(LineField::Time).then_some(line.time),
            length: block.text.len() - offset,
        };
        block.gaps.push(TextGap { offset, content });
    }

    /// Appends the fields before the time.
    fn up_to_time(&self, line: &SampleLine<'_>, kind: RecordKind, out: &mut Vec<u8>) {
        let has = |field| self.fields.has(field);
        if has(LineField::Comm) {
            let (columns, max_length) = match self.has_frame_lines {
                _ if self.style.brief => (BRIEF_COLUMNS, BRIEF_COLUMNS),
                true => (0, usize::MAX),
                false => (COMM_COLUMNS, usize::MAX),
            };
            let comm = &*name_bytes(line.comm);
            digits::right(out, comm.get(..max_length).unwrap_or(comm), columns);
            out.push(b' ');
        }
        self.ids(line, out);
        match has(LineField::Cpu) {
            true if self.style.brief => {
                digits::signed(out, line.cpu, 3);
                out.push(b' ');
            }
            true => cpu(line.cpu, out),
            false => {}
        }
        if has(LineField::Misc) {
            misc(line.misc, kind, out);
        }
        if let Some(time_of_day) = &self.style.time_of_day
            && has(LineField::Tod)
        {
            time_of_day.write(line.time, self.style.nanoseconds, out);
        }
    }

    /// Appends the sample's data address; with its symbol and object if `named`.
    pub fn data_address(&self, address: &ResolvedAddress<'_>, named: bool, out: &mut Vec<u8>) {
        digits::hexadecimal(out, address.ip, ADDRESS_COLUMNS);
        if named {
            self.names(address, out);
        }
    }

    /// Appends the address of a sample without callchain, on the same line; the source location follows on a line of its own.
    pub fn address(&self, address: &ResolvedAddress<'_>, out: &mut Vec<u8>) {
        out.push(b' ');
        digits::hexadecimal(out, address.ip, ADDRESS_COLUMNS);
        self.names(address, out);
        self.source(address, b"\n  ", out);
    }

    /// Appends a branch target after the address from which the branch jumps.
    pub fn target(&self, address: &ResolvedAddress<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b" => ");
        digits::hexadecimal(out, address.ip, ADDRESS_COLUMNS);
        self.names(address, out);
    }

    /// Appends one frame of a callchain and a newline; the source location is on a line of its own. For an inlined function,
    /// `(inlined)` follows. The address is the one shown in stacks, not the sampled one as in the functions above.
    pub fn frame(&self, address: &ResolvedAddress<'_>, out: &mut Vec<u8>) {
        out.push(b'\t');
        digits::hexadecimal(out, address.shown_address, ADDRESS_COLUMNS);
        self.names(address, out);
        self.source(address, b"\n  ", out);
        if address.inlined {
            out.extend_from_slice(b" (inlined)");
        }
        out.push(b'\n');
    }

    /// Appends the selected ids: both as `%5d/%-5d `, one as `%5d `.
    fn ids(&self, line: &SampleLine<'_>, out: &mut Vec<u8>) {
        match (
            self.fields.has(LineField::Pid),
            self.fields.has(LineField::Tid),
        ) {
            (true, true) => {
                digits::signed(out, line.pid, ID_COLUMNS);
                out.push(b'/');
                digits::signed_left(out, line.tid, ID_COLUMNS);
            }
            (true, false) => digits::signed(out, line.pid, ID_COLUMNS),
            (false, true) => digits::signed(out, line.tid, ID_COLUMNS),
            (false, false) => return,
        }
        out.push(b' ');
    }

    /// Appends ` symbol+0xoffset (object)`, as far as selected. The object of an inlined function is not shown.
    fn names(&self, address: &ResolvedAddress<'_>, out: &mut Vec<u8>) {
        if self.fields.has(LineField::Sym) {
            out.push(b' ');
            Self::symbol(address, self.fields.has(LineField::Symoff), out);
        }
        if self.fields.has(LineField::Dso) && !address.inlined {
            out.push(b' ');
            self.object(address, out);
        }
    }

    /// Appends the source location after a separator: `FILE:LINE`, or `OBJECT[ADDRESS]` if the line is unknown.
    fn source(&self, address: &ResolvedAddress<'_>, separator: &[u8], out: &mut Vec<u8>) {
        if !self.fields.has(LineField::Srcline) {
            return;
        }
        match address.source {
            SourceLocation::None => {}
            SourceLocation::Line(line) => {
                let path = match self.style.full_paths {
                    true => line.path,
                    false => line.file_name(),
                };
                out.extend_from_slice(separator);
                out.extend_from_slice(path.as_bytes());
                out.push(b':');
                digits::decimal(out, u64::from(line.line), 0);
            }
            SourceLocation::Address { object, address } => {
                out.extend_from_slice(separator);
                out.extend_from_slice(object.as_bytes());
                out.push(b'[');
                digits::hexadecimal(out, address, 0);
                out.push(b']');
            }
        }
    }

    /// Appends `symbol+0xoffset`, or `symbol`.
    fn symbol(address: &ResolvedAddress<'_>, with_offset: bool, out: &mut Vec<u8>) {
        let Some(symbol) = &address.symbol else {
            return out.extend_from_slice(b"[unknown]");
        };
        out.extend_from_slice(symbol.name.as_bytes());
        if with_offset {
            out.extend_from_slice(b"+0x");
            digits::hexadecimal(out, symbol.offset, 0);
        }
    }

    /// Appends `(object)`, or `(object+0xoffset)`: with `is_object_offset`, `shown_address` is an offset in the object.
    fn object(&self, address: &ResolvedAddress<'_>, out: &mut Vec<u8>) {
        out.push(b'(');
        out.extend_from_slice(address.object.unwrap_or("[unknown]").as_bytes());
        if address.is_object_offset && self.fields.has(LineField::Dsoff) {
            out.extend_from_slice(b"+0x");
            digits::hexadecimal(out, address.shown_address, 0);
        }
        out.push(b')');
    }
}

/// Appends the CPU mode and the flags of the record type as letters, padded to six columns. As in perf, the letter of a mode is
/// shown if all bits of its number are set: hypervisor (3) is `KUH`.
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
    digits::blanks(out, 6_usize.saturating_sub(out.len() - start));
}

/// Appends `[%03d] `. A sample without CPU has -1 (`u32::MAX`).
fn cpu(cpu: u32, out: &mut Vec<u8>) {
    let number = cpu.cast_signed();
    let (start, width) = if number < 0 { ("[-", 2) } else { ("[", 3) };
    out.extend_from_slice(start.as_bytes());
    digits::decimal_zeros(out, u64::from(number.unsigned_abs()), width);
    out.extend_from_slice(b"] ");
}

#[cfg(test)]
mod tests;
