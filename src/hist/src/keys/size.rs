//! `symbol_size`, `dso_size`, `code_page_size`: sizes of functions and mappings in bytes, and of code pages
//! with a unit.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, Property, label};
use crate::names::RecordingNames;

// The first function of a key returns the value by which rows are distinguished and sorted, the second the text of a cell.
// `Site` is the code at a frame: its symbol and mapping. `names` has not only the names that belong to the ids in `input`, but
// also other facts: ranges of symbols and properties of samples.

pub(super) static SYMBOL_SIZE: Key = Key::plain(
    label("symbol_size", "Symbol size"),
    KeyDependency::Site,
    CellPadding::Before,
    |input, names| KeyValue::Number(symbol_size(input, names).unwrap_or_default().cast_signed()),
    |input, names| size_text(symbol_size(input, names)),
);

pub(super) static DSO_SIZE: Key = Key::plain(
    label("dso_size", "DSO size"),
    KeyDependency::Site,
    CellPadding::Before,
    |input, _| KeyValue::Number(input.site.map_size.unwrap_or_default().cast_signed()),
    |input, _| size_text(input.site.map_size),
);

pub(super) static CODE_PAGE_SIZE: Key = Key::plain(
    label("code_page_size", "Code Page Size"),
    KeyDependency::Property(Property::CodePage),
    // Blanks after the text: it is aligned like a name, not like a number.
    CellPadding::Always,
    |input, names| KeyValue::Number(names.properties(input).code_page_size.cast_signed()),
    |input, names| page_size_text(names.properties(input).code_page_size),
);

/// The size of the frame's function; `None`, which is sorted as 0, if the frame has no symbol.
fn symbol_size(input: &KeyInput<'_>, names: &dyn RecordingNames) -> Option<u64> {
    let (start, end) = names.range(input.site.symbol?);
    Some(end.wrapping_sub(start))
}

fn size_text(size: Option<u64>) -> String {
    size.map_or_else(|| "unknown".to_owned(), |size| size.to_string())
}

/// The size of a page, such as `4K`; `N/A` for 0.
pub(super) fn page_size_text(bytes: u64) -> String {
    if bytes == 0 {
        return "N/A".to_owned();
    }
    let (mut number, mut units) = (bytes, ["B", "K", "M", "G", "T"].iter());
    let mut unit = units.next();
    while number >= 1024 {
        let Some(next) = units.next() else { break };
        number /= 1024;
        unit = Some(next);
    }
    format!("{number}{}", unit.unwrap_or(&"B"))
}
