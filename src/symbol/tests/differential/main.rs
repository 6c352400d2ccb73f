//! Symbols compared with Linux perf 6.1; lines and inlined functions with addr2line; DWARF entries with gimli.

#![expect(clippy::print_stderr, reason = "a skipped test prints the reason")]

mod die_scanner;
mod elf;
mod kernel;
mod lines;
mod perf_data;
mod perf_map;
mod second_oracle;
mod vdso;

use std::io;
use std::path::{Path, PathBuf};

use rperf_symbol::{FileBytes, Files, LoadedSymbols};

use perf_data::{FoundSymbol, Mapping, perf_symbols_at};

/// Files on disk.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<FileBytes> {
        if !path.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        std::fs::read(path).map(FileBytes::from)
    }
}

/// Creates the empty directory `name`, removing an existing one.
fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&dir));
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    dir
}

/// Addresses to look up: around the boundaries of all symbols, and in their middle.
fn boundary_addresses(loaded: &LoadedSymbols) -> Vec<u64> {
    let mut addresses = Vec::new();
    for (_, symbol) in loaded.table.iter() {
        let middle = symbol.start + (symbol.end - symbol.start) / 2;
        addresses.extend([
            symbol.start.saturating_sub(1),
            symbol.start,
            middle,
            symbol.end.saturating_sub(1),
            symbol.end,
        ]);
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn rperf_symbol_at(
    loaded: &LoadedSymbols,
    mapping: &Mapping<'_>,
    address: u64,
) -> Option<FoundSymbol> {
    let index = loaded.table.find(address)?;
    let symbol = loaded.table.get(index)?;
    let mut offset = address - symbol.start;
    if address >= symbol.end {
        // Only symbols without size get here; for these, perf subtracts the mapping's start from the offset.
        offset = offset.wrapping_sub(mapping.start);
    }
    Some(FoundSymbol {
        name: loaded.table.name(index).into_owned(),
        offset,
    })
}

/// Compares the symbols at the [`boundary_addresses`] in `mapping`, and returns the differences as text. perf reads a perf.data
/// that is written to `dir`; `options` are passed to `perf script`.
fn differences(
    loaded: &LoadedSymbols,
    dir: &Path,
    mapping: &Mapping<'_>,
    options: &[&str],
) -> Vec<String> {
    // The mapping's first byte is at `pgoff` in the table, and at `start` in the process, where perf looks up addresses.
    let to_ip = |address: u64| {
        address
            .wrapping_sub(mapping.pgoff)
            .wrapping_add(mapping.start)
    };
    let inside =
        |address: &u64| *address >= mapping.pgoff && *address - mapping.pgoff < mapping.len;
    let addresses: Vec<u64> = boundary_addresses(loaded)
        .into_iter()
        .filter(inside)
        .collect();
    let ips: Vec<u64> = addresses.iter().map(|&address| to_ip(address)).collect();
    let theirs = perf_symbols_at(dir, mapping, &ips, options);
    let compared = addresses.iter().zip(theirs);
    compared
        .filter_map(|(&address, theirs)| {
            let ours = rperf_symbol_at(loaded, mapping, address);
            (ours != theirs).then(|| format!("{address:#x}: ours {ours:?}, perf's {theirs:?}"))
        })
        .collect()
}

/// Fails if there are differences, with the first few of them as the message.
fn assert_no_differences(title: &str, differences: &[String]) {
    let first: Vec<_> = differences.iter().take(20).cloned().collect();
    assert!(
        differences.is_empty(),
        "{title}: {} differ:\n{}",
        differences.len(),
        first.join("\n")
    );
}
