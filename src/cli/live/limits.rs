//! The kernel's settings that limit recordings, as named in messages.

use std::path::Path;

use rperf_sys::kernel_text;

use super::PROC;

/// Returns the path of a setting of `/proc/sys/kernel` with its value: `/proc/sys/kernel/kptr_restrict (2)`.
pub(crate) fn setting(name: &str) -> String {
    let path = Path::new(PROC).join("sys/kernel").join(name);
    let shown = path.display();
    match kernel_text(&path) {
        Ok(value) => format!("{shown} ({})", value.trim()),
        Err(_) => shown.to_string(),
    }
}

/// Returns the hint for hidden kernel addresses. Without CAP_SYSLOG the kernel shows addresses only if both settings in the hint allow it.
pub(crate) fn show_kernel_addresses() -> String {
    format!(
        "run as root, or set {} to 0 and {} to 1 or less",
        setting("kptr_restrict"),
        setting("perf_event_paranoid")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_with_their_values() {
        let shown = setting("perf_event_mlock_kb");
        let value = std::fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb");
        let value = value.expect("Linux has it");
        let expected = format!("/proc/sys/kernel/perf_event_mlock_kb ({})", value.trim());
        assert_eq!(shown, expected);
        assert_eq!(setting("nosuch"), "/proc/sys/kernel/nosuch");
    }
}
