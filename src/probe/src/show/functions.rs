//! The functions of an object.

use std::collections::BTreeSet;

use crate::filter::NameFilter;
use crate::object::Object;

/// The names of the functions in the symbol table, each once, sorted. Without a filter those that begin with an underscore
/// are left out.
#[must_use]
pub fn functions(object: &Object<'_>, filter: Option<&NameFilter>) -> BTreeSet<String> {
    let is_wanted = |name: &str| match filter {
        Some(filter) => filter.matches(name),
        None => !name.starts_with('_'),
    };
    // Demangling takes most of the time.
    let may_be_wanted = |start: &str| match filter {
        Some(filter) => filter.may_match(start),
        None => !start.starts_with('_'),
    };
    let names = object.functions_called(&may_be_wanted);
    names
        .filter(|name| !name.ends_with("@plt") && is_wanted(name))
        .collect()
}
