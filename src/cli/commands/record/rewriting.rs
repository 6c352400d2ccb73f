//! What changes records between the rings and the file: `--unwind live`, filters of samples, `--off-cpu`, or several one after
//! the other.

use std::sync::Arc;

use rperf_perfdata::EventDesc;
use rperf_session::{Rewriter, Rewriting};

use super::off_cpu::OffCpuTime;
use super::sieve::Sifting;
use super::unwinding::Unwinding;

/// All of them that are wanted.
pub(super) fn all(
    unwinding: Option<Arc<Unwinding>>,
    sifting: Option<Arc<Sifting>>,
    off_cpu: Option<OffCpuTime>,
) -> Option<Arc<dyn Rewriting>> {
    // Stacks are unwound first: in what was mapped when their tasks left their CPUs, not when they came back.
    let unwinding = unwinding.map(|unwinding| unwinding as Arc<dyn Rewriting>);
    let sifting = sifting.map(|sifting| sifting as Arc<dyn Rewriting>);
    let off_cpu = off_cpu.map(|off_cpu| Arc::new(off_cpu) as Arc<dyn Rewriting>);
    let chain = [unwinding, sifting, off_cpu].into_iter().flatten();
    chain.reduce(|first, second| Arc::new(Both { first, second }))
}

/// One behind the other.
#[derive(Debug)]
struct Both {
    first: Arc<dyn Rewriting>,
    second: Arc<dyn Rewriting>,
}

impl Rewriting for Both {
    fn describe(&self, events: &mut [EventDesc]) {
        self.first.describe(events);
        self.second.describe(events);
    }

    fn begin(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        Box::new(OneAfterOther {
            first: self.first.begin(events),
            second: self.second.begin(events),
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
        self.between.clear();
        self.first.end(&mut self.between);
        self.second.rewrite(&self.between, false, to);
        self.second.end(to);
    }
}
