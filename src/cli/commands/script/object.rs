//! `script --json`: one JSON object per line for each sample, with the fields of `-F` as members.
//!
//! Times are in nanoseconds; addresses, `dsoff` and `data_src` are strings with `0x`. As in stacks of the text format, the
//! address of a frame is an address in its DSO; frames of the kernel and frames without a DSO have the recorded address. A
//! tracepoint's payload is included as text (`trace`) and by field (the member `fields`; variables of this name are the fields of
//! `-F`). For `--csv` and `--template`, a row is made from each JSON object.

use std::fmt::Write as _;

use rperf_export::json::JsonObject;
use rperf_lines::{LineField, LineFields, ResolvedAddress, SampleLine};
use rperf_replay::Sample;
use rperf_tracepoint::Value;
use rperf_view::script::ScriptBlock;

use super::plan::EventPlan;
use super::rows;
use super::text::{SampleText, ShownSample, TextBuffers};
use crate::cli::error::CliError;

/// The version of the JSON objects. It changes when a member is removed or changes its meaning; new members may be added
/// at any time.
const JSON_VERSION: u64 = 1;

/// Refuses fields that JSON objects and rows do not have. `option`, for the error, is the option that selects objects or rows.
///
/// # Errors
///
/// A usage error that names the field.
pub(super) fn check(fields: LineFields, option: &str) -> Result<(), CliError> {
    match rows::first_without_member(fields) {
        None => Ok(()),
        Some(field) => Err(CliError::usage(format!(
            "{option} has no field '{}'",
            field.name()
        ))),
    }
}

/// Appends the JSON object of a frame, and a comma.
pub(super) fn frame(fields: LineFields, address: &ResolvedAddress<'_>, out: &mut Vec<u8>) {
    let mut object = JsonObject::new(out);
    object.hex("address", address.shown_address);
    location(fields, address, &mut object);
    object.finish();
    out.push(b',');
}

/// Appends the symbol and the DSO of an address, as far as known and requested.
fn location(fields: LineFields, address: &ResolvedAddress<'_>, object: &mut JsonObject<'_>) {
    if let Some(symbol) = address.symbol.filter(|_| fields.has(LineField::Sym)) {
        object.text("symbol", symbol.name);
        if fields.has(LineField::Symoff) && !address.inlined {
            object.plain("offset", symbol.offset);
        }
    }
    // The object of an address is its DSO, not a JSON object.
    if let Some(name) = address.object.filter(|_| fields.has(LineField::Dso)) {
        object.text("dso", name);
        if address.is_object_offset && fields.has(LineField::Dsoff) {
            object.hex(LineField::Dsoff.name(), address.shown_address);
        }
    }
    if address.inlined {
        object.plain("inlined", true);
    }
}

impl SampleText<'_, '_> {
    /// Appends a sample, as a JSON object or as a row.
    pub(super) fn object(
        &self,
        shown: &ShownSample<'_>,
        scratch: &mut TextBuffers,
        block: &mut ScriptBlock,
    ) {
        let &ShownSample {
            event,
            sample,
            line,
            task,
        } = shown;
        let fields = event.layout.fields();
        let start_of_object = block.text.len();
        let mut object = JsonObject::new(&mut block.text);
        object.plain("version", JSON_VERSION);
        common_members(event, line, &mut object);
        if fields.has(LineField::Trace) {
            self.payload(sample, &mut object);
        }
        if let Some(raw) = sample.wire.raw.filter(|_| event.shows_bpf_output) {
            object.text(LineField::BpfOutput.name(), &hex(raw));
        }
        memory(event, sample, &mut object);
        if let Some(id) = sample.wire.cgroup.filter(|_| fields.has(LineField::Cgroup))
            && let Some(name) = self.resolver.world().cgroup(id)
        {
            object.text(LineField::Cgroup.name(), name);
        }
        if fields.has(LineField::Ip) {
            match sample.wire.callchain {
                Some(_) if event.layout.has_frame_lines() => {
                    let out = object.member("callchain");
                    out.push(b'[');
                    // For JSON objects and rows, `frames` calls [`frame`], which ends each frame with a comma.
                    self.frames(event, sample, task, scratch, out);
                    if out.last() == Some(&b',') {
                        out.pop();
                    }
                    out.push(b']');
                }
                _ => {
                    let ip = sample.wire.ip.unwrap_or_default();
                    let frame = self.resolver.locate(task.at, sample.cpu_mode(), ip);
                    object.hex("ip", ip);
                    location(fields, &self.lines.resolved(&frame), &mut object);
                }
            }
        }
        object.finish();
        match &self.plan.rows {
            // Replaces the JSON object by a row.
            Some(rows) => rows.replace(&mut block.text, start_of_object),
            None => block.text.push(b'\n'),
        }
    }

    /// Appends the payload of a tracepoint.
    fn payload(&self, sample: &Sample<'_>, object: &mut JsonObject<'_>) {
        let payloads = &self.plan.payloads;
        let (Some(raw), Some(tracepoint)) = (sample.wire.raw, payloads.tracepoint(sample.event))
        else {
            return;
        };
        let mut text = Vec::new();
        payloads.write(sample.event, raw, self.resolver, &mut text);
        object.text("trace", String::from_utf8_lossy(&text).trim());
        let mut inner = JsonObject::new(object.member("fields"));
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

/// Appends time, task, CPU, event and period. A time or CPU with the highest value was not recorded; an unrecorded pid or tid
/// is -1.
fn common_members(event: &EventPlan, line: &SampleLine<'_>, object: &mut JsonObject<'_>) {
    let fields = event.layout.fields();
    if fields.has(LineField::Time) && line.time != u64::MAX {
        object.plain("time", line.time);
    }
    if fields.has(LineField::Comm) {
        object.text("comm", line.comm);
    }
    // Each is of little use without the other.
    if fields.has(LineField::Pid) || fields.has(LineField::Tid) {
        object.plain("pid", line.pid.cast_signed());
        object.plain("tid", line.tid.cast_signed());
    }
    if fields.has(LineField::Cpu) && line.cpu != u32::MAX {
        object.plain("cpu", line.cpu);
    }
    if fields.has(LineField::Event) {
        object.text("event", &event.name);
    }
    if fields.has(LineField::Period) {
        object.plain("period", line.period);
    }
}

/// Appends the data of the memory access, as far as recorded and requested.
fn memory(event: &EventPlan, sample: &Sample<'_>, object: &mut JsonObject<'_>) {
    let fields = event.layout.fields();
    let wire = &sample.wire;
    let (weight, latency, retirement) = match wire.weight {
        Some(parts) if event.weight_parts => {
            // From the lowest bits: 32 bits of the weight, 16 of the latency, 16 of the retirement latency.
            let (mask_32, mask_16) = (u64::from(u32::MAX), u64::from(u16::MAX));
            (
                Some(parts & mask_32),
                Some(parts >> 32 & mask_16),
                Some(parts >> 48),
            )
        }
        whole => (whole, None, None),
    };
    for (field, value) in [
        (LineField::Addr, wire.addr),
        (LineField::DataSrc, wire.data_src),
        (LineField::PhysAddr, wire.phys_addr),
    ] {
        if let Some(value) = value.filter(|_| fields.has(field)) {
            object.hex(field.name(), value);
        }
    }
    for (field, value) in [
        (LineField::Weight, weight),
        (LineField::InsLat, latency),
        (LineField::RetireLat, retirement),
        (LineField::DataPageSize, wire.data_page_size),
        (LineField::CodePageSize, wire.code_page_size),
    ] {
        if let Some(value) = value.filter(|_| fields.has(field)) {
            object.plain(field.name(), value);
        }
    }
}

/// Appends a field of a tracepoint.
fn member(name: &str, value: Value<'_>, object: &mut JsonObject<'_>) {
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

/// Two hexadecimal digits for each byte.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
