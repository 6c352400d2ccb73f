//! `--list`: the events that exist, with the places that users would name.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_events::matches_pattern;
use rperf_probe::{Existing, ExistingPlace, KernelSymbols, describe};
use rperf_symbol::{Files as _, SearchPaths};

use super::delete::{is_in, whole};
use super::tables::Tables;
use super::target::{Binary, named};
use super::{cached, on};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::files::DiskFiles;
use crate::cli::options::flag;

/// Prints the events that `pattern` covers.
pub(super) fn run(
    pattern: &str,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Exit, CliError> {
    let within = named(matches, context)?;
    if on(matches, "cache") {
        return cached::list(pattern, &within, context);
    }
    let mut existing = Tables::find(context).existing()?;
    existing.retain(|(event, _)| is_in(event, &within));
    let whole = whole(pattern);
    let mut paths = SearchPaths::new(context.buildid_dir());
    paths.demangle = flag(matches, "demangle") != Some(false);
    let mut binaries = BTreeMap::new();
    let is_of_kernel = |event: &Existing| matches!(event.place, ExistingPlace::Kernel(_));
    let listing = match existing.iter().any(|(event, _)| is_of_kernel(event)) {
        true => DiskFiles.read(Path::new("/proc/kallsyms")).ok(),
        false => None,
    };
    let symbols = listing
        .as_deref()
        .map(KernelSymbols::parse)
        .unwrap_or_default();
    let mut out = context.stdout();
    let mut any = false;
    for (event, _) in &existing {
        if !matches_pattern(&whole, &event.full_name()) {
            continue;
        }
        any = true;
        if let ExistingPlace::File { path, .. } = &event.place {
            let open = || Binary::at(PathBuf::from(path), &paths).ok();
            binaries.entry(path.clone()).or_insert_with(open);
        }
        let told = match &event.place {
            ExistingPlace::File { path, offset } => {
                let binary = binaries.get(path).and_then(Option::as_ref);
                in_program(event, path, *offset, binary)
            }
            ExistingPlace::Kernel(place) => in_kernel(event, place, &symbols),
        };
        writeln!(out, "  {:<20} {told}", event.full_name())?;
    }
    out.flush()?;
    if !any && !existing.is_empty() {
        context.note(format_args!("no probe event is named {pattern}"));
    }
    Ok(Exit::Ok)
}

/// ` with n s`.
fn with(event: &Existing) -> String {
    match event.fields.as_slice() {
        [] => String::new(),
        fields => format!(" with {}", fields.join(" ")),
    }
}

/// `(on vfs_read+4 with arg1)`, `(on start in veth)`.
fn in_kernel(event: &Existing, place: &str, symbols: &KernelSymbols<'_>) -> String {
    let suffix = if event.is_return { "%return" } else { "" };
    let with = with(event);
    let (module, place) = match place.split_once(':') {
        Some((module, place)) => (Some(module), place),
        None => (None, place),
    };
    let place = match symbols.resolve(place).filter(|_| module.is_none()) {
        Some((symbol, 0)) => symbol.name.to_owned(),
        Some((symbol, offset)) => format!("{}+{offset}", symbol.name),
        None => place.strip_suffix("+0").unwrap_or(place).to_owned(),
    };
    let within = module
        .map(|module| format!(" in {module}"))
        .unwrap_or_default();
    format!("(on {place}{suffix}{within}{with})")
}

/// `(on leaf:4@/src/calc.c in /opt/calc with n)`.
fn in_program(event: &Existing, path: &str, offset: u64, binary: Option<&Binary>) -> String {
    let with = with(event);
    let suffix = if event.is_return { "%return" } else { "" };
    let object = binary.and_then(|binary| binary.object().ok());
    let place = object.and_then(|object| describe(&object, offset));
    let place = match place {
        Some(place) => {
            let file = place
                .file
                .map(|file| format!("@{file}"))
                .unwrap_or_default();
            // A return has the place of the entry.
            let inner = if event.is_return { "" } else { &place.suffix };
            format!("{}{inner}{suffix}{file}", place.function)
        }
        None => format!("{offset:#x}{suffix}"),
    };
    format!("(on {place} in {path}{with})")
}
