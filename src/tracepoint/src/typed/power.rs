//! Power management of CPUs. Source: the kernel's `include/trace/events/power.h`.

use super::event::typed_event;

typed_event! {
    /// A CPU enters or leaves an idle state.
    CpuIdle(CpuIdleLayout) = "power:cpu_idle" {
        /// The index of the idle state, higher for deeper states; [`CpuIdle::EXIT`] if the CPU leaves an idle state.
        state: u32,
        /// The CPU.
        cpu_id: u32,
    }
}

impl CpuIdle<'_> {
    /// The state of an event that ends idling (`PWR_EVENT_EXIT`).
    pub const EXIT: u32 = u32::MAX;
}

typed_event! {
    /// The frequency of a CPU changes.
    CpuFrequency(CpuFrequencyLayout) = "power:cpu_frequency" {
        /// The new frequency in kHz.
        state: u32,
        /// The CPU.
        cpu_id: u32,
    }
}
