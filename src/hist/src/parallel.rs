//! Work on a list, spread over threads.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

/// Most items a thread takes at a time.
const BATCH: usize = 16;

/// `each` of all `items`, in their order.
pub fn map<T: Send, R: Send>(
    items: Vec<T>,
    threads: NonZeroUsize,
    each: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if threads.get() == 1 || items.len() < 2 {
        return items.into_iter().map(each).collect();
    }
    let batch = (items.len() / (4 * threads.get())).clamp(1, BATCH);
    let count = items.len();
    let queue = Mutex::new(items.into_iter().enumerate());
    let worker = || {
        let mut done = Vec::new();
        loop {
            let taken: Vec<(usize, T)> = {
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.by_ref().take(batch).collect()
            };
            let Some((first, _)) = taken.first() else {
                return done;
            };
            let first = *first;
            let results: Vec<R> = taken.into_iter().map(|(_, item)| each(item)).collect();
            done.push((first, results));
        }
    };
    let mut batches: Vec<(usize, Vec<R>)> = thread::scope(|scope| {
        // A thread that cannot be started leaves its share to the others.
        let start = |_| thread::Builder::new().spawn_scoped(scope, worker).ok();
        let workers: Vec<_> = (1..threads.get()).filter_map(start).collect();
        let own = worker();
        let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
        let list =
            joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        own.into_iter().chain(list.flatten()).collect()
    });
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
    fn the_order_stays() {
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
