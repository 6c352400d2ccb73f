//! Tasks by thread id, without hashing for thread ids that the kernel assigns.

use rustc_hash::FxHashMap;

use super::TaskIndex;

/// Thread ids that the kernel assigns are below this limit (`PID_MAX_LIMIT`).
const LIMIT: usize = 1 << 22;
/// Number of ids in a page.
const PAGE: usize = 1024;
/// Marks an id without a task.
const NO_TASK: u32 = u32::MAX;

type Page = Box<[u32; PAGE]>;

/// The task of each thread id. Ids from 0 to below [`LIMIT`] are in pages, which take at most 16 MB; other ids are keys of a map.
#[derive(Debug, Default)]
pub(super) struct TidTable {
    pages: Vec<Option<Page>>,
    others: FxHashMap<i32, TaskIndex>,
}

impl TidTable {
    /// Returns the task of an id; `None` if it has none.
    #[inline]
    pub(super) fn get(&self, tid: i32) -> Option<TaskIndex> {
        let (page, entry) = place(tid);
        match self.pages.get(page) {
            Some(page) => {
                let task = *page.as_ref()?.get(entry)?;
                (task != NO_TASK).then_some(TaskIndex::nth(task as usize))
            }
            None => self.others.get(&tid).copied(),
        }
    }

    /// Sets the task of an id.
    pub(super) fn insert(&mut self, tid: i32, task: TaskIndex) {
        let (page, entry) = place(tid);
        // An index over 32 bits goes to the map, where `get` may not look. But so many tasks do not fit into memory.
        let number = u32::try_from(task.get()).unwrap_or(NO_TASK);
        if page >= LIMIT / PAGE || number == NO_TASK {
            self.others.insert(tid, task);
            return;
        }
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages.get_mut(page);
        let page = page.map(|page| page.get_or_insert_with(|| Box::new([NO_TASK; PAGE])));
        if let Some(entry) = page.and_then(|page| page.get_mut(entry)) {
            *entry = number;
        }
    }

    /// Removes the task of an id.
    pub(super) fn remove(&mut self, tid: i32) {
        let (page, entry) = place(tid);
        match self.pages.get_mut(page) {
            Some(page) => {
                if let Some(entry) = page.as_mut().and_then(|page| page.get_mut(entry)) {
                    *entry = NO_TASK;
                }
            }
            None => drop(self.others.remove(&tid)),
        }
    }

    /// Returns all ids with their tasks, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, TaskIndex)> {
        let of_page = |(page, entries): (usize, &Page)| {
            let first = page * PAGE;
            let entries = entries.iter().enumerate();
            let entries = entries.filter(|(_, task)| **task != NO_TASK);
            let tasks = entries.map(|(entry, task)| {
                // Below LIMIT.
                let tid = i32::try_from(first + entry).unwrap_or(i32::MAX);
                (tid, TaskIndex::nth(*task as usize))
            });
            tasks.collect::<Vec<_>>()
        };
        let pages = self.pages.iter().enumerate();
        let pages = pages.filter_map(|(page, entries)| Some((page, entries.as_ref()?)));
        let others = self.others.iter().map(|(tid, task)| (*tid, *task));
        pages.flat_map(of_page).chain(others)
    }
}

/// Returns the page of an id, and its index in that page. Pages of negative ids are above the pages of all other ids.
#[inline]
fn place(tid: i32) -> (usize, usize) {
    let tid = tid.cast_unsigned() as usize;
    (tid / PAGE, tid % PAGE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn tid() -> impl Strategy<Value = i32> {
        let limit = i32::try_from(LIMIT).expect("small");
        prop_oneof![
            -2..40_i32,
            1020..1030_i32,
            limit - 3..limit + 3,
            any::<i32>()
        ]
    }

    proptest! {
        #[test]
        fn lookups_match_a_map(
            steps in proptest::collection::vec((tid(), proptest::option::of(0..99_usize)), 0..60),
        ) {
            let (mut table, mut map) = (TidTable::default(), BTreeMap::new());
            for (tid, task) in &steps {
                match task {
                    Some(task) => {
                        table.insert(*tid, TaskIndex::nth(*task));
                        map.insert(*tid, TaskIndex::nth(*task));
                    }
                    None => {
                        table.remove(*tid);
                        map.remove(tid);
                    }
                }
                for (tid, _) in &steps {
                    prop_assert_eq!(table.get(*tid), map.get(tid).copied());
                }
            }
            let mut all: Vec<_> = table.iter().collect();
            all.sort();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        }
    }
}
