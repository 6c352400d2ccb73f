//! The name of a function's entry, which may be in another entry, unit or file.

use gimli::{AttributeValue, UnitOffset};

use super::sections::Slice;
use super::units::{UnitEntries, Units};

/// Maximum number of references from an entry to its name.
const MAX_REFERENCES: usize = 16;

/// The file of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum DwarfFile {
    /// The object itself, or its debug file.
    Main,
    /// The file named by `.gnu_debugaltlink`.
    Alternate,
    /// A `.dwo` file or a package of them: self-contained.
    Split,
}

/// The name attributes of one entry.
enum NameAttributes<'a> {
    Name(Slice<'a>),
    /// No name, but a reference to an entry that may have one.
    Elsewhere(AttributeValue<Slice<'a>>),
    Nothing,
}

/// The name of the function at `entry` of `unit`. References are followed to the first entry with a name, of which the linkage
/// name is preferred to the source name, as it has more information. `None` if no entry within [`MAX_REFERENCES`] has a name, or
/// if entries are damaged.
pub(super) fn of<'a>(
    units: &Units<'_, 'a>,
    unit: &UnitEntries<'a>,
    file: DwarfFile,
    entry: UnitOffset,
) -> Option<Slice<'a>> {
    let mut reference = match name_attributes(units, unit, file, entry).ok()? {
        NameAttributes::Name(name) => return Some(name),
        NameAttributes::Nothing => return None,
        NameAttributes::Elsewhere(reference) => reference,
    };
    let mut file = file;
    let mut other_unit: Option<UnitEntries<'a>> = None;
    for _ in 0..MAX_REFERENCES {
        let current = other_unit.as_ref().unwrap_or(unit);
        let (next_unit, entry) = follow(units, current, &mut file, reference)?;
        other_unit = next_unit.or(other_unit);
        match name_attributes(units, other_unit.as_ref().unwrap_or(unit), file, entry).ok()? {
            NameAttributes::Name(name) => return Some(name),
            NameAttributes::Nothing => return None,
            NameAttributes::Elsewhere(next_reference) => reference = next_reference,
        }
    }
    None
}

/// Resolves `reference` of `unit` to an entry, with its unit if that can be another one. `file` becomes the file of that entry.
fn follow<'a>(
    units: &Units<'_, 'a>,
    unit: &UnitEntries<'a>,
    file: &mut DwarfFile,
    reference: AttributeValue<Slice<'a>>,
) -> Option<(Option<UnitEntries<'a>>, UnitOffset)> {
    let offset = match reference {
        AttributeValue::UnitRef(entry) => return Some((None, entry)),
        AttributeValue::DebugInfoRef(offset) => offset,
        AttributeValue::DebugInfoRefSup(offset) => {
            *file = DwarfFile::Alternate;
            offset
        }
        _ => return None,
    };
    // Split units refer only to themselves.
    if *file == DwarfFile::Split {
        return Some((None, offset.to_unit_offset(&unit.header)?));
    }
    let other_unit = units.containing(*file, offset.0)?;
    let entry = offset.to_unit_offset(&other_unit.header)?;
    Some((Some(other_unit), entry))
}

fn name_attributes<'a>(
    units: &Units<'_, 'a>,
    unit: &UnitEntries<'a>,
    file: DwarfFile,
    entry: UnitOffset,
) -> gimli::Result<NameAttributes<'a>> {
    let mut entries = unit.from(entry)?;
    let (Some(abbreviation), Some(dwarf)) = (entries.read_abbreviation()?, units.dwarf(file))
    else {
        return Ok(NameAttributes::Nothing);
    };
    let mut attributes = NameAttributes::Nothing;
    for &spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(spec)?;
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                if let Some(name) = unit.text(dwarf, attribute.value()) {
                    return Ok(NameAttributes::Name(name));
                }
            }
            gimli::DW_AT_name => {
                if let Some(name) = unit.text(dwarf, attribute.value()) {
                    attributes = NameAttributes::Name(name);
                }
            }
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification
                if matches!(attributes, NameAttributes::Nothing) =>
            {
                attributes = NameAttributes::Elsewhere(attribute.value());
            }
            _ => {}
        }
    }
    Ok(attributes)
}
