//! Dynamic probes: for any object, debug information and USDT notes, a definition resolves to addresses and values or
//! fails.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rperf_fuzz::{Disk, Extra, OBJECT, Parts, addresses};
use rperf_probe::{
    LineRange, NameFilter, ObjectInputs, ProbeObject, SearchOptions, VariableOptions, describe,
    find, functions, kernel_image_target, lines, marker_cache_text, markers, parse, variables,
};
use rperf_symbol::{DebugInfo, ObjectKind, ObjectRequest, SearchPaths, load};

/// The definitions if the input has none.
const DEFAULT_DEFINITIONS: &str = "* $vars\n*%return $retval\n%*\n*;*\n*:1 $params\n0x1004 $vars";

/// The maximum number of definitions that are used of one input.
const MAX_DEFINITIONS: usize = 8;

// The input is in the format of `Parts`. Bit 3 of its first byte is set if the object is a kernel image or module.
fuzz_target!(|bytes: &[u8]| {
    let parts = Parts::of(bytes);
    let disk = Disk::of(&parts);
    let build_id_cache = None;
    let paths = SearchPaths::new(build_id_cache);
    // Not `Kernel` even for a kernel image, which is a file here: that kind is for the run-time addresses of kallsyms.
    let request = ObjectRequest::new(Path::new(OBJECT), ObjectKind::User);
    let loaded = load(&disk, &paths, &request);
    let info = loaded
        .debug
        .as_ref()
        .and_then(|source| DebugInfo::open(&disk, &paths, source));
    for info in [None, info.as_ref()] {
        let inputs = ObjectInputs {
            files: &disk,
            path: Path::new(OBJECT),
            bytes: &disk.object,
            symbols: &loaded.table,
            info,
            is_kernel: bytes.first().is_some_and(|flags| flags & 8 != 0),
        };
        if let Ok(object) = ProbeObject::parse(inputs) {
            run_queries(&object, &parts);
            // One address in five, to save time.
            let described = addresses(&disk.object).into_iter().step_by(5);
            for (_address, offset) in described {
                let _described = describe(&object, offset);
            }
        }
    }
});

fn run_queries(object: &ProbeObject<'_>, parts: &Parts<'_>) {
    let _markers = markers(object);
    let _list = marker_cache_text(object, Path::new(OBJECT));
    let filter = NameFilter::parse("*o* & !_*").ok();
    let _functions = functions(object, filter.as_ref());
    let options = SearchOptions::default();
    let text = String::from_utf8_lossy(parts.extra(Extra::Definitions));
    let definitions = if text.is_empty() {
        DEFAULT_DEFINITIONS
    } else {
        &text
    };
    // As for the image of the running kernel itself: targets are relative to `_text` if the object has that symbol.
    let (module, is_running) = (None, true);
    for line in definitions.lines().take(MAX_DEFINITIONS) {
        if let Ok(range) = LineRange::parse(line) {
            let _lines = lines(object, &range, &options);
        }
        let Ok(definition) = parse(line) else {
            continue;
        };
        for probe in find(object, &definition, &options)
            .into_iter()
            .flat_map(|found| found.probes)
        {
            let _target = kernel_image_target(object, &probe, module, is_running);
        }
        let variable_options = VariableOptions {
            externs: true,
            ranges: true,
            filter: None,
        };
        let _variables = variables(object, &definition, &options, &variable_options);
    }
}
