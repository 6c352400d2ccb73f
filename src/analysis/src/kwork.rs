//! Kernel work for `kwork`: interrupts, softirqs and work items; for `kwork top` also context switches.
//!
//! ```text
//! raise -----------> entry ------------> exit
//!         delay             run time
//! ```
//!
//! Interrupts have no raise event. Interrupts and softirqs begin and end on one CPU; a work item may be activated, begin and end
//! on different CPUs, so its events are paired by its address alone.

mod events;
mod names;
mod runs;
mod table;
mod top;

pub use runs::{KworkDetail, KworkMeasure, KworkRuns, KworkSelection, KworkSink, KworkSpan};
pub use table::{KworkRow, KworkSortKey, KworkTable, KworkTimes, KworkTotals, SkippedEvents};
pub use top::{CpuTimes, KworkTop, TopSortKey, TopTable, TopTask};

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KworkClass {
    /// Handlers of hardware interrupts.
    Irq,
    /// Softirq handlers.
    Softirq,
    /// Work items of workqueues.
    Workqueue,
    /// Tasks: context switches.
    Sched,
}

impl KworkClass {
    /// All classes.
    pub const ALL: [Self; 4] = [Self::Irq, Self::Softirq, Self::Workqueue, Self::Sched];

    /// Returns the class of this name, as in `-k`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Returns the name of the class.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Irq => "irq",
            Self::Softirq => "softirq",
            Self::Workqueue => "workqueue",
            Self::Sched => "sched",
        }
    }

    /// Returns the tracepoint at which work becomes pending, `system:name`; `None` for interrupts and tasks.
    #[must_use]
    pub fn raise_event(self) -> Option<&'static str> {
        match self {
            Self::Irq | Self::Sched => None,
            Self::Softirq => Some("irq:softirq_raise"),
            Self::Workqueue => Some("workqueue:workqueue_activate_work"),
        }
    }

    /// Returns the tracepoints at which work begins and ends, `system:name`; for tasks there is only one.
    #[must_use]
    pub fn begin_and_end_events(self) -> &'static [&'static str] {
        match self {
            Self::Irq => &["irq:irq_handler_entry", "irq:irq_handler_exit"],
            Self::Softirq => &["irq:softirq_entry", "irq:softirq_exit"],
            Self::Workqueue => &[
                "workqueue:workqueue_execute_start",
                "workqueue:workqueue_execute_end",
            ],
            Self::Sched => &["sched:sched_switch"],
        }
    }
}

/// A piece of work: an interrupt, a softirq or a work item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kwork {
    /// Its class.
    pub class: KworkClass,
    /// The CPU on which it began.
    pub cpu: u32,
    /// The number of the interrupt or softirq, or the address of the work item.
    pub id: u64,
    /// The handler of the interrupt, the softirq, or the work item's function (the address of the function if it has no symbol).
    /// Not necessarily UTF-8.
    pub name: Vec<u8>,
}
