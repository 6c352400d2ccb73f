//! Matching of function names.

use rperf_names::{is_pattern, matches_pattern};
use rperf_symbol::demangle::demangle;

/// Returns whether `wanted` selects the function `name`, a source, linkage or demangled name. A pattern must match all of `name`.
/// Other text must equal `name`, with or without its generic arguments. Text with `::` may also be the last components of the
/// path to which a mangled (linkage) `name` is demangled. Of a `name` that is already demangled, the end is not compared.
pub(crate) fn is_wanted(wanted: &str, name: &str) -> bool {
    if is_pattern(wanted) {
        return matches_pattern(wanted, name);
    }
    // The name of a generic function matches all its instances.
    let generic = name.split_once('<').map(|(generic, _)| generic);
    if name == wanted || generic == Some(wanted) {
        return true;
    }
    wanted.contains("::")
        && may_end_in(name, wanted)
        && demangle(name).is_some_and(|readable| {
            let before = readable.strip_suffix(wanted);
            before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
        })
}

/// Returns whether the mangled `name` may end in `path` once it is demangled. A mangled Rust name contains the last component
/// of its path as plain text, so a name without that of `path` need not be demangled. True for all names that are not Rust's.
fn may_end_in(name: &str, path: &str) -> bool {
    // Rust's older mangling ends names with `17h` and a hash.
    let is_rust = name.starts_with("_R") || name.starts_with("_ZN") && name.contains("17h");
    let last = path.rsplit("::").next().unwrap_or_default();
    // Characters other than these are encoded in mangled names.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !is_rust || !last.chars().all(is_plain) || name.contains(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_demangled_names() {
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
