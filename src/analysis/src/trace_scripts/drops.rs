//! Where the kernel drops packets.

use super::{EventFields, FirstSeen, ScriptSample};

/// Numbers of dropped packets by the address of the kernel code that dropped them.
#[derive(Debug, Default)]
pub struct DropLocations {
    /// The number of packets by address, in the order of the first drop at each.
    pub counts: FirstSeen<i64, u64>,
}

impl DropLocations {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = &[EventFields {
        tracepoint: "skb:kfree_skb",
        numbers: &["location"],
        text: None,
    }];

    /// Counts a packet.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        *self.counts.entry(&sample.number(0)) += 1;
    }
}
