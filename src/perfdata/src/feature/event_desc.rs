//! EVENT_DESC: attrs, ids and names of the events once more.

use rperf_wire::{Cursor, DecodeError, Endian};

use super::text;
use crate::EventDesc;
use crate::event::decode_attr;

pub(crate) fn decode(at: &mut Cursor<'_>, endian: Endian) -> Result<Vec<EventDesc>, DecodeError> {
    let count = at.u32("event count")?;
    let attr_size = at.u32("attr size")?;
    (0..count)
        .map(|_| {
            let attr = decode_attr(at.take(attr_size as usize, "attr")?, endian)?;
            let ids = at.u32("id count")?;
            let name = text::take(at)?;
            let ids = at.u64s(u64::from(ids), "ids")?.iter().collect();
            Ok(EventDesc { attr, ids, name })
        })
        .collect()
}
