//! The addresses that a debugging information entry covers.

use gimli::{AttributeValue, DwAt, RangeListsOffset, UnitRef};

use super::sections::Slice;

/// `DW_AT_low_pc`, `DW_AT_high_pc` and `DW_AT_ranges` of an entry.
#[derive(Debug, Default)]
pub(super) struct RangeAttributes {
    low: Option<u64>,
    /// `DW_AT_high_pc` as an address.
    high: Option<u64>,
    /// `DW_AT_high_pc` as an offset from `DW_AT_low_pc`.
    size: Option<u64>,
    list: Option<RangeListsOffset>,
}

impl RangeAttributes {
    /// Stores the attribute if it is one of the three.
    pub(super) fn take<'a>(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        name: DwAt,
        value: AttributeValue<Slice<'a>>,
    ) -> gimli::Result<()> {
        match name {
            gimli::DW_AT_low_pc => self.low = unit.attr_address(value)?,
            gimli::DW_AT_high_pc => match value {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => self.high = unit.attr_address(value)?,
            },
            gimli::DW_AT_ranges => self.list = unit.attr_ranges_offset(value)?,
            _ => {}
        }
        Ok(())
    }
}

/// Calls `range(start, end)` for each non-empty range.
pub(super) fn for_each_range(
    unit: UnitRef<'_, Slice<'_>>,
    attributes: &RangeAttributes,
    mut range: impl FnMut(u64, u64),
) -> gimli::Result<()> {
    let mut call_unless_empty = |start, end| {
        if start < end {
            range(start, end);
        }
    };
    if let Some(list) = attributes.list {
        let mut ranges = unit.ranges(list)?;
        while let Some(found) = ranges.next()? {
            call_unless_empty(found.begin, found.end);
        }
    } else if let Some(start) = attributes.low {
        // lld sets the address of removed code to -1 (a tombstone): in 64-bit objects, the sum wraps and the range is empty.
        let end = attributes.size.map(|size| start.wrapping_add(size));
        call_unless_empty(start, end.or(attributes.high).unwrap_or(start));
    }
    Ok(())
}
