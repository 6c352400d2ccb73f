//! Debug information: any sections yield lines and inlined functions, or none.

#![no_main]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rperf_fuzz::{Disk, OBJECT, Parts, addresses};
use rperf_symbol::dwarf::{DieScanner, FunctionEntries, WantedNames};
use rperf_symbol::{
    Budget, DebugInfo, FunctionQuery, LineIndex, ObjectKind, ObjectRequest, SearchPaths,
    UnitPrefilter, load,
};

// The input is in the format of `Parts`.
fuzz_target!(|bytes: &[u8]| {
    let disk = Disk::of(&Parts::of(bytes));
    let build_id_cache = None;
    let paths = SearchPaths::new(build_id_cache);
    let request = ObjectRequest::new(Path::new(OBJECT), ObjectKind::User);
    let loaded = load(&disk, &paths, &request);
    let Some(source) = &loaded.debug else {
        return;
    };
    // The budget is in bytes, for decompressed sections and parsed units.
    if let Some(lines) = LineIndex::open(&disk, &paths, source, &Budget::new(1 << 20)) {
        let mut frames = Vec::new();
        // In an object of kind `User`, code is looked up by file offset.
        for (_address, offset) in addresses(&disk.object) {
            lines.frames(&disk, offset, &mut frames);
        }
        for frame in &frames {
            let _name = frame.function.map(|id| lines.function_name(id));
            let _file = frame.file.map(|id| lines.file(id));
        }
        let _findings = lines.findings();
    }
    if let Some(info) = DebugInfo::open(&disk, &paths, source) {
        read_entries(&disk, &info);
    }
});

/// Reads the entries of functions in all units, and again in those that may have the function of a query.
fn read_entries(disk: &Disk, info: &DebugInfo) {
    // A condition that some names meet, `work` among them.
    let has_o = |name: &str| name.contains('o');
    let query = FunctionQuery {
        // The start of `work`, a function of the seeds' program.
        start: "wor",
        matches: &has_o,
        // Called only for units whose functions may have their names in other units; here, each such unit matches.
        is_in_unit: &|_| true,
    };
    for function in [None, Some(query)] {
        let prefilter = UnitPrefilter {
            threads: NonZeroUsize::MIN,
            function,
            // No further criterion.
            keep: None,
        };
        info.for_each_unit(disk, &prefilter, &mut |unit| {
            let names = WantedNames {
                is_wanted: &has_o,
                cached_names: unit.cached_names,
                // Names in other units are always wanted.
                has_wanted_name: &|_| true,
            };
            let header = &unit.unit.header;
            // Without wanted names, functions with code are read.
            let _with_code = FunctionEntries::read(unit.dwarf, header, None);
            let _named = FunctionEntries::read(unit.dwarf, header, Some(names));
            // Both scanners read entries with any tag.
            if let Some(scanner) = DieScanner::new(unit.dwarf, header, &|_| true) {
                // An instance is an entry with an abstract origin, inlined or not.
                scanner.for_each_instance(&mut |_, _| {});
            }
            if let Some(mut scanner) = DieScanner::new(unit.dwarf, header, &|_| true) {
                // Some inlined calls are skipped: those in files with odd indexes.
                while let Some(entry) = scanner.next_unless(&mut |call| call.file & 1 == 1) {
                    let _named = scanner.has_name(&entry.names, &has_o);
                }
            }
            ControlFlow::Continue(())
        });
    }
}
