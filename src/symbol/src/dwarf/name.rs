//! The name of a function's entry, which may stand in another entry, another unit or another file.

use gimli::{AttributeValue, UnitOffset};

use super::sections::Slice;
use super::units::{Entries, Units};

/// How many references are followed from an entry to its name.
const MAX_REFERENCES: usize = 16;

/// Which file an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Home {
    /// The object itself, or its debug file.
    Main,
    /// The file that `.gnu_debugaltlink` names.
    Alternate,
    /// A `.dwo` file or a package of them: self-contained.
    Split,
}

/// What one entry says of its name.
enum Said<'a> {
    Name(Slice<'a>),
    Elsewhere(AttributeValue<Slice<'a>>),
    Nothing,
}

/// The name of the function whose entry is at `entry` of `unit`: the linkage name where there is one, as that says the
/// most, else the name in the source.
pub(super) fn of<'a>(
    units: &Units<'_, 'a>,
    unit: &Entries<'a>,
    home: Home,
    entry: UnitOffset,
) -> Option<Slice<'a>> {
    let mut reference = match said(units, unit, home, entry).ok()? {
        Said::Name(name) => return Some(name),
        Said::Nothing => return None,
        Said::Elsewhere(reference) => reference,
    };
    let mut home = home;
    let mut other: Option<Entries<'a>> = None;
    for _ in 0..MAX_REFERENCES {
        let here = other.as_ref().unwrap_or(unit);
        let (next, entry) = follow(units, here, &mut home, reference)?;
        other = next.or(other);
        match said(units, other.as_ref().unwrap_or(unit), home, entry).ok()? {
            Said::Name(name) => return Some(name),
            Said::Nothing => return None,
            Said::Elsewhere(next) => reference = next,
        }
    }
    None
}

/// The entry that `reference` of `unit` leads to, with its unit where that is another one.
fn follow<'a>(
    units: &Units<'_, 'a>,
    unit: &Entries<'a>,
    home: &mut Home,
    reference: AttributeValue<Slice<'a>>,
) -> Option<(Option<Entries<'a>>, UnitOffset)> {
    let offset = match reference {
        AttributeValue::UnitRef(entry) => return Some((None, entry)),
        AttributeValue::DebugInfoRef(offset) => offset,
        AttributeValue::DebugInfoRefSup(offset) => {
            *home = Home::Alternate;
            offset
        }
        _ => return None,
    };
    if *home == Home::Split {
        return Some((None, offset.to_unit_offset(&unit.header)?));
    }
    let other = units.containing(*home, offset.0)?;
    let entry = offset.to_unit_offset(&other.header)?;
    Some((Some(other), entry))
}

fn said<'a>(
    units: &Units<'_, 'a>,
    unit: &Entries<'a>,
    home: Home,
    entry: UnitOffset,
) -> gimli::Result<Said<'a>> {
    let mut entries = unit.from(entry)?;
    let (Some(abbreviation), Some(dwarf)) = (entries.read_abbreviation()?, units.dwarf(home))
    else {
        return Ok(Said::Nothing);
    };
    let mut said = Said::Nothing;
    for &spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(spec)?;
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                if let Some(name) = unit.text(dwarf, attribute.value()) {
                    return Ok(Said::Name(name));
                }
            }
            gimli::DW_AT_name => {
                if let Some(name) = unit.text(dwarf, attribute.value()) {
                    said = Said::Name(name);
                }
            }
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification
                if matches!(said, Said::Nothing) =>
            {
                said = Said::Elsewhere(attribute.value());
            }
            _ => {}
        }
    }
    Ok(said)
}
