//! Idle functions.

/// Kernel functions in which an idle CPU waits for work.
const IDLE: &[&str] = &[
    "acpi_idle_do_entry",
    "arch_cpu_idle",
    "cpu_idle",
    "cpu_idle_poll",
    "cpu_startup_entry",
    "cpuidle_enter",
    "cpuidle_enter_state",
    "cpuidle_idle_call",
    "default_idle",
    "default_idle_call",
    "do_idle",
    "intel_idle",
    "mwait_idle",
    "native_safe_halt",
    "poll_idle",
    "pv_native_safe_halt",
];

/// Whether the kernel function of this name is an idle function.
#[must_use]
pub fn is_idle(function: &str) -> bool {
    IDLE.binary_search(&function).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_for_the_search() {
        assert!(IDLE.is_sorted());
        assert!(is_idle("do_idle") && is_idle("poll_idle") && is_idle("acpi_idle_do_entry"));
        assert!(!is_idle("do_idle_work"));
    }
}
