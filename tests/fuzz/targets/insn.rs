//! Decoding and disassembly of any bytes: no panic, and no instruction is longer than the bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_insn::{Isa, MAX_LEN, Printer, Syntax, decode};

fuzz_target!(|input: (u64, &[u8])| {
    let (address, code) = input;
    for isa in [Isa::X86_64, Isa::X86, Isa::Arm64] {
        for syntax in [Syntax::Att, Syntax::Intel] {
            let mut printer = Printer::new(isa, syntax);
            let mut text = String::new();
            let (mut rest, mut at) = (code, address);
            while let Some(printed) = printer.print(at, rest, &mut text) {
                assert!((1..=rest.len()).contains(&printed.len), "{isa:?} {rest:x?}");
                if let Some(insn) = decode(isa, rest) {
                    assert!(
                        (1..=rest.len().min(MAX_LEN)).contains(&insn.len),
                        "{isa:?} {rest:x?}"
                    );
                }
                at = at.wrapping_add(printed.len as u64);
                rest = &rest[printed.len..];
                text.clear();
            }
        }
    }
});
