//! Listings by the kernel and JIT compilers: kallsyms, perf maps and jitdump.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_probe::KernelSymbolList;
use rperf_symbol::{FileBytes, jit_dump, kallsyms, perf_map};

fuzz_target!(|bytes: &[u8]| {
    // A symbol and its address while recording: the kernel's symbols are moved so that it gets this address.
    let relocation = Some(("_text", 0x1000));
    // Parsing the whole listing and reading it incrementally have the same result.
    let parsed = kallsyms::parse(bytes, relocation);
    let mut source = bytes;
    let read = kallsyms::read(&mut source, relocation).expect("memory");
    assert!(parsed.kernel.iter().eq(read.kernel.iter()));
    let symbols = KernelSymbolList::parse(bytes);
    let kernel_itself = None;
    for function in symbols.functions(kernel_itself).take(50) {
        let _at = symbols.at(function.address.wrapping_add(1));
        let _place = symbols.resolve(&format!("{}+1", function.name));
    }
    let map = perf_map::parse(bytes);
    for (index, symbol) in map.table.iter().take(200) {
        let _name = (map.table.name(index), map.table.find(symbol.start));
    }
    let dump = || jit_dump::parse(&FileBytes::from(bytes.to_vec()));
    // The functions that exist after the last record, by address; and all functions, by number.
    for (table, code) in dump()
        .map(jit_dump::JitDump::last_functions)
        .into_iter()
        .chain(dump().map(jit_dump::JitDump::into_numbered))
    {
        for (index, symbol) in table.iter().take(50) {
            let _found = (table.find(symbol.start), table.name(index));
            for offset in [0, 1, symbol.end.wrapping_sub(symbol.start)] {
                let _line = code.line(index, offset);
            }
            if let Some(image) = code.image(index) {
                assert!(image.file.get(image.text.clone()).is_some());
                let _frames = rperf_unwind::FrameInfo::parse(image.file, None);
            }
        }
    }
});
