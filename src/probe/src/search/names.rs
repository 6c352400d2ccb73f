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
        && demangle(name).is_some_and(|readable| {
            let bare = readable.strip_suffix(wanted);
            bare.is_some_and(|before| before.is_empty() || before.ends_with("::"))
        })
}
