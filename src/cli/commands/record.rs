//! `rperf record`: records samples into a perf.data file.

mod args;
mod build_ids;
mod details;
mod feedback;
mod losses;
mod mapped_files;
mod masks;
mod off_cpu;
mod off_cpu_programs;
mod output;
mod request;
mod rotation;
mod sample_filter;
mod summary;
mod threads;
mod timing;
mod unhit_probes;
mod unwinding;
mod wait_capture;

use std::path::Path;
use std::sync::Arc;

use clap::ArgMatches;
use rperf_events::CallGraph;
use rperf_perfdata::BuildRewriter;
use rperf_session::BuildIds;
use rperf_symbol::{Files as _, build_id_of_elf, build_id_of_notes, native_endian};
use rperf_sys::WaitStatus;

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::record_reporter::RecordReporter;
use crate::cli::live::{control, events, explain};
use crate::cli::options::flag;
use rperf_input::DiskFiles;

pub(super) use self::args::command;
use self::off_cpu::OffCpuSampling;
use self::sample_filter::SampleFilters;
use self::unwinding::LiveUnwinding;

/// Records, then reports losses, filtered samples and problems. The exit status is that of the workload, unless a signal
/// ended the recording.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    args::refuse_old_call_graph_modes(matches, context)?;
    let mut request = request::build(matches, context)?;
    let unwinding = LiveUnwinding::requested(matches, context, &request)?;
    let filters = SampleFilters::requested(&mut request)?;
    let off_cpu = OffCpuSampling::requested(matches, context, &mut request)?;
    let off_cpu = off_cpu.map(Arc::new);
    request.output.rewriter = rewriters(unwinding.clone(), filters.clone(), off_cpu.clone());
    if flag(matches, "dry-run") == Some(true) {
        return Ok(ExitStatus::Ok);
    }
    // For `lock record`: BPF programs that capture who holds a lock that a thread waits for.
    wait_capture::start(matches, context, &mut request);
    feedback::warn(context, &request);
    let mut reporter = RecordReporter::new(context, matches);
    let mut control = control::control(matches)?;
    let recorded = rperf_session::record(&request, control.as_mut(), &ElfBuildIds, &mut reporter);
    let recorded = recorded.map_err(|error| {
        explain::explain(context, &events::names(&request.observe.events), error)
    })?;
    let is_verbose = context.verbosity(matches) > 0;
    summary::print(context, &request, &recorded, is_verbose);
    unhit_probes::print(context, &recorded, is_verbose);
    if let Some(filters) = filters {
        filters.report(context);
    }
    if let Some(off_cpu) = off_cpu {
        off_cpu.report(context);
    }
    if let (Some(unwinding), CallGraph::Dwarf { stack_size, .. }) =
        (unwinding, request.observe.call_graph)
    {
        unwinding.report(context, stack_size.bytes());
    }
    Ok(match (recorded.signal, recorded.workload_status) {
        (Some(signal), _) | (None, Some(WaitStatus::Signaled(signal))) => {
            ExitStatus::Signal(signal)
        }
        (None, Some(WaitStatus::Exited(0)) | None) => ExitStatus::Ok,
        (None, Some(WaitStatus::Exited(status))) => ExitStatus::Child(status),
    })
}

/// Chains the builders of rewriters, which change or drop records before they are written; `None` if there are none.
fn rewriters(
    unwinding: Option<Arc<LiveUnwinding>>,
    filters: Option<Arc<SampleFilters>>,
    off_cpu: Option<Arc<OffCpuSampling>>,
) -> Option<Arc<dyn BuildRewriter>> {
    // Unwinding precedes --off-cpu, which moves the sample of a switch to the time at which the task runs again: a stack must be
    // unwound with the mappings at the time of the switch.
    let unwinding = unwinding.map(|unwinding| unwinding as Arc<dyn BuildRewriter>);
    // Filters that BPF programs apply in the kernel need no rewriter.
    let filters = filters.filter(|filters| filters.drops_before_writing());
    let filters = filters.map(|filters| filters as Arc<dyn BuildRewriter>);
    let off_cpu = off_cpu.map(|off_cpu| off_cpu as Arc<dyn BuildRewriter>);
    rperf_rewrite::chain([unwinding, filters, off_cpu].into_iter().flatten())
}

/// Reads build-ids with the code that symbol lookup uses.
struct ElfBuildIds;

impl BuildIds for ElfBuildIds {
    fn of_file(&self, path: &Path) -> Option<Vec<u8>> {
        self.of_image(&DiskFiles.read(path).ok()?)
    }

    fn of_image(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        Some(build_id_of_elf(bytes)?.as_bytes().to_vec())
    }

    fn of_notes(&self, notes: &[u8]) -> Option<Vec<u8>> {
        let id = build_id_of_notes(notes, native_endian())?;
        Some(id.as_bytes().to_vec())
    }
}
