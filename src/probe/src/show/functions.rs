//! The functions of an object.

use std::collections::BTreeSet;

use crate::filter::NameFilter;
use crate::object::{PLT_SUFFIX, ProbeObject};

/// Returns the function names in the symbol table, sorted, without duplicates and `@plt` entries. Without a filter, names with a
/// leading underscore are omitted, as in perf.
#[must_use]
pub fn functions(object: &ProbeObject<'_>, filter: Option<&NameFilter>) -> BTreeSet<String> {
    let is_wanted = |name: &str| match filter {
        Some(filter) => filter.matches(name),
        None => !name.starts_with('_'),
    };
    // Demangling takes most of the time, so a name is demangled only if it can match. `start` is a text with which the demangled
    // name may begin, taken from the mangled name.
    let may_be_wanted = |start: &str| match filter {
        Some(filter) => filter.may_match(start),
        None => !start.starts_with('_'),
    };
    let names = object.function_names(&may_be_wanted);
    // Damaged tables may have empty names, which cannot be probed.
    let is_name = |name: &str| !name.is_empty() && !name.ends_with(PLT_SUFFIX);
    names
        .filter(|name| is_name(name) && is_wanted(name))
        .collect()
}
