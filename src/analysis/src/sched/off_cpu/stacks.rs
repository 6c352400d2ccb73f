//! The stacks of switches and wakeups, and a table that numbers them.

use std::sync::{Mutex, PoisonError};

use rperf_perfdata::Metadata;
use rperf_replay::{DsoId, Sample, World};
use rperf_resolve::{
    AddressContext, Frame, Level, Resolver, StackOptions, StackScratch, SymbolId, UserStacks,
};
use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashMap;

use crate::PrepareSamples;
use crate::sched::CommonFlags;

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// Its function, if known.
    pub symbol: Option<SymbolId>,
    /// Its object, if known.
    pub dso: Option<DsoId>,
    /// The privilege level of its code.
    pub level: Level,
}

/// The stack of a switch or a wakeup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SwitchStack {
    /// Innermost first.
    pub frames: Box<[StackFrame]>,
    /// Whether the event occurred in an interrupt. If so, `frames` has only kernel frames: the interrupted program is not the
    /// cause.
    pub is_interrupt: bool,
}

impl From<Frame> for StackFrame {
    fn from(frame: Frame) -> Self {
        Self {
            symbol: frame.symbol,
            dso: frame.dso,
            level: frame.level,
        }
    }
}

impl StackFrame {
    fn is_kernel(&self) -> bool {
        matches!(self.level, Level::Kernel | Level::GuestKernel)
    }
}

/// Resolves the stacks of switches and wakeups.
pub struct StackPrepare<'r, 'w> {
    resolver: &'r Resolver<'w>,
    user: UserStacks<'r, 'w>,
    max_stack: usize,
    flags: CommonFlags,
    /// Unwinding states that no thread uses at present.
    unused_scratch: Mutex<Vec<StackScratch>>,
}

impl<'r, 'w> StackPrepare<'r, 'w> {
    /// Returns a resolver of a recording's stacks. At most `max_stack` frames of a stack are kept; `unwinding` are the options
    /// for unwinding user stacks.
    ///
    /// # Errors
    ///
    /// Those of [`Metadata::formats`].
    pub fn new(
        recording: Metadata<'_>,
        resolver: &'r Resolver<'w>,
        unwinding: StackOptions,
        max_stack: usize,
    ) -> Result<Self, rperf_perfdata::Error> {
        Ok(Self {
            resolver,
            user: UserStacks::new(resolver, unwinding),
            max_stack,
            flags: CommonFlags::new(recording)?,
            unused_scratch: Mutex::default(),
        })
    }

    /// Returns the unwinder of user stacks, which has statistics of the samples it has unwound.
    #[must_use]
    pub fn user_stacks(&self) -> &UserStacks<'r, 'w> {
        &self.user
    }

    fn stack(&self, sample: &Sample<'_>) -> SwitchStack {
        let mut scratch = self.take_scratch();
        let unwound = self.user.chain(sample, &mut scratch);
        let mut frames = Vec::new();
        if let Some(chain) = unwound.or(sample.wire.callchain) {
            let at = AddressContext::of(sample);
            self.resolver
                .callchain(at, chain, self.max_stack, &mut frames);
        }
        self.give_back(scratch);
        let is_interrupt = self.flags.is_interrupt(sample);
        let frames = frames.into_iter().map(StackFrame::from);
        SwitchStack {
            frames: frames
                .filter(|frame| !is_interrupt || frame.is_kernel())
                .collect(),
            is_interrupt,
        }
    }

    fn take_scratch(&self) -> StackScratch {
        let mut unused = self
            .unused_scratch
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unused.pop().unwrap_or_default()
    }

    fn give_back(&self, scratch: StackScratch) {
        let mut unused = self
            .unused_scratch
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unused.push(scratch);
    }
}

impl PrepareSamples for StackPrepare<'_, '_> {
    type Detail = SwitchStack;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<SwitchStack> {
        Some(match event? {
            // Switches from the idle task (pid 0) need no stack.
            TypedEvent::SchedSwitch(event) if event.prev_pid() != 0 => self.stack(sample),
            TypedEvent::SchedWakeup(_) => self.stack(sample),
            // Other samples are kept, too, but need no stack.
            _ => SwitchStack::default(),
        })
    }
}

/// The number of a stack in a [`StackTable`]; 0 for the empty stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct StackNumber(u32);

impl StackNumber {
    pub(super) fn get(self) -> usize {
        self.0 as usize
    }
}

/// Unique stacks, numbered in order of their first use.
#[derive(Debug)]
pub(super) struct StackTable {
    numbers: FxHashMap<Box<[StackFrame]>, StackNumber>,
    stacks: Vec<Box<[StackFrame]>>,
}

impl Default for StackTable {
    fn default() -> Self {
        let mut table = Self {
            numbers: FxHashMap::default(),
            stacks: Vec::new(),
        };
        table.add(Box::default());
        table
    }
}

impl StackTable {
    /// Returns the number of a stack, which is added if it is new.
    pub(super) fn add(&mut self, frames: Box<[StackFrame]>) -> StackNumber {
        if let Some(number) = self.numbers.get(&frames) {
            return *number;
        }
        // 2^32 distinct stacks would not fit into memory.
        let number = StackNumber(u32::try_from(self.stacks.len()).unwrap_or(u32::MAX));
        self.stacks.push(frames.clone());
        self.numbers.insert(frames, number);
        number
    }

    pub(super) fn into_stacks(self) -> Vec<Box<[StackFrame]>> {
        self.stacks
    }
}
