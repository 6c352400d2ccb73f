//! When records were lost: the stretches of time for which an analysis lacks events.

use super::MAX_CPUS;
use crate::cpu_table::CpuTable;
use crate::{EventContext, Loss};

/// A stretch of time in which records of a CPU were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostStretch {
    /// The CPU; `None` if not recorded.
    pub cpu: Option<u32>,
    /// The time of the previous event or loss of that CPU, in nanoseconds; 0 if there is none. If `cpu` is `None`, the time of
    /// the previous event or loss without a CPU.
    pub from: u64,
    /// The time of the record that reports the loss, in nanoseconds.
    pub to: u64,
    /// The number of lost records.
    pub records: u64,
}

/// The stretches of a recording in which records were lost, in order of time.
#[derive(Debug, Default)]
pub struct LostStretches {
    /// The time of the last event or loss, by CPU.
    last: CpuTable<u64>,
    stretches: Vec<LostStretch>,
    is_incomplete: bool,
}

impl LostStretches {
    /// Maximum number of stretches stored.
    const MAX_STRETCHES: usize = 10_000;

    /// Notes an event.
    pub fn event(&mut self, at: &EventContext) {
        self.last.insert(cpu_key(at), at.time());
    }

    /// Notes an event as [`LostStretches::event`] does. If its CPU number is not below [`MAX_CPUS`], the record is damaged and
    /// counts as lost. Returns whether the event can be used.
    pub fn usable_event(&mut self, at: &EventContext) -> bool {
        let is_usable = at.cpu.is_none_or(|cpu| cpu < MAX_CPUS);
        match is_usable {
            true => self.event(at),
            false => self.lost(at, Loss { records: 1 }),
        }
        is_usable
    }

    /// Notes a loss.
    pub fn lost(&mut self, at: &EventContext, loss: Loss) {
        let from = self.last.insert(cpu_key(at), at.time());
        let from = from.unwrap_or_default();
        if self.stretches.len() == Self::MAX_STRETCHES {
            self.is_incomplete = true;
            return;
        }
        self.stretches.push(LostStretch {
            cpu: at.cpu,
            from,
            to: at.time(),
            records: loss.records,
        });
    }

    /// Returns the stretches, in order of time.
    #[must_use]
    pub fn stretches(&self) -> &[LostStretch] {
        &self.stretches
    }

    /// Whether losses are missing from the stretches, because the maximum number of stretches was reached.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }
}

/// The key of an event's CPU: `u32::MAX` if it has none.
fn cpu_key(at: &EventContext) -> u32 {
    at.cpu.unwrap_or(u32::MAX)
}
