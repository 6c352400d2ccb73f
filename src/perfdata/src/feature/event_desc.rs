//! EVENT_DESC: attrs, ids and names of the events; the attr section has the same attrs and ids, without names.

use rperf_wire::{Cursor, DecodeError, Encoder, Endian};

use super::text;
use crate::EventDesc;
use crate::event::{decode_attr, encode_attrs};

pub(crate) fn decode(at: &mut Cursor<'_>, endian: Endian) -> Result<Vec<EventDesc>, DecodeError> {
    let count = at.u32("event count")?;
    let attr_size = at.u32("attr size")?;
    (0..count)
        .map(|_| {
            let attr = decode_attr(at.take(attr_size as usize, "attr")?, endian)?;
            let id_count = at.u32("id count")?;
            let name = text::take(at)?;
            let ids = at.u64s(u64::from(id_count), "ids")?.iter().collect();
            Ok(EventDesc { attr, ids, name })
        })
        .collect()
}

pub(crate) fn encode(events: &[EventDesc], to: &mut Encoder<'_>) {
    let (attrs, attr_size) = encode_attrs(events, to.endian());
    text::put_count(to, events.len());
    text::put_count(to, attr_size);
    for (event, attr) in events.iter().zip(attrs) {
        to.bytes(&attr);
        text::put_count(to, event.ids.len());
        text::put(to, &event.name);
        event.ids.iter().for_each(|id| to.u64(*id));
    }
}
