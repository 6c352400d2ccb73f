//! `rperf record`: samples into a perf.data file.

mod args;
mod call_graph;
mod details;
mod losses;
mod mapped_files;
mod masks;
mod off_cpu;
pub(super) mod output;
mod rate;
pub(super) mod request;
mod rewriting;
mod ring_size;
mod rotation;
mod sieve;
mod size;
mod summary;
mod threads;
mod timing;
mod told;
mod traces;
mod unhit;
mod unwinding;

use std::path::Path;

use clap::ArgMatches;
use rperf_events::CallGraph;
use rperf_session::BuildIds;
use rperf_symbol::{Endianness, Files as _, build_id_of_elf, build_id_of_notes};
use rperf_sys::Ended;

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::files::DiskFiles;
use crate::cli::live::{control, events, explain, said};
use crate::cli::options::flag;

pub(super) use self::args::command;
pub(super) use self::call_graph::Chains;
use self::off_cpu::OffCpuTime;
pub(super) use self::rate::sampling;
pub(super) use self::request::{real_time, wanted as wanted_events};
pub(super) use self::ring_size::pages as ring_pages;
use self::sieve::Sifting;
pub(super) use self::size::with_unit as parse_size;
pub(super) use self::told::told_by;
pub(super) use self::traces::refuse as refuse_traces;
use self::unwinding::Unwinding;

/// Records until the workload ends or the user stops it.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    args::check_old_spelling(matches, context)?;
    let mut request = request::build(matches, context)?;
    let unwinding = Unwinding::wanted(matches, context, &request)?;
    let sifting = Sifting::wanted(&mut request)?;
    let off_cpu = OffCpuTime::wanted(matches, context, &mut request)?;
    request.rewriting = rewriting::all(unwinding.clone(), sifting.clone(), off_cpu);
    if flag(matches, "dry-run") == Some(true) {
        return Ok(Exit::Ok);
    }
    let mut said = said::Said::new(context, matches);
    let mut control = control::control(matches)?;
    let recorded = rperf_session::record(&request, control.as_mut(), &Elf, &mut said);
    let recorded = recorded
        .map_err(|error| explain::explain(context, &events::names(&request.events), error))?;
    let is_verbose = context.verbosity(matches) > 0;
    summary::print(context, &request, &recorded, is_verbose);
    unhit::print(context, &recorded);
    if let Some(sifting) = sifting {
        sifting.tell(context);
    }
    if let (Some(unwinding), CallGraph::Dwarf { stack_size }) = (unwinding, request.call_graph) {
        unwinding.tell(context, stack_size.bytes());
    }
    Ok(match (recorded.signal, recorded.ended) {
        (Some(signal), _) | (None, Some(Ended::Signaled(signal))) => Exit::Signal(signal),
        (None, Some(Ended::Exited(0)) | None) => Exit::Ok,
        (None, Some(Ended::Exited(status))) => Exit::Child(status),
    })
}

/// Build-ids by the same code that reads them when symbols are looked up.
struct Elf;

impl BuildIds for Elf {
    fn of_file(&self, path: &Path) -> Option<Vec<u8>> {
        self.of_image(&DiskFiles.read(path).ok()?)
    }

    fn of_image(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        Some(build_id_of_elf(bytes)?.as_bytes().to_vec())
    }

    fn of_notes(&self, notes: &[u8]) -> Option<Vec<u8>> {
        let endian = if cfg!(target_endian = "big") {
            Endianness::Big
        } else {
            Endianness::Little
        };
        Some(build_id_of_notes(notes, endian)?.as_bytes().to_vec())
    }
}
