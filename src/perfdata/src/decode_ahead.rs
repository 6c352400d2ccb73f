//! Decoding of compressed records on other threads, ahead of the thread that merges records.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};

use crate::decompress::compressed_bytes;
use crate::frames::CompleteFrames;
use crate::merged_files::MergedFiles;
use crate::{Decompressor, RecordAt};

/// Records decoded ahead per thread: enough to keep it busy, few enough to limit memory.
const RECORDS_PER_THREAD: usize = 4;

/// Decodes compressed records that consist of complete zstd frames before the merging thread needs them.
pub(crate) struct DecodeAhead<'a> {
    /// The records that are not queued for decoding yet, in the order in which the merging thread reads them.
    merged: MergedFiles<'a>,
    jobs: Sender<DecodeJob<'a>>,
    in_flight: VecDeque<AwaitedRecord>,
    max_in_flight: usize,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

/// A record to decode.
struct DecodeJob<'a> {
    /// The compressed bytes; empty if the record is not to be decoded here.
    body: &'a [u8],
    buffer: Vec<u8>,
    /// Receives the content; `None` if it is not decoded.
    reply: SyncSender<Option<Vec<u8>>>,
}

/// A record that is queued for decoding, being decoded, or decoded.
struct AwaitedRecord {
    file: usize,
    position: u64,
    decoded: Receiver<Option<Vec<u8>>>,
}

impl<'a> DecodeAhead<'a> {
    /// Starts up to `threads` threads that decode records of `merged`. They end when the `DecodeAhead` is dropped.
    pub(crate) fn start<'s>(
        scope: &'s Scope<'s, '_>,
        threads: NonZeroUsize,
        merged: MergedFiles<'a>,
    ) -> Self
    where
        'a: 's,
    {
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads.get() {
            let queue = Arc::clone(&queue);
            // If no thread can be started, no record is decoded here, and the caller decodes all records itself.
            drop(Builder::new().spawn_scoped(scope, move || work(&queue)));
        }
        Self {
            merged,
            jobs,
            in_flight: VecDeque::new(),
            max_in_flight: RECORDS_PER_THREAD * threads.get(),
            spare: Vec::new(),
        }
    }

    /// The decoded content of a compressed record; `None` for other records, and if the caller must decode it. Records must be
    /// taken in the order in which the files are merged; some may be skipped.
    pub(crate) fn take(&mut self, file: usize, record: &RecordAt<'_>) -> Option<Vec<u8>> {
        if !Decompressor::is_compressed(record.raw.kind) {
            return None;
        }
        loop {
            self.refill();
            let next = self.in_flight.pop_front()?;
            if (next.file, next.position) == (file, record.position) {
                return next.decoded.recv().ok().flatten();
            }
        }
    }

    /// Takes back a buffer that [`Self::take`] returned.
    pub(crate) fn reuse(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    fn refill(&mut self) {
        while self.in_flight.len() < self.max_in_flight {
            let Some(next) = self.merged.next() else {
                return;
            };
            let Some(Ok(record)) = next.record else {
                continue;
            };
            if !Decompressor::is_compressed(record.raw.kind) {
                continue;
            }
            let (reply, decoded) = sync_channel(1);
            self.in_flight.push_back(AwaitedRecord {
                file: next.file,
                position: record.position,
                decoded,
            });
            let buffer = self.spare.pop().unwrap_or_default();
            // A record whose content has an invalid size is not decoded here: the caller decodes it and reports the error.
            let endian = self.merged.endian();
            let body = endian.and_then(|endian| compressed_bytes(&record, endian).ok());
            let job = DecodeJob {
                body: body.unwrap_or_default(),
                buffer,
                reply,
            };
            // Sending fails if no thread was started; `reply` is then dropped with the job.
            drop(self.jobs.send(job));
        }
    }
}

/// Decodes records until the [`DecodeAhead`] is dropped.
fn work(queue: &Mutex<Receiver<DecodeJob<'_>>>) {
    // The larger the recording, the larger the windows that its frames may have. Its size is not known here: only frames whose
    // windows are allowed in a recording of any size are decoded, the others are left to the caller.
    let unknown_size = 0;
    let mut frames = CompleteFrames::new(unknown_size);
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(DecodeJob {
            body,
            mut buffer,
            reply,
        }) = job
        else {
            return;
        };
        let is_decoded = !body.is_empty() && frames.decode(body, &mut buffer);
        // The receiver is gone if the record was skipped or the `DecodeAhead` dropped.
        drop(reply.send(is_decoded.then_some(buffer)));
    }
}
