//! The objects of a recording.

use std::io::Write as _;

use clap::ArgMatches;
use rperf_names::first_names;
use rperf_perfdata::{FeatureId, PerfData};
use rperf_replay::Machine;
use rperf_symbol::BuildId;

use super::availability;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::options::flag;
use crate::cli::shared::recorded_objects::{Objects, RecordedObject, objects};

/// Digits of the longest build-id; shorter ones are padded.
const ID_WIDTH: usize = 2 * BuildId::MAX_LEN;
/// Maximum number of objects that the note names.
const MAX_NAMED: usize = 10;

/// Prints build-id and name of the objects in the header, or of those that samples hit; with `--missing`, also where they are.
pub(super) fn print(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let verbose = context.verbosity(matches) > 0;
    let header_objects = header_objects(&data);
    // AUX traces are not decoded here, so the objects whose code they executed are unknown. Without a list in the header, and for a
    // stream, perf shows the objects that have samples.
    let hits_only = flag(matches, "with-hits") == Some(true) || data.header().is_pipe();
    let with_hits =
        header_objects.is_empty() || (hits_only && !data.features().has(FeatureId::AUXTRACE));
    let objects = match with_hits || verbose {
        true => objects(&input, &data, with_hits, context)?,
        false => Objects {
            rows: Vec::new(),
            damage: Ok(()),
        },
    };
    let Objects {
        rows: objects,
        damage,
    } = objects;
    let rows = if with_hits { &objects } else { &header_objects };
    if flag(matches, "missing") == Some(true) {
        availability::print(rows, context)?;
        return damage;
    }
    let mut out = context.stdout();
    let mut has_ids = false;
    for (id, row) in rows.iter().filter_map(|row| Some((row.id?, row))) {
        writeln!(out, "{:ID_WIDTH$} {}", id.to_string(), row.name)?;
        has_ids = true;
    }
    let without = objects.iter().filter(|row| row.id.is_none());
    let without: Vec<&str> = without.map(|row| row.name.as_str()).collect();
    if verbose && !without.is_empty() {
        note_missing(&without, context);
    }
    if !has_ids {
        context.note(format_args!("no build-ids in {}", input.path.display()));
        context.note("hint: recordings made with -B, or written to a pipe by perf, have none");
    }
    damage
}

/// The objects in the header, in its order, the host's first.
fn header_objects(data: &PerfData<'_>) -> Vec<RecordedObject> {
    let mut rows: Vec<RecordedObject> = Vec::new();
    for entry in data.features().build_ids() {
        let machine = Machine::of(entry.misc.cpu_mode(), entry.pid.cast_unsigned());
        let id = BuildId::from_bytes(entry.id());
        let same = |row: &&mut RecordedObject| row.machine == machine && row.name == entry.filename;
        match rows.iter_mut().find(same) {
            // A merged recording lists objects several times.
            Some(row) => row.id = id,
            None => rows.push(RecordedObject {
                machine,
                name: entry.filename,
                id,
            }),
        }
    }
    rows.sort_by_key(|row| row.machine);
    rows
}

/// Prints a note with the first objects that have no build-id.
fn note_missing(without: &[&str], context: &Context) {
    let names = first_names(without, MAX_NAMED);
    context.note(format_args!("no build-id: {names}"));
}
