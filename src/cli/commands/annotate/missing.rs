//! What could not be shown, and what to do about it.

use std::collections::BTreeMap;
use std::fmt::Display;

use rperf_disasm::{Function, Functions, NoCode};
use rperf_events::nearest;
use rperf_replay::DsoId;
use rperf_resolve::Resolver;
use rperf_symbol::BuildId;
use rperf_view::terminal::one_line;

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Functions that an error names at most.
const NAMED: usize = 8;

/// Objects that an error names at most.
const OBJECTS: usize = 3;

/// That no samples fell on the function that was asked for.
pub(super) fn no_samples_in<'n>(
    symbol: &str,
    names: impl Iterator<Item = &'n str>,
    recording: &dyn Display,
) -> CliError {
    let mut names: Vec<&str> = names.collect();
    let near = nearest(symbol, names.iter().copied());
    names.truncate(NAMED);
    let error = CliError::message(1, format!("{recording}: no samples in '{symbol}'"));
    let error = match near {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error,
    };
    error.hint(format!("most samples are in: {}", names.join(", ")))
}

/// That no samples fell on any function.
pub(super) fn no_samples(
    functions: &Functions,
    resolver: &Resolver<'_>,
    recording: &dyn Display,
) -> CliError {
    if !functions.has_samples() {
        return CliError::message(255, format!("The {recording} data has no samples!"));
    }
    let message = format!("{recording}: no sample fell on a function that is known by name");
    let mut error = CliError::message(1, message);
    for (dso, samples) in functions.unnamed().into_iter().take(OBJECTS) {
        let object = resolver.world().dso(dso);
        let name = &object.long_name;
        error = error.detail(
            match object.build_id.as_deref().and_then(BuildId::from_bytes) {
                Some(id) => format!("{samples} samples are in {name} with build-id {id}"),
                None => format!("{samples} samples are in {name}"),
            },
        );
    }
    error.hint("'buildid-cache --add' takes the files that were recorded; --symfs and --debuginfod find them elsewhere")
}

/// Why a function's code is not shown, and what helps.
pub(in crate::cli::commands) fn why_no_code(
    resolver: &Resolver<'_>,
    function: &Function,
    why: NoCode,
) -> String {
    let mut missing = Missing::default();
    missing.add(function, why);
    let lines = missing.lines(resolver).into_iter();
    let lines = lines.map(|(line, hint)| format!("{}\nhint: {hint}", one_line(&line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Functions without code, by object and reason.
#[derive(Default)]
pub(super) struct Missing(BTreeMap<DsoId, (NoCode, usize, u64)>);

impl Missing {
    pub(super) fn add(&mut self, function: &Function, why: NoCode) {
        let found = self.0.entry(function.symbol.dso);
        let (_, functions, samples) = found.or_insert((why, 0, 0));
        *functions += 1;
        *samples += function.samples();
    }

    /// Warns once for each object.
    ///
    /// # Errors
    ///
    /// Status 1 where nothing at all of `wanted` functions could be shown.
    pub(super) fn tell(
        &self,
        resolver: &Resolver<'_>,
        wanted: usize,
        context: &Context,
    ) -> Result<(), CliError> {
        let lines = self.lines(resolver);
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

    /// For each object what is missing, and what helps.
    pub(super) fn lines(&self, resolver: &Resolver<'_>) -> Vec<(String, &'static str)> {
        let mut lines = Vec::new();
        for (dso, (why, functions, samples)) in &self.0 {
            let object = resolver.world().dso(*dso);
            let hint = match why {
                NoCode::Missing if object.is_kernel() => {
                    "'buildid-cache --add vmlinux' or '-k vmlinux' gives its image; root also has the code that runs, in /proc/kcore"
                }
                NoCode::Missing => {
                    "the file that was recorded is not at hand: --symfs, --debuginfod or buildid-cache --add"
                }
                NoCode::Foreign => {
                    "its instructions are of an architecture that is not read: x86 and arm64 are"
                }
                NoCode::Empty => "its symbols have no size",
            };
            let plural = if *functions == 1 { "" } else { "s" };
            let mut line = format!(
                "{}: no code of {functions} function{plural} with {samples} samples",
                object.name
            );
            if let Some(id) = object.build_id.as_deref().and_then(BuildId::from_bytes)
                && *why == NoCode::Missing
            {
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
