//! Caches of the slab allocator, by the names in events or by the sizes of objects.

use rustc_hash::FxHashMap;

/// A cache of the slab allocator, or a size class of kmalloc.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlabCache {
    /// The name of the cache, which need not be UTF-8.
    Named(Box<[u8]>),
    /// Objects of kmalloc() of this number of allocated bytes: the events of kmalloc() do not have the name of the cache.
    Kmalloc(u64),
    /// Objects of this number of allocated bytes from a cache that the event does not name.
    Unnamed(u64),
}

/// Numbers the caches, from 0 on.
#[derive(Debug, Default)]
pub(super) struct CacheNumbers {
    by_name: FxHashMap<Box<[u8]>, u32>,
    /// The numbers of caches without a name, by whether they are size classes of kmalloc(), and by the bytes of their objects.
    by_size: FxHashMap<(bool, u64), u32>,
    caches: Vec<SlabCache>,
}

impl CacheNumbers {
    /// Returns the number of the cache of this name; if the name is missing or empty, the number for all unnamed caches with
    /// objects of `bytes`.
    pub(super) fn of_cache(&mut self, name: Option<&[u8]>, bytes: u64) -> u32 {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            let is_kmalloc = false;
            return self.of_size(is_kmalloc, bytes);
        };
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        let number = self.add(SlabCache::Named(name.into()));
        self.by_name.insert(name.into(), number);
        number
    }

    /// Returns the number of the size class of kmalloc() with objects of `bytes`.
    pub(super) fn of_kmalloc(&mut self, bytes: u64) -> u32 {
        let is_kmalloc = true;
        self.of_size(is_kmalloc, bytes)
    }

    fn of_size(&mut self, is_kmalloc: bool, bytes: u64) -> u32 {
        if let Some(number) = self.by_size.get(&(is_kmalloc, bytes)) {
            return *number;
        }
        let number = self.add(match is_kmalloc {
            true => SlabCache::Kmalloc(bytes),
            false => SlabCache::Unnamed(bytes),
        });
        self.by_size.insert((is_kmalloc, bytes), number);
        number
    }

    fn add(&mut self, cache: SlabCache) -> u32 {
        self.caches.push(cache);
        u32::try_from(self.caches.len() - 1).unwrap_or(u32::MAX)
    }

    /// Returns the cache of a number.
    pub(super) fn get(&self, number: u32) -> Option<&SlabCache> {
        self.caches.get(number as usize)
    }
}
