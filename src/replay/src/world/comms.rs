//! Names of threads: one id for each text, and `:TID` for threads that nothing named.

use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::CommId;

/// Marks an id whose other bits are a thread id.
const UNNAMED: u32 = 1 << 31;

/// All names that occur. Ids of unnamed threads need no entry; their text is made when asked for.
#[derive(Debug, Default)]
pub(crate) struct Comms {
    ids: FxHashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    /// Places of names that were forgotten.
    free: Vec<u32>,
    unnamed: Unnamed,
}

impl Comms {
    /// The id of a name.
    pub(crate) fn intern(&mut self, name: &str) -> CommId {
        if let Some(id) = self.ids.get(name) {
            return CommId(*id);
        }
        let free = self.free.pop();
        let place = free.and_then(|id| Some((id, self.names.get_mut(id as usize)?)));
        let id = match place {
            Some((id, place)) => {
                *place = name.into();
                id
            }
            None => {
                let id = u32::try_from(self.names.len()).unwrap_or(UNNAMED - 1);
                self.names.push(name.into());
                id
            }
        };
        self.ids.insert(name.into(), id);
        CommId(id)
    }

    /// How many names are known.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Forgets all names but these. Others may get their ids.
    pub(crate) fn keep(&mut self, kept: &FxHashSet<CommId>) {
        let (names, free) = (&mut self.names, &mut self.free);
        self.ids.retain(|_, id| {
            let is_kept = kept.contains(&CommId(*id));
            if !is_kept {
                if let Some(name) = names.get_mut(*id as usize) {
                    *name = Box::default();
                }
                free.push(*id);
            }
            is_kept
        });
    }

    /// The id of a thread that has no name. Thread ids have at most 22 bits on Linux; -1 and its like
    /// survive the loss of the top bit because it is copied back from the next one.
    pub(crate) fn unnamed(tid: u32) -> CommId {
        CommId(tid | UNNAMED)
    }

    /// The text of an id; empty for an id that another World gave out.
    pub(crate) fn text(&self, id: CommId) -> &str {
        if id.0 & UNNAMED == 0 {
            return self.names.get(id.0 as usize).map_or("", |name| name);
        }
        self.unnamed.text(id.0 & !UNNAMED)
    }
}

type Level<T> = Table<OnceLock<Box<T>>>;

/// 256 places, all empty at first.
#[derive(Debug)]
struct Table<T>([T; 256]);

impl<T: Default> Default for Table<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

/// `:TID` texts by the bytes of the thread id. Filled through `&self` and never emptied, so that
/// threads can share it and keep references into it.
#[derive(Debug, Default)]
struct Unnamed(Level<Level<Level<Level<str>>>>);

impl Unnamed {
    fn text(&self, bits: u32) -> &str {
        let [a, b, c, d] = bits.to_be_bytes().map(usize::from);
        let place = self.0.0.get(a).map(OnceLock::get_or_init_default);
        let place = place
            .and_then(|table| table.0.get(b))
            .map(OnceLock::get_or_init_default);
        let place = place
            .and_then(|table| table.0.get(c))
            .map(OnceLock::get_or_init_default);
        let place = place.and_then(|table| table.0.get(d));
        let text = || {
            let tid = (bits << 1).cast_signed() >> 1;
            format!(":{tid}").into_boxed_str()
        };
        place.map_or("", |place| place.get_or_init(text))
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
