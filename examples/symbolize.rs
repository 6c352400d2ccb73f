//! Prints the symbols, functions and source lines at addresses of an object, innermost inlined function first. The addresses
//! are file offsets, as for every object of the kind `User`.
//!
//! `cargo run --example symbolize -- target/debug/rperf 0x123456…`
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use anyhow::Context as _;
use rperf_symbol::{
    Budget, FileBytes, Files, LineIndex, ObjectKind, ObjectRequest, SearchPaths, load,
};

/// Reads files for `rperf_symbol`, which opens none itself.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> std::io::Result<FileBytes> {
        std::fs::read(path).map(FileBytes::from)
    }
}

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let object = words.next().context("usage: symbolize OBJECT ADDRESS...")?;

    // The symbols are those of the object or of its debug file, which is looked for where perf does, except in the
    // build-id cache.
    let build_id_cache = None;
    let paths = SearchPaths::new(build_id_cache);
    let loaded = load(
        &Disk,
        &paths,
        &ObjectRequest::new(object.as_ref(), ObjectKind::User),
    );
    // Compilation units are read when an address in them is looked up, and evicted when the budget is exceeded.
    let budget = Budget::new(Budget::DEFAULT_BYTES);
    let lines = loaded
        .debug
        .as_ref()
        .and_then(|source| LineIndex::open(&Disk, &paths, source, &budget));

    for word in words {
        let address = u64::from_str_radix(word.trim_start_matches("0x"), 16).context(word)?;
        match loaded
            .table
            .find(address)
            .and_then(|index| Some((index, loaded.table.get(index)?)))
        {
            Some((index, symbol)) => {
                println!(
                    "{address:#x} {}+{:#x}",
                    loaded.table.name(index),
                    address - symbol.start
                );
            }
            None => println!("{address:#x} [unknown]"),
        }
        let Some(lines) = &lines else { continue };
        let mut frames = Vec::new();
        lines.frames(&Disk, address, &mut frames);
        for frame in frames {
            let function = frame
                .function
                .map_or("??", |name| lines.function_name(name));
            let file = frame.file.map_or("??", |file| lines.file(file));
            println!("    {function} at {file}:{}", frame.line);
        }
    }
    Ok(())
}
