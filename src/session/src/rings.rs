//! One ring per CPU or, without CPUs, per task, into which all events there write.

use std::io;

use rperf_ring::Memory;
use rperf_sys::{RingMap, Sysctl, page_size};

use crate::open::OpenEvent;
use crate::{Error, Happened, Watch};

/// A ring as the draining side sees it.
#[derive(Debug)]
pub(crate) struct Ring {
    map: RingMap,
    /// Its CPU, -1 where it is a task's.
    pub(crate) cpu: i32,
}

impl Ring {
    /// Bytes that wait to be taken.
    pub(crate) fn held(&self) -> u64 {
        self.map.head().saturating_sub(self.map.tail())
    }

    /// Bytes that fit.
    pub(crate) fn size(&self) -> u64 {
        self.map.size() as u64
    }
}

impl Memory for Ring {
    fn head(&self) -> u64 {
        self.map.head()
    }

    fn tail(&self) -> u64 {
        self.map.tail()
    }

    fn bytes(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
        self.map.bytes(from, to)
    }

    fn release(&mut self, tail: u64) {
        self.map.release(tail);
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

/// Maps the rings and directs every event to the ring of its CPU. Where locked memory is short, all
/// rings are halved until they fit.
pub(crate) fn map_rings(
    events: &[OpenEvent],
    asked: usize,
    watch: &mut dyn Watch,
) -> Result<Vec<Ring>, Error> {
    let mut pages = asked;
    let rings = loop {
        match try_map(events, pages) {
            Ok(rings) => break rings,
            Err(Error::Map { cause, .. }) if pages > 1 && is_short_of_memory(&cause) => pages /= 2,
            Err(error) => return Err(error),
        }
    };
    if pages < asked {
        watch.tell(Happened::SmallerRings { asked, had: pages });
    }
    watch.tell(Happened::Mapped {
        bytes: (pages + 1) * page_size(),
    });
    redirect(events)?;
    Ok(rings)
}

fn try_map(events: &[OpenEvent], pages: usize) -> Result<Vec<Ring>, Error> {
    let mut rings: Vec<Ring> = Vec::new();
    for placed in events
        .first()
        .map_or(&[][..], |event| event.counters.as_slice())
    {
        if placed.ring == rings.len() {
            let map = RingMap::new(&placed.counter, pages);
            let map = map.map_err(|cause| Error::Map {
                pages,
                cpu: placed.cpu,
                cause,
            })?;
            rings.push(Ring {
                map,
                cpu: placed.cpu,
            });
        }
    }
    Ok(rings)
}

fn is_short_of_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

/// The first counter of a CPU owns its ring; all others write there too.
fn redirect(events: &[OpenEvent]) -> Result<(), Error> {
    let mut owners = Vec::new();
    for event in events {
        for placed in &event.counters {
            let Some(owner) = owners.get(placed.ring) else {
                owners.push(&placed.counter);
                continue;
            };
            placed
                .counter
                .set_output(owner)
                .map_err(|cause| Error::Control {
                    what: "direct to its ring",
                    event: event.event.spec.name.clone(),
                    cause,
                })?;
        }
    }
    Ok(())
}
