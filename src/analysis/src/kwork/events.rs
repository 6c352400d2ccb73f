//! A common form of the events of interrupts, softirqs and work items.

use rperf_tracepoint::typed::TypedEvent;

use super::KworkClass;
use super::names::{KworkNames, NameIndex};

/// A step in the processing of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KworkStep {
    /// A softirq is raised, or a work item is activated (put on the worklist of a worker pool). Interrupts have no such step.
    Raise,
    /// The handler or the work item's function starts.
    Entry,
    /// The handler or the work item's function returns.
    Exit,
}

/// An event of an interrupt, a softirq or a work item.
#[derive(Debug, Clone, Copy)]
pub(super) struct KworkEvent {
    pub(super) step: KworkStep,
    pub(super) class: KworkClass,
    /// The number of the interrupt or softirq, or the address of the work item.
    pub(super) id: u64,
    /// The name of the interrupt, the softirq or the work item's function; `None` for exits, and for activations of work items
    /// (`workqueue_activate_work`) on old kernels, which do not record the function there.
    pub(super) name: Option<NameIndex>,
}

/// The identity of a span, which is a delay (from the raise to the entry) or a run (from the entry to the exit): the events at
/// its start and its end have the same key. A delay has the same key as the run after it: the entry ends one and
/// begins the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SpanKey {
    class: KworkClass,
    /// `None` for work items, which may run on another CPU than that on which they were activated.
    cpu: Option<u32>,
    id: u64,
}

impl KworkEvent {
    /// Returns the common form of an event; `None` for events of other kinds. `function` is the symbol of a work item's function,
    /// if known; the event itself has only the function's address.
    pub(super) fn new(
        event: &TypedEvent<'_>,
        function: Option<&str>,
        names: &mut KworkNames,
    ) -> Option<Self> {
        use KworkClass::{Irq, Softirq, Workqueue};
        use KworkStep::{Entry, Exit, Raise};
        let (step, class, id, name) = match event {
            TypedEvent::IrqHandlerEntry(event) => {
                let name = names.index(event.name());
                (Entry, Irq, number(event.irq()), Some(name))
            }
            TypedEvent::IrqHandlerExit(event) => (Exit, Irq, number(event.irq()), None),
            TypedEvent::SoftirqRaise(event) => {
                let vec = event.vec();
                (Raise, Softirq, vec.value, Some(names.softirq(vec)))
            }
            TypedEvent::SoftirqEntry(event) => {
                let vec = event.vec();
                (Entry, Softirq, vec.value, Some(names.softirq(vec)))
            }
            TypedEvent::SoftirqExit(event) => (Exit, Softirq, event.vec().value, None),
            TypedEvent::WorkqueueActivateWork(event) => {
                let address = event.function();
                let name = address.map(|address| names.function(function, address));
                (Raise, Workqueue, event.work(), name)
            }
            TypedEvent::WorkqueueExecuteStart(event) => {
                let name = names.function(function, event.function());
                (Entry, Workqueue, event.work(), Some(name))
            }
            TypedEvent::WorkqueueExecuteEnd(event) => (Exit, Workqueue, event.work(), None),
            _ => return None,
        };
        Some(Self {
            step,
            class,
            id,
            name,
        })
    }

    /// Returns the key of the spans that the event begins or ends, if it happened on `cpu`.
    pub(super) fn key(&self, cpu: u32) -> SpanKey {
        SpanKey {
            class: self.class,
            cpu: (self.class != KworkClass::Workqueue).then_some(cpu),
            id: self.id,
        }
    }
}

/// Returns the number of an interrupt, which tracepoints record as signed though it is never negative.
fn number(irq: i32) -> u64 {
    u64::from(irq.cast_unsigned())
}
