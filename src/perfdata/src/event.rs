//! An event of a recording: its attr, the ids of its records, and its name.

use rperf_wire::{Attr, Cursor, DecodeError, Endian, event_name};

use crate::header::Section;
use crate::{Error, FileHeader};

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDesc {
    /// The attr passed to the kernel.
    pub attr: Attr,
    /// The ids in the event's records, one for each time it was opened.
    pub ids: Vec<u64>,
    /// The name: from the recording, otherwise derived from the attr as in perf.
    pub name: String,
}

impl EventDesc {
    /// Creates an event with the default name of its attr.
    #[must_use]
    pub fn new(attr: Attr, ids: Vec<u64>) -> Self {
        let name = event_name(&attr);
        Self { attr, ids, name }
    }
}

/// Decodes the attr section. It is an error if the ids of an event lie outside the file: without
/// them, records can't be assigned to events.
pub(crate) fn decode_events(file: &[u8], header: &FileHeader) -> Result<Vec<EventDesc>, Error> {
    let (section, endian) = (header.attrs, header.endian);
    let min_size = (Attr::SIZE_VER0 + Section::SIZE) as u64;
    // An entry is an attr, then the offset and size of the event's ids.
    let entry_size = usize::try_from(header.attr_size).unwrap_or(usize::MAX);
    if header.attr_size < min_size || entry_size == usize::MAX {
        return Err(Error::AttrSize {
            offset: section.offset,
            size: header.attr_size,
        });
    }
    let bytes = section_bytes(file, "event descriptions", section)?;
    let mut events = Vec::new();
    let mut offset = section.offset;
    for entry in bytes.chunks_exact(entry_size) {
        events.push(decode_event(file, entry, offset, endian)?);
        offset += header.attr_size;
    }
    if events.is_empty() {
        return Err(Error::NoEvents {
            offset: section.offset,
        });
    }
    Ok(events)
}

fn decode_event(
    file: &[u8],
    entry: &[u8],
    offset: u64,
    endian: Endian,
) -> Result<EventDesc, Error> {
    let failed = |source| Error::Decode {
        what: "event description",
        offset,
        source,
    };
    let attr_size = entry.len().saturating_sub(Section::SIZE);
    let (attr, ids_section) = entry.split_at(attr_size);
    let attr = decode_attr(attr, endian).map_err(failed)?;
    let ids_section = Section::decode(&mut Cursor::new(ids_section, endian)).map_err(failed)?;
    let id_bytes = section_bytes(file, "event ids", ids_section)?;
    let ids = id_bytes
        .as_chunks()
        .0
        .iter()
        .map(|id| endian.u64(*id))
        .collect();
    Ok(EventDesc::new(attr, ids))
}

/// Decodes an attr. Its own size may be smaller than the space reserved for it; 0 means the oldest layout.
pub(crate) fn decode_attr(reserved: &[u8], endian: Endian) -> Result<Attr, DecodeError> {
    const SIZE_OFFSET: usize = 4;
    let size = match endian.u32_at(reserved, SIZE_OFFSET) {
        Some(0) | None => Attr::SIZE_VER0,
        Some(size) => size as usize,
    };
    Attr::decode(reserved.get(..size).unwrap_or(reserved), endian)
}

fn section_bytes<'a>(
    file: &'a [u8],
    what: &'static str,
    section: Section,
) -> Result<&'a [u8], Error> {
    section.of(file).ok_or(Error::Section {
        what,
        offset: section.offset,
        size: section.size,
        file: file.len(),
    })
}

/// Encodes the attrs of all events with the size of the largest, and returns that size in bytes.
pub(crate) fn encode_attrs(events: &[EventDesc], endian: Endian) -> (Vec<Vec<u8>>, usize) {
    let mut attrs: Vec<Vec<u8>> = events
        .iter()
        .map(|event| event.attr.encode(endian))
        .collect();
    let size = attrs.iter().map(Vec::len).max().unwrap_or(Attr::SIZE);
    attrs.iter_mut().for_each(|attr| attr.resize(size, 0));
    (attrs, size)
}
