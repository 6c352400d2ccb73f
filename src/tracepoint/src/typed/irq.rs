//! Interrupts. Source: the kernel's `include/trace/events/irq.h`.

use super::event::typed_event;
use super::{NamedNumber, TextField};

typed_event! {
    /// A hardware interrupt handler is called.
    IrqHandlerEntry(IrqHandlerEntryLayout) = "irq:irq_handler_entry" {
        /// Number of the interrupt.
        irq: i32,
        /// Name of the handler.
        name: TextField,
    }
}

typed_event! {
    /// A hardware interrupt handler returns.
    IrqHandlerExit(IrqHandlerExitLayout) = "irq:irq_handler_exit" {
        /// Number of the interrupt.
        irq: i32,
        /// 0 if the interrupt was not for this handler.
        ret: i32,
    }
}

typed_event! {
    /// A softirq handler is called.
    SoftirqEntry(SoftirqEntryLayout) = "irq:softirq_entry" {
        /// Number of the softirq, named `TIMER`, `NET_RX`, ….
        vec: NamedNumber,
    }
}

typed_event! {
    /// A softirq handler returns.
    SoftirqExit(SoftirqExitLayout) = "irq:softirq_exit" {
        /// Number of the softirq.
        vec: NamedNumber,
    }
}

typed_event! {
    /// A softirq is raised.
    SoftirqRaise(SoftirqRaiseLayout) = "irq:softirq_raise" {
        /// Number of the softirq.
        vec: NamedNumber,
    }
}
