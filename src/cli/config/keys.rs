//! The settings whose values are checked when a file is read. Others are kept as they are, for commands to come.

/// What a value must look like.
#[derive(Clone, Copy)]
enum Kind {
    Boolean,
    Percent,
    Number,
    Choice(&'static [&'static str]),
    /// One of these, or a boolean.
    Switch(&'static [&'static str]),
}

/// Checked settings, in alphabetical order.
const KEYS: &[(&str, Kind)] = &[
    ("call-graph.dump-size", Kind::Number),
    ("call-graph.order", Kind::Choice(&["callee", "caller"])),
    ("call-graph.print-limit", Kind::Number),
    (
        "call-graph.print-type",
        Kind::Choice(&["graph", "fractal", "flat", "folded", "none"]),
    ),
    (
        "call-graph.record-mode",
        Kind::Choice(&["fp", "dwarf", "lbr"]),
    ),
    (
        "call-graph.sort-key",
        Kind::Choice(&["function", "address"]),
    ),
    ("call-graph.threshold", Kind::Percent),
    ("color.ui", Kind::Switch(&["always", "never", "auto"])),
    ("hist.percentage", Kind::Choice(&["absolute", "relative"])),
    (
        "record.build-id",
        Kind::Choice(&["cache", "no-cache", "skip", "mmap"]),
    ),
    ("report.children", Kind::Boolean),
    ("report.group", Kind::Boolean),
    ("report.percent-limit", Kind::Percent),
    ("rperf.jobs", Kind::Number),
    ("stat.big-num", Kind::Boolean),
];

/// The names of the checked settings.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|(name, _)| *name)
}

/// Checks the value of `name`; the error says what was expected.
pub(super) fn check(name: &str, value: &str) -> Result<(), String> {
    let Some((_, kind)) = KEYS.iter().find(|(known, _)| *known == name) else {
        return Ok(());
    };
    let (good, expected) = match kind {
        Kind::Boolean => (
            super::boolean(value).is_some(),
            "expected true or false".to_owned(),
        ),
        Kind::Percent => {
            let percent = value.strip_suffix('%').unwrap_or(value).parse::<f64>();
            (
                percent.is_ok_and(|percent| (0.0..=100.0).contains(&percent)),
                "expected a percentage".to_owned(),
            )
        }
        Kind::Number => (value.parse::<u64>().is_ok(), "expected a number".to_owned()),
        Kind::Choice(words) => (
            words.contains(&value),
            format!("expected one of {}", words.join(", ")),
        ),
        Kind::Switch(words) => (
            words.contains(&value) || super::boolean(value).is_some(),
            format!("expected one of {}, true, false", words.join(", ")),
        ),
    };
    if good { Ok(()) } else { Err(expected) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_by_kind() {
        assert!(check("call-graph.order", "caller").is_ok());
        assert_eq!(
            check("call-graph.order", "up"),
            Err("expected one of callee, caller".to_owned())
        );
        assert!(check("report.percent-limit", "0.5").is_ok());
        assert!(check("report.percent-limit", "NaN").is_err());
        assert!(check("color.ui", "auto").is_ok());
        assert!(check("color.ui", "on").is_ok());
        assert!(check("color.ui", "red").is_err());
        assert!(check("something.else", "whatever").is_ok());
    }
}
