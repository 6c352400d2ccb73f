//! CPU time of tasks without that of selected interrupts and softirqs in their context, for `kwork top`.

mod cpu;
mod table;

use std::collections::BTreeMap;

use rperf_tracepoint::typed::{SchedSwitch, TypedEvent};
use rustc_hash::FxHashMap;

use self::cpu::{CpuState, Stretch};
pub use self::table::{CpuTimes, TopSortKey, TopTable, TopTask};
use super::events::{KworkEvent, KworkStep};
use super::names::KworkNames;
use super::{KworkClass, KworkSelection};
use crate::sched::LostStretches;
use crate::{EventContext, Loss, Observer};

/// Collects the times of tasks and CPUs. Only the time between two context switches on a CPU counts.
#[derive(Debug)]
pub struct KworkTop {
    selection: KworkSelection,
    /// The names of handlers, softirqs and functions, which [`KworkEvent::new`] needs; they are not shown.
    names: KworkNames,
    cpus: BTreeMap<u32, CpuState>,
    /// Run time in nanoseconds, without selected interrupts and softirqs.
    tasks: BTreeMap<TaskOnCpu, u64>,
    /// The latest name of each thread.
    comms: FxHashMap<i32, Vec<u8>>,
    /// The stretches of time in which records were lost, for the finished table; they change no times here.
    losses: LostStretches,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TaskOnCpu {
    tid: i32,
    cpu: u32,
}

impl KworkTop {
    /// Creates an analysis that has no events yet. If `selection` has a name, it is that of a task, and the table has only tasks
    /// of this name.
    #[must_use]
    pub fn new(selection: KworkSelection) -> Self {
        Self {
            selection,
            names: KworkNames::default(),
            cpus: BTreeMap::new(),
            tasks: BTreeMap::new(),
            comms: FxHashMap::default(),
            losses: LostStretches::default(),
        }
    }

    fn switch(&mut self, time: u64, cpu: u32, event: &SchedSwitch<'_>) {
        let (prev, next) = (event.prev_pid(), event.next_pid());
        self.set_name(prev, event.prev_comm());
        self.set_name(next, event.next_comm());
        let state = self.cpus.entry(cpu).or_default();
        if let Some(Stretch { tid, run }) = state.switch(time, prev, next) {
            let sum = self.tasks.entry(TaskOnCpu { tid, cpu }).or_default();
            *sum = sum.saturating_add(run);
        }
    }

    fn set_name(&mut self, tid: i32, comm: &[u8]) {
        let known = self.comms.entry(tid).or_default();
        if known != comm {
            known.clear();
            known.extend_from_slice(comm);
        }
    }

    /// Handles an event of an interrupt or a softirq.
    fn interrupt(&mut self, time: u64, cpu: u32, event: &KworkEvent) {
        let state = self.cpus.entry(cpu).or_default();
        match event.step {
            KworkStep::Raise => {}
            KworkStep::Entry => state.enter(time, event.class, event.id),
            KworkStep::Exit => state.exit(time, event.class, event.id),
        }
    }
}

impl Observer for KworkTop {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, (): ()) {
        self.losses.event(at);
        let Some(cpu) = at.cpu else {
            return;
        };
        let cpus = self.selection.cpus.as_ref();
        if cpus.is_some_and(|cpus| !cpus.contains(&cpu)) {
            return;
        }
        if let TypedEvent::SchedSwitch(event) = &event {
            return self.switch(at.time(), cpu, event);
        }
        // Only work items have a function, and these are not counted here.
        let function = None;
        let Some(event) = KworkEvent::new(&event, function, &mut self.names) else {
            return;
        };
        let is_irq_or_softirq = matches!(event.class, KworkClass::Irq | KworkClass::Softirq);
        if is_irq_or_softirq && self.selection.classes.contains(&event.class) {
            self.interrupt(at.time(), cpu, &event);
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
    }
}
