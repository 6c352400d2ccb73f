//! Events that are not recorded: one that happens turns to the next file (`--switch-output-event`).

use rperf_events::trigger_events;
use rperf_ring::{Walker, drain};
use rperf_sys::{Counter, Sysctl};
use rperf_wire::RecordKind;

use crate::open::{OpenEvent, Opener, for_each_counter};
use crate::rings::{Ring, map_rings};
use crate::tasks::Places;
use crate::{Error, Request, Target, Watch};

/// Data pages of their rings, which hold nothing but that they happened.
const PAGES: usize = 1;

/// Opens them where the recording's events are, and maps their rings.
pub(crate) fn open_triggers(
    request: &Request,
    places: &Places,
    watch: &mut dyn Watch,
) -> Result<(Vec<OpenEvent>, Vec<Ring>), Error> {
    if request.turn_at.is_empty() {
        return Ok(Default::default());
    }
    let target = request.target.kind();
    let sysctl = Sysctl::new(&request.proc);
    let mut places = places.clone();
    let mut opener = Opener::new(request, &mut places, (&sysctl, &[]));
    let events = opener.open_as_they_are(trigger_events(&request.turn_at, target), watch)?;
    let (rings, _) = map_rings(&events, PAGES, watch)?;
    Ok((events, rings))
}

/// Starts them; those of a workload start with it.
pub(crate) fn start_triggers(request: &Request, events: &[OpenEvent]) -> Result<(), Error> {
    match request.target {
        Target::Workload => Ok(()),
        _ => for_each_counter(events, "enable", Counter::enable),
    }
}

/// What is open.
pub(crate) struct Triggers<'a> {
    pub(crate) events: &'a [OpenEvent],
    pub(crate) rings: &'a mut [Ring],
}

impl Triggers<'_> {
    /// Whether one has happened since this was last asked.
    pub(crate) fn take(&mut self) -> bool {
        let mut samples = 0;
        let mut walker = Walker::default();
        for ring in self.rings.iter_mut() {
            let Some(chunk) = drain(&mut ring.map) else {
                continue;
            };
            walker.walk(chunk.pieces(), |record| {
                samples += u32::from(record.kind == RecordKind::SAMPLE);
            });
        }
        samples > 0
    }
}
