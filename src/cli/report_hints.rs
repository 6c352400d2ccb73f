//! Hints on problems that degrade a report: truncated stacks, missing callers, code without symbols.

use std::num::NonZeroUsize;

use rperf_analysis::{Completeness, ObjectCounts};
use rperf_hist::{SampleTreatment, SelectSamples};
use rperf_replay::{DsoId, DsoKind, Replay, Sample, World};
use rperf_resolve::Resolver;

/// The minimum percentage of the samples, or of the user callchains, for a hint.
const MIN_PERCENT: u64 = 5;

/// Examines the samples accepted by `select`, of a long recording only some of them; returns a line, without a newline, for each
/// problem.
pub(crate) fn diagnose(
    replay: &Replay<'_>,
    resolver: &Resolver<'_>,
    select: Option<&dyn SelectSamples>,
    jobs: NonZeroUsize,
) -> Vec<String> {
    let accepts = |world: &World, sample: &Sample<'_>| {
        let choice = select.map(|select| select.sample(world, sample));
        choice.is_none_or(|choice| choice == SampleTreatment::Counted)
    };
    let survey = Completeness::survey(replay, resolver, &accepts, jobs);
    lines(&survey, resolver.world())
}

/// Returns the hints for the problems that the survey found.
fn lines(survey: &Completeness, world: &World) -> Vec<String> {
    let name = |dso: &DsoId| world.dso(*dso).short_name.as_str();
    let mut lines = Vec::new();
    if let Some((share, object)) = share_and_object(&survey.truncated, survey.callchains) {
        lines.push(format!(
            "{share}% of the user callchains are truncated, most of them in {}: record with --call-graph dwarf if code has no frame pointers",
            name(object)
        ));
    } else if let Some((share, object)) =
        share_and_object(&survey.hidden_callers, survey.callchains)
    {
        // Not in addition to the hint above: one hint to use --call-graph dwarf is enough.
        lines.push(format!(
            "{share}% of the user callchains may lack the caller of a leaf function, most of them in {}: record with --call-graph dwarf for \
all callers",
            name(object)
        ));
    }
    if let Some((share, object)) = share_and_object(&survey.unnamed, survey.samples) {
        let remedy = match world.dso(*object).kind {
            DsoKind::PerfMap(_) | DsoKind::Memory => {
                "let the runtime write a perf map (java -XX:+DumpPerfMapAtExit, node --perf-basic-prof)"
            }
            _ => "install its debug symbols, or download them with --debuginfod",
        };
        lines.push(format!(
            "{share}% of the samples have no symbol, most of them in {}: {remedy}",
            name(object)
        ));
    }
    if let Some(share) = percent(survey.unnamed_kernel, survey.samples) {
        lines.push(format!(
            "{share}% of the samples are kernel code without symbols: set kernel.kptr_restrict to 0 while recording, or name the kernel image \
with -k"
        ));
    }
    lines
}

/// Returns the sum of `counts` in percent of `total`, and the object with the highest count; `None` if the percentage needs no
/// hint.
fn share_and_object(counts: &ObjectCounts, total: u64) -> Option<(u64, &DsoId)> {
    let share = percent(counts.values().sum(), total)?;
    let (object, _) = counts.iter().max_by_key(|(_, count)| **count)?;
    Some((share, object))
}

/// Returns `part` in percent of `total`; `None` if that needs no hint.
fn percent(part: u64, total: u64) -> Option<u64> {
    let share = (part * 100).checked_div(total)?;
    (share >= MIN_PERCENT).then_some(share)
}
