//! Cache of displayed names.

use std::borrow::Cow;
use std::sync::OnceLock;

use rperf_symbol::{SymbolIndex, SymbolTable};

/// A displayed name, set on first use; set to `None` if it is the same as the raw name.
type DisplayedName = OnceLock<Option<Box<str>>>;

/// Number of names in a page.
const PAGE: usize = 16;

type NamePage = [DisplayedName; PAGE];

/// The displayed names of one object's symbols. Demangling takes microseconds, and a report
/// displays few names: pages are only allocated around symbols that are displayed.
#[derive(Default)]
pub(crate) struct DisplayedNames {
    pages: OnceLock<Box<[OnceLock<Box<NamePage>>]>>,
}

impl DisplayedNames {
    /// The displayed name of a symbol of `table`, which must be the same table in every call.
    pub(crate) fn get<'t>(&'t self, table: &'t SymbolTable, index: SymbolIndex) -> &'t str {
        // Names that are always displayed unchanged need no cache.
        if let Some(name) = table.plain_name(index) {
            return name;
        }
        let count = table.len().div_ceil(PAGE);
        let pages = self
            .pages
            .get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
        let page = pages.get(index.as_usize() / PAGE);
        let displayed = page.and_then(|page| {
            let names = page.get_or_init(Box::default);
            let make = || match table.name(index) {
                Cow::Borrowed(_) => None,
                Cow::Owned(name) => Some(name.into_boxed_str()),
            };
            names[index.as_usize() % PAGE].get_or_init(make).as_deref()
        });
        displayed.unwrap_or_else(|| table.raw_name(index))
    }
}

#[cfg(test)]
mod tests {
    use rperf_symbol::perf_map;

    use super::*;

    #[test]
    fn every_symbol_has_its_name() {
        // Names in perf maps are plain, so they bypass the cache: only the index `after` the table, which has no name, uses it.
        let map: String = (0..40).map(|n| format!("{n:x}0 10 name_{n}\n")).collect();
        let table = perf_map::parse(map.as_bytes()).table;
        let names = DisplayedNames::default();
        for (index, _) in table.iter() {
            let name = format!("name_{}", index.as_usize());
            assert_eq!(names.get(&table, index), name);
        }
        let after = SymbolIndex::new(40).unwrap();
        assert_eq!(names.get(&table, after), "");
    }
}
