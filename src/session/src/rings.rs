//! One ring per CPU or, without CPUs, per task, into which all events there write; where the last samples are kept, one more.

use std::io;

use rperf_ring::Memory;
use rperf_sys::{FlightRing, RingMap, Sysctl, page_size};

use crate::aux::Area;
use crate::open::{OpenEvent, Placed};
use crate::{Error, Happened, Watch};

/// A ring as the draining side sees it.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) map: RingMap,
    /// Where hardware writes a trace beside it, if one is recorded.
    pub(crate) area: Option<Area>,
    /// Its CPU, -1 where it is a task's.
    pub(crate) cpu: i32,
}

impl Ring {
    /// Bytes that wait to be taken.
    pub(crate) fn held(&self) -> u64 {
        self.map.head().saturating_sub(self.map.tail())
    }

    /// Whether the area beside it holds a part of a trace.
    pub(crate) fn has_trace(&self) -> bool {
        self.area.as_ref().is_some_and(Area::holds_any)
    }

    /// Bytes that fit.
    pub(crate) fn size(&self) -> u64 {
        self.map.size() as u64
    }
}

/// Data pages of a ring where the user doesn't say: what `perf_event_mlock_kb` lets everyone lock,
/// without the control page, rounded down to a power of two. 512 KiB by default.
pub(crate) fn default_pages(sysctl: &Sysctl) -> usize {
    let page_kb = page_size() / 1024;
    let allowed = sysctl
        .perf_event_mlock_kb()
        .and_then(|size| usize::try_from(size).ok());
    let pages = allowed.unwrap_or(516).saturating_sub(page_kb) / page_kb.max(1);
    pages.checked_ilog2().map_or(1, |power| 1 << power)
}

/// Data pages that a ring has at least for what is mapped and started, where samples have rings of their own: it comes in
/// bursts, however small the others are.
const SIDE_BAND_PAGES: usize = 32;

/// Maps the rings and directs every event to the ring of its CPU. Where locked memory is short, all
/// rings are halved until they fit.
pub(crate) fn map_rings(
    events: &[OpenEvent],
    asked: usize,
    watch: &mut dyn Watch,
) -> Result<(Vec<Ring>, Vec<FlightRing>), Error> {
    let forward = owners(events.iter().filter(|event| !event.is_in_flight_ring()));
    let backward = owners(events.iter().filter(|event| event.is_in_flight_ring()));
    let mut pages = asked;
    let mut side_band = match backward.is_empty() {
        true => pages,
        false => pages.max(SIDE_BAND_PAGES),
    };
    let rings = loop {
        let ring = |placed: &&Placed| {
            let map = RingMap::new(&placed.counter, side_band)?;
            let cpu = placed.cpu;
            let area = None;
            Ok(Ring { map, area, cpu })
        };
        let flight = |placed: &&Placed| FlightRing::new(&placed.counter, pages);
        let mapped = map_all(&forward, pages, ring);
        match mapped.and_then(|rings| Ok((rings, map_all(&backward, pages, flight)?))) {
            Ok(rings) => break rings,
            Err(Error::Map { cause, .. }) if side_band > 1 && is_short_of_memory(&cause) => {
                pages = if side_band > pages { pages } else { pages / 2 };
                side_band = pages;
            }
            Err(error) => return Err(error),
        }
    };
    if pages < asked {
        watch.tell(Happened::SmallerRings { asked, had: pages });
    }
    watch.tell(Happened::Mapped {
        bytes: (pages + 1) * page_size(),
    });
    redirect(events, &forward, &backward)?;
    Ok(rings)
}

fn map_all<T>(
    owners: &[&Placed],
    pages: usize,
    map: impl Fn(&&Placed) -> io::Result<T>,
) -> Result<Vec<T>, Error> {
    let mapped = owners.iter().map(|placed| {
        map(placed).map_err(|cause| Error::Map {
            pages,
            cpu: placed.cpu,
            cause,
        })
    });
    mapped.collect()
}

/// The first counter of each CPU or task, ring by ring: the ring is mapped for it.
fn owners<'e>(events: impl Iterator<Item = &'e OpenEvent>) -> Vec<&'e Placed> {
    let mut owners: Vec<&Placed> = Vec::new();
    for placed in events.flat_map(|event| &event.counters) {
        if placed.ring == owners.len() {
            owners.push(placed);
        }
    }
    owners
}

fn is_short_of_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

/// Counters that own no ring write into that of the first one.
fn redirect(events: &[OpenEvent], forward: &[&Placed], backward: &[&Placed]) -> Result<(), Error> {
    for event in events {
        let owners = match event.is_in_flight_ring() {
            true => backward,
            false => forward,
        };
        for placed in &event.counters {
            let owner = owners
                .get(placed.ring)
                .filter(|owner| owner.id != placed.id);
            let Some(owner) = owner else { continue };
            placed
                .counter
                .set_output(&owner.counter)
                .map_err(|cause| Error::Control {
                    what: "direct to its ring",
                    event: event.event.spec.name.clone(),
                    cause,
                })?;
        }
    }
    Ok(())
}
