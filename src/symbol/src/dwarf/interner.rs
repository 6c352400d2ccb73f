//! Interned strings with numeric ids. Reading by id is lock-free; interning takes a lock.

use std::sync::{Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

/// Number of strings in the first block; each further block has twice as many as the previous block.
const FIRST_BLOCK: u32 = 64;
/// Enough blocks for all 32-bit ids.
const BLOCKS: usize = 27;

/// A growing list of distinct strings at stable addresses.
#[derive(Debug, Default)]
pub(super) struct Interner {
    blocks: [OnceLock<Box<[OnceLock<InternedText>]>>; BLOCKS],
    /// The id of each string.
    ids: Mutex<FxHashMap<Box<str>, u32>>,
}

/// A string and its displayed form, if different.
#[derive(Debug)]
struct InternedText {
    raw: Box<str>,
    displayed: Option<Box<str>>,
}

impl Interner {
    /// The id of `text`; `None` if ids are exhausted. `display` is called for a new string, and returns the displayed form if it
    /// differs from the string.
    pub(super) fn intern(
        &self,
        text: &str,
        display: impl FnOnce(&str) -> Option<String>,
    ) -> Option<u32> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = ids.get(text) {
            return Some(id);
        }
        let id = u32::try_from(ids.len()).ok()?;
        let (block, len, index) = location(id);
        let block = self.blocks.get(block)?;
        let block = block.get_or_init(|| (0..len).map(|_| OnceLock::new()).collect());
        let text = InternedText {
            raw: text.into(),
            displayed: display(text).map(String::into_boxed_str),
        };
        ids.insert(text.raw.clone(), id);
        block.get(index)?.set(text).ok()?;
        Some(id)
    }

    /// The original string.
    pub(super) fn raw(&self, id: u32) -> Option<&str> {
        self.get(id).map(|text| &*text.raw)
    }

    /// The displayed form.
    pub(super) fn displayed(&self, id: u32) -> Option<&str> {
        let text = self.get(id)?;
        Some(text.displayed.as_ref().unwrap_or(&text.raw))
    }

    fn get(&self, id: u32) -> Option<&InternedText> {
        let (block, _, index) = location(id);
        self.blocks.get(block)?.get()?.get(index)?.get()
    }
}

/// The index of the block of an id, the block's length, and the index in the block.
fn location(id: u32) -> (usize, u32, usize) {
    // With this addend, each block begins at a power of two, which is also the block's length.
    let from_first = u64::from(id) + u64::from(FIRST_BLOCK);
    let len = 1 << from_first.ilog2();
    // How many times as long as the first block: 1, 2, 4 and so on, so its logarithm is the block's index.
    let ratio = len / u64::from(FIRST_BLOCK);
    (
        ratio.ilog2() as usize,
        // Only the length of the last block, 2^32, does not fit.
        u32::try_from(len).unwrap_or(u32::MAX),
        (from_first - len) as usize,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_interned_once() {
        let interner = Interner::default();
        let intern =
            |text: &str| interner.intern(text, |text| text.strip_prefix("_").map(str::to_owned));
        // Id 0. `raw` remains valid while further blocks are added.
        let first = intern("_first").unwrap();
        let raw = interner.raw(first).unwrap();
        for n in 0..1000 {
            assert_eq!(intern(&n.to_string()), Some(n + 1));
        }
        assert_eq!(intern("_first"), Some(first));
        assert_eq!((raw, interner.displayed(first)), ("_first", Some("first")));
        assert_eq!(interner.displayed(1000), Some("999"));
        assert_eq!(interner.displayed(1001), None);
    }

    #[test]
    fn blocks_follow_each_other() {
        assert_eq!(location(0), (0, 64, 0));
        assert_eq!(location(63), (0, 64, 63));
        assert_eq!(location(64), (1, 128, 0));
        assert_eq!(location(191), (1, 128, 127));
        assert_eq!(location(u32::MAX).0, BLOCKS - 1);
    }
}
