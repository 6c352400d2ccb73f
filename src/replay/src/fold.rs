//! Samples in any order, on all cores.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread;

use rperf_wire::RecordKind;

use crate::diagnostics::Bad;
use crate::scan::Slice;
use crate::{Error, Fold, Replay, Sample};

impl<'a> Replay<'a> {
    /// Folds all samples. Each of at most `threads` workers makes one `A` for a stretch of the file;
    /// they are merged in file order, so that the result does not depend on timing.
    ///
    /// # Errors
    /// [`Error::Spawn`] when a thread cannot be started. Samples that cannot be decoded are counted
    /// in [`Replay::diagnostics`].
    ///
    /// # Panics
    /// With the payload of the first worker that panics.
    pub fn fold<A: Fold, M: Fn() -> A + Sync>(
        &self,
        threads: NonZeroUsize,
        make: M,
    ) -> Result<A, Error> {
        *self.bad() = Bad::default();
        let shards = shards(&self.scan.slices, threads);
        let Some((first, others)) = shards.split_first() else {
            return Ok(make());
        };
        thread::scope(|scope| {
            let mut workers = Vec::with_capacity(others.len());
            for shard in others {
                let work = || self.fold_shard(shard, &make);
                let worker = thread::Builder::new().spawn_scoped(scope, work);
                workers.push(worker.map_err(Error::Spawn)?);
            }
            let mut whole = self.fold_shard(first, &make);
            for worker in workers {
                whole.merge(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            Ok(whole)
        })
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
