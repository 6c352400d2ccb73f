//! Thread names: one id per text, and `:TID` for threads without a name.

use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::CommId;

/// Marks an id whose other bits are a thread id.
const UNNAMED: u32 = 1 << 31;

/// All names. Ids of unnamed threads need no entry; their text is created on demand.
#[derive(Debug, Default)]
pub(crate) struct Comms {
    ids: FxHashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    /// Ids of removed names, which are also their indices in `names`, for reuse.
    free: Vec<u32>,
    unnamed: UnnamedThreads,
}

impl Comms {
    /// The id of a name.
    pub(crate) fn intern(&mut self, name: &str) -> CommId {
        if let Some(id) = self.ids.get(name) {
            return CommId(*id);
        }
        let free = self.free.pop();
        let slot = free.and_then(|id| Some((id, self.names.get_mut(id as usize)?)));
        let id = match slot {
            Some((id, slot)) => {
                *slot = name.into();
                id
            }
            None => {
                // In practice there are far fewer than 2^31 names.
                let id = u32::try_from(self.names.len()).unwrap_or(UNNAMED - 1);
                self.names.push(name.into());
                id
            }
        };
        self.ids.insert(name.into(), id);
        CommId(id)
    }

    /// Number of names, without removed ones.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Removes all names except `used`; the ids of removed names may be reused.
    pub(crate) fn keep(&mut self, used: &FxHashSet<CommId>) {
        let (names, free) = (&mut self.names, &mut self.free);
        self.ids.retain(|_, id| {
            let is_kept = used.contains(&CommId(*id));
            if !is_kept {
                if let Some(name) = names.get_mut(*id as usize) {
                    *name = Box::default();
                }
                free.push(*id);
            }
            is_kept
        });
    }

    /// The name id of a thread without a name: the lower 31 bits of `tid`, and [`UNNAMED`] as the top bit. The id's text shows
    /// these 31 bits as a signed number, which equals `tid` read as signed: thread ids have at most 22 bits on Linux, and special
    /// ones, such as -1, are small negative numbers.
    pub(crate) fn unnamed(tid: u32) -> CommId {
        CommId(tid | UNNAMED)
    }

    /// The text of an id; empty for an unknown id.
    pub(crate) fn text(&self, id: CommId) -> &str {
        if id.0 & UNNAMED == 0 {
            return self.names.get(id.0 as usize).map_or("", |name| name);
        }
        self.unnamed.text(id.0 & !UNNAMED)
    }
}

/// A table whose values are boxed, and each created on its first use.
type SlotLevel<T> = SlotTable<OnceLock<Box<T>>>;

/// 256 slots, initially empty.
#[derive(Debug)]
struct SlotTable<T>([T; 256]);

impl<T: Default> Default for SlotTable<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

/// `:TID` texts by the four bytes of the id without [`UNNAMED`]: a tree of tables with one level for each byte. Filled through
/// `&self` and never cleared, so that analysing threads can share it and keep references into it.
#[derive(Debug, Default)]
struct UnnamedThreads(SlotLevel<SlotLevel<SlotLevel<SlotLevel<str>>>>);

impl UnnamedThreads {
    fn text(&self, bits: u32) -> &str {
        let [a, b, c, d] = bits.to_be_bytes().map(usize::from);
        let second_level = self.0.0.get(a).map(OnceLock::get_or_init_default);
        let third_level = second_level
            .and_then(|table| table.0.get(b))
            .map(OnceLock::get_or_init_default);
        let fourth_level = third_level
            .and_then(|table| table.0.get(c))
            .map(OnceLock::get_or_init_default);
        let slot = fourth_level.and_then(|table| table.0.get(d));
        let text = || {
            // Bit 30 is the sign: it is copied to bit 31, where `UNNAMED` was.
            let tid = (bits << 1).cast_signed() >> 1;
            format!(":{tid}").into_boxed_str()
        };
        slot.map_or("", |slot| slot.get_or_init(text))
    }
}

/// [`OnceLock::get_or_init`] with an empty table.
trait GetOrDefault {
    type Value;
    fn get_or_init_default(&self) -> &Self::Value;
}

impl<T: Default> GetOrDefault for OnceLock<Box<T>> {
    type Value = T;
    fn get_or_init_default(&self) -> &T {
        self.get_or_init(Box::default)
    }
}
