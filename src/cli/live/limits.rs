//! The kernel's settings that limit recordings, as named in messages.

use std::path::{Path, PathBuf};

use rperf_sys::read_pseudo_file_text;

use super::PROC;

/// Returns the path of a setting of `/proc/sys/kernel` with its value, if readable: `/proc/sys/kernel/kptr_restrict (2)`.
pub(crate) fn setting(name: &str) -> String {
    let path = path_of(name);
    let name = path.display();
    match read_pseudo_file_text(&path) {
        Ok(value) => format!("{name} ({})", value.trim()),
        Err(_) => name.to_string(),
    }
}

/// Returns the hint for hidden kernel addresses. Without CAP_SYSLOG the kernel shows addresses only if both `kptr_restrict` and
/// `perf_event_paranoid` allow it; with `kptr_restrict` at 2, it hides them from root, too.
pub(crate) fn kernel_addresses_hint() -> String {
    let current_value = |name: &str| {
        let text = read_pseudo_file_text(path_of(name)).ok()?;
        text.trim().parse().ok()
    };
    let changes = changes_for_addresses(current_value)
        .into_iter()
        .map(|(name, new_value)| format!("{} to {new_value}", setting(name)));
    let changes: Vec<_> = changes.collect();
    // If the value is unknown, the hint suggests root, too.
    let root_sees_them = current_value("kptr_restrict").is_none_or(|level| level < 2);
    let as_root = if root_sees_them {
        "run as root, or "
    } else {
        ""
    };
    format!("{as_root}set {}", changes.join(" and "))
}

/// The settings that hide the kernel's addresses, with the values that show them; both settings if neither is too high.
/// `current_value` returns the value of a setting; an unknown value counts as too high.
fn changes_for_addresses(
    current_value: impl Fn(&str) -> Option<i64>,
) -> Vec<(&'static str, &'static str)> {
    let limits = [
        ("kptr_restrict", 0, "0"),
        ("perf_event_paranoid", 1, "1 or less"),
    ];
    let too_high = limits
        .iter()
        .filter(|(name, highest, _)| current_value(name).is_none_or(|value| value > *highest));
    let mut changes: Vec<_> = too_high.collect();
    if changes.is_empty() {
        changes = limits.iter().collect();
    }
    changes
        .into_iter()
        .map(|(name, _, new_value)| (*name, *new_value))
        .collect()
}

fn path_of(setting: &str) -> PathBuf {
    Path::new(PROC).join("sys/kernel").join(setting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_with_their_values() {
        let text = setting("perf_event_mlock_kb");
        let value = std::fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb");
        let value = value.expect("Linux has it");
        let expected = format!("/proc/sys/kernel/perf_event_mlock_kb ({})", value.trim());
        assert_eq!(text, expected);
        assert_eq!(setting("nosuch"), "/proc/sys/kernel/nosuch");
    }

    #[test]
    fn only_settings_that_hide_addresses_are_to_be_changed() {
        let changes = |kptr_restrict, paranoid| {
            let changes = changes_for_addresses(|name| match name {
                "kptr_restrict" => Some(kptr_restrict),
                _ => Some(paranoid),
            });
            changes
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        let both = ["kptr_restrict", "perf_event_paranoid"];
        assert_eq!(changes(0, 2), ["perf_event_paranoid"]);
        assert_eq!(changes(2, 1), ["kptr_restrict"]);
        assert_eq!(changes(1, 2), both);
        // Both settings show addresses, but something else hides them, such as a sandbox.
        assert_eq!(changes(0, -1), both);
    }
}
