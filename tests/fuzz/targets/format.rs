//! Descriptions of tracepoints: any text is read or refused, and what is compiled prints any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_tracepoint::{Context, Format, Abi, NoSymbols, PrintFmt, PrintkFormats};
use rperf_wire::Endian;

// A description as the kernel shows it; behind a NUL the byte order, the size of a long, and a record's bytes.
fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let (how, raw) = parts
        .next()
        .and_then(<[u8]>::split_first)
        .unwrap_or((&0, &[]));
    let endian = if how & 1 == 1 {
        Endian::Big
    } else {
        Endian::Little
    };
    let long_size = if how & 2 == 2 { 4 } else { 8 };
    let Ok(format) = Format::parse(&text, usize::from(long_size)) else {
        return;
    };
    for field in format.common_fields.iter().chain(&format.fields) {
        let _value = field.reader(endian).value(raw);
    }
    let abi = Abi { endian, long_size };
    let program = PrintFmt::compile(&format, abi);
    let context = Context {
        symbols: &NoSymbols,
        printk: &PrintkFormats::default(),
    };
    let mut out = Vec::new();
    program.write(raw, &context, &mut out);
});
