//! Cache of rendered text: samples often have the same frames and callers.

/// All inputs of a text.
#[derive(Debug, Clone, Copy)]
pub struct TextKey<'a> {
    /// Small inputs: ids, addresses.
    pub words: [u64; 3],
    /// A long input, such as an undecoded callchain.
    pub bytes: &'a [u8],
}

/// Maximum size in bytes of all keys and texts; the cache is cleared before it would be exceeded.
const LIMIT: usize = 512 << 10;

/// Rendered texts by key; each thread has its own.
#[derive(Debug, Default)]
pub struct TextCache {
    /// Open addressing with linear probing; the length is a power of two.
    slots: Vec<TextSlot>,
    entries: Vec<TextEntry>,
    /// For each entry the words and bytes of its key, then its text.
    bytes: Vec<u8>,
}

/// A slot of the hash table.
#[derive(Debug, Clone, Copy, Default)]
struct TextSlot {
    /// The hash of the entry's key.
    hash: u32,
    /// The entry's index plus one; 0 if the slot is free.
    number: u32,
}

/// Offsets in [`TextCache::bytes`] of an entry's key and of its text, which ends where the next entry starts.
#[derive(Debug, Clone, Copy)]
struct TextEntry {
    start: u32,
    text: u32,
}

/// Size of a key's words in bytes.
const WORDS_SIZE: usize = 24;

impl TextKey<'_> {
    /// Multiplies and folds word by word: addresses differ in few bits, all of which must affect
    /// the result.
    fn hash(&self) -> u32 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |hash: u64, word: u64| {
            let wide = u128::from(hash ^ word) * u128::from(ODD);
            (wide as u64) ^ ((wide >> 64) as u64)
        };
        let hash = self.words.iter().fold(ODD, |hash, word| mix(hash, *word));
        let (chunks, rest) = self.bytes.as_chunks::<8>();
        let chunks = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
        let hash = chunks.fold(hash, mix);
        let hash = rest
            .iter()
            .fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
        (hash >> 32) as u32
    }

    #[inline]
    fn words_as_bytes(&self) -> [u8; WORDS_SIZE] {
        let mut bytes = [0; WORDS_SIZE];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(self.words) {
            *place = word.to_ne_bytes();
        }
        bytes
    }
}

impl TextCache {
    /// The text of `key`, if cached.
    #[inline]
    pub fn get(&self, key: &TextKey<'_>) -> Option<&[u8]> {
        let hash = key.hash();
        let mut at = self.home(hash);
        loop {
            let slot = self.slots.get(at)?;
            let index = (slot.number as usize).checked_sub(1)?;
            if slot.hash == hash
                && let Some(text) = self.text_for(index, key)
            {
                return Some(text);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The text of the entry at `index` if it has this key.
    #[inline]
    fn text_for(&self, index: usize, key: &TextKey<'_>) -> Option<&[u8]> {
        let entry = self.entries.get(index)?;
        let end = self.entries.get(index + 1);
        let end = end.map_or(self.bytes.len(), |next| next.start as usize);
        let (start, text) = (entry.start as usize, entry.text as usize);
        let (words, bytes) = self.bytes.get(start..text)?.split_at_checked(WORDS_SIZE)?;
        (bytes == key.bytes && words == key.words_as_bytes())
            .then(|| self.bytes.get(text..end))
            .flatten()
    }

    /// Adds `text` for `key`, which must not be cached yet. A text that is too large is not cached.
    #[cold]
    pub fn insert(&mut self, key: &TextKey<'_>, text: &[u8]) {
        let more = WORDS_SIZE + key.bytes.len() + text.len();
        if more > LIMIT {
            return;
        }
        if self.bytes.len() + more > LIMIT {
            self.slots.fill(TextSlot::default());
            self.entries.clear();
            self.bytes.clear();
        }
        // At most three quarters of the slots are used.
        if self.entries.len() >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        // Offsets are below the limit, so they fit into 32 bits.
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&key.words_as_bytes());
        self.bytes.extend_from_slice(key.bytes);
        self.entries.push(TextEntry {
            start,
            text: self.bytes.len() as u32,
        });
        self.bytes.extend_from_slice(text);
        let slot = TextSlot {
            hash: key.hash(),
            number: self.entries.len() as u32,
        };
        self.place(slot);
    }

    /// The position at which the search for a slot with this hash begins.
    fn home(&self, hash: u32) -> usize {
        hash as usize & self.slots.len().wrapping_sub(1)
    }

    /// Stores `slot` in the first free position from its home on.
    fn place(&mut self, slot: TextSlot) {
        let mut at = self.home(slot.hash);
        while let Some(current) = self.slots.get_mut(at) {
            if current.number == 0 {
                *current = slot;
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn grow(&mut self) {
        const MIN_LEN: usize = 64;
        let size = MIN_LEN.max(self.slots.len() * 2);
        let old = std::mem::replace(&mut self.slots, vec![TextSlot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.number != 0) {
            self.place(slot);
        }
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
        let mut texts = TextCache::default();
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
    fn keys_with_equal_hashes_are_distinguished() {
        let mut texts = TextCache::default();
        texts.insert(&key(1, b"chain"), b"first");
        let other = key(7, b"chain");
        // As if the first key had the same hash as `other`.
        texts.place(TextSlot {
            hash: other.hash(),
            number: 1,
        });
        assert_eq!(texts.get(&other), None);
        texts.insert(&other, b"second");
        assert_eq!(texts.get(&other), Some(&b"second"[..]));
    }

    #[test]
    fn lookups_match_a_hash_map() {
        let mut texts = TextCache::default();
        let mut expected = std::collections::HashMap::new();
        let mut hits = 0;
        // Few enough to stay below `LIMIT`: a cleared cache would not match.
        for number in 0..5000_u64 {
            let (word, bytes) = (number * number % 401, (number % 7).to_le_bytes());
            let key = key(word, &bytes[..(number % 3) as usize]);
            let known = expected.get(&(word, key.bytes.to_vec()));
            assert_eq!(texts.get(&key), known.map(Vec::as_slice));
            hits += u32::from(known.is_some());
            if known.is_none() {
                let text = format!("text {number}").into_bytes();
                texts.insert(&key, &text);
                expected.insert((word, key.bytes.to_vec()), text);
            }
        }
        assert!((1000..4000).contains(&hits), "{hits}");
    }

    #[test]
    fn a_full_cache_is_cleared() {
        let mut texts = TextCache::default();
        let long = vec![b'x'; LIMIT / 4];
        for word in 0..20 {
            texts.insert(&key(word, b""), &long);
            assert_eq!(texts.get(&key(word, b"")), Some(&long[..]));
        }
        assert!(texts.bytes.len() <= LIMIT);
        assert_eq!(texts.get(&key(0, b"")), None);
        // Larger than `LIMIT`: not cached.
        texts.insert(&key(0, b""), &long.repeat(5));
        assert_eq!(texts.get(&key(0, b"")), None);
    }
}
