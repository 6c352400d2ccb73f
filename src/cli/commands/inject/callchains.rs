//! Callchains from stack copies.

use std::cell::RefCell;
use std::rc::Rc;

use rperf_perfdata::{EventDesc, Metadata};
use rperf_replay::LiveWorld;
use rperf_resolve::{StackOptions, StackSummary};
use rperf_rewrite::{LiveUnwinder, Transform, UnwindOptions};
use rperf_wire::{Attr, SampleType};

use crate::cli::context::Context;
use crate::cli::stack_folding::stack_options;
use crate::cli::symbols::{own_vdso, search_paths};
use rperf_input::DiskFiles;

/// Maximum number of kernel frames, and separately of user frames, of a callchain, so that both together fit into one record.
const MAX_FRAMES: usize = 2048;

/// Whether the samples of any of the events have stack copies to be unwound, and a callchain to be replaced.
pub(super) fn has_stack_copies(events: &[EventDesc]) -> bool {
    let fields = SampleType::CALLCHAIN | SampleType::REGS_USER | SampleType::STACK_USER;
    let mut attrs = events.iter().map(|event: &EventDesc| &event.attr);
    attrs.any(|attr: &Attr| attr.sample_type.contains(fields))
}

/// Unwinds stack copies into callchains, and keeps statistics.
pub(super) struct CallchainConverter {
    unwinder: LiveUnwinder,
    summary: Rc<RefCell<StackSummary>>,
}

impl CallchainConverter {
    /// Creates the converter for a recording with these events; `summary` receives the statistics.
    pub(super) fn new(
        metadata: Metadata<'_>,
        events: &[EventDesc],
        summary: Rc<RefCell<StackSummary>>,
        context: &Context,
    ) -> Self {
        let options = UnwindOptions {
            files: &DiskFiles,
            paths: search_paths(context, metadata.features),
            vdso: own_vdso(),
            stacks: StackOptions {
                // Only stack copies are converted, not the branch stacks of `--call-graph lbr`.
                has_lbr_call_stacks: false,
                ..stack_options(metadata, Some(MAX_FRAMES))
            },
            jobs: rperf_sys::parallelism(),
        };
        let live = LiveWorld::new(metadata.endian, events);
        Self {
            unwinder: LiveUnwinder::new(live, options),
            summary,
        }
    }
}

impl Transform for CallchainConverter {
    /// Stacks are unwound with the mappings at their time. Some of these may be recorded after the sample; [`Transform::note`]
    /// gets them first.
    fn is_ordered(&self) -> bool {
        true
    }

    fn note(&mut self, records: &[u8]) {
        Transform::note(&mut self.unwinder, records);
    }

    fn note_end(&mut self) {
        Transform::note_end(&mut self.unwinder);
    }

    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        Transform::rewrite(&mut self.unwinder, records, to);
    }

    fn end(&mut self, _to: &mut Vec<u8>) {
        *self.summary.borrow_mut() = StackSummary {
            // Suppresses the hint on --mark-truncated, an option of commands that unwind stack copies for their output, not
            // of inject.
            marked: true,
            ..self.unwinder.summary().clone()
        };
    }
}
