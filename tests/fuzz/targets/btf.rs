//! BTF: any bytes are parsed or rejected, and queries on the types return.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_btf::Btf;
use rperf_probe::{Kernel, KernelSymbolList, SearchOptions, parse};

const SYMBOLS: &[u8] =
    b"ffffffff81000000 T _text\nffffffff81000100 T work\nffffffff81000200 t leaf\n\
    ffffffff81000300 T walk\nffffffff81000400 T \nffffffffc0000000 t work\t[module]\n";

const DEFINITIONS: [&str; 9] = [
    "work $params",
    "leaf $params",
    "walk $params",
    "work%return $retval",
    "walk it->next->next->name[2]",
    "walk it->a.b it->bits it->deep",
    "walk it->number:x32 it->text:string",
    "work it->next",
    "* $vars",
];

// The input is the BTF of vmlinux, then optionally four bytes 0xff and the BTF of a module, which does not contain that sequence.
fuzz_target!(|bytes: &[u8]| {
    let mark = bytes.windows(4).rposition(|word| word == [0xff; 4]);
    let (vmlinux, module) = match mark {
        Some(at) => (&bytes[..at], Some(&bytes[at + 4..])),
        None => (bytes, None),
    };
    let Ok(types) = Btf::parse(vmlinux) else {
        return;
    };
    let types = match module.map(|module| types.clone().with_module(module)) {
        Some(Ok(with_module)) => with_module,
        _ => types,
    };
    let pointer_size = 8;
    let layouts = types.structures(&["file", "work", ""].into(), pointer_size);
    for layout in layouts.values() {
        let with_names = true;
        let _text = layout.text(&[0x5a; 512], with_names);
    }
    let _names = types.enumeration("mode");
    let symbols = KernelSymbolList::parse(SYMBOLS);
    for machine in ["x86_64", "aarch64", "i686"] {
        let kernel = Kernel {
            symbols: &symbols,
            types: Some(&types),
            // For one of the three machines the functions of the module are searched, otherwise those of vmlinux.
            module: (machine == "i686").then_some("module"),
            machine,
        };
        for text in DEFINITIONS {
            let definition = parse(text).expect("a definition");
            let _found = kernel.find(&definition, &SearchOptions::default());
            let name_filter = None;
            let _listed = kernel.variables(&definition, &SearchOptions::default(), name_filter);
        }
    }
});
