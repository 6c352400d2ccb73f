//! One ring per CPU or, without CPUs, per task, shared by all events of the CPU or task; with overwrite mode, also one overwrite
//! ring.

use std::collections::BTreeMap;
use std::io;

use rperf_ring::Memory;
use rperf_sys::{OverwriteRing, RingMap, Sysctl, page_size};

use crate::aux::AuxArea;
use crate::open::{OpenCounter, OpenEvent};
use crate::{Error, SessionNotice, SessionObserver};

/// A ring to drain.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) map: RingMap,
    /// The AUX area, if a trace is recorded.
    pub(crate) area: Option<AuxArea>,
    /// Its CPU, -1 for a task.
    pub(crate) cpu: i32,
}

impl Ring {
    /// Returns the number of bytes to drain.
    pub(crate) fn available(&self) -> u64 {
        self.map.head().saturating_sub(self.map.tail())
    }

    /// Whether the AUX area contains data to drain.
    pub(crate) fn has_trace(&self) -> bool {
        self.area.as_ref().is_some_and(AuxArea::has_data)
    }

    /// Returns the data size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.map.size() as u64
    }
}

/// The kernel's default of `perf_event_mlock_kb`: 512 KiB of data and a control page of 4 KiB.
const DEFAULT_MLOCK_KB: usize = 516;

/// Returns the default number of data pages of a ring: the number that `perf_event_mlock_kb` allows, without the control
/// page, rounded down to a power of two. With the kernel's default setting, the size is 512 KiB.
pub(crate) fn default_pages(sysctl: &Sysctl) -> usize {
    let page_kb = page_size() / 1024;
    let allowed = sysctl
        .perf_event_mlock_kb()
        .and_then(|size| usize::try_from(size).ok());
    let data_kb = allowed.unwrap_or(DEFAULT_MLOCK_KB).saturating_sub(page_kb);
    let pages = data_kb / page_kb.max(1);
    pages.checked_ilog2().map_or(1, |power| 1 << power)
}

/// Minimum number of data pages of the rings for side-band records in overwrite mode. These records arrive in bursts, even if
/// small overwrite rings are requested.
const SIDE_BAND_PAGES: usize = 32;

/// Maps the rings and redirects all events to the ring of their CPU or task. If locked memory is insufficient, the size of all
/// rings is halved until they fit. `requested` is the number of data pages of a ring. In overwrite mode, the rings that are not
/// overwrite rings have at least [`SIDE_BAND_PAGES`]; if memory is insufficient, they are first reduced to `requested`.
pub(crate) fn map_rings(
    events: &[OpenEvent],
    requested: usize,
    observer: &mut dyn SessionObserver,
) -> Result<(Vec<Ring>, Vec<OverwriteRing>), Error> {
    let ring_owners = owners(events.iter().filter(|event| !event.is_in_overwrite_ring()));
    let overwrite_owners = owners(events.iter().filter(|event| event.is_in_overwrite_ring()));
    // The data pages of an overwrite ring; without overwrite mode, those of each ring.
    let mut pages = requested;
    let mut ring_pages = match overwrite_owners.is_empty() {
        true => pages,
        false => pages.max(SIDE_BAND_PAGES),
    };
    let rings = loop {
        let new_ring = |open_counter: &&OpenCounter| {
            let map = RingMap::new(&open_counter.counter, ring_pages)?;
            let cpu = open_counter.cpu;
            // AUX areas are mapped later.
            let area = None;
            Ok(Ring { map, area, cpu })
        };
        let new_overwrite_ring =
            |open_counter: &&OpenCounter| OverwriteRing::new(&open_counter.counter, pages);
        let mapped = map_all(&ring_owners, ring_pages, new_ring);
        let mapped = mapped.and_then(|rings| {
            let overwrite_rings = map_all(&overwrite_owners, pages, new_overwrite_ring)?;
            Ok((rings, overwrite_rings))
        });
        match mapped {
            Ok(rings) => break rings,
            Err(Error::Map { cause, .. }) if ring_pages > 1 && is_short_of_memory(&cause) => {
                // First without the larger minimum for side-band records, then half the size.
                pages = if ring_pages > pages { pages } else { pages / 2 };
                ring_pages = pages;
            }
            Err(error) => return Err(error),
        }
    };
    if pages < requested {
        observer.on_event(SessionNotice::SmallerRings {
            requested,
            actual: pages,
        });
    }
    // In overwrite mode, this is the size of an overwrite ring, and the other rings may be larger.
    observer.on_event(SessionNotice::Mapped {
        bytes: (pages + 1) * page_size(),
    });
    redirect(events, &ring_owners, &overwrite_owners)?;
    Ok(rings)
}

/// Maps a ring for each owner with `map`; `pages`, the number of data pages, is for the error.
fn map_all<T>(
    owners: &BTreeMap<usize, &OpenCounter>,
    pages: usize,
    map: impl Fn(&&OpenCounter) -> io::Result<T>,
) -> Result<Vec<T>, Error> {
    let mapped = owners.values().map(|open_counter| {
        map(open_counter).map_err(|cause| Error::Map {
            pages,
            cpu: open_counter.cpu,
            cause,
        })
    });
    mapped.collect()
}

/// Returns the counter for which each ring is mapped, by the index of the ring: the first counter of the CPU or task.
fn owners<'e>(events: impl Iterator<Item = &'e OpenEvent>) -> BTreeMap<usize, &'e OpenCounter> {
    let mut owners = BTreeMap::new();
    for open_counter in events.flat_map(|event| &event.counters) {
        owners.entry(open_counter.ring).or_insert(open_counter);
    }
    owners
}

fn is_short_of_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

/// Redirects the other counters of each CPU or task to the ring of the first.
fn redirect(
    events: &[OpenEvent],
    ring_owners: &BTreeMap<usize, &OpenCounter>,
    overwrite_owners: &BTreeMap<usize, &OpenCounter>,
) -> Result<(), Error> {
    for event in events {
        let owners = match event.is_in_overwrite_ring() {
            true => overwrite_owners,
            false => ring_owners,
        };
        for open_counter in &event.counters {
            let owner = owners
                .get(&open_counter.ring)
                .filter(|owner| owner.id != open_counter.id);
            let Some(owner) = owner else { continue };
            open_counter
                .counter
                .set_output(&owner.counter)
                .map_err(|cause| Error::Control {
                    what: "redirect the records of",
                    event: event.event.spec.name.clone(),
                    cause,
                })?;
        }
    }
    Ok(())
}
