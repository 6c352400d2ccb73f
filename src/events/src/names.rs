//! Names of hardware, software and tool events, and raw codes.

use rperf_wire::{EventType, HARDWARE_NAMES, SOFTWARE_NAMES};

/// Aliases of hardware and software events in `perf list`, each with the name in [`HARDWARE_NAMES`] or [`SOFTWARE_NAMES`].
pub(crate) const ALIASES: [(&str, &str); 7] = [
    ("cpu-cycles", "cycles"),
    ("branch-instructions", "branches"),
    ("idle-cycles-frontend", "stalled-cycles-frontend"),
    ("idle-cycles-backend", "stalled-cycles-backend"),
    ("faults", "page-faults"),
    ("cs", "context-switches"),
    ("migrations", "cpu-migrations"),
];

/// The name of the PMU of software events.
pub(crate) const SOFTWARE_PMU: &str = "software";
/// The name that newer perf gives to the PMU of tool events.
pub(crate) const TOOL_PMU: &str = "tool";

/// Tool events, measured by `stat` itself.
pub(crate) const TOOL_NAMES: [&str; 3] = ["duration_time", "user_time", "system_time"];

/// Type and config of a hardware or software event, by name or alias.
pub(crate) fn known_event(name: &str) -> Option<(EventType, u64)> {
    let name = ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or(name, |(_, stands_for)| stands_for);
    // The index of a name in its list is the config.
    let index = |names: &[&str]| {
        let at = names.iter().position(|known| *known == name)?;
        u64::try_from(at).ok()
    };
    if let Some(config) = index(&HARDWARE_NAMES) {
        return Some((EventType::HARDWARE, config));
    }
    index(&SOFTWARE_NAMES).map(|config| (EventType::SOFTWARE, config))
}

/// All names accepted by [`known_event`]: hardware and software events, no tool events.
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    HARDWARE_NAMES
        .into_iter()
        .chain(SOFTWARE_NAMES)
        .chain(aliases)
}

/// The number of a raw code, `r` and hexadecimal digits; `None` if the name is not a raw code,
/// `Some(None)` if the number has more than 64 bits.
pub(crate) fn raw_code(name: &str) -> Option<Option<u64>> {
    let digits = name.strip_prefix('r')?;
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok())
}
