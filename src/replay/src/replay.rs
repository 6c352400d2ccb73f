//! An opened recording: the World (processes and mappings by time) and two ways to process samples, [`Replay::fold`] in any order
//! and [`Replay::ordered`] in time order.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard};

use rperf_perfdata::{PerfData, RecordAt};
use rperf_wire::Endian;

use crate::diagnostics::DecodeErrors;
use crate::events::EventTable;
use crate::prefetch::BytesRead;
use crate::render::OrderedSamples;
use crate::scan::{DataSlice, Scan, scan};
use crate::threads::locked;
use crate::{Diagnostics, Error, Order, Sample, World};

/// A recording after pass 1, which reads all record headers and builds the World. A later run over the samples is pass 2.
#[derive(Debug)]
pub struct Replay<'a> {
    data: &'a PerfData<'a>,
    pub(crate) events: EventTable,
    pub(crate) scan: Scan,
    /// Samples that the last run of pass 2 could not decode.
    bad_samples: Mutex<DecodeErrors>,
    /// Counts the bytes that the passes have read, for progress.
    pub(crate) walked: BytesRead,
}

impl<'a> Replay<'a> {
    /// Runs pass 1: reads all record headers and builds the World.
    ///
    /// # Errors
    /// [`Error::Compressed`] for a recording with compressed records, and [`Error::OutOfMemory`]. A damaged tail is not an
    /// error; [`Diagnostics::end`] reports it.
    pub fn open(data: &'a PerfData<'a>) -> Result<Self, Error> {
        Self::open_on(data, NonZeroUsize::MIN)
    }

    /// Like [`Replay::open`] on at most `threads` threads.
    ///
    /// # Errors
    /// Errors of [`Replay::open`].
    pub fn open_on(data: &'a PerfData<'a>, threads: NonZeroUsize) -> Result<Self, Error> {
        Self::open_watched(data, threads, BytesRead::default())
    }

    /// Like [`Replay::open_on`]; `walked` counts the bytes read by this pass and later ones, for progress shown by other threads.
    ///
    /// # Errors
    /// Errors of [`Replay::open`].
    pub fn open_watched(
        data: &'a PerfData<'a>,
        threads: NonZeroUsize,
        walked: BytesRead,
    ) -> Result<Self, Error> {
        let events = EventTable::new(data.endian(), data.events());
        let scan = scan(data, &events, threads, &walked)?;
        Ok(Self {
            data,
            events,
            scan,
            bad_samples: Mutex::default(),
            walked,
        })
    }

    /// The file.
    #[must_use]
    pub fn data(&self) -> &'a PerfData<'a> {
        self.data
    }

    /// Processes and mappings by time.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.scan.world
    }

    /// The World, to add information from outside the recording before samples are processed.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.scan.world
    }

    /// Lost, late (perf's "out of order") and damaged records. Damaged samples are counted by [`Replay::fold`] or
    /// [`Replay::ordered`].
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics {
            bad_samples: self.bad_samples().clone(),
            ..self.scan.diagnostics.clone()
        }
    }

    /// Number of samples of each event, in the order of [`PerfData::events`]; with `:S`, of the samples derived for it.
    #[must_use]
    pub fn sample_counts(&self) -> &[u64] {
        &self.scan.samples
    }

    /// Whether there are samples of the host's kernel.
    #[must_use]
    pub fn has_kernel_samples(&self) -> bool {
        // `modes` has bit N set if samples have the CPU mode N; `PERF_RECORD_MISC_KERNEL` is 1.
        self.scan.modes & 1 << 1 != 0
    }

    /// Calls `each` with the samples derived from `sample`: itself, or with `:S` one for each event
    /// of its group whose count increased. Deferred user callchains are inserted.
    #[inline]
    pub fn deliver(&self, sample: &Sample<'_>, each: impl FnMut(&Sample<'_>)) {
        OrderedSamples::deliver(self, sample, each);
    }

    pub(crate) fn bad_samples(&self) -> MutexGuard<'_, DecodeErrors> {
        locked(&self.bad_samples)
    }

    pub(crate) fn endian(&self) -> Endian {
        self.data.endian()
    }

    /// The bytes of the data from a file offset on.
    pub(crate) fn data_from(&self, position: u64) -> &'a [u8] {
        self.data.data_from(position)
    }

    /// The bytes of a slice: a range of the data between two record boundaries.
    pub(crate) fn bytes_of(&self, slice: &DataSlice) -> &'a [u8] {
        let bytes = self.data_from(slice.start);
        let size = usize::try_from(slice.end - slice.start).unwrap_or(usize::MAX);
        bytes.get(..size).unwrap_or(bytes)
    }

    /// The sort key of `record`, which is not a sample: its time, then its file offset. A record without a time gets the flush
    /// limit at its file offset as its time.
    pub(crate) fn order_of(&self, record: &RecordAt<'_>) -> Order {
        let position = record.position;
        let time = self.events.record_time(&record.raw);
        Order {
            time: time.unwrap_or_else(|| self.limit(position)),
            position,
        }
    }

    /// The flush limit (the time up to which perf would have delivered records) at the file offset of a record without a time.
    #[cold]
    pub(crate) fn limit(&self, position: u64) -> u64 {
        self.scan.limit(position)
    }
}
