//! What could not be shown, and what to do about it.

use std::collections::BTreeMap;
use std::fmt::Display;

use rperf_disasm::{Function, Functions, NoCode};
use rperf_events::nearest;
use rperf_replay::DsoId;
use rperf_resolve::Resolver;

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Functions that an error names at most.
const NAMED: usize = 8;

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
pub(super) fn no_samples(functions: &Functions, recording: &dyn Display) -> CliError {
    if !functions.has_samples() {
        return CliError::message(255, format!("The {recording} data has no samples!"));
    }
    let message = format!("{recording}: no sample fell on a function that is known by name");
    CliError::message(1, message)
        .hint("'report' shows where they fell, 'buildid-list' what the objects were")
}

/// Functions without code, by object and reason.
#[derive(Default)]
pub(super) struct Missing(BTreeMap<DsoId, (NoCode, usize, u64)>);

impl Missing {
    pub(super) fn add(&mut self, function: &Function, why: NoCode) {
        let found = self.0.entry(function.symbol.dso);
        let (_, functions, samples) = found.or_insert((why, 0, 0));
        *functions += 1;
        *samples += function.sum.samples;
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
        let mut lines = Vec::new();
        for (dso, (why, functions, samples)) in &self.0 {
            let object = resolver.world().dso(*dso);
            let hint = match why {
                NoCode::Missing if object.is_kernel() => {
                    "give its image with -k, or put it into the cache: buildid-cache --add vmlinux; as root /proc/kcore is read"
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
            lines.push((
                format!(
                    "{}: no code of {functions} function{plural} with {samples} samples",
                    object.name
                ),
                hint,
            ));
        }
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
}
