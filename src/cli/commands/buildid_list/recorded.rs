//! The objects of a recording, with their build-ids.

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

/// Digits of the longest build-id; shorter build-ids are padded.
const ID_WIDTH: usize = 2 * BuildId::MAX_LEN;
/// Maximum number of objects that the note of `-v` names.
const MAX_NAMED: usize = 10;

/// Prints build-id and name of the objects in the header, or of the objects that samples hit; with `--missing`, also whether and
/// where this machine has a file with that build-id.
pub(super) fn print(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let verbose = context.verbosity(matches) > 0;
    let header_objects = header_objects(&data);
    // As in perf, only objects that have samples are listed in three cases: with -H, for a pipe-mode recording, and if the header
    // lists no objects. AUX traces are not decoded here, so the objects that they hit are unknown: for a recording with AUX
    // traces, the objects in the header are listed, if there are any.
    let wants_hits = flag(matches, "with-hits") == Some(true) || data.header().is_pipe();
    let hits_only =
        header_objects.is_empty() || (wants_hits && !data.features().has(FeatureId::AUXTRACE));
    // With -v, the objects of the replay are needed for the note on those without a build-id. `damage` is the error for records
    // that could not be read: it is returned after the list is printed.
    let Objects {
        rows: replayed_objects,
        damage,
    } = match hits_only || verbose {
        true => objects(&input, &data, hits_only, context)?,
        false => Objects {
            rows: Vec::new(),
            damage: Ok(()),
        },
    };
    let rows = if hits_only {
        &replayed_objects
    } else {
        &header_objects
    };
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
    let without_id = replayed_objects.iter().filter(|row| row.id.is_none());
    let without_id: Vec<&str> = without_id.map(|row| row.name.as_str()).collect();
    if verbose && !without_id.is_empty() {
        let names = first_names(&without_id, MAX_NAMED);
        context.note(format_args!("no build-id: {names}"));
    }
    if !has_ids {
        context.note(format_args!("no build-ids in {}", input.path.display()));
        context.note("hint: recordings made with -B, or written to a pipe by perf, have none");
    }
    damage
}

/// The objects in the header, in the header's order, but those of the host before those of guests.
fn header_objects(data: &PerfData<'_>) -> Vec<RecordedObject> {
    let mut rows: Vec<RecordedObject> = Vec::new();
    for entry in data.features().build_ids() {
        let machine = Machine::of(entry.misc.cpu_mode(), entry.pid.cast_unsigned());
        let id = BuildId::from_bytes(entry.id());
        let same = |row: &&mut RecordedObject| row.machine == machine && row.name == entry.filename;
        match rows.iter_mut().find(same) {
            // A merged recording may list an object several times; the last build-id applies.
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
