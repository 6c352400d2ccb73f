//! Text that was rendered already. A recording shows the same few thousand frames, and the same callers of them, millions
//! of times.

use rustc_hash::FxHashMap;

/// What a text depends on, all of it.
#[derive(Debug, Clone, Copy)]
pub struct TextKey<'a> {
    /// Small things: ids, addresses.
    pub words: [u64; 3],
    /// A long one: a callchain as it stands in the file.
    pub bytes: &'a [u8],
}

/// Bytes after which everything is forgotten, so that a recording with ever new texts doesn't fill the memory.
const LIMIT: usize = 6 << 20;

/// Rendered texts by what they depend on; each thread has its own.
#[derive(Debug, Default)]
pub struct Texts {
    /// By the key's hash; of two keys with one hash the later stays.
    places: FxHashMap<u64, Place>,
    /// Of each key its bytes, then its text.
    bytes: Vec<u8>,
}

/// Where a key's bytes and its text lie.
#[derive(Debug, Clone, Copy)]
struct Place {
    words: [u64; 3],
    start: usize,
    text: usize,
    end: usize,
}

impl TextKey<'_> {
    /// Multiplies and folds word by word: addresses differ in few bits, and all of them must count.
    fn hash(&self) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |hash: u64, word: u64| {
            let wide = u128::from(hash ^ word) * u128::from(ODD);
            (wide as u64) ^ ((wide >> 64) as u64)
        };
        let hash = self.words.iter().fold(ODD, |hash, word| mix(hash, *word));
        let (words, rest) = self.bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let hash = words.fold(hash, mix);
        rest.iter()
            .fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
    }
}

impl Texts {
    /// The text of `key`, if it was rendered.
    #[inline]
    pub fn get(&self, key: &TextKey<'_>) -> Option<&[u8]> {
        let place = self.places.get(&key.hash())?;
        let same =
            place.words == key.words && self.bytes.get(place.start..place.text) == Some(key.bytes);
        self.bytes.get(place.text..place.end).filter(|_| same)
    }

    /// Keeps `text` for `key`.
    #[cold]
    pub fn insert(&mut self, key: &TextKey<'_>, text: &[u8]) {
        if self.bytes.len() > LIMIT {
            self.places.clear();
            self.bytes.clear();
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key.bytes);
        let place = Place {
            words: key.words,
            start,
            text: self.bytes.len(),
            end: self.bytes.len() + text.len(),
        };
        self.bytes.extend_from_slice(text);
        self.places.insert(key.hash(), place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(word: u64, bytes: &[u8]) -> TextKey<'_> {
        TextKey {
            words: [word, 0, 0],
            bytes,
        }
    }

    #[test]
    fn texts_are_found_by_all_of_their_key() {
        let mut texts = Texts::default();
        texts.insert(&key(1, b"chain"), b"first");
        texts.insert(&key(1, b"other"), b"second");
        texts.insert(&key(2, b"chain"), b"third");
        assert_eq!(texts.get(&key(1, b"chain")), Some(&b"first"[..]));
        assert_eq!(texts.get(&key(1, b"other")), Some(&b"second"[..]));
        assert_eq!(texts.get(&key(2, b"chain")), Some(&b"third"[..]));
        for unknown in [key(3, b"chain"), key(1, b"chai"), key(1, b"")] {
            assert_eq!(texts.get(&unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn one_hash_is_not_one_key() {
        let mut texts = Texts::default();
        texts.insert(&key(1, b"chain"), b"first");
        let place = *texts.places.values().next().unwrap();
        texts.places.insert(key(7, b"chain").hash(), place);
        texts.places.insert(key(1, b"niahc").hash(), place);
        assert_eq!(texts.get(&key(7, b"chain")), None);
        assert_eq!(texts.get(&key(1, b"niahc")), None);
    }

    #[test]
    fn forgets_when_full_and_goes_on() {
        let mut texts = Texts::default();
        let long = vec![b'x'; LIMIT / 4];
        for word in 0..20 {
            texts.insert(&key(word, b""), &long);
            assert_eq!(texts.get(&key(word, b"")), Some(&long[..]));
        }
        assert!(texts.bytes.len() <= LIMIT + 2 * long.len());
        assert_eq!(texts.get(&key(0, b"")), None);
    }
}
