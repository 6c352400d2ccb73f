//! The script `mem-phys-addr`, which runs without an interpreter: counts samples by the region of physical memory that contains
//! their data address.

use std::ffi::OsString;

use clap::ArgMatches;
use rperf_analysis::trace_scripts::{PhysicalCounts, PhysicalMemory};
use rperf_lines::FieldSelection;
use rperf_names::{counted, is_or_are};
use rperf_view::trace_scripts::write_memory_regions;
use rperf_wire::SampleType;

use super::settings::ScriptSettings;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::pmus::machine_pmus;
use crate::cli::shared::analysis::Analysis;

/// The file that lists the regions of this machine's physical memory.
const IOMEM: &str = "/proc/iomem";
/// Retired loads of Intel's cores (MEM_INST_RETIRED.ALL_LOADS, earlier MEM_UOPS_RETIRED.ALL_LOADS), the only event that
/// perf's script records.
const LOADS: &str = "cpu/event=0xd0,umask=0x81,name=mem_inst_retired.all_loads/P";
const INTEL_CPUID_PREFIX: &str = "GenuineIntel-6-";

/// Prints the table of a recording. `words` are those after the script's name.
///
/// # Errors
///
/// Status 129: `words` is not empty. Status 255: the recording cannot be read or has no physical addresses, or the regions
/// of memory cannot be read.
pub(super) fn report(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    check(words)?;
    let settings = ScriptSettings::new(FieldSelection::default(), matches, context)?;
    let input = Input::open(matches, context)?;
    print(&input, &settings, context)?;
    Ok(ExitStatus::Ok)
}

/// Refuses words: the script takes none.
///
/// # Errors
///
/// Status 129: there are words.
pub(super) fn check(words: &[OsString]) -> Result<(), CliError> {
    match words {
        [] => Ok(()),
        _ => Err(CliError::usage("usage: script report mem-phys-addr")),
    }
}

/// The options of `record` that select the event for retired loads of this processor.
///
/// # Errors
///
/// Status 255: the event of this processor is not known.
pub(super) fn event_options(context: &Context) -> Result<[OsString; 2], CliError> {
    let pmus = machine_pmus(context);
    if pmus.tables.cpuid().starts_with(INTEL_CPUID_PREFIX) {
        return Ok(["-e".into(), LOADS.into()]);
    }
    let message = "mem-phys-addr: the event for retired loads of this processor is not known";
    Err(CliError::message(255, message)
        .hint("'record --phys-data -e EVENT' and then 'script report mem-phys-addr'"))
}

fn print(input: &Input, settings: &ScriptSettings, context: &Context) -> Result<(), CliError> {
    let data = input.parse(context)?;
    let path = input.path.display();
    let mut events = data.events().iter();
    if !events.any(|event| event.attr.sample_type.contains(SampleType::PHYS_ADDR)) {
        let message = format!("{path}: the recording has no physical addresses");
        return Err(CliError::message(255, message).hint("record with --phys-data"));
    }
    let text = rperf_sys::read_pseudo_file_text(IOMEM);
    let text = text.map_err(|error| CliError::message(255, format!("{IOMEM}: {error}")))?;
    let memory = PhysicalMemory::parse(&text);
    if memory.is_hidden() {
        let message = format!("{IOMEM}: addresses of memory are hidden from unprivileged users");
        return Err(CliError::message(255, message).hint("run as root"));
    }
    let analysis = Analysis::open(input, &data, settings.jobs, context)?;
    let recording = analysis.metadata();
    let filter = settings.filter(recording)?;
    let resolver = analysis.resolver(&settings.symbols);
    let physical = analysis.replay.fold(analysis.jobs, || {
        PhysicalCounts::new(&memory, &filter, &resolver)
    });
    analysis.end_progress();
    let event = physical.first_event();
    let event = event.and_then(|event| recording.events.get(event.0 as usize));
    let name = event.map_or("", |event| &event.name);
    write_memory_regions(
        &mut context.stdout(),
        name,
        &physical.rows(),
        physical.total(),
    )?;
    if physical.unknown > 0 {
        let count = physical.unknown;
        context.warn(format_args!(
            "{} {} outside of all regions of {IOMEM}",
            counted(count, "sample"),
            is_or_are(count)
        ));
    }
    analysis.conclude()
}
