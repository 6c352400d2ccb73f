//! Which functions are meant by a name.

use rperf_events::{is_pattern, matches_pattern};
use rperf_symbol::demangle::demangle;

/// Whether a function's name is the wanted one, or matches that pattern. Names with paths are compared with the readable
/// form of linker names.
pub(crate) fn is_wanted(wanted: &str, name: &str) -> bool {
    if is_pattern(wanted) {
        return matches_pattern(wanted, name);
    }
    // All instances of a generic function go by its name.
    let generic = name.split_once('<').map(|(generic, _)| generic);
    if name == wanted || generic == Some(wanted) {
        return true;
    }
    wanted.contains("::")
        && may_end_in(name, wanted)
        && demangle(name).is_some_and(|readable| {
            let bare = readable.strip_suffix(wanted);
            bare.is_some_and(|before| before.is_empty() || before.ends_with("::"))
        })
}

/// Whether the readable form of a linker's name may end in this path: names of Rust have all of its last part in them.
fn may_end_in(name: &str, path: &str) -> bool {
    let is_rust = name.starts_with("_R") || name.starts_with("_ZN") && name.contains("17h");
    let last = path.rsplit("::").next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !is_rust || !last.chars().all(is_plain) || name.contains(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_readable_names() {
        let name = "_ZN6probed5inner5scale17h0123456789abcdefE";
        for (wanted, expected) in [
            ("inner::scale", true),
            ("probed::inner::scale", true),
            ("ner::scale", false),
            ("inner::weigh", false),
            ("inner::scal", false),
            ("scale", false),
        ] {
            assert_eq!(is_wanted(wanted, name), expected, "{wanted}");
        }
        assert!(is_wanted("scale", "scale<u8>") && is_wanted("sc*", "scale"));
    }
}
