//! Parallel map over a list.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::PoisonError;

use rperf_replay::on_threads;

/// Maximum number of items a thread takes at a time.
const MAX_BATCH: usize = 16;

/// Applies `each` to all `items` on up to `threads` threads, and returns the results in the order of the items.
pub fn map<T: Send, R: Send>(
    items: Vec<T>,
    threads: NonZeroUsize,
    each: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if threads.get() == 1 || items.len() < 2 {
        return items.into_iter().map(each).collect();
    }
    // At least four batches per thread if possible, so that no thread works much longer than the others.
    let batch_size = (items.len() / (4 * threads.get())).clamp(1, MAX_BATCH);
    let count = items.len();
    let queue = Mutex::new(items.into_iter().enumerate());
    let worker = || {
        let mut done = Vec::new();
        loop {
            let taken: Vec<(usize, T)> = {
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.by_ref().take(batch_size).collect()
            };
            // `first`: the position in `items` of the first taken item. Nothing is taken from an empty queue.
            let Some((first, _)) = taken.first() else {
                return done;
            };
            let first = *first;
            let results: Vec<R> = taken.into_iter().map(|(_, item)| each(item)).collect();
            done.push((first, results));
        }
    };
    // Calls `worker` on each thread; `done` has one list of batches for each thread.
    let done = on_threads(threads.get(), worker);
    let mut batches: Vec<(usize, Vec<R>)> = done.into_iter().flatten().collect();
    batches.sort_unstable_by_key(|(first, _)| *first);
    let mut results = Vec::with_capacity(count);
    batches
        .into_iter()
        .for_each(|(_, batch)| results.extend(batch));
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let threads = NonZeroUsize::new(3).expect("not zero");
        let squares = map((0u64..1000).collect(), threads, |number| number * number);
        assert!(
            squares
                .iter()
                .zip(0u64..)
                .all(|(square, number)| *square == number * number)
        );
        assert_eq!(squares.len(), 1000);
    }
}
