//! `symbol_size`, `dso_size`, `code_page_size`: sizes of functions, mappings and pages in bytes.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, Property, label};
use crate::names::RecordingNames;

pub(super) static SYMBOL_SIZE: Key = Key::plain(
    label("symbol_size", "Symbol size"),
    KeyDependency::Site,
    CellPadding::Before,
    |subject, names| {
        KeyValue::Number(
            symbol_size(subject, names)
                .unwrap_or_default()
                .cast_signed(),
        )
    },
    |subject, names| shown(symbol_size(subject, names)),
);

pub(super) static DSO_SIZE: Key = Key::plain(
    label("dso_size", "DSO size"),
    KeyDependency::Site,
    CellPadding::Before,
    |subject, _| KeyValue::Number(subject.site.map_size.unwrap_or_default().cast_signed()),
    |subject, _| shown(subject.site.map_size),
);

pub(super) static CODE_PAGE_SIZE: Key = Key::plain(
    label("code_page_size", "Code Page Size"),
    KeyDependency::Property(Property::CodePage),
    CellPadding::Always,
    |subject, names| KeyValue::Number(names.facts(subject).code_page.cast_signed()),
    |subject, names| page_text(names.facts(subject).code_page),
);

fn symbol_size(subject: &KeyInput<'_>, names: &dyn RecordingNames) -> Option<u64> {
    let (start, end) = names.range(subject.site.symbol?);
    Some(end.wrapping_sub(start))
}

fn shown(size: Option<u64>) -> String {
    size.map_or_else(|| "unknown".to_owned(), |size| size.to_string())
}

/// The size of a page: `4K`.
pub(super) fn page_text(bytes: u64) -> String {
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
