//! Names of kernel locks: of variables, and of locks that BPF programs recognize. Selection of locks by name or address (`-L`).

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use clap::ArgMatches;
use rperf_analysis::lock::{KNOWN_LOCKS, LockSelection};
use rperf_bpf::{LockFilter, LockLayout, LockName};
use rperf_replay::{DsoId, DsoKind};
use rperf_resolve::{Resolver, SymbolId};
use rperf_symbol::{Files as _, Symbol, SymbolKind};

use super::analysis::LockQuery;
use super::details::address_context;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::filter;
use crate::cli::kernel_listing::SystemFiles;

/// The names of locks that BPF programs recognize, as in perf 7.2; slab caches are not in this list.
const KNOWN: [(&str, LockName); 3] = [
    (KNOWN_LOCKS[0], LockName::MmapLock),
    (KNOWN_LOCKS[1], LockName::SigLock),
    (KNOWN_LOCKS[2], LockName::RunQueue),
];

/// Returns the name of a lock that a BPF program recognized; `&CACHE` for a lock of a slab cache.
pub(super) fn text(name: &LockName) -> String {
    match (KNOWN.iter().find(|(_, known)| known == name), name) {
        (Some((text, _)), _) => (*text).to_owned(),
        (None, LockName::Slab(cache)) => format!("&{}", String::from_utf8_lossy(cache)),
        (None, _) => String::new(),
    }
}

/// The variables of the kernel.
pub(super) struct KernelVariables<'n, 'r> {
    resolver: &'n Resolver<'r>,
    /// Whether the symbols include all variables. Kernels without `CONFIG_KALLSYMS_ALL` list only a few in kallsyms. Then a
    /// variable does not extend to the next listed symbol, and only its first byte is known to belong to it.
    are_complete: bool,
}

impl<'n, 'r> KernelVariables<'n, 'r> {
    pub(super) fn new(resolver: &'n Resolver<'r>) -> Self {
        let mut counts = [0, 0];
        for (_, symbol) in kernel_symbols(resolver) {
            let [variables, others] = &mut counts;
            match symbol.kind {
                SymbolKind::Variable => *variables += 1,
                _ => *others += 1,
            }
        }
        Self {
            resolver,
            are_complete: are_complete(counts),
        }
    }

    /// Returns the name of the variable that contains an address; if not all variables are known, only of one that starts there.
    /// `None` if there is no such variable.
    pub(super) fn at(&self, address: u64) -> Option<String> {
        // Without a process, addresses are those of the kernel.
        let process = None;
        let (context, mode) = address_context(process);
        let frame = self.resolver.locate(context, mode, address);
        let symbol = self.resolver.symbol(frame.symbol?)?;
        let is_variable = symbol.kind == SymbolKind::Variable
            && (self.are_complete || symbol.start == frame.address);
        let variable = frame.symbol.filter(|_| is_variable);
        variable.map(|id| self.resolver.symbol_name(id).to_owned())
    }

    /// Returns the address ranges of the variables with this name, of one byte each if not all variables are known.
    fn named(&self, name: &str) -> Vec<Range<u64>> {
        let symbols = kernel_symbols(self.resolver);
        let named = symbols.filter(|(id, symbol)| {
            symbol.kind == SymbolKind::Variable && self.resolver.symbol_name(*id) == name
        });
        let ranges = named.map(|(_, symbol)| {
            let least_end = symbol.start.saturating_add(1);
            match self.are_complete {
                true => symbol.start..symbol.end.max(least_end),
                false => symbol.start..least_end,
            }
        });
        ranges.collect()
    }
}

/// Whether symbols, with these numbers of variables and of others, are assumed to include all variables: at least one for each
/// 100 others. The few variables listed without `CONFIG_KALLSYMS_ALL` are far fewer than that.
fn are_complete([variables, others]: [u64; 2]) -> bool {
    variables.saturating_mul(100) >= others
}

fn kernel_symbols(resolver: &Resolver<'_>) -> impl Iterator<Item = (SymbolId, Symbol)> {
    let dsos = (0..).map(DsoId).zip(resolver.world().dsos());
    let kernels = dsos.filter(|(_, dso)| dso.kind == DsoKind::Kernel);
    kernels.flat_map(|(kernel, _)| resolver.symbols(kernel))
}

/// Parses a word of `-L` as an address: hexadecimal digits, with or without `0x`.
fn address(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    u64::from_str_radix(digits, 16).ok()
}

/// Returns the addresses of `-L`, empty if it has only names; `None` without this option.
pub(super) fn addresses(matches: &ArgMatches) -> Option<Vec<Range<u64>>> {
    let given = filter::words(matches, "lock-filter")?.into_iter();
    let addresses = given.filter_map(|word| address(&word));
    Some(
        addresses
            .map(|first| first..first.saturating_add(1))
            .collect(),
    )
}

/// Returns the names of `-L`.
pub(super) fn names(matches: &ArgMatches) -> Vec<String> {
    let words = filter::words(matches, "lock-filter").unwrap_or_default();
    words
        .into_iter()
        .filter(|word| address(word).is_none())
        .collect()
}

/// Returns the query's selection for a recording, extended by the names of `-L`. Variables are selected by address, locks that
/// BPF programs recognize (`mmap_lock`, `&CACHE`) by name. `has_lock_records` is whether the recording has captured waits
/// (samples that BPF programs write): only these have such names.
///
/// # Errors
///
/// The recording's kernel has no variable with one of the names. Or a name is one that BPF programs recognize, but the recording
/// has no captured waits.
pub(super) fn selection(
    query: &LockQuery,
    resolver: &Resolver<'_>,
    has_lock_records: bool,
) -> Result<LockSelection, CliError> {
    let mut selection = query.selection.clone();
    if query.lock_names.is_empty() {
        return Ok(selection);
    }
    let variables = KernelVariables::new(resolver);
    for name in &query.lock_names {
        if KNOWN_LOCKS.contains(&name.as_str()) || name.starts_with('&') {
            if !has_lock_records {
                let message =
                    format!("--lock-filter: the recording has no names of locks, such as '{name}'");
                return Err(CliError::message(255, message)
                    .hint("record with 'lock record --owners', as root; -L also takes addresses"));
            }
            // Names are only used if there is a list of addresses, which may be empty.
            selection.addresses.get_or_insert_default();
            selection.names.push(name.clone());
            continue;
        }
        let ranges = variables.named(name);
        if ranges.is_empty() {
            return Err(unknown(name, "of the recording's kernel"));
        }
        selection.addresses.get_or_insert_default().extend(ranges);
    }
    Ok(selection)
}

/// Returns the filter of `-L` for the running kernel; `None` without this option.
///
/// # Errors
///
/// A name is neither that of a variable of the kernel nor that of locks that BPF programs can recognize in this kernel.
pub(super) fn live_filter(
    query: &LockQuery,
    layout: Option<&LockLayout>,
    context: &Context,
) -> Result<Option<LockFilter>, CliError> {
    let Some(addresses) = &query.selection.addresses else {
        return Ok(None);
    };
    let mut filter = LockFilter {
        addresses: addresses
            .iter()
            .map(|range| (range.start, range.end))
            .collect(),
        names: Vec::new(),
    };
    for word in &query.lock_names {
        let known = KNOWN.iter().find(|(text, _)| text == word);
        let known = known.map(|(_, name)| name.clone());
        let cache = word.strip_prefix('&');
        let cache = cache.map(|cache| LockName::Slab(cache.as_bytes().to_vec()));
        match known.or(cache) {
            Some(name) if layout.is_some_and(|layout| is_recognized(layout, &name)) => {
                filter.names.push(name);
            }
            Some(_) => {
                let message =
                    format!("--lock-filter: this kernel does not let programs recognize '{word}'");
                return Err(CliError::message(255, message)
                    .hint("-L also takes addresses, which 'lock contention -l' shows"));
            }
            None => {
                let ranges = variable_addresses(word, context);
                if ranges.is_empty() {
                    return Err(unknown(word, "of the running kernel"));
                }
                filter.addresses.extend(ranges);
            }
        }
    }
    Ok(Some(filter))
}

fn is_recognized(layout: &LockLayout, name: &LockName) -> bool {
    match name {
        LockName::Slab(_) => layout.slab.is_some(),
        LockName::RunQueue => layout.run_queue.is_some(),
        _ => true,
    }
}

fn unknown(name: &str, of_kernel: &str) -> CliError {
    let message =
        format!("--lock-filter: '{name}' is neither an address nor a variable {of_kernel}");
    CliError::usage(message).hint("'lock contention -l' shows the addresses and names of locks; kernels without CONFIG_KALLSYMS_ALL list few variables. Of the running system, and of recordings with 'lock record --owners', mmap_lock, siglock, rq_lock and '&CACHE' are known, too")
}

/// A symbol of `/proc/kallsyms`; symbols are sorted by address.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ListedSymbol {
    address: u64,
    is_variable: bool,
    /// Whether it is a variable with the name that is looked for.
    is_wanted: bool,
}

/// Returns the ranges of the running kernel's variables with this name. Empty if the kernel hides addresses from this user.
fn variable_addresses(name: &str, context: &Context) -> Vec<(u64, u64)> {
    let files = SystemFiles::new(context.buildid_dir());
    match files.open(Path::new("/proc/kallsyms")) {
        Ok(listing) => variables_in(BufReader::new(listing), name),
        Err(_) => Vec::new(),
    }
}

/// Returns the ranges of the variables with this name in text of `/proc/kallsyms`. Each extends to the next symbol; it is one
/// byte if no symbol follows, or if not all variables are listed.
fn variables_in(listing: impl BufRead, name: &str) -> Vec<(u64, u64)> {
    let lines = listing.lines().map_while(Result::ok);
    let symbols = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let (address, kind, symbol) = (words.next()?, words.next()?, words.next()?);
        let address = u64::from_str_radix(address, 16).ok();
        let address = address.filter(|address| *address != 0)?;
        let is_variable = matches!(kind, "B" | "b" | "D" | "d");
        Some(ListedSymbol {
            address,
            is_variable,
            is_wanted: is_variable && symbol == name,
        })
    });
    let mut symbols: Vec<ListedSymbol> = symbols.collect();
    symbols.sort_unstable();
    let variables = symbols.iter().filter(|symbol| symbol.is_variable);
    let variables = variables.count() as u64;
    let are_complete = are_complete([variables, symbols.len() as u64 - variables]);
    let wanted = symbols.iter().filter(|symbol| symbol.is_wanted);
    let ranges = wanted.map(|symbol| {
        let start = symbol.address;
        let next = symbols.partition_point(|other| other.address <= start);
        let next = symbols.get(next).filter(|_| are_complete);
        let end = next.map_or(start.saturating_add(1), |next| next.address);
        (start, end)
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_are_found_by_name() {
        let listing = "ffffffff81000000 T outer\nffffffff81000100 t inner\nffffffff82000000 D lock\nffffffff82000010 b inner\n";
        let ranges = |name| variables_in(listing.as_bytes(), name);
        assert_eq!(ranges("outer"), []);
        assert_eq!(
            ranges("lock"),
            [(0xffff_ffff_8200_0000, 0xffff_ffff_8200_0010)]
        );
        assert_eq!(
            ranges("inner"),
            [(0xffff_ffff_8200_0010, 0xffff_ffff_8200_0011)]
        );
    }
}
