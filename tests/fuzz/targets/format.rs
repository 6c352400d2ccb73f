//! Tracepoint formats: any text is parsed or refused, and the result decodes and prints any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_tracepoint::typed::EventLayout;
use rperf_tracepoint::{Abi, NoSymbols, PrintContext, PrintkFormats, Tracepoint, ValueNames};
use rperf_wire::Endian;

// The input is the text of a format file, then optionally a NUL, a byte of flags (bit 0: big-endian, bit 1: a long has 4 bytes)
// and the bytes of a record.
fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let text = parts.next().unwrap_or_default();
    let (flags, raw) = parts
        .next()
        .and_then(<[u8]>::split_first)
        .unwrap_or((&0, &[]));
    let endian = if flags & 1 == 1 {
        Endian::Big
    } else {
        Endian::Little
    };
    let long_size = if flags & 2 == 2 { 4 } else { 8 };
    let abi = Abi { endian, long_size };
    let system = "";
    let Ok(mut tracepoint) = Tracepoint::parse(system, text, abi) else {
        return;
    };
    for field in &tracepoint.format.common_fields {
        let _value = field.reader(endian).value(raw);
    }
    for (field, reader) in tracepoint.fields() {
        let _value = reader.value(raw);
        if let Some(names) = ValueNames::of(&tracepoint.format, &field.name) {
            let mut text = String::new();
            let value = reader.u64(raw).unwrap_or_default();
            names.write(value, &mut text).expect("memory");
        }
    }
    let context = PrintContext {
        symbols: &NoSymbols,
        printk: &PrintkFormats::default(),
    };
    let mut out = Vec::new();
    tracepoint.print_fmt().write(raw, &context, &mut out);
    // Typed events are found by `system:name`. The text has only the name, so the system of the first event of that name is used.
    let mut declared = EventLayout::tracepoints().filter_map(|name| name.split_once(':'));
    if let Some((system, _)) = declared.find(|(_, name)| *name == tracepoint.format.name) {
        tracepoint.system = system.to_owned();
    }
    if let Ok(Some(layout)) = EventLayout::resolve(&tracepoint)
        && let Some(event) = layout.read(raw)
    {
        // Reads every field.
        let _text = format!("{event:?}");
    }
});
