//! Text of frames that was rendered already. A recording shows the same few thousand frames millions of times.

use rperf_replay::MappingId;
use rustc_hash::FxHashMap;

/// What a frame's text depends on: not on time, since a mapping never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameKey {
    /// The mapping that the address was found in.
    pub mapping: MappingId,
    /// The address as sampled.
    pub ip: u64,
}

/// Bytes after which everything is forgotten, so that a recording with ever new addresses doesn't fill the memory.
const LIMIT: usize = 16 << 20;

/// The texts; each thread has its own.
#[derive(Debug, Default)]
pub struct FrameTexts {
    /// Where each text lies in `bytes`.
    places: FxHashMap<FrameKey, (u32, u32)>,
    bytes: Vec<u8>,
}

impl FrameTexts {
    /// The text of `key`; `render` appends it to the vector it is given when it isn't known yet.
    #[inline]
    pub fn get_or_render(&mut self, key: FrameKey, render: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let (start, end) = match self.places.get(&key) {
            Some(&place) => place,
            None => self.render(key, render),
        };
        self.bytes
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    #[cold]
    fn render(&mut self, key: FrameKey, render: impl FnOnce(&mut Vec<u8>)) -> (u32, u32) {
        if self.bytes.len() > LIMIT {
            self.places.clear();
            self.bytes.clear();
        }
        let start = self.bytes.len();
        render(&mut self.bytes);
        // One text is a symbol's name and a path, far from four gigabytes.
        let place = (start as u32, self.bytes.len() as u32);
        self.places.insert(key, place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(ip: u64) -> FrameKey {
        FrameKey {
            mapping: MappingId(7),
            ip,
        }
    }

    #[test]
    fn renders_each_frame_once() {
        let mut texts = FrameTexts::default();
        let first = texts.get_or_render(key(1), |out| out.extend(b"first"));
        assert_eq!(first, b"first");
        assert_eq!(
            texts.get_or_render(key(2), |out| out.extend(b"second")),
            b"second"
        );
        assert_eq!(texts.get_or_render(key(1), |_| panic!("known")), b"first");
    }

    #[test]
    fn forgets_when_full_and_goes_on() {
        let mut texts = FrameTexts::default();
        let long = vec![b'x'; LIMIT / 4];
        for ip in 0..20 {
            assert_eq!(
                texts.get_or_render(key(ip), |out| out.extend(&long)).len(),
                long.len()
            );
        }
        assert!(texts.bytes.len() <= LIMIT + 2 * long.len());
        assert_eq!(texts.get_or_render(key(0), |out| out.push(b'y')), b"y");
    }
}
