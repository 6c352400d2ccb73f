//! CPU modes of callchain entries.

use rperf_wire::{
    CpuMode, PERF_CONTEXT_GUEST_KERNEL, PERF_CONTEXT_GUEST_USER, PERF_CONTEXT_HV,
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER,
};

/// The mode that a context marker announces; `None` for other values.
pub(crate) fn mode_of_context(marker: u64) -> Option<CpuMode> {
    Some(match marker {
        PERF_CONTEXT_HV => CpuMode::Hypervisor,
        PERF_CONTEXT_KERNEL => CpuMode::Kernel,
        PERF_CONTEXT_USER => CpuMode::User,
        PERF_CONTEXT_GUEST_KERNEL => CpuMode::GuestKernel,
        PERF_CONTEXT_GUEST_USER => CpuMode::GuestUser,
        _ => return None,
    })
}
