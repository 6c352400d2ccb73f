//! CPU modes of the entries of callchains.

use rperf_wire::{
    CpuMode, PERF_CONTEXT_GUEST_KERNEL, PERF_CONTEXT_GUEST_USER, PERF_CONTEXT_HV,
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER,
};

/// The mode of the entries after a context marker; `None` for markers that set no mode, and for other values.
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
