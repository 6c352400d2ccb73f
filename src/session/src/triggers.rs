//! Events that are not recorded but trigger a new file (`--switch-output-event`).

use rperf_events::trigger_events;
use rperf_ring::{RecordWalker, drain};
use rperf_sys::{Counter, Sysctl};
use rperf_wire::RecordKind;

use crate::open::{OpenEvent, Opener, for_each_counter};
use crate::rings::{Ring, map_rings};
use crate::tasks::CpuTasks;
use crate::{Error, RecordRequest, SessionObserver, Target};

/// Data pages of the ring of a trigger event. Only the presence of samples matters, not their content.
const PAGES: usize = 1;

/// Opens the trigger events on the CPUs and tasks of the recording, and maps their rings.
pub(crate) fn open_triggers(
    request: &RecordRequest,
    cpu_tasks: &CpuTasks,
    observer: &mut dyn SessionObserver,
) -> Result<(Vec<OpenEvent>, Vec<Ring>), Error> {
    if request.output.switch_events.is_empty() {
        return Ok(Default::default());
    }
    let target = request.observe.target.kind();
    let sysctl = Sysctl::new(&request.roots.proc);
    // A copy, from which the opener removes tasks that have exited.
    let mut cpu_tasks = cpu_tasks.clone();
    // No trigger event is restricted to a cgroup.
    let mut opener = Opener::new(request, &mut cpu_tasks, &sysctl, &[]);
    // Unlike `cycles` among recorded events, no trigger event is replaced by a clock: one that cannot be opened is an error.
    let events = opener.open_as_they_are(
        trigger_events(&request.output.switch_events, target),
        observer,
    )?;
    // The second value is empty: it has the overwrite rings, and trigger events have none.
    let (rings, _) = map_rings(&events, PAGES, observer)?;
    Ok((events, rings))
}

/// Enables the trigger events; those of a workload are enabled by its exec.
pub(crate) fn start_triggers(request: &RecordRequest, events: &[OpenEvent]) -> Result<(), Error> {
    match request.observe.target {
        Target::Workload => Ok(()),
        _ => for_each_counter(events, "enable", Counter::enable),
    }
}

/// The open trigger events.
pub(crate) struct TriggerEvents<'a> {
    pub(crate) events: &'a [OpenEvent],
    pub(crate) rings: &'a mut [Ring],
}

impl TriggerEvents<'_> {
    /// Reads the rings; returns whether a trigger event has occurred since the last call.
    pub(crate) fn poll(&mut self) -> bool {
        let mut samples = 0;
        let mut walker = RecordWalker::default();
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
