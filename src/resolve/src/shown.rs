//! Names in source form, once they were shown.

use std::borrow::Cow;
use std::sync::OnceLock;

use rperf_symbol::{SymbolIndex, SymbolTable};

/// A name in source form; `None` inside where the name stands as it is.
type Name = OnceLock<Option<Box<str>>>;

/// Names of a page.
const PAGE: usize = 16;

type Page = [Name; PAGE];

/// The names of one object's symbols that were shown so far. Making one takes microseconds, and a report shows the same
/// few: there are pages for places where names were asked for, and a pointer for the rest.
#[derive(Default)]
pub(crate) struct ShownNames {
    pages: OnceLock<Box<[OnceLock<Box<Page>>]>>,
}

impl ShownNames {
    /// The name of a symbol of `table`, which must be the same every time.
    pub(crate) fn get<'t>(&'t self, table: &'t SymbolTable, index: SymbolIndex) -> &'t str {
        if let Some(name) = table.plain_name(index) {
            return name;
        }
        let count = table.len().div_ceil(PAGE);
        let pages = self
            .pages
            .get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
        let page = pages.get(index.as_usize() / PAGE);
        let made = page.and_then(|page| {
            let names = page.get_or_init(Box::default);
            let make = || match table.name(index) {
                Cow::Borrowed(_) => None,
                Cow::Owned(name) => Some(name.into_boxed_str()),
            };
            names[index.as_usize() % PAGE].get_or_init(make).as_deref()
        });
        made.unwrap_or_else(|| table.raw_name(index))
    }
}

#[cfg(test)]
mod tests {
    use rperf_symbol::perf_map;

    use super::*;

    #[test]
    fn every_symbol_has_its_name() {
        let map: String = (0..40).map(|n| format!("{n:x}0 10 name_{n}\n")).collect();
        let table = perf_map::parse(map.as_bytes()).table;
        let shown = ShownNames::default();
        for (index, _) in table.iter() {
            let name = format!("name_{}", index.as_usize());
            assert_eq!(shown.get(&table, index), name);
        }
        let behind = SymbolIndex::new(40).unwrap();
        assert_eq!(shown.get(&table, behind), "");
    }
}
