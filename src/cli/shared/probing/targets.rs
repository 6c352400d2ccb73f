//! The objects that a definition applies to.

use rperf_buildid_cache::Cache;
use rperf_names::{is_pattern, matches_pattern};
use rperf_probe::{Definition, Point, group_of_provider};

use super::args::ProbeSpec;
use super::place_messages::FAILED;
use super::probe_cache;
use super::target::ProbedObject;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::usdt_markers::installed_markers;

/// Returns the object given by `-x` or `-m`; by default, the kernel. If neither option is given, a USDT marker or stored event
/// (`%[GROUP:]EVENT`) applies to every object for which the build-id cache has it: installed programs and the running kernel.
///
/// # Errors
///
/// Status 254: the build-id cache has the marker or event for none of them.
pub(crate) fn of(
    given: &ProbeSpec,
    definition: &Definition,
    context: &Context,
) -> Result<Vec<ProbedObject>, CliError> {
    let (ProbedObject::Kernel, Point::Marker { provider, name }) =
        (&given.target, &definition.point)
    else {
        return Ok(vec![given.target.clone()]);
    };
    let group = match provider {
        // `group_of_provider` would replace the wildcards of a pattern.
        Some(provider) if is_pattern(provider) => format!("sdt_{provider}"),
        Some(provider) => group_of_provider(provider),
        None => "*".to_owned(),
    };
    let pattern = format!("{group}:{name}");
    let markers = context
        .buildid_dir()
        .map(|folder| installed_markers(&Cache::new(folder)));
    let mut programs = Vec::new();
    for marker in markers.into_iter().flatten() {
        // The name has the group, like the pattern.
        if matches_pattern(&pattern, &marker.name) && !programs.contains(&marker.program) {
            programs.push(marker.program);
        }
    }
    let (with_events, in_kernel) = probe_cache::objects_with(&definition.point, context);
    for program in with_events {
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    if programs.is_empty() && !in_kernel {
        let place = &definition.point;
        let error =
            format!("no program in the build-id cache has a USDT probe or stored event {place}");
        return Err(CliError::message(FAILED, error)
            .detail("  Error: Failed to add events.")
            .hint(format!(
                "'{program} buildid-cache --add PROGRAM' adds the USDT probes of a program, '{program} probe -x PROGRAM {place}' needs no cache; '{program} probe --cache --list' lists them",
                program = context.program
            )));
    }
    let programs = programs.into_iter().map(ProbedObject::Program);
    Ok(programs
        .chain(in_kernel.then_some(ProbedObject::Kernel))
        .collect())
}
