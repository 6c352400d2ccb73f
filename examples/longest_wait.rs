//! The longest time that each task waited for a CPU: a complete analysis with `Observer` and `TaskStates`.
//!
//! `rperf record -a -e sched:sched_switch,sched:sched_wakeup -- sleep 1`, then `cargo run --release --example longest_wait`
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use rperf_analysis::{
    AllSamples, EventContext, EventLayouts, Loss, Observer, ObserverPass, StateInterval, TaskStates,
};
use rperf_perfdata::PerfData;
use rperf_replay::{Order, Replay};
use rperf_tracepoint::typed::TypedEvent;

/// Finds the longest wait of each task.
#[derive(Default)]
pub(crate) struct LongestWait {
    states: TaskStates,
    /// The longest wait so far, by tid.
    pub(crate) longest: BTreeMap<u32, StateInterval>,
}

impl Observer for LongestWait {
    // `()`: [`AllSamples`] gives no details of a sample besides its event.
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, (): ()) {
        let longest = &mut self.longest;
        self.states.event(at, &event, |interval| {
            // Runnable: the task waits for a CPU.
            if interval.state.is_runnable() {
                let longest_of_task = longest.entry(interval.tid).or_insert(interval);
                if interval.duration() > longest_of_task.duration() {
                    *longest_of_task = interval;
                }
            }
        });
    }

    fn lost(&mut self, _: &EventContext, _: Loss) {
        // The current states become doubtful, because switches or wakeups may be missing. Later states do not.
        self.states.lost();
    }
}

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).unwrap_or("perf.data".into());
    let bytes = std::fs::read(path)?;
    let data = PerfData::parse(&bytes)?;
    let replay = Replay::open(&data)?;
    let layouts = EventLayouts::of_recording(data.metadata())?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let mut waits = LongestWait::default();
    ObserverPass::new(&layouts, AllSamples).run(&replay, threads, &mut waits)?;
    for (tid, wait) in waits.longest {
        // The name of the task at the end of the recording. The world has the processes and names at each time.
        let comm = replay.world().comm_at(tid, Order::MAX);
        let (name, nanos) = (replay.world().comm(comm), wait.duration());
        println!("{nanos:>12} ns until {:>15} ns  {name} ({tid})", wait.to);
    }
    Ok(())
}
