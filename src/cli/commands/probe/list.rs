//! `--list`: the existing events, with their locations in functions and source files.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_names::matches_pattern;
use rperf_probe::{ExistingEvent, ExistingTarget, KernelSymbolList, describe};
use rperf_symbol::{Files as _, SearchPaths};

use super::delete::{full_pattern, is_in};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::shared::probing::event_lists::EventLists;
use crate::cli::shared::probing::target::{ProbedBinary, resolved_target};
use crate::cli::shared::probing::{is_on, probe_cache};
use rperf_input::DiskFiles;

/// Prints the events that match `pattern`; with `--cache`, those stored in the build-id cache.
pub(super) fn run(
    pattern: &str,
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    // The program of `-x` or the module of `-m`: only its events are listed. Without these options it is the kernel, for which
    // `is_in` accepts the events of all objects.
    let within = resolved_target(matches, context)?;
    if is_on(matches, "cache") {
        return probe_cache::list(pattern, &within, context);
    }
    let lists = EventLists::find(context);
    let mut existing = lists.existing_to_list()?;
    let hit_counts = (context.verbosity(matches) > 0).then(|| lists.hits());
    existing.retain(|(event, _)| is_in(event, &within));
    let full_pattern_text = full_pattern(pattern);
    let mut paths = SearchPaths::new(context.buildid_dir());
    paths.demangle = flag(matches, "demangle") != Some(false);
    // Programs by path; `None` if one cannot be opened.
    let mut binaries = BTreeMap::new();
    let is_of_kernel = |event: &ExistingEvent| matches!(event.target, ExistingTarget::Kernel(_));
    let kallsyms = match existing.iter().any(|(event, _)| is_of_kernel(event)) {
        true => DiskFiles.read(Path::new("/proc/kallsyms")).ok(),
        false => None,
    };
    let symbols = kallsyms
        .as_deref()
        .map(KernelSymbolList::parse)
        .unwrap_or_default();
    let mut out = context.stdout();
    let mut any_matches = false;
    for (event, _) in &existing {
        if !matches_pattern(&full_pattern_text, &event.full_name()) {
            continue;
        }
        any_matches = true;
        if let ExistingTarget::File { path, .. } = &event.target {
            let open = || ProbedBinary::at(PathBuf::from(path), &paths).ok();
            binaries.entry(path.clone()).or_insert_with(open);
        }
        let location = match &event.target {
            ExistingTarget::File { path, offset } => {
                let binary = binaries.get(path).and_then(Option::as_ref);
                in_program(event, path, *offset, binary)
            }
            ExistingTarget::Kernel(location) => in_kernel(event, location, &symbols),
        };
        let hits = hit_counts
            .as_ref()
            .map_or_else(String::new, |counts| hit_text(event, counts));
        writeln!(out, "  {:<20} {location}{hits}", event.full_name())?;
    }
    out.flush()?;
    if !any_matches && !existing.is_empty() {
        context.note(format_args!("no probe event matches {pattern}"));
    }
    Ok(ExitStatus::Ok)
}

/// Formats the hits of an event: `, hit 3 times`; empty if they are unknown. `hit_counts` has a count by path (empty for the
/// kernel) and event name without group.
fn hit_text(event: &ExistingEvent, hit_counts: &HashMap<(String, String), u64>) -> String {
    let path = match &event.target {
        ExistingTarget::File { path, .. } => path.clone(),
        ExistingTarget::Kernel(_) => String::new(),
    };
    match hit_counts.get(&(path, event.name.clone())) {
        Some(1) => ", hit once".to_owned(),
        Some(count) => format!(", hit {count} times"),
        None => String::new(),
    }
}

/// Formats the field names of an event, such as ` with n s` for the fields `n` and `s`; empty without fields.
fn with_fields(event: &ExistingEvent) -> String {
    match event.fields.as_slice() {
        [] => String::new(),
        fields => format!(" with {}", fields.join(" ")),
    }
}

/// Formats the location of a kernel probe: `(on vfs_read+4 with arg1)`, `(on start in veth)`.
fn in_kernel(event: &ExistingEvent, location: &str, symbols: &KernelSymbolList<'_>) -> String {
    let return_mark = if event.is_return { "%return" } else { "" };
    let with = with_fields(event);
    let (module, location) = match location.split_once(':') {
        Some((module, location)) => (Some(module), location),
        None => (None, location),
    };
    // `resolve` ignores modules: it could find a symbol of the same name in the kernel or another module.
    let location = match symbols.resolve(location).filter(|_| module.is_none()) {
        Some((symbol, 0)) => symbol.name.to_owned(),
        Some((symbol, offset)) => format!("{}+{offset}", symbol.name),
        None => location.strip_suffix("+0").unwrap_or(location).to_owned(),
    };
    let in_module = module
        .map(|module| format!(" in {module}"))
        .unwrap_or_default();
    format!("(on {location}{return_mark}{in_module}{with})")
}

/// Formats the location of a probe in a program: `(on leaf:4@/src/calc.c in /opt/calc with n)`.
fn in_program(
    event: &ExistingEvent,
    path: &str,
    offset: u64,
    binary: Option<&ProbedBinary>,
) -> String {
    let with = with_fields(event);
    let return_mark = if event.is_return { "%return" } else { "" };
    let object = binary.and_then(|binary| binary.object().ok());
    let location = object.and_then(|object| describe(&object, offset));
    let location = match location {
        Some(location) => {
            let file = location
                .file
                .map(|file| format!("@{file}"))
                .unwrap_or_default();
            // The line or offset in the function. A return probe has none: its location is the function's entry.
            let place_in_function = if event.is_return {
                ""
            } else {
                &location.suffix
            };
            format!(
                "{}{place_in_function}{return_mark}{file}",
                location.function
            )
        }
        None => format!("{offset:#x}{return_mark}"),
    };
    format!("(on {location} in {path}{with})")
}
