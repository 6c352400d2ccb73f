//! `--list`: the events that exist, with the places that users would name.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use clap::ArgMatches;
use rperf_events::matches_pattern;
use rperf_probe::{Existing, ExistingPlace, describe};
use rperf_symbol::SearchPaths;

use super::delete::whole;
use super::tables::Tables;
use super::target::Binary;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::flag;

/// Prints the events that `pattern` covers.
pub(super) fn run(
    pattern: &str,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Exit, CliError> {
    let existing = Tables::find(context).existing()?;
    let whole = whole(pattern);
    let mut paths = SearchPaths::new(context.buildid_dir());
    paths.demangle = flag(matches, "demangle") != Some(false);
    let mut binaries = BTreeMap::new();
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
        let binary = match &event.place {
            ExistingPlace::File { path, .. } => binaries.get(path).and_then(Option::as_ref),
            ExistingPlace::Kernel(_) => None,
        };
        writeln!(out, "  {:<20} {}", event.full_name(), told(event, binary))?;
    }
    out.flush()?;
    if !any && !existing.is_empty() {
        context.note(format_args!("no probe event is named {pattern}"));
    }
    Ok(Exit::Ok)
}

/// `(on leaf:4@/src/calc.c in /opt/calc with n)`.
fn told(event: &Existing, binary: Option<&Binary>) -> String {
    let with = match event.fields.as_slice() {
        [] => String::new(),
        fields => format!(" with {}", fields.join(" ")),
    };
    let suffix = if event.is_return { "%return" } else { "" };
    let (path, offset) = match &event.place {
        ExistingPlace::File { path, offset } => (path, *offset),
        ExistingPlace::Kernel(place) => {
            let place = place.strip_suffix("+0").unwrap_or(place);
            return format!("(on {place}{suffix}{with})");
        }
    };
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
