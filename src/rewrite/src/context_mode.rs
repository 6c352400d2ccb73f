//! CPU modes of the addresses in samples: entries of callchains, data addresses and branches.

use rperf_wire::{
    CpuMode, PERF_CONTEXT_GUEST_KERNEL, PERF_CONTEXT_GUEST_USER, PERF_CONTEXT_HV,
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_CONTEXT_USER, PERF_CONTEXT_USER_DEFERRED, U64s,
};

/// The entries of a callchain, each with its mode if it is an address; addresses before the first marker are in user space.
/// The other entries are the markers, and the cookie after `PERF_CONTEXT_USER_DEFERRED`, which identifies the CALLCHAIN_DEFERRED
/// record with the user frames.
pub(crate) fn chain_entries(chain: &U64s<'_>) -> impl Iterator<Item = (u64, Option<CpuMode>)> {
    let mut mode = CpuMode::User;
    let mut is_cookie = false;
    chain.iter().map(move |word| {
        let is_address = !is_cookie && word < PERF_CONTEXT_MAX;
        if !is_cookie && !is_address {
            mode = mode_of_context(word).unwrap_or(mode);
        }
        is_cookie = !is_cookie && word == PERF_CONTEXT_USER_DEFERRED;
        (word, is_address.then_some(mode))
    })
}

/// The mode of the entries after a context marker; `None` for markers that set no mode, and for other values.
fn mode_of_context(marker: u64) -> Option<CpuMode> {
    Some(match marker {
        PERF_CONTEXT_HV => CpuMode::Hypervisor,
        PERF_CONTEXT_KERNEL => CpuMode::Kernel,
        PERF_CONTEXT_USER => CpuMode::User,
        PERF_CONTEXT_GUEST_KERNEL => CpuMode::GuestKernel,
        PERF_CONTEXT_GUEST_USER => CpuMode::GuestUser,
        _ => return None,
    })
}

/// The mode of a data address or a branch of a sample in `mode`. Kernel code accesses data in user space, too, so the address
/// determines kernel or user; `mode` determines only host or guest.
pub(crate) fn mode_of_address(mode: CpuMode, address: u64) -> CpuMode {
    let is_guest = matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser);
    match CpuMode::of_address(address) {
        CpuMode::Kernel if is_guest => CpuMode::GuestKernel,
        CpuMode::User if is_guest => CpuMode::GuestUser,
        host => host,
    }
}
