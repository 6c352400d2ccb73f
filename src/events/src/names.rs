//! Events that every kernel knows by name.

use rperf_wire::{EventType, HARDWARE_NAMES, SOFTWARE_NAMES};

/// Second names (EV-01, EV-02 of perf's lists), each with the name that it stands for.
pub(crate) const ALIASES: [(&str, &str); 7] = [
    ("cpu-cycles", "cycles"),
    ("branch-instructions", "branches"),
    ("idle-cycles-frontend", "stalled-cycles-frontend"),
    ("idle-cycles-backend", "stalled-cycles-backend"),
    ("faults", "page-faults"),
    ("cs", "context-switches"),
    ("migrations", "cpu-migrations"),
];

/// Clocks that a counting command takes itself; no kernel event.
pub(crate) const TOOL_NAMES: [&str; 3] = ["duration_time", "user_time", "system_time"];

/// Type and config of a hardware or software event.
pub(crate) fn known_event(name: &str) -> Option<(EventType, u64)> {
    let name = ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or(name, |(_, first)| first);
    let index = |names: &[&str]| {
        let at = names.iter().position(|known| *known == name)?;
        u64::try_from(at).ok()
    };
    if let Some(config) = index(&HARDWARE_NAMES) {
        return Some((EventType::HARDWARE, config));
    }
    index(&SOFTWARE_NAMES).map(|config| (EventType::SOFTWARE, config))
}

/// All names that [`known_event`] takes.
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    HARDWARE_NAMES
        .into_iter()
        .chain(SOFTWARE_NAMES)
        .chain(aliases)
}

/// The number of a raw code, `r` and hexadecimal digits; `None` where the name is something else, and inside where the
/// number is too long.
pub(crate) fn raw_code(name: &str) -> Option<Option<u64>> {
    let digits = name.strip_prefix('r')?;
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok())
}
