//! A block of records, passed from a decoder to an observer.

use std::mem;

use rperf_replay::{EventIndex, FoldControl};

use crate::{
    ContextSwitch, DeliveredCounts, EventContext, EventLayouts, Loss, Observer, TaskChange,
};

/// Records in order. Raw data of typed events (samples of the tracepoints in [`EventLayouts`]) and names of tasks are copied,
/// since a stream may release its bytes before the records are observed. `D` is what a decoder prepares from a sample.
pub(crate) struct RecordBlock<D> {
    entries: Vec<BlockEntry<D>>,
    /// Raw data and names of all entries, concatenated.
    bytes: Vec<u8>,
}

struct BlockEntry<D> {
    at: EventContext,
    /// Where the entry's bytes end in the block's `bytes`.
    end: usize,
    content: RecordContent<D>,
}

/// The content of a record, without its raw data or its name, which are in the block's `bytes`.
pub(crate) enum RecordContent<D> {
    /// A typed event whose raw data are complete, with the data prepared from its sample.
    Event(EventIndex, D),
    /// A typed event whose raw data are truncated or missing.
    Truncated,
    /// A sample of an event that is not typed.
    Sample(D),
    /// A change of a task, boxed since it is rare and large. The name of a COMM is empty here.
    Task(Box<TaskChange<'static>>),
    Switch(ContextSwitch),
    Lost(Loss),
}

impl<D> RecordContent<D> {
    pub(crate) fn task(change: TaskChange<'static>) -> Self {
        Self::Task(Box::new(change))
    }
}

impl<D> Default for RecordBlock<D> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            bytes: Vec::new(),
        }
    }
}

impl<D> RecordBlock<D> {
    /// Appends a record.
    pub(crate) fn push(&mut self, at: EventContext, content: RecordContent<D>, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len();
        self.entries.push(BlockEntry { at, end, content });
    }

    /// Clears the block for reuse.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    /// Passes all records to an observer, and removes them. Their bytes remain, so [`Self::clear`] must be called before the next
    /// record is pushed. Returns whether the observer wants more records.
    pub(crate) fn deliver<O: Observer<D>>(
        &mut self,
        layouts: &EventLayouts,
        observer: &mut O,
        delivered: &mut DeliveredCounts,
    ) -> FoldControl {
        let mut start = 0;
        for BlockEntry { at, end, content } in self.entries.drain(..) {
            // An entry's bytes begin where those of the previous entry end.
            let bytes = self.bytes.get(mem::replace(&mut start, end)..end);
            let bytes = bytes.unwrap_or_default();
            match content {
                // `detail` is what the decoder prepared. It has read these raw data before, so `read` succeeds.
                RecordContent::Event(event, detail) => {
                    if let Some(event) = layouts.of(event).and_then(|layout| layout.read(bytes)) {
                        delivered.typed_events += 1;
                        observer.event(&at, event, detail);
                    }
                }
                RecordContent::Truncated => delivered.truncated += 1,
                RecordContent::Sample(detail) => {
                    delivered.other_samples += 1;
                    observer.sample(&at, detail);
                }
                RecordContent::Task(change) => observer.task(&at, change.with_name(bytes)),
                RecordContent::Switch(switch) => observer.switch(&at, switch),
                RecordContent::Lost(loss) => {
                    delivered.lost = delivered.lost.saturating_add(loss.records);
                    observer.lost(&at, loss);
                }
            }
        }
        observer.flow()
    }
}
