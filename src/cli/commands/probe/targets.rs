//! Which objects a definition is about.

use rperf_buildid_cache::Cache;
use rperf_events::{is_pattern, matches_pattern};
use rperf_probe::{Definition, Point, group_of_provider};

use super::NOT_FOUND;
use super::args::Given;
use super::cached;
use super::target::Subject;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::marks::marks;

/// What `-x` or `-m` says. Marked places and kept events without either are those of the objects in the build-id cache.
pub(super) fn of(
    given: &Given,
    definition: &Definition,
    context: &Context,
) -> Result<Vec<Subject>, CliError> {
    let (Subject::Kernel, Point::Marker { provider, name }) = (&given.target, &definition.point)
    else {
        return Ok(vec![given.target.clone()]);
    };
    let group = match provider {
        Some(provider) if is_pattern(provider) => format!("sdt_{provider}"),
        Some(provider) => group_of_provider(provider),
        None => "*".to_owned(),
    };
    let wanted = format!("{group}:{name}");
    let marks = context
        .buildid_dir()
        .map(|folder| marks(&Cache::new(folder)));
    let mut programs = Vec::new();
    for mark in marks.into_iter().flatten() {
        if matches_pattern(&wanted, &mark.name) && !programs.contains(&mark.program) {
            programs.push(mark.program);
        }
    }
    let (defined, in_kernel) = cached::homes(&definition.point, context);
    for program in defined {
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    if programs.is_empty() && !in_kernel {
        let place = &definition.point;
        let error =
            format!("no program in the build-id cache has a marked place or kept event {place}");
        return Err(CliError::message(NOT_FOUND, error)
            .detail("  Error: Failed to add events.")
            .hint(format!(
                "'{program} buildid-cache --add PROGRAM' puts marked places there, '{program} probe -x PROGRAM {place}' needs no cache; '{program} probe --cache --list' shows what there is",
                program = context.program
            )));
    }
    let programs = programs.into_iter().map(Subject::Program);
    Ok(programs
        .chain(in_kernel.then_some(Subject::Kernel))
        .collect())
}
