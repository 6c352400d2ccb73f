//! Descriptions of tracepoints: any text is read or refused, and what is compiled prints any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_events::tracepoint::{Context, Format, Machine, NoSymbols, PrintFmt, PrintkFormats};
use rperf_wire::Endian;

fuzz_target!(|input: (&str, bool, &[u8])| {
    let (text, big, raw) = input;
    let Ok(format) = Format::parse(text) else {
        return;
    };
    let endian = if big { Endian::Big } else { Endian::Little };
    for field in format.common_fields.iter().chain(&format.fields) {
        let _value = field.value(raw, endian);
    }
    let machine = Machine {
        endian,
        long_size: 8,
    };
    let program = PrintFmt::compile(&format, machine);
    let context = Context {
        symbols: &NoSymbols,
        printk: &PrintkFormats::default(),
    };
    let mut out = Vec::new();
    program.write(raw, &context, &mut out);
});
