//! Samples in any order, on all cores.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rperf_wire::RecordKind;

use crate::diagnostics::Bad;
use crate::scan::Slice;
use crate::{Fold, Replay, Sample};

impl<'a> Replay<'a> {
    /// Folds all samples. Each of at most `threads` stretches of the file is folded into one `A`;
    /// they are merged in file order, so that the result does not depend on timing, nor on how many
    /// threads can be started. Samples that cannot be decoded are counted in [`Replay::diagnostics`].
    ///
    /// # Panics
    /// With the payload of the first worker that panics.
    pub fn fold<A: Fold, M: Fn() -> A + Sync>(&self, threads: NonZeroUsize, make: M) -> A {
        *self.bad() = Bad::default();
        let shards = shards(&self.scan.slices, threads);
        let next = AtomicUsize::new(0);
        let worker = || {
            let mut folded = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(shard) = shards.get(index) else {
                    return folded;
                };
                folded.push((index, self.fold_shard(shard, &make)));
            }
        };
        let mut folded: Vec<(usize, A)> = thread::scope(|scope| {
            // A thread that cannot be started leaves its share to the others.
            let start = |_| thread::Builder::new().spawn_scoped(scope, worker).ok();
            let workers: Vec<_> = (1..shards.len()).filter_map(start).collect();
            let mut folded = worker();
            for worker in workers {
                folded.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            folded
        });
        folded.sort_unstable_by_key(|(index, _)| *index);
        let mut folded = folded.into_iter().map(|(_, part)| part);
        let mut whole = folded.next().unwrap_or_else(&make);
        folded.for_each(|part| whole.merge(part));
        whole
    }

    fn fold_shard<A: Fold>(&self, slices: &[Slice], make: &impl Fn() -> A) -> A {
        let mut folded = make();
        let mut bad = Bad::default();
        let mut sample = Sample::default();
        for slice in slices {
            // What ended the walk of pass 1 is behind the last slice.
            let (mut records, mut ahead) = self.records(slice);
            while let Some(record) = records.next_whole() {
                ahead.reach(records.position());
                if record.raw.kind != RecordKind::SAMPLE {
                    continue;
                }
                match self.sample_into(&record.raw, record.position, &mut sample) {
                    Ok(true) => {
                        self.deliver(&sample, |sample| folded.sample(self.world(), sample));
                    }
                    Ok(false) => {}
                    Err(error) => bad.add(record.position, error),
                }
            }
        }
        self.bad().merge(bad);
        folded
    }
}

/// Parts the slices among workers, in file order and by the bytes of samples they hold.
fn shards(slices: &[Slice], threads: NonZeroUsize) -> Vec<&[Slice]> {
    let total: u128 = slices.iter().map(|slice| u128::from(slice.weight)).sum();
    let threads = threads.get() as u128;
    let mut done = 0;
    let mut owner = |slice: &Slice| {
        let owner = (done * threads).checked_div(total).unwrap_or(0);
        done += u128::from(slice.weight);
        owner
    };
    let owners: Vec<u128> = slices.iter().map(&mut owner).collect();
    let mut shards = Vec::new();
    let mut rest = slices;
    for group in owners.chunk_by(|a, b| a == b) {
        let (shard, behind) = rest.split_at(group.len());
        shards.push(shard);
        rest = behind;
    }
    shards
}
