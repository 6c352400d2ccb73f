//! The records of some kinds that are no samples.

use rperf_wire::RecordKind;

use crate::{Replay, SideRecord};

impl<'a> Replay<'a> {
    /// All records of these kinds, which are not [`RecordKind::SAMPLE`], in the order of the recording.
    #[must_use]
    pub fn sides(&self, kinds: &[RecordKind]) -> Vec<SideRecord<'a>> {
        let records = self.data().records();
        let wanted = records
            .map_while(Result::ok)
            .filter(|record| kinds.contains(&record.raw.kind));
        let mut sides: Vec<SideRecord<'a>> = wanted
            .map(|record| self.events.side(record.raw, self.order_of(&record)))
            .collect();
        sides.sort_by_key(|side| side.order);
        sides
    }
}
