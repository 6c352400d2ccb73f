//! Calls of the functions of a script in Perl: values that `unpack` reads, with a template for each event.
//!
//! ```text
//! block     0, description of each call    or    1, calls
//! call      length, number of the call, values by its template
//! ```
//!
//! The number of a call is the index of its description: a call here is a function with the event for which it is called.
//! Lengths and the numbers of calls have 32 bits. All numbers are little-endian.

use rperf_lines::ResolvedAddress;
use rperf_replay::Sample;
use rperf_resolve::Frame;
use rperf_wire::RecordKind;

use crate::calls::{CallField, CallKind, EventCall, ScriptCalls};
use crate::encoder::{EventEncoder, NANOSECONDS};
use crate::sample_dict::{NO_DATA_SOURCE, binding};

/// The program that loads the script and calls its functions, with the modules that scripts use.
pub const PERL_SHIM: &str = concat!(
    include_str!("../perl/modules.pl"),
    include_str!("../perl/shim.pl")
);
/// The template of a handler's call up to the fields of the tracepoint: number of the call, which is skipped; three common
/// fields (preemption count, flags, lock depth), CPU, seconds, nanoseconds, pid, command name, callchain.
const COMMON: &str = "x4 l< l< l< L< Q< Q< l< L</a L</a";
/// The template of a call of `process_event`: number of the call, which is skipped; the record; the sample; whether the
/// sample has raw data, and this data.
const RECORD: &str = "x4 L</a L</a C L</a";
/// Size of `struct perf_sample` of perf 6.1 on x86-64, in bytes.
const SIZE_OF_SAMPLE: usize = 1368;
/// First byte of a block that describes the calls.
const DESCRIPTION: u8 = 0;
/// First byte of a block of calls.
const CALLS: u8 = 1;

/// A writer of values for Perl's `unpack`.
#[derive(Debug, Default)]
pub struct PerlWriter {
    bytes: Vec<u8>,
}

impl PerlWriter {
    /// The bytes of all values.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the length of a string of bytes, and the string.
    pub fn string(&mut self, bytes: &[u8]) {
        // Always less than 4 GB: a record has less than 64 KB, and other strings are names and words of a command line.
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a number of 64 bits.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a string whose bytes are written by `write`.
    pub fn nested(&mut self, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.u32(0);
        write(self);
        let length = u32::try_from(self.bytes.len() - start - 4).unwrap_or(u32::MAX);
        if let Some(place) = self.bytes.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn call(&mut self, number: usize, write: impl FnOnce(&mut Self)) {
        if self.bytes.is_empty() {
            self.bytes.push(CALLS);
        }
        self.nested(|to| {
            to.u32(u32::try_from(number).unwrap_or(u32::MAX));
            write(to);
        });
    }
}

impl ScriptCalls {
    /// The description of all calls for the shim. Each event has two calls: one of its handler and one of `process_event`.
    /// The description of a call has a kind, the names of the function and the event, a template, and for `process_event` the
    /// attr; it is empty if the script does not have the function.
    pub(crate) fn perl_description(&self) -> Vec<u8> {
        let mut to = PerlWriter {
            bytes: vec![DESCRIPTION],
        };
        for call in &self.events {
            // In Perl, `Direct` is an event without a handler.
            let handler = call.as_ref().filter(|call| call.kind != CallKind::Direct);
            to.nested(|to| {
                if let Some(call) = handler {
                    let template: String = call.fields.iter().map(template).collect();
                    to.string(b"handler");
                    to.string(call.function.name.as_bytes());
                    to.string(call.event.as_bytes());
                    to.string((COMMON.to_owned() + &template).as_bytes());
                    to.string(b"");
                }
            });
            let record = call.as_ref().filter(|call| call.calls_process_event);
            to.nested(|to| {
                if let Some(call) = record {
                    to.string(b"event");
                    to.string(b"process_event");
                    to.string(call.event.as_bytes());
                    to.string(RECORD.as_bytes());
                    to.string(&call.attr);
                }
            });
        }
        to.bytes
    }
}

/// The template of a field's value.
fn template(field: &CallField) -> &'static str {
    match field {
        field if field.reader.is_text() && field.is_array => " L</a",
        field if field.reader.is_signed() => " q<",
        _ => " Q<",
    }
}

/// A sample, with its task's name and its frames.
#[derive(Clone, Copy)]
pub(crate) struct PerlSample<'s> {
    pub(crate) call: &'s EventCall,
    /// The index of its event, from which the numbers of its two calls follow.
    pub(crate) number: usize,
    pub(crate) sample: &'s Sample<'s>,
    pub(crate) comm: &'s str,
    pub(crate) frames: &'s [Frame],
}

impl EventEncoder<'_, '_> {
    /// Writes the calls for a sample.
    pub(crate) fn perl_calls(&self, perl_sample: &PerlSample<'_>, to: &mut PerlWriter) {
        let PerlSample {
            call,
            number,
            sample,
            ..
        } = *perl_sample;
        // Each event has two calls, as in `perl_description`: the even number is that of the handler.
        if call.kind != CallKind::Direct {
            to.call(2 * number, |to| self.handler_values(perl_sample, to));
        }
        if call.calls_process_event {
            to.call(2 * number + 1, |to| {
                to.nested(|to| {
                    // The record: a header of 8 bytes, and the body.
                    let size = sample.body.len() + 8;
                    to.u32(RecordKind::SAMPLE.0);
                    let misc = sample.misc.0.to_le_bytes();
                    let size = u16::try_from(size).unwrap_or(u16::MAX).to_le_bytes();
                    to.bytes.extend_from_slice(&misc);
                    to.bytes.extend_from_slice(&size);
                    to.bytes.extend_from_slice(sample.body);
                });
                to.nested(|to| sample_structure(call, sample, to));
                to.bytes.push(u8::from(sample.wire.raw.is_some()));
                to.string(sample.wire.raw.unwrap_or_default());
            });
        }
    }

    fn handler_values(&self, perl_sample: &PerlSample<'_>, to: &mut PerlWriter) {
        let (call, sample) = (perl_sample.call, perl_sample.sample);
        let raw = sample.wire.raw.unwrap_or_default();
        let read = |reader: &rperf_tracepoint::FieldReader| reader.i64(raw);
        for common in &call.context_readers {
            let value = common.as_ref().and_then(read).unwrap_or_default();
            to.u32(value as u32);
        }
        let time = sample.wire.time.unwrap_or(u64::MAX);
        to.u32(sample.cpu);
        to.u64(time / NANOSECONDS);
        to.u64(time % NANOSECONDS);
        let pid = call.common_pid.as_ref().and_then(read);
        to.u32(pid.unwrap_or_default() as u32);
        to.string(perl_sample.comm.as_bytes());
        to.nested(|to| self.perl_callchain(call, perl_sample.frames, to));
        for field in &call.fields {
            self.perl_field(field, raw, to);
        }
    }

    fn perl_field(&self, field: &CallField, raw: &[u8], to: &mut PerlWriter) {
        if field.is_array && field.reader.is_text() {
            return to.string(field.reader.text(raw).unwrap_or_default());
        }
        // Numbers, and arrays that are not text, are passed as a number if they have the size of a number, otherwise as 0.
        // For a dynamic array, this is the value of `__data_loc`. As in perf, the number is not sign-extended to 64 bits.
        let end = field.offset.saturating_add(field.size);
        let bytes = raw.get(field.offset..end).unwrap_or_default();
        let mut value = [0; 8];
        if matches!(bytes.len(), 1 | 2 | 4 | 8) {
            for (index, place) in value.iter_mut().take(bytes.len()).enumerate() {
                let from = match self.endian {
                    rperf_wire::Endian::Little => index,
                    rperf_wire::Endian::Big => bytes.len() - 1 - index,
                };
                *place = bytes.get(from).copied().unwrap_or_default();
            }
        }
        to.u64(u64::from_le_bytes(value));
    }

    fn perl_callchain(&self, call: &EventCall, frames: &[Frame], to: &mut PerlWriter) {
        for frame in frames {
            let mut write = |named: ResolvedAddress<'_>| {
                to.nested(|to| self.perl_frame(frame, &named, to));
            };
            // Without an option, frames of events with copies of user stacks include inlined functions.
            match self.inlines.unwrap_or(call.has_stack_copies) {
                true => self.lines.expand(frame, write),
                false => write(self.lines.resolved(frame)),
            }
        }
    }

    fn perl_frame(&self, frame: &Frame, named: &ResolvedAddress<'_>, to: &mut PerlWriter) {
        let symbol = frame.symbol.and_then(|id| self.resolver.symbol(id));
        // The name can be that of an inlined function; start, end and binding are those of the symbol that contains it.
        // `None` if either is unknown.
        let symbol = named.symbol.zip(symbol);
        to.u64(named.ip);
        to.bytes.push(u8::from(symbol.is_some()));
        to.bytes.push(u8::from(named.object.is_some()));
        if let Some((resolved, symbol)) = symbol {
            to.nested(|to| {
                to.u64(symbol.start);
                to.u64(symbol.end);
                to.bytes.push(binding(symbol.binding) as u8);
            });
            to.string(resolved.name.as_bytes());
        }
        if let Some(object) = named.object {
            to.string(object.as_bytes());
        }
    }
}

/// Writes a sample as `struct perf_sample` of perf 6.1 on x86-64. The members after `ins_lat`, which include all pointers, are
/// zero.
fn sample_structure(call: &EventCall, sample: &Sample<'_>, to: &mut PerlWriter) {
    let wire = &sample.wire;
    let weight = wire.weight.unwrap_or_default();
    let (weight, latency) = match call.has_weight_parts {
        true => (weight & u64::from(u32::MAX), (weight >> 32) as u16),
        false => (weight, 0),
    };
    let start = to.bytes.len();
    to.u64(wire.ip.unwrap_or_default());
    to.u32(sample.pid);
    to.u32(sample.tid);
    for value in [
        wire.time.unwrap_or(u64::MAX),
        wire.addr.unwrap_or_default(),
        wire.id.unwrap_or(u64::MAX),
        wire.stream_id.unwrap_or(u64::MAX),
        sample.period,
        weight,
        wire.transaction.unwrap_or_default(),
        // Instructions and cycles of a hardware trace.
        0,
        0,
    ] {
        to.u64(value);
    }
    to.u32(sample.cpu);
    let raw = wire.raw.unwrap_or_default();
    to.u32(u32::try_from(raw.len()).unwrap_or(u32::MAX));
    for value in [
        wire.data_src.unwrap_or(NO_DATA_SOURCE),
        wire.phys_addr.unwrap_or_default(),
        wire.data_page_size.unwrap_or_default(),
        wire.code_page_size.unwrap_or_default(),
        wire.cgroup.unwrap_or_default(),
        // Flags of a branch, and the process id of a guest machine.
        0,
    ] {
        to.u64(value);
    }
    // No virtual CPU.
    to.u32(u32::MAX);
    let mode = sample.misc.mode_bits().0;
    // 0: the length of the instruction, which is not read. The mode has one byte, and one of padding after it.
    for value in [0, mode, sample.misc.0, latency] {
        to.bytes.extend_from_slice(&value.to_le_bytes());
    }
    to.bytes.resize(start + SIZE_OF_SAMPLE, 0);
}
