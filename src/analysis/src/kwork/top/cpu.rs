//! The activity of one CPU: the running task, and the interrupts and softirqs in its context. In this module, "interrupt" alone
//! means a hardware interrupt or a softirq. Only those of the classes that the user selected get here.

use super::table::CpuTimes;
use crate::kwork::KworkClass;

/// The state of a CPU, with its sums.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    /// The sums of complete stretches: each from the switch to a task until the next switch.
    pub(super) times: CpuTimes,
    current: Option<Current>,
    /// Interrupts and softirqs that have not ended, innermost last.
    interrupts: Vec<OpenInterrupt>,
}

/// The running task since the switch to it.
#[derive(Debug, Clone, Copy)]
struct Current {
    tid: i32,
    since: u64,
    /// Nanoseconds of hardware interrupts since the switch.
    irq: u64,
    /// Nanoseconds of softirqs since the switch.
    softirq: u64,
}

/// An interrupt or a softirq that has not ended.
#[derive(Debug, Clone, Copy)]
struct OpenInterrupt {
    class: KworkClass,
    id: u64,
    begin: u64,
    /// Nanoseconds of the interrupts within it.
    nested: u64,
}

/// A complete stretch in which a task ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) tid: i32,
    /// Nanoseconds, without those of interrupts and softirqs.
    pub(super) run: u64,
}

/// Maximum nesting depth of interrupts. A greater depth is due to missing exits; the outermost interrupt is then dropped.
const MOST_NESTED: usize = 16;

impl CpuState {
    /// Ends the stretch of `prev` and begins that of `next`. Returns the ended stretch; `None` if its start is not known.
    pub(super) fn switch(&mut self, time: u64, prev: i32, next: i32) -> Option<Stretch> {
        // Interrupts that are still open end here: softirqs in threads (PREEMPT_RT) may be preempted.
        while let Some(open) = self.interrupts.pop() {
            self.add(time, open);
        }
        let ended = self.current.replace(Current {
            tid: next,
            since: time,
            irq: 0,
            softirq: 0,
        })?;
        // If the tasks differ, switches are missing: it is not known when `prev` began to run.
        if ended.tid != prev {
            return None;
        }
        let total = time.saturating_sub(ended.since);
        let run = total.saturating_sub(ended.irq.saturating_add(ended.softirq));
        let times = &mut self.times;
        times.total = times.total.saturating_add(total);
        times.irq = times.irq.saturating_add(ended.irq);
        times.softirq = times.softirq.saturating_add(ended.softirq);
        if prev == 0 {
            times.idle = times.idle.saturating_add(run);
        }
        Some(Stretch { tid: prev, run })
    }

    pub(super) fn enter(&mut self, time: u64, class: KworkClass, id: u64) {
        if self.interrupts.len() == MOST_NESTED {
            self.interrupts.remove(0);
        }
        self.interrupts.push(OpenInterrupt {
            class,
            id,
            begin: time,
            nested: 0,
        });
    }

    pub(super) fn exit(&mut self, time: u64, class: KworkClass, id: u64) {
        let is_same = |open: &OpenInterrupt| (open.class, open.id) == (class, id);
        let Some(place) = self.interrupts.iter().rposition(is_same) else {
            return;
        };
        // If other interrupts are still open in this one, their exits are missing.
        self.interrupts.truncate(place + 1);
        if let Some(open) = self.interrupts.pop() {
            self.add(time, open);
        }
    }

    /// Adds an interrupt that ends, and is no longer in `interrupts`, to the running task and to the interrupt around it.
    fn add(&mut self, time: u64, open: OpenInterrupt) {
        let Some(current) = &mut self.current else {
            return;
        };
        let length = time.saturating_sub(open.begin.max(current.since));
        let own = length.saturating_sub(open.nested);
        match open.class {
            KworkClass::Irq => current.irq = current.irq.saturating_add(own),
            _ => current.softirq = current.softirq.saturating_add(own),
        }
        if let Some(outer) = self.interrupts.last_mut() {
            outer.nested = outer.nested.saturating_add(length);
        }
    }
}
