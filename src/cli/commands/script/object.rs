//! `script --json`: a sample as an object on a line of its own, with the fields of `-F` as members.
//!
//! Times are nanoseconds, addresses and masks texts with `0x`. Frames have the address inside their object, as stacks in
//! text have it. What a tracepoint says is there as its text and, in `fields`, by its parts.

use std::fmt::Write as _;

use rperf_export::json::Object;
use rperf_lines::{Field, Fields, Line, Spot};
use rperf_replay::Sample;
use rperf_tracepoint::Value;
use rperf_view::script::Block;

use super::plan::Event;
use super::text::{SampleText, Scratch, Who};
use crate::cli::error::CliError;

/// Fields that are members, or decide which members frames have.
const MEMBERS: [Field; 23] = [
    Field::Comm,
    Field::Tid,
    Field::Pid,
    Field::Time,
    Field::Cpu,
    Field::Event,
    Field::Trace,
    Field::Ip,
    Field::Sym,
    Field::Symoff,
    Field::Dso,
    Field::Addr,
    Field::Period,
    Field::DataSrc,
    Field::Weight,
    Field::PhysAddr,
    Field::DataPageSize,
    Field::CodePageSize,
    Field::InsLat,
    Field::BpfOutput,
    Field::Dsoff,
    Field::Cgroup,
    Field::RetireLat,
];

/// Refuses fields that objects have no member for.
///
/// # Errors
///
/// A usage error that names the field.
pub(super) fn check(fields: Fields) -> Result<(), CliError> {
    let mut lacking = Fields::ALL
        .iter()
        .filter(|field| fields.has(**field) && !MEMBERS.contains(field));
    match lacking.next() {
        None => Ok(()),
        Some(field) => Err(CliError::usage(format!(
            "--json does not write the field '{}'",
            field.name()
        ))),
    }
}

/// Appends a frame and the comma behind it.
pub(super) fn frame(fields: Fields, spot: &Spot<'_>, out: &mut Vec<u8>) {
    let mut object = Object::new(out);
    object.hex("address", spot.in_stack);
    names(fields, spot, &mut object);
    object.finish();
    out.push(b',');
}

fn names(fields: Fields, spot: &Spot<'_>, object: &mut Object<'_>) {
    if let Some(symbol) = spot.symbol.filter(|_| fields.has(Field::Sym)) {
        object.text("symbol", symbol.name);
        if fields.has(Field::Symoff) && !spot.inlined {
            object.plain("offset", symbol.offset);
        }
    }
    if let Some(name) = spot.object.filter(|_| fields.has(Field::Dso)) {
        object.text("dso", name);
        if spot.in_object && fields.has(Field::Dsoff) {
            object.hex(Field::Dsoff.name(), spot.in_stack);
        }
    }
    if spot.inlined {
        object.plain("inlined", true);
    }
}

impl SampleText<'_, '_> {
    /// Appends a sample.
    pub(super) fn object(
        &self,
        event: &Event,
        sample: &Sample<'_>,
        (line, who): (&Line<'_>, Who),
        scratch: &mut Scratch,
        block: &mut Block,
    ) {
        let fields = event.layout.fields();
        let mut object = Object::new(&mut block.text);
        start(event, line, &mut object);
        if fields.has(Field::Trace) {
            self.payload(sample, &mut object);
        }
        if let Some(raw) = sample.wire.raw.filter(|_| event.outputs) {
            object.text(Field::BpfOutput.name(), &hex(raw));
        }
        memory(event, sample, &mut object);
        if let Some(id) = sample.wire.cgroup.filter(|_| fields.has(Field::Cgroup))
            && let Some(name) = self.resolver.world().cgroup(id)
        {
            object.text(Field::Cgroup.name(), name);
        }
        if fields.has(Field::Ip) {
            match sample.wire.callchain {
                Some(recorded) if event.layout.is_stacked() => {
                    let out = object.member("callchain");
                    out.push(b'[');
                    self.frames(event, (sample, recorded), who, scratch, out);
                    if out.last() == Some(&b',') {
                        out.pop();
                    }
                    out.push(b']');
                }
                _ => {
                    let ip = sample.wire.ip.unwrap_or_default();
                    let frame = self.resolver.locate(who.at, sample.cpu_mode(), ip);
                    object.hex("ip", ip);
                    names(fields, &self.lines.spot(&frame), &mut object);
                }
            }
        }
        object.finish();
        block.text.push(b'\n');
    }

    /// What a tracepoint says.
    fn payload(&self, sample: &Sample<'_>, object: &mut Object<'_>) {
        let payloads = &self.plan.payloads;
        let (Some(raw), Some(tracepoint)) = (sample.wire.raw, payloads.tracepoint(sample.event))
        else {
            return;
        };
        let mut text = Vec::new();
        payloads.write(sample.event, raw, self.resolver, &mut text);
        object.text("trace", String::from_utf8_lossy(&text).trim());
        let mut inner = Object::new(object.member("fields"));
        for (field, reader) in tracepoint.fields() {
            if let Some(value) = reader.value(raw) {
                match value {
                    Value::Unsigned(number) if field.is_pointer => inner.hex(&field.name, number),
                    value => member(&field.name, value, &mut inner),
                }
            }
        }
        inner.finish();
    }
}

/// Who, when and what.
fn start(event: &Event, line: &Line<'_>, object: &mut Object<'_>) {
    let fields = event.layout.fields();
    if fields.has(Field::Time) && line.time != u64::MAX {
        object.plain("time", line.time);
    }
    if fields.has(Field::Comm) {
        object.text("comm", line.comm);
    }
    // A thread's number alone says nothing of its process.
    if fields.has(Field::Pid) || fields.has(Field::Tid) {
        object.plain("pid", line.pid.cast_signed());
        object.plain("tid", line.tid.cast_signed());
    }
    if fields.has(Field::Cpu) && line.cpu != u32::MAX {
        object.plain("cpu", line.cpu);
    }
    if fields.has(Field::Event) {
        object.text("event", &event.name);
    }
    if fields.has(Field::Period) {
        object.plain("period", line.period);
    }
}

/// The access to memory, as far as it was recorded.
fn memory(event: &Event, sample: &Sample<'_>, object: &mut Object<'_>) {
    let fields = event.layout.fields();
    let wire = &sample.wire;
    let (weight, latency, retirement) = match wire.weight {
        Some(parts) if event.weight_parts => {
            let (low, middle) = (u64::from(u32::MAX), u64::from(u16::MAX));
            (
                Some(parts & low),
                Some(parts >> 32 & middle),
                Some(parts >> 48),
            )
        }
        whole => (whole, None, None),
    };
    for (field, value) in [
        (Field::Addr, wire.addr),
        (Field::DataSrc, wire.data_src),
        (Field::PhysAddr, wire.phys_addr),
    ] {
        if let Some(value) = value.filter(|_| fields.has(field)) {
            object.hex(field.name(), value);
        }
    }
    for (field, value) in [
        (Field::Weight, weight),
        (Field::InsLat, latency),
        (Field::RetireLat, retirement),
        (Field::DataPageSize, wire.data_page_size),
        (Field::CodePageSize, wire.code_page_size),
    ] {
        if let Some(value) = value.filter(|_| fields.has(field)) {
            object.plain(field.name(), value);
        }
    }
}

/// A field of a tracepoint.
fn member(name: &str, value: Value<'_>, object: &mut Object<'_>) {
    match value {
        Value::Unsigned(number) => object.plain(name, number),
        Value::Signed(number) => object.plain(name, number),
        Value::Str(text) => object.text(name, &String::from_utf8_lossy(text)),
        Value::Bytes(bytes) => object.text(name, &hex(bytes)),
        Value::Array(elements) => {
            let numbers: Vec<String> = elements.iter().map(|number| number.to_string()).collect();
            object.plain(name, format_args!("[{}]", numbers.join(",")));
        }
    }
}

/// Two digits for each byte.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
