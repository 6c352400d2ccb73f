//! The functions of an object.

use std::collections::BTreeSet;

use crate::filter::NameFilter;
use crate::object::Object;

/// The names of the functions in the symbol table, each once, sorted. Without a filter those that begin with an underscore
/// are left out.
#[must_use]
pub fn functions(object: &Object<'_>, filter: Option<&NameFilter>) -> BTreeSet<String> {
    let names = object.functions().map(|function| function.name);
    let own = names.filter(|name| !name.ends_with("@plt"));
    own.filter(|name| match filter {
        Some(filter) => filter.matches(name),
        None => !name.starts_with('_'),
    })
    .collect()
}
