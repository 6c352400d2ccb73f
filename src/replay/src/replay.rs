//! A recording, opened: the World and two ways through the samples.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use rperf_perfdata::{PerfData, RecordAt, Records};
use rperf_wire::{Endian, RawRecord};

use crate::ahead::{Ahead, Walked};
use crate::diagnostics::Bad;
use crate::events::EventTable;
use crate::render::Recorded;
use crate::scan::{Scan, Slice, scan};
use crate::{Diagnostics, Error, Order, Sample, World};

/// A recording after pass 1.
#[derive(Debug)]
pub struct Replay<'a> {
    data: &'a PerfData<'a>,
    pub(crate) events: EventTable,
    pub(crate) scan: Scan,
    bad_samples: Mutex<Bad>,
    pub(crate) walked: Walked,
}

impl<'a> Replay<'a> {
    /// Pass 1: walks all record headers and builds the World.
    ///
    /// # Errors
    /// [`Error::Compressed`] for a recording whose records can't be seen. A damaged tail is no error
    /// but [`Diagnostics::end`].
    pub fn open(data: &'a PerfData<'a>) -> Result<Self, Error> {
        Self::open_on(data, NonZeroUsize::MIN)
    }

    /// The same with at most `threads`: a second one brings in the pages of the mapped file before the walk needs them.
    ///
    /// # Errors
    /// Those of [`Replay::open`].
    pub fn open_on(data: &'a PerfData<'a>, threads: NonZeroUsize) -> Result<Self, Error> {
        Self::open_watched(data, threads, Walked::default())
    }

    /// The same while somebody else may look at how far it is, and later how far other passes are.
    ///
    /// # Errors
    /// Those of [`Replay::open`].
    pub fn open_watched(
        data: &'a PerfData<'a>,
        threads: NonZeroUsize,
        walked: Walked,
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

    /// The same, to add what is told outside of the recording before samples are looked at.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.scan.world
    }

    /// What was lost, late or broken. Broken samples are known after [`Replay::fold`] or
    /// [`Replay::ordered`].
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics {
            bad_samples: self.bad().clone(),
            ..self.scan.diagnostics.clone()
        }
    }

    /// How many samples each event has, in the order of [`PerfData::events`].
    #[must_use]
    pub fn sample_counts(&self) -> &[u64] {
        &self.scan.samples
    }

    /// Calls `each` with the samples that `sample` stands for: itself, or with `:S` one of each event of its group that
    /// gained something. User frames that came by themselves are in their callchains.
    #[inline]
    pub fn deliver(&self, sample: &Sample<'_>, each: impl FnMut(&Sample<'_>)) {
        Recorded::deliver(self, sample, each);
    }

    pub(crate) fn bad(&self) -> std::sync::MutexGuard<'_, Bad> {
        self.bad_samples
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn endian(&self) -> Endian {
        self.data.endian()
    }

    /// The bytes of the data from a file offset on.
    pub(crate) fn from(&self, position: u64) -> &'a [u8] {
        let offset = position.wrapping_sub(self.data.data_offset());
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.data.data().get(offset..).unwrap_or_default()
    }

    /// The records of a slice, and what goes before the walk over them.
    pub(crate) fn records(&self, slice: &Slice) -> (Records<'a>, Ahead<'a>) {
        let bytes = self.from(slice.start);
        let size = usize::try_from(slice.end - slice.start).unwrap_or(usize::MAX);
        let bytes = bytes.get(..size).unwrap_or(bytes);
        let records = Records::new(bytes, slice.start, self.endian());
        (records, Ahead::new(bytes, slice.start, &self.walked))
    }

    /// Decodes a sample into the place of another. `Ok(false)` for one of an unknown event, which pass 1 has counted.
    #[inline]
    pub(crate) fn sample_into(
        &self,
        raw: &RawRecord<'a>,
        position: u64,
        sample: &mut Sample<'a>,
    ) -> Result<bool, rperf_wire::DecodeError> {
        let order = |time: Option<u64>| Order {
            time: time.unwrap_or_else(|| self.limit(position)),
            position,
        };
        self.events.sample_into(raw, order, sample)
    }

    /// Place of a record that is no sample.
    pub(crate) fn order_of(&self, record: &RecordAt<'_>) -> Order {
        let position = record.position;
        let time = self.events.record_time(&record.raw);
        Order {
            time: time.unwrap_or_else(|| self.limit(position)),
            position,
        }
    }

    /// The flush limit at a file offset.
    #[cold]
    pub(crate) fn limit(&self, position: u64) -> u64 {
        self.scan.limit(position)
    }
}
