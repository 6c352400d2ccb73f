//! Functions that runtimes made while they were recorded, put into the World at their times.

use std::path::PathBuf;

use rperf_replay::{Dso, DsoId, DsoKind, Function, World};
use rperf_symbol::jit_dump::JitDump;
use rperf_symbol::{Files, ObjectKind, ObjectRequest, jit_dump_of};

use crate::object::{map_file, pid};

/// Tells `world` what the `jit-PID.dump` of its processes say, so that a function is known for as long as it was there.
/// To be called once, before samples are looked at; without it the last function at an address names all of its samples.
///
/// Dumps have times of `CLOCK_MONOTONIC`. Where the recording `is_monotonic`, too (`record -k CLOCK_MONOTONIC`), these
/// are times of the recording. Else the moments at which a dump was begun and at which its mapping was recorded are
/// taken for one, which they are but for some microseconds. Where neither helps, nothing is told.
pub fn add_jit_functions(world: &mut World, files: &dyn Files, is_monotonic: bool) {
    let dumped: Vec<DsoId> = (0u32..)
        .zip(world.dsos())
        .filter(|(_, dso)| matches!(dso.kind, DsoKind::PerfMap(_)))
        .map(|(index, _)| DsoId(index))
        .collect();
    for dso in dumped {
        if let Some(functions) = functions(world, files, dso, is_monotonic) {
            world.add_functions(dso, &functions);
        }
    }
}

/// The functions in `dso` by rising time of the recording.
fn functions(
    world: &World,
    files: &dyn Files,
    id: DsoId,
    is_monotonic: bool,
) -> Option<Vec<Function>> {
    let dso = world.dso(id);
    let process = world.runtime_of(id)?;
    let (dump_dso, path) = dump_of(world.dsos(), dso)?;
    let map = map_file(process);
    let request = ObjectRequest {
        pid: pid(dso),
        jit_dump: Some(&path),
        ..ObjectRequest::new(&map, ObjectKind::PerfMap)
    };
    let dump = jit_dump_of(files, &request)?;
    let ahead = match is_monotonic {
        true => dump.begun.map(|_| 0)?,
        false => ahead_of_recording(world, &dump, process, dump_dso)?,
    };
    let listed_at = |number: u32| Some(dump.functions().get(number as usize)?.start);
    let functions = dump.functions().iter();
    let mut functions: Vec<Function> = functions
        .map(|function| Function {
            time: function.time.wrapping_sub(ahead),
            start: function.start,
            end: function.end,
            number: function.number,
            listed_at: listed_at(function.number).unwrap_or(function.start),
        })
        .collect();
    functions.sort_by_key(|function| function.time);
    Some(functions)
}

/// By how much the clock of `dump` is ahead of the recording's, wrapping, if its beginning was recorded.
fn ahead_of_recording(world: &World, dump: &JitDump, process: u32, dso: DsoId) -> Option<u64> {
    let mapped = world.first_mapped(process, dso)?;
    // What was mapped before the recording has no time.
    (mapped.time != 0).then(|| dump.begun.map(|begun| begun.wrapping_sub(mapped.time)))?
}

/// The `jit-PID.dump` that the process of a perf map has mapped to leave its mark in recordings.
pub(crate) fn dump_of(dsos: &[Dso], map: &Dso) -> Option<(DsoId, PathBuf)> {
    let DsoKind::PerfMap(pid) = map.kind else {
        return None;
    };
    let is_dump = |dso: &&Dso| {
        let name = dso.short_name.strip_prefix("jit-");
        dso.pid == pid && name.is_some_and(|name| name.ends_with(".dump"))
    };
    let position = dsos.iter().position(|dso| is_dump(&dso))?;
    let dump = dsos.get(position)?;
    let id = DsoId(u32::try_from(position).ok()?);
    Some((id, dump.path().into_owned()))
}
