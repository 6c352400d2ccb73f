//! Messages on functions and code that cannot be shown, with hints.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use rperf_disasm::{NoCode, SampledFunction, SampledFunctions};
use rperf_names::{counted, is_or_are, nearest};
use rperf_replay::DsoId;
use rperf_resolve::Resolver;
use rperf_symbol::BuildId;
use rperf_view::terminal::one_line;

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// The maximum number of functions named in an error.
const MAX_FUNCTIONS: usize = 8;

/// The maximum number of objects named in an error.
const MAX_OBJECTS: usize = 3;

/// Returns the error for a requested function without samples. `names` are those of functions with samples, by event or
/// group, the hottest function of each first. `recording` is what the message calls the recording.
pub(crate) fn no_samples_in(
    symbol: &str,
    names: &[Vec<&str>],
    recording: &dyn Display,
) -> CliError {
    let near = nearest(symbol, names.iter().flatten().copied());
    let names = hottest(names);
    let mut error = CliError::message(1, format!("{recording}: no samples in '{symbol}'"));
    if Path::new(symbol).is_file() {
        error = error.hint(format!("-i {symbol} reads this file"));
    } else if let Some(near) = near {
        error = error.hint(format!("did you mean '{near}'?"));
    }
    match names.is_empty() {
        true => error.hint("no function has samples"),
        false => error.hint(format!("most samples are in: {}", names.join(", "))),
    }
}

/// Returns the names of the hottest functions: the first of each event, then the second of each, and so on, without repetition.
fn hottest<'n>(names: &[Vec<&'n str>]) -> Vec<&'n str> {
    let longest = names.iter().map(Vec::len).max().unwrap_or_default();
    let ranked =
        (0..longest).flat_map(|rank| names.iter().filter_map(move |names| names.get(rank)));
    let mut hottest: Vec<&str> = Vec::new();
    for name in ranked {
        if hottest.len() == MAX_FUNCTIONS {
            break;
        }
        if !hottest.contains(name) {
            hottest.push(name);
        }
    }
    hottest
}

/// Returns the error for a recording without samples, or without samples in functions with symbols.
pub(crate) fn no_samples(
    functions: &SampledFunctions,
    resolver: &Resolver<'_>,
    recording: &dyn Display,
) -> CliError {
    if !functions.has_samples() {
        // Status and text are perf's.
        return CliError::message(255, format!("The {recording} data has no samples!"));
    }
    let message = format!("{recording}: no samples in functions with symbols");
    let mut error = CliError::message(1, message);
    for (dso, samples) in functions.unnamed().into_iter().take(MAX_OBJECTS) {
        let object = resolver.world().dso(dso);
        let name = &object.long_name;
        let (count, verb) = (counted(samples, "sample"), is_or_are(samples));
        error = error.detail(
            match object.build_id.as_deref().and_then(BuildId::from_bytes) {
                Some(id) => format!("{count} {verb} in {name} with build-id {id}"),
                None => format!("{count} {verb} in {name}"),
            },
        );
    }
    error.hint("add the recorded files with 'buildid-cache --add', or use --symfs or --debuginfod")
}

/// Explains why a function's code is not shown, with a hint.
pub(crate) fn why_no_code(
    resolver: &Resolver<'_>,
    function: &SampledFunction,
    why: NoCode,
) -> String {
    let mut missing = MissingCode::default();
    missing.add(function, why);
    let lines = missing.messages(resolver).into_iter();
    let lines = lines.map(|(line, hint)| format!("{}\nhint: {hint}", one_line(&line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Functions without code, by object: the reason for the first one, the number of functions, and the number of their samples.
#[derive(Default)]
pub(crate) struct MissingCode(BTreeMap<DsoId, (NoCode, usize, u64)>);

impl MissingCode {
    pub(crate) fn add(&mut self, function: &SampledFunction, why: NoCode) {
        let found = self.0.entry(function.symbol.dso);
        let (_, functions, samples) = found.or_insert((why, 0, 0));
        *functions += 1;
        *samples += function.samples();
    }

    /// Warns once per object about the functions without code. `wanted` is the number of functions to show.
    ///
    /// # Errors
    ///
    /// Status 1: none of the functions could be shown. The error names the first object only.
    pub(crate) fn report(
        &self,
        resolver: &Resolver<'_>,
        wanted: usize,
        context: &Context,
    ) -> Result<(), CliError> {
        let lines = self.messages(resolver);
        let functions: usize = self.0.values().map(|(_, functions, _)| functions).sum();
        if functions < wanted {
            for (line, hint) in lines {
                context.warn(line);
                context.note(format_args!("hint: {hint}"));
            }
            return Ok(());
        }
        match lines.into_iter().next() {
            Some((line, hint)) => Err(CliError::message(1, line).hint(hint)),
            None => Ok(()),
        }
    }

    /// Returns a message and a hint for each object with functions without code.
    pub(crate) fn messages(&self, resolver: &Resolver<'_>) -> Vec<(String, &'static str)> {
        let mut lines = Vec::new();
        for (dso, (why, functions, samples)) in &self.0 {
            let object = resolver.world().dso(*dso);
            let hint = match why {
                NoCode::Missing if object.is_kernel() => match Path::new("/proc/kcore").exists() {
                    true => {
                        "name the kernel image with -k vmlinux or 'buildid-cache --add vmlinux', or run as root to read /proc/kcore"
                    }
                    false => {
                        "name the kernel image with -k vmlinux or 'buildid-cache --add vmlinux'"
                    }
                },
                NoCode::Missing => {
                    "the recorded file was not found: use --symfs, --debuginfod or 'buildid-cache --add'"
                }
                NoCode::Foreign => {
                    "its architecture is not supported: only x86 and arm64 are disassembled"
                }
                NoCode::Empty => "its symbols have no size",
            };
            let mut line = format!(
                "{}: cannot show the code of {} ({})",
                object.name,
                counted(*functions as u64, "function"),
                counted(*samples, "sample")
            );
            if let Some(id) = object.build_id.as_deref().and_then(BuildId::from_bytes)
                && *why == NoCode::Missing
            {
                // The text for kernels is perf's.
                line.push_str(&match object.is_kernel() {
                    true => format!(": No vmlinux file with build id {id} was found in the path."),
                    false => format!(": no file with build-id {id} was found"),
                });
            }
            lines.push((line, hint));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_functions_of_all_events_once() {
        let of_cycles = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let names = [of_cycles.to_vec(), vec!["b", "x"], Vec::new()];
        assert_eq!(hottest(&names), ["a", "b", "x", "c", "d", "e", "f", "g"]);
    }
}
