//! Adds JIT-compiled functions to the World (the processes and mappings at each time), each from its time in a JIT dump on.
//!
//! A DSO of kind `PerfMap` is the executable anonymous memory of a process; `/tmp/perf-PID.map` or a JIT dump has its symbols.

use std::path::PathBuf;

use rperf_replay::{Dso, DsoId, DsoKind, RuntimeFunction, World};
use rperf_symbol::jit_dump::JitDump;
use rperf_symbol::{Files, ObjectKind, ObjectRequest, jit_dump_of};

use crate::object::{perf_map_path, pid};

/// Adds the functions in the `jit-PID.dump` of processes to `world`, so that a function is known
/// for the time it existed. Must be called once, before samples are processed. Without this call, the last
/// function at an address is used for all samples at that address.
///
/// Most dumps have times of `CLOCK_MONOTONIC`. `is_monotonic` means that the recording has them, too (`record -k
/// CLOCK_MONOTONIC`). Otherwise the start of a dump and its recorded mapping are treated as simultaneous, which is accurate to
/// some microseconds; if the process mapped its dump before the recording started, or the dump has no start time, the dump's
/// functions are not added. Functions with times of a CPU counter are never added.
pub fn add_jit_functions(world: &mut World, files: &dyn Files, is_monotonic: bool) {
    let perf_maps: Vec<DsoId> = (0u32..)
        .zip(world.dsos())
        .filter(|(_, dso)| matches!(dso.kind, DsoKind::PerfMap(_)))
        .map(|(index, _)| DsoId(index))
        .collect();
    for dso in perf_maps {
        if let Some(functions) = functions(world, files, dso, is_monotonic) {
            world.add_functions(dso, &functions);
        }
    }
}

/// The functions in the JIT dump of the process whose memory is `id`, by ascending time of the recording's clock; `None` if
/// there is no dump, or its times cannot be converted.
fn functions(
    world: &World,
    files: &dyn Files,
    id: DsoId,
    is_monotonic: bool,
) -> Option<Vec<RuntimeFunction>> {
    let dso = world.dso(id);
    let process = world.perf_map_process(id)?;
    let (dump_dso, path) = dump_of(world.dsos(), dso)?;
    let map_path = perf_map_path(process);
    let request = ObjectRequest {
        pid: pid(dso),
        jit_dump: Some(&path),
        ..ObjectRequest::new(&map_path, ObjectKind::PerfMap)
    };
    let dump = jit_dump_of(files, &request)?;
    if dump.has_counter_times {
        return None;
    }
    let ahead = match is_monotonic {
        // Both clocks are taken to be `CLOCK_MONOTONIC`.
        true => 0,
        false => ahead_of_recording(world, &dump, process, dump_dso)?,
    };
    // `number` is the index of the function whose symbol is used: a moved function keeps the symbol of its first address.
    let symbol_start = |number: u32| Some(dump.functions().get(number as usize)?.start);
    let functions = dump.functions().iter();
    let mut functions: Vec<RuntimeFunction> = functions
        .map(|function| RuntimeFunction {
            time: function.time.wrapping_sub(ahead),
            start: function.start,
            end: function.end,
            number: function.number,
            listed_at: symbol_start(function.number).unwrap_or(function.start),
        })
        .collect();
    functions.sort_by_key(|function| function.time);
    Some(functions)
}

/// Nanoseconds by which the dump's clock is ahead of the recording's, wrapping; `None` if the process did not map the
/// dump during the recording, or the dump has no start time.
fn ahead_of_recording(world: &World, dump: &JitDump, process: u32, dso: DsoId) -> Option<u64> {
    let mapped = world.first_mapped(process, dso)?;
    // Mappings that existed before the recording have no time.
    if mapped.time == 0 {
        return None;
    }
    Some(dump.started?.wrapping_sub(mapped.time))
}

/// The `jit-PID.dump` that the process of a perf map has mapped as a marker for recordings.
pub(crate) fn dump_of(dsos: &[Dso], perf_map: &Dso) -> Option<(DsoId, PathBuf)> {
    let DsoKind::PerfMap(pid) = perf_map.kind else {
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
