//! The open events of a recording, and their metadata.

use std::io;
use std::path::Path;

use rperf_perfdata::EventDesc;
use rperf_sys::{
    CgroupFolder, OpenCgroup, Proc, Sysctl, raise_open_files_limit, read_pseudo_file_text,
};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::{SampleType, TimeConv};

use crate::aux::map_areas;
use crate::drain::RingSet;
use crate::kernel::KernelMaps;
use crate::open::{OpenEvent, Opener};
use crate::rings::{default_pages, map_rings};
use crate::tasks::CpuTasks;
use crate::thread_layout::RingAffinity;
use crate::tracing_data::tracing_data;
use crate::{Error, RecordRequest, SessionObserver};

/// The open events and their metadata, which do not change during the recording.
pub(crate) struct OpenedEvents {
    pub(crate) cpu_tasks: CpuTasks,
    pub(crate) events: Vec<OpenEvent>,
    /// The events as the header describes them: if records are rewritten, changed to match the rewritten samples.
    pub(crate) descriptions: Vec<EventDesc>,
    /// Formats of the tracepoints. They are read before the recording, since probes may be removed before it ends.
    pub(crate) tracing_data: Option<TracingDataBuilder>,
    pub(crate) kernel: KernelMaps,
    /// Conversion from the hardware clock to timestamps, if the kernel provides it.
    pub(crate) conversion: Option<TimeConv>,
}

impl OpenedEvents {
    /// Opens the events on these CPUs and tasks and maps their rings. Tasks that have exited meanwhile are removed from
    /// `cpu_tasks`.
    pub(crate) fn new(
        request: &RecordRequest,
        mut cpu_tasks: CpuTasks,
        affinity: RingAffinity,
        observer: &mut dyn SessionObserver,
    ) -> Result<(Self, RingSet), Error> {
        let (events, rings) = open(request, &mut cpu_tasks, affinity, observer)?;
        let mut descriptions = describe(&events);
        if let Some(rewriter) = &request.output.rewriter {
            rewriter.describe(&mut descriptions);
        }
        let opened = Self {
            cpu_tasks,
            descriptions,
            tracing_data: describe_tracepoints(request, &events)?,
            kernel: KernelMaps::of(&events, &Proc::new(&request.roots.proc), observer),
            conversion: rings.time_conversion(),
            events,
        };
        Ok((opened, rings))
    }

    /// Returns the sample type of the first event, which determines the trailer of synthesized records.
    pub(crate) fn sample_type(&self) -> SampleType {
        let first = self.events.first();
        first.map_or(SampleType::default(), |event| event.event.attr.sample_type)
    }

    /// Returns the sample fields for the statistics of records: those of the first event, without the time if another event has
    /// none (`-e EVENT/time=0/`) or has it at another offset.
    pub(crate) fn statistics_fields(&self) -> SampleType {
        let types = self.events.iter().map(|event| event.event.attr.sample_type);
        statistics_fields(self.sample_type(), types)
    }
}

fn statistics_fields(first: SampleType, mut types: impl Iterator<Item = SampleType>) -> SampleType {
    // The time comes last of these four fields. Its offset is the same in all samples if all events have the same ones.
    let up_to_time = SampleType::IDENTIFIER | SampleType::IP | SampleType::TID | SampleType::TIME;
    let is_common = types.all(|other| other & up_to_time == first & up_to_time);
    first.with(
        SampleType::TIME,
        first.contains(SampleType::TIME) && is_common,
    )
}

/// Opens the events, sets their filters, and maps their rings and AUX areas.
fn open(
    request: &RecordRequest,
    cpu_tasks: &mut CpuTasks,
    affinity: RingAffinity,
    observer: &mut dyn SessionObserver,
) -> Result<(Vec<OpenEvent>, RingSet), Error> {
    raise_open_files_limit().map_err(Error::system("raise the limit of open files"))?;
    let sysctl = Sysctl::new(&request.roots.proc);
    let cgroups = open_cgroups(request)?;
    let mut opener = Opener::new(request, cpu_tasks, &sysctl, &cgroups);
    let events = opener.open(request.observe.events.clone(), observer)?;
    set_filters(&events)?;
    attach_filters(request, &events)?;
    // The limit of locked memory of an unprivileged user covers both rings and AUX areas, so rings get half of their default
    // size.
    let limit_is_shared = request
        .observe
        .traces
        .as_ref()
        .is_some_and(|traces| !traces.privileged);
    let default = || default_pages(&sysctl) >> u32::from(limit_is_shared);
    let pages = request.rings.pages.unwrap_or_else(|| default().max(1));
    let (mut rings, overwrite_rings) = map_rings(&events, pages, observer)?;
    map_areas(request, &events, &mut rings, observer)?;
    Ok((
        events,
        RingSet::new(
            rings,
            overwrite_rings,
            request.rings.min_flush_bytes,
            affinity,
        ),
    ))
}

fn set_filters(events: &[OpenEvent]) -> Result<(), Error> {
    for event in events {
        let spec = &event.event.spec;
        let Some(filter) = &spec.filter else { continue };
        for open_counter in &event.counters {
            open_counter
                .counter
                .set_filter(filter)
                .map_err(|cause| Error::Filter {
                    event: spec.name.clone(),
                    filter: filter.clone(),
                    cause,
                })?;
        }
    }
    Ok(())
}

/// Attaches the BPF programs that filter samples. They are inherited with the events.
fn attach_filters(request: &RecordRequest, events: &[OpenEvent]) -> Result<(), Error> {
    for (event, program) in events.iter().zip(&request.observe.sample_filters) {
        let Some(program) = program else { continue };
        for open_counter in &event.counters {
            let attached = open_counter.counter.attach(program.as_ref());
            attached.map_err(|cause| Error::Filter {
                event: event.event.spec.name.clone(),
                // The option that the program is made from: a program has no text to show.
                filter: "--filter".to_owned(),
                cause,
            })?;
        }
    }
    Ok(())
}

fn describe(events: &[OpenEvent]) -> Vec<EventDesc> {
    let describe = |event: &OpenEvent| EventDesc {
        attr: event.event.attr.clone(),
        ids: event
            .counters
            .iter()
            .map(|open_counter| open_counter.id)
            .collect(),
        name: event.event.spec.name.clone(),
    };
    events.iter().map(describe).collect()
}

fn describe_tracepoints(
    request: &RecordRequest,
    events: &[OpenEvent],
) -> Result<Option<TracingDataBuilder>, Error> {
    let tracepoints = events.iter().filter_map(|event| {
        let spec = &event.event.spec;
        spec.tracepoint.as_ref()
    });
    tracing_data(tracepoints, &request.roots.tracefs).map_err(|cause| Error::Tracefs {
        folder: request.roots.tracefs.events_folder().to_owned(),
        cause,
    })
}

/// Opens the cgroup of each event that has one.
fn open_cgroups(request: &RecordRequest) -> Result<Vec<Option<OpenCgroup>>, Error> {
    let open = |name: &Option<String>| {
        let name = name.as_ref();
        name.map(|name| open_cgroup(name, &request.roots.proc))
            .transpose()
    };
    request.observe.cgroups.iter().map(open).collect()
}

/// Opens a cgroup by its path below the mount point of the cgroup filesystem.
pub(crate) fn open_cgroup(name: &str, proc: &Path) -> Result<OpenCgroup, Error> {
    let mounts = read_pseudo_file_text(proc.join("self/mounts")).unwrap_or_default();
    let folder = CgroupFolder::find(&mounts);
    let folder = folder.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    let opened = folder.and_then(|folder| folder.open(name));
    opened.map_err(|cause| Error::Cgroup {
        name: name.to_owned(),
        cause,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_used_if_all_samples_have_it_at_the_same_offset() {
        let with_time = SampleType::IP | SampleType::TID | SampleType::TIME;
        let fields = |types: [SampleType; 2]| statistics_fields(types[0], types.into_iter());
        let more = with_time | SampleType::CPU;
        assert_eq!(fields([with_time, more]), with_time);
        let without = SampleType::IP | SampleType::TID;
        assert_eq!(fields([more, without]), without | SampleType::CPU);
        assert_eq!(fields([without, with_time]), without);
        let elsewhere = SampleType::IDENTIFIER | with_time;
        assert_eq!(fields([with_time, elsewhere]), without);
    }
}
