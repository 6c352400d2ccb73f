//! What changes records between the rings and the file: `--unwind live`, `--off-cpu`, or one after the other.

use std::sync::Arc;

use rperf_perfdata::EventDesc;
use rperf_session::{Rewriter, Rewriting};

use super::off_cpu::OffCpuTime;
use super::unwinding::Unwinding;

/// Both of them, where both are wanted.
pub(super) fn both(
    unwinding: Option<Arc<Unwinding>>,
    off_cpu: Option<OffCpuTime>,
) -> Option<Arc<dyn Rewriting>> {
    match (unwinding, off_cpu) {
        (None, None) => None,
        (Some(unwinding), None) => Some(unwinding),
        (None, Some(off_cpu)) => Some(Arc::new(off_cpu)),
        (Some(unwinding), Some(off_cpu)) => Some(Arc::new(Both { unwinding, off_cpu })),
    }
}

/// Stacks are unwound first: in what was mapped when their tasks left their CPUs, not when they came back.
#[derive(Debug)]
struct Both {
    unwinding: Arc<Unwinding>,
    off_cpu: OffCpuTime,
}

impl Rewriting for Both {
    fn describe(&self, events: &mut [EventDesc]) {
        self.unwinding.describe(events);
        self.off_cpu.describe(events);
    }

    fn begin(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        Box::new(OneAfterOther {
            first: self.unwinding.begin(events),
            second: self.off_cpu.begin(events),
            between: Vec::new(),
        })
    }
}

/// The first has all records in their order, which is all that the second asks for.
struct OneAfterOther {
    first: Box<dyn Rewriter>,
    second: Box<dyn Rewriter>,
    between: Vec<u8>,
}

impl Rewriter for OneAfterOther {
    fn note(&mut self, records: &[u8]) {
        self.first.note(records);
    }

    fn note_end(&mut self) {
        self.first.note_end();
    }

    fn rewrite(&mut self, records: &[u8], haste: bool, to: &mut Vec<u8>) {
        self.between.clear();
        self.first.rewrite(records, haste, &mut self.between);
        self.second.rewrite(&self.between, haste, to);
    }

    fn end(&mut self, to: &mut Vec<u8>) {
        self.second.end(to);
    }
}
