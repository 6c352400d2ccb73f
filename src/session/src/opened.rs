//! The events of a recording once they are open, and what describes them.

use std::io;
use std::path::Path;

use rperf_perfdata::EventDesc;
use rperf_sys::{Cgroup, CgroupFolder, Proc, Sysctl, kernel_text, raise_open_files};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::{SampleType, TimeConv};

use crate::aux::map_areas;
use crate::drain::Rings;
use crate::kernel::Kernel;
use crate::layout::Near;
use crate::open::{OpenEvent, Opener};
use crate::rings::{default_pages, map_rings};
use crate::tasks::Places;
use crate::tracing_data::tracing_data;
use crate::{Error, Request, Watch};

/// Open events, which do not change any more.
pub(crate) struct Opened {
    pub(crate) places: Places,
    pub(crate) events: Vec<OpenEvent>,
    pub(crate) descriptions: Vec<EventDesc>,
    /// Of the tracepoints; taken before the recording, since it may remove what it recorded.
    pub(crate) tracing_data: Option<TracingDataBuilder>,
    pub(crate) kernel: Kernel,
    /// How times follow from the hardware's clock, where the kernel says so.
    pub(crate) conversion: Option<TimeConv>,
}

impl Opened {
    /// Opens the events at these places and maps their rings.
    pub(crate) fn new(
        request: &Request,
        mut places: Places,
        near: Near,
        watch: &mut dyn Watch,
    ) -> Result<(Self, Rings), Error> {
        let (events, rings) = open(request, &mut places, near, watch)?;
        let mut descriptions = describe(&events);
        if let Some(rewriting) = &request.rewriting {
            rewriting.describe(&mut descriptions);
        }
        let opened = Self {
            places,
            descriptions,
            tracing_data: describe_tracepoints(request, &events)?,
            kernel: Kernel::of(&events, &Proc::new(&request.proc), watch),
            conversion: rings.time_conversion(),
            events,
        };
        Ok((opened, rings))
    }

    /// The layout of the first event's samples, by which records are told.
    pub(crate) fn sample_type(&self) -> SampleType {
        let first = self.events.first();
        first.map_or(SampleType::default(), |event| event.event.attr.sample_type)
    }
}

/// Opens the events and maps their rings.
fn open(
    request: &Request,
    places: &mut Places,
    near: Near,
    watch: &mut dyn Watch,
) -> Result<(Vec<OpenEvent>, Rings), Error> {
    raise_open_files().map_err(Error::system("raise the limit of open files"))?;
    let sysctl = Sysctl::new(&request.proc);
    let cgroups = open_cgroups(request)?;
    let mut opener = Opener::new(request, places, (&sysctl, &cgroups));
    let events = opener.open(request.events.clone(), watch)?;
    set_filters(&events)?;
    // Who may lock little memory shares it between rings and AUX areas.
    let shares = request
        .traces
        .as_ref()
        .is_some_and(|traces| !traces.privileged);
    let usual = || default_pages(&sysctl) >> u32::from(shares);
    let pages = request.ring_pages.unwrap_or_else(|| usual().max(1));
    let mut rings = map_rings(&events, pages, watch)?;
    map_areas(request, &events, &mut rings.0, watch)?;
    Ok((events, Rings::new(rings, request.flush_from, near)))
}

fn set_filters(events: &[OpenEvent]) -> Result<(), Error> {
    for event in events {
        let spec = &event.event.spec;
        let Some(filter) = &spec.filter else { continue };
        for placed in &event.counters {
            placed
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

fn describe(events: &[OpenEvent]) -> Vec<EventDesc> {
    let describe = |event: &OpenEvent| EventDesc {
        attr: event.event.attr.clone(),
        ids: event.counters.iter().map(|placed| placed.id).collect(),
        name: event.event.spec.name.clone(),
    };
    events.iter().map(describe).collect()
}

fn describe_tracepoints(
    request: &Request,
    events: &[OpenEvent],
) -> Result<Option<TracingDataBuilder>, Error> {
    let tracepoints = events.iter().filter_map(|event| {
        let spec = &event.event.spec;
        spec.tracepoint.as_ref()
    });
    tracing_data(tracepoints, &request.tracefs).map_err(|cause| Error::Tracefs {
        folder: request.tracefs.events().to_owned(),
        cause,
    })
}

/// The cgroups of the events, opened.
fn open_cgroups(request: &Request) -> Result<Vec<Option<Cgroup>>, Error> {
    let open = |name: &Option<String>| {
        let name = name.as_ref();
        name.map(|name| open_cgroup(name, &request.proc))
            .transpose()
    };
    request.cgroups.iter().map(open).collect()
}

/// Opens a cgroup by its name below the folder of all.
pub(crate) fn open_cgroup(name: &str, proc: &Path) -> Result<Cgroup, Error> {
    let mounts = kernel_text(proc.join("self/mounts")).unwrap_or_default();
    let folder = CgroupFolder::find(&mounts);
    let folder = folder.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    let opened = folder.and_then(|folder| folder.open(name));
    opened.map_err(|cause| Error::Cgroup {
        name: name.to_owned(),
        cause,
    })
}
