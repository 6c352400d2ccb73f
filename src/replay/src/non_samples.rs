//! Records other than samples, by type.

use rperf_wire::RecordKind;

use crate::{NonSampleRecord, Replay};

impl<'a> Replay<'a> {
    /// The records of the types `kinds` before the first record that is incomplete or invalid, in order of time.
    /// [`RecordKind::SAMPLE`] must not be among the types: samples have no `sample_id_all` trailer.
    #[must_use]
    pub fn non_samples(&self, kinds: &[RecordKind]) -> Vec<NonSampleRecord<'a>> {
        let records = self.data().records();
        let selected = records
            .map_while(Result::ok)
            .filter(|record| kinds.contains(&record.raw.kind));
        let mut records: Vec<NonSampleRecord<'a>> = selected
            .map(|record| self.events.non_sample(record.raw, self.order_of(&record)))
            .collect();
        records.sort_by_key(|record| record.order);
        records
    }
}
