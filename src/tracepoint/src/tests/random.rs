//! Robustness against random texts and bytes.

use proptest::prelude::*;
use rperf_wire::Endian;

use crate::{Abi, Format, NoSymbols, PrintContext, PrintFmt, PrintkFormats, ValueNames};

/// Fragments of real formats, to be combined.
const PIECES: [&str; 34] = [
    "\"",
    "\"%s %d %p\"",
    "\"%*pbl%pISpc\"",
    "%",
    "\\",
    "REC->a",
    "REC->b",
    "REC->c",
    "REC",
    "->",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "?",
    ":",
    "+",
    "-",
    "*",
    "/",
    "<<",
    "|",
    "&&",
    "~",
    "!",
    "(u32)",
    "1UL",
    "__print_flags(",
    "__print_symbolic(",
    "__get_dynamic_array(c)",
    "__print_hex(",
];

/// The beginning of a format file, with fields of the names that [`PIECES`] refer to.
const FIELDS: &str = "name: x\nID: 1\nformat:\n\
    \tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:char b[8];\toffset:12;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc u64[] c;\toffset:20;\tsize:4;\tsigned:0;\n";

/// Evaluates the `print fmt` and all fields of the format `text`, if it can be parsed; the output is ignored.
fn print(text: &str, raw: &[u8]) {
    let long_size = 8;
    let Ok(format) = Format::parse(text, long_size) else {
        return;
    };
    let context = PrintContext {
        symbols: &NoSymbols,
        printk: &PrintkFormats::default(),
    };
    // The second size of a long differs from the one used for parsing.
    for (endian, long_size) in [(Endian::Little, 8), (Endian::Big, 4)] {
        let abi = Abi { endian, long_size };
        let mut out = Vec::new();
        PrintFmt::compile(&format, abi).write(raw, &context, &mut out);
        for field in &format.fields {
            let _ = field.reader(endian).value(raw);
            if let Some(names) = ValueNames::of(&format, &field.name) {
                let mut text = String::new();
                let any_value = raw.len() as u64;
                names.write(any_value, &mut text).expect("memory");
            }
        }
    }
}

proptest! {
    #[test]
    fn no_print_fmt_or_record_panics(
        pieces in prop::collection::vec(0..PIECES.len(), 0..40),
        raw in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let pieces: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        print(&format!("{FIELDS}\nprint fmt: \"%s%d\", {pieces}\n"), &raw);
        print(&format!("{FIELDS}\nprint fmt: {pieces}\n"), &raw);
    }

    #[test]
    fn no_format_file_panics(text in "[ -~\n\t]{0,200}", raw in prop::collection::vec(any::<u8>(), 0..80)) {
        print(&format!("name: x\nID: 1\nformat:\n\tfield:{text}"), &raw);
        print(&format!("{FIELDS}\nprint fmt: \"{text}\", REC->a, REC->b, REC->c, 1, 2"), &raw);
    }
}
