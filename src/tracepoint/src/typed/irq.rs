//! Interrupts. Source: the kernel's `include/trace/events/irq.h`.

use super::event::typed_event;
use super::{NamedNumber, Text};

typed_event! {
    /// A handler of a hardware interrupt begins.
    IrqHandlerEntry(IrqHandlerEntryLayout) = "irq:irq_handler_entry" {
        /// Number of the interrupt.
        irq: i32,
        /// Name of the handler.
        name: Text,
    }
}

typed_event! {
    /// It ends.
    IrqHandlerExit(IrqHandlerExitLayout) = "irq:irq_handler_exit" {
        /// Number of the interrupt.
        irq: i32,
        /// 0 if the interrupt was not for this handler.
        ret: i32,
    }
}

typed_event! {
    /// A software interrupt begins to be handled.
    SoftirqEntry(SoftirqEntryLayout) = "irq:softirq_entry" {
        /// Its number, with names such as `TIMER` and `NET_RX`.
        vec: NamedNumber,
    }
}

typed_event! {
    /// It was handled.
    SoftirqExit(SoftirqExitLayout) = "irq:softirq_exit" {
        /// Its number.
        vec: NamedNumber,
    }
}

typed_event! {
    /// A software interrupt is asked for.
    SoftirqRaise(SoftirqRaiseLayout) = "irq:softirq_raise" {
        /// Its number.
        vec: NamedNumber,
    }
}
