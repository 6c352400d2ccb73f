//! EVENT_UPDATE: additional properties of an event.

use rperf_wire::{CpuMap, Cursor, DecodeError, Endian, until_nul};

/// One EVENT_UPDATE record.
#[derive(Debug, Clone, PartialEq)]
pub struct EventUpdate {
    /// An id of the event.
    pub id: u64,
    /// The property.
    pub property: EventProperty,
}

/// A property in an EVENT_UPDATE record (`PERF_EVENT_UPDATE__*` of perf 6.1).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EventProperty {
    /// The unit of counts: `msec`, `Joules`.
    Unit(String),
    /// Factor to convert a count to that unit.
    Scale(f64),
    /// The event's name.
    Name(String),
    /// The CPUs on which the event is counted.
    Cpus(Vec<u32>),
    /// An unknown property, by its number.
    Other(u64),
}

const UNIT: u64 = 0;
const SCALE: u64 = 1;
const NAME: u64 = 2;
const CPUS: u64 = 3;

impl EventUpdate {
    /// Decodes the body of an EVENT_UPDATE record.
    ///
    /// # Errors
    /// [`DecodeError`] if the body is too short.
    pub fn decode(body: &[u8], endian: Endian) -> Result<Self, DecodeError> {
        let at = &mut Cursor::new(body, endian);
        let kind = at.u64("update type")?;
        let id = at.u64("event id")?;
        let property = match kind {
            UNIT => EventProperty::Unit(text(at)),
            SCALE => EventProperty::Scale(f64::from_bits(at.u64("scale")?)),
            NAME => EventProperty::Name(text(at)),
            CPUS => EventProperty::Cpus(CpuMap::decode(at)?.cpus()),
            other => EventProperty::Other(other),
        };
        Ok(Self { id, property })
    }
}

fn text(at: &Cursor<'_>) -> String {
    String::from_utf8_lossy(until_nul(at.rest())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_testkit::Bytes;

    fn decode(body: Bytes) -> EventProperty {
        let update = EventUpdate::decode(&body.done(), Endian::Little);
        let update = update.unwrap();
        assert_eq!(update.id, 7);
        update.property
    }

    #[test]
    fn properties_are_decoded() {
        let head = |kind| Bytes::new().u64(kind).u64(7);
        let text = "msec\0\0\0";
        assert_eq!(
            decode(head(UNIT).raw(text)),
            EventProperty::Unit("msec".to_owned())
        );
        let scale = 1e-6_f64;
        assert_eq!(
            decode(head(SCALE).u64(scale.to_bits())),
            EventProperty::Scale(scale)
        );
        assert_eq!(
            decode(head(NAME).raw(text)),
            EventProperty::Name("msec".to_owned())
        );
        assert_eq!(decode(head(9)), EventProperty::Other(9));
    }

    #[test]
    fn cpus_of_each_encoding_are_decoded() {
        let head = || Bytes::new().u64(CPUS).u64(7);
        // The encoding is 0 for a list, 1 for a mask, 2 for a range. The 0xffff is -1, "any CPU", which is dropped.
        let list = head().u16(0).u16(3).u16(1).u16(0xffff).u16(4);
        assert_eq!(decode(list), EventProperty::Cpus(vec![1, 4]));
        // The zero is the byte `any_cpu` and a byte of padding.
        let range = head().u16(2).u16(0).u16(2).u16(4);
        assert_eq!(decode(range), EventProperty::Cpus(vec![2, 3, 4]));
        // Masks of two words, of four or eight bytes each; padding of four bytes precedes the longer words.
        let small = head().u16(1).u16(2).u16(4).u32(1).u32(2);
        assert_eq!(decode(small), EventProperty::Cpus(vec![0, 33]));
        let wide = head().u16(1).u16(2).u16(8).u32(0).u64(1 << 63).u64(1);
        assert_eq!(decode(wide), EventProperty::Cpus(vec![63, 64]));
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        let complete = Bytes::new()
            .u64(CPUS)
            .u64(7)
            .u16(0)
            .u16(2)
            .u16(1)
            .u16(4)
            .done();
        for end in 0..complete.len() {
            assert!(EventUpdate::decode(&complete[..end], Endian::Little).is_err());
        }
    }
}
