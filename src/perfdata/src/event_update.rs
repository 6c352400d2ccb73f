//! EVENT_UPDATE: what a recorder tells of an event besides its attr.

use rperf_wire::{CpuMap, Cursor, DecodeError, Endian, until_nul};

/// One EVENT_UPDATE record.
#[derive(Debug, Clone, PartialEq)]
pub struct EventUpdate {
    /// An id of the event that is meant.
    pub id: u64,
    /// What it tells.
    pub update: Update,
}

/// What an EVENT_UPDATE tells (`PERF_EVENT_UPDATE__*` of perf 6.1).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// The unit of counts: `msec`, `Joules`.
    Unit(String),
    /// What a count is to be multiplied with to be in that unit.
    Scale(f64),
    /// The event's name.
    Name(String),
    /// The CPUs that the event is counted on, rising.
    Cpus(Vec<u32>),
    /// Something that this version does not know, by its number.
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
    /// [`DecodeError`] when it is too short for what it says.
    pub fn decode(body: &[u8], endian: Endian) -> Result<Self, DecodeError> {
        let at = &mut Cursor::new(body, endian);
        let kind = at.u64("update type")?;
        let id = at.u64("event id")?;
        let update = match kind {
            UNIT => Update::Unit(text(at)),
            SCALE => Update::Scale(f64::from_bits(at.u64("scale")?)),
            NAME => Update::Name(text(at)),
            CPUS => Update::Cpus(CpuMap::decode(at)?.cpus()),
            other => Update::Other(other),
        };
        Ok(Self { id, update })
    }
}

fn text(at: &Cursor<'_>) -> String {
    String::from_utf8_lossy(until_nul(at.rest())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_testkit::Bytes;

    fn decode(body: Bytes) -> Update {
        let update = EventUpdate::decode(&body.done(), Endian::Little);
        let update = update.unwrap();
        assert_eq!(update.id, 7);
        update.update
    }

    #[test]
    fn each_kind() {
        let head = |kind| Bytes::new().u64(kind).u64(7);
        let text = "msec\0\0\0";
        assert_eq!(decode(head(0).raw(text)), Update::Unit("msec".to_owned()));
        let scale = 1e-6_f64;
        assert_eq!(decode(head(1).u64(scale.to_bits())), Update::Scale(scale));
        assert_eq!(decode(head(2).raw(text)), Update::Name("msec".to_owned()));
        assert_eq!(decode(head(9)), Update::Other(9));
    }

    #[test]
    fn cpus_in_three_forms() {
        let head = || Bytes::new().u64(3).u64(7);
        let list = head().u16(0).u16(3).u16(1).u16(0xffff).u16(4);
        assert_eq!(decode(list), Update::Cpus(vec![1, 4]));
        let range = head().u16(2).u16(0).u16(2).u16(4);
        assert_eq!(decode(range), Update::Cpus(vec![2, 3, 4]));
        let small = head().u16(1).u16(2).u16(4).u32(1).u32(2);
        assert_eq!(decode(small), Update::Cpus(vec![0, 33]));
        let wide = head().u16(1).u16(2).u16(8).u32(0).u64(1 << 63).u64(1);
        assert_eq!(decode(wide), Update::Cpus(vec![63, 64]));
    }

    #[test]
    fn cut_at_every_length() {
        let whole = Bytes::new()
            .u64(3)
            .u64(7)
            .u16(0)
            .u16(2)
            .u16(1)
            .u16(4)
            .done();
        for end in 0..whole.len() {
            assert!(EventUpdate::decode(&whole[..end], Endian::Little).is_err());
        }
    }
}
