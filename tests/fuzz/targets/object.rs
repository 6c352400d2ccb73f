//! Raw object files: any bytes yield symbols, debug information, unwind information and code, or an error.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rperf_fuzz::{Disk, OBJECT, addresses};
use rperf_insn::{Isa, Printer, Syntax};
use rperf_symbol::{
    Budget, LineIndex, ObjectKind, ObjectRequest, SearchPaths, build_id_of_elf, has_usdt_probes,
    load, object_images,
};

fuzz_target!(|bytes: &[u8]| {
    let disk = Disk::with(bytes);
    let paths = SearchPaths::new(None);
    let _probes = has_usdt_probes(bytes);
    let id = build_id_of_elf(bytes);
    for kind in [ObjectKind::User, ObjectKind::Vdso, ObjectKind::KernelModule] {
        let mut request = ObjectRequest::new(Path::new(OBJECT), kind).with_build_id(id.as_ref());
        request.image = Some(&disk.object);
        // Used for kernel modules only, whose files have no addresses.
        request.map_start = 0xffff_ffff_c000_0000;
        let loaded = load(&disk, &paths, &request);
        for (index, symbol) in loaded.table.iter() {
            assert!(loaded.table.find(symbol.start).is_some(), "{symbol:?}");
            let name = loaded.table.name(index);
            let mut beginnings = loaded.table.name_beginnings(index).into_iter();
            assert!(beginnings.any(|text| name.starts_with(text)), "{name}");
        }
        let _images = object_images(&disk, &paths, &request);
        let Some(source) = &loaded.debug else {
            continue;
        };
        let mut frames = Vec::new();
        if let Some(lines) = LineIndex::open(&disk, &paths, source, &Budget::new(1 << 20)) {
            for (_, offset) in addresses(bytes) {
                lines.frames(&disk, offset, &mut frames);
            }
        }
    }
    // The object is its own separate debug file.
    let _frames = rperf_unwind::FrameInfo::parse(disk.object.clone(), Some(&disk.object));
    let Some(isa) = Isa::of_elf(bytes) else {
        return;
    };
    let mut printer = Printer::new(isa, Syntax::Att);
    let mut text = String::new();
    for (address, offset) in addresses(bytes) {
        let code = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.get(offset..));
        printer.print(address, code.unwrap_or_default(), &mut text);
    }
});
