//! The objects of a recording.

use std::io::Write as _;
use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_perfdata::{FeatureId, PerfData};
use rperf_replay::{Dso, DsoId, DsoKind, Fold, Machine, Replay, Sample, World};
use rperf_symbol::BuildId;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::findings::conclude;
use crate::cli::input::Input;
use crate::cli::options::flag;

/// Digits of the longest id: shorter ones are padded.
const WIDTH: usize = 2 * BuildId::MAX_LEN;
/// Objects that a note names.
const NAMED: usize = 10;

/// An object of a recording.
pub(in crate::cli::commands) struct Object {
    machine: Machine,
    /// Its path, or `[kernel.kallsyms]` and the like.
    pub(in crate::cli::commands) name: String,
    /// Its build-id, where the recording has it.
    pub(in crate::cli::commands) id: Option<BuildId>,
}

/// Prints id and name of the objects: those that the header lists, or those that samples hit.
pub(super) fn print(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let verbose = context.verbosity(matches) > 0;
    let listed = listed(&data);
    // Traces are not decoded here, so that nothing can be said about what they hit. Without a list, and in a
    // stream, perf shows what was hit.
    let asked = flag(matches, "with-hits") == Some(true) || data.header().is_pipe();
    let with_hits = listed.is_empty() || (asked && !data.features().has(FeatureId::AUXTRACE));
    let objects = match with_hits || verbose {
        true => objects(&input, &data, with_hits, context)?,
        false => Vec::new(),
    };
    let mut out = context.stdout();
    let mut found = false;
    let rows = if with_hits { &objects } else { &listed };
    for (id, row) in rows.iter().filter_map(|row| Some((row.id?, row))) {
        writeln!(out, "{:WIDTH$} {}", id.to_string(), row.name)?;
        found = true;
    }
    let without = objects.iter().filter(|row| row.id.is_none());
    let without: Vec<&str> = without.map(|row| row.name.as_str()).collect();
    if verbose && !without.is_empty() {
        note_missing(&without, context);
    }
    if !found {
        context.note(format_args!("no build-ids in {}", input.path.display()));
        context.note("hint: a recording has none if it was made with -B, or by perf into a pipe");
    }
    Ok(())
}

/// What the header lists, in its order, the host's objects first.
fn listed(data: &PerfData<'_>) -> Vec<Object> {
    let mut rows: Vec<Object> = Vec::new();
    for entry in data.features().build_ids() {
        let machine = Machine::of(entry.misc.cpu_mode(), entry.pid.cast_unsigned());
        let id = BuildId::from_bytes(entry.id());
        let same = |row: &&mut Object| row.machine == machine && row.name == entry.filename;
        match rows.iter_mut().find(same) {
            // A recording joined of several says it again.
            Some(row) => row.id = id,
            None => rows.push(Object {
                machine,
                name: entry.filename,
                id,
            }),
        }
    }
    rows.sort_by_key(|row| row.machine);
    rows
}

/// The objects that samples hit.
pub(in crate::cli::commands) fn hit_objects(
    input: &Input,
    data: &PerfData<'_>,
    context: &Context,
) -> Result<Vec<Object>, CliError> {
    objects(input, data, true, context)
}

/// The objects that were mapped, or of these the ones that samples hit.
fn objects(
    input: &Input,
    data: &PerfData<'_>,
    with_hits: bool,
    context: &Context,
) -> Result<Vec<Object>, CliError> {
    let replay = Replay::open(data)?;
    let hits = match with_hits {
        true => Some(hits(&replay)),
        false => None,
    };
    conclude(&input.path, &replay.diagnostics(), context)?;
    let wanted = |(id, dso): &(DsoId, &Dso)| {
        let hit = hits.as_ref().is_none_or(|hits| hits.has(*id));
        hit && !matches!(
            dso.kind,
            DsoKind::Memory | DsoKind::PerfMap(_) | DsoKind::Bpf
        )
    };
    let objects = (0..).map(DsoId).zip(replay.world().dsos()).filter(wanted);
    let mut rows: Vec<Object> = objects
        .map(|(_, dso)| Object {
            machine: dso.machine,
            name: dso.long_name.clone(),
            id: dso.build_id.as_deref().and_then(BuildId::from_bytes),
        })
        .collect();
    rows.sort_by_key(|row| row.machine);
    Ok(rows)
}

/// Names what has no id, the first of them.
fn note_missing(without: &[&str], context: &Context) {
    let named = without.get(..NAMED).unwrap_or(without).join(", ");
    match without.len().saturating_sub(NAMED) {
        0 => context.note(format_args!("no build-id: {named}")),
        more => context.note(format_args!("no build-id: {named} and {more} more")),
    }
}

/// The objects that samples hit with the address they were taken at; callers don't count.
#[derive(Default)]
struct Hits(Vec<bool>);

impl Hits {
    fn has(&self, dso: DsoId) -> bool {
        self.0.get(dso.0 as usize) == Some(&true)
    }
}

impl Fold for Hits {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let address = sample.wire.ip.unwrap_or_default();
        let (machine, mode) = (sample.machine(), sample.cpu_mode());
        let Some(found) = world.lookup(machine, mode, sample.pid, sample.order, address) else {
            return;
        };
        self.0.resize(world.dsos().len(), false);
        if let Some(hit) = self.0.get_mut(world.mapping(found).dso.0 as usize) {
            *hit = true;
        }
    }

    fn merge(&mut self, later: Self) {
        self.0.resize(self.0.len().max(later.0.len()), false);
        for (hit, other) in self.0.iter_mut().zip(later.0) {
            *hit |= other;
        }
    }
}

fn hits(replay: &Replay<'_>) -> Hits {
    let threads = NonZeroUsize::new(rperf_sys::parallelism()).unwrap_or(NonZeroUsize::MIN);
    replay.fold(threads, Hits::default)
}
