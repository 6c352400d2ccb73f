//! The [`Unwinder`]: frame by frame, with cached steps.

use gimli::UnwindContext;
use rperf_wire::PERF_CONTEXT_MAX;
use rustc_hash::FxHashMap;

use crate::Arch;
use crate::heuristics;
use crate::machine::FrameState;
use crate::outcome::{Ending, TruncationCause, UnwindOutcome};
use crate::registers::Registers;
use crate::space::{AddressSpace, ModuleId};
use crate::stack::StackBytes;
use crate::step::Step;

/// Number of entries of a cache above which all caches are cleared.
const MAX_CACHED: usize = 1 << 20;

/// A stack may have one frame for each word of its copy in the sample, and this many more, because some functions use no stack.
const FRAMES_WITHOUT_WORDS: usize = 128;

/// Inputs for unwinding a sample's stack.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The task's architecture.
    pub arch: Arch,
    /// Its registers.
    pub registers: Registers,
    /// The top of its stack.
    pub stack: StackBytes<'a>,
}

/// Unwinds stacks for one worker.
#[derive(Default)]
pub struct Unwinder {
    /// Steps, each with its object. A step computes the registers of the caller; [`ModuleId`] is the number of an object.
    steps: Vec<(Step, ModuleId)>,
    /// Results by epoch (the number of a state of the mappings, [`AddressSpace::epoch`]) and [`StepAddress::key`] of the address.
    by_address: FxHashMap<(u64, u64), CachedStep>,
    /// Results by object and [`StepAddress::key`] of the offset in the object's file. They are valid in all processes.
    by_offset: FxHashMap<(ModuleId, u64), CachedStep>,
    context: Option<Box<UnwindContext<usize>>>,
}

/// Cached result for an address.
#[derive(Debug, Clone, Copy)]
enum CachedStep {
    /// An index of [`Unwinder::steps`].
    Step(u32),
    /// There is no step, for this reason.
    None(UnwindStop),
}

/// Why unwinding can't continue, and the object that is the cause, if any.
#[derive(Debug, Clone, Copy)]
struct UnwindStop {
    cause: TruncationCause,
    module: Option<ModuleId>,
}

impl UnwindStop {
    /// A stop without an object that is the cause.
    fn of(cause: TruncationCause) -> Self {
        Self {
            cause,
            module: None,
        }
    }
}

/// The caller of a frame.
struct Caller {
    registers: Registers,
    is_guess: bool,
}

impl Caller {
    fn certain(registers: Registers) -> Self {
        Self {
            registers,
            is_guess: false,
        }
    }

    fn guessed(registers: Registers) -> Self {
        Self {
            registers,
            is_guess: true,
        }
    }
}

/// The address whose unwind information gives the caller of a frame.
#[derive(Debug, Clone, Copy)]
struct StepAddress {
    address: u64,
    /// Whether the instruction at `address` is executed next. Otherwise the address is that of the last byte of a call.
    exact: bool,
}

impl StepAddress {
    /// The address to look up for a frame at `ip`. For a return address it is one less: `ip` may be the start of the next
    /// function if the called function never returns.
    fn of(ip: u64, exact: bool) -> Self {
        Self {
            address: ip.wrapping_sub(u64::from(!exact)),
            exact,
        }
    }

    /// The key of this lookup in the caches. `address` is the absolute address or, in [`Unwinder::by_offset`], the offset in the
    /// object's file.
    fn key(self, address: u64) -> u64 {
        address << 1 | u64::from(self.exact)
    }
}

impl Unwinder {
    /// Creates an unwinder with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the frame addresses of `snapshot` to `out`, innermost first, at most `limit`.
    ///
    /// As in perf, the first address is that of the sample, which is omitted if it is invalid; the others are return addresses
    /// minus one, except in frames interrupted by a signal: their addresses are exact.
    pub fn unwind(
        &mut self,
        snapshot: &Snapshot<'_>,
        space: &impl AddressSpace,
        limit: usize,
        out: &mut Vec<u64>,
    ) -> UnwindOutcome {
        self.clear_if_full();
        let mut guessed = 0;
        let ending = self.walk(snapshot, space, limit, out, &mut guessed);
        UnwindOutcome { ending, guessed }
    }

    fn walk(
        &mut self,
        snapshot: &Snapshot<'_>,
        space: &impl AddressSpace,
        limit: usize,
        out: &mut Vec<u64>,
        guessed: &mut u32,
    ) -> Ending {
        let arch = snapshot.arch;
        let truncated = |cause| Ending::Truncated {
            cause,
            module: None,
        };
        let most_frames = max_frames(&snapshot.stack);
        let end = out.len().saturating_add(limit.min(most_frames));
        let mut registers = snapshot.registers;
        // The sampled instruction is executed next.
        let is_exact = true;
        let mut cached_step = self.find(StepAddress::of(registers.ip, is_exact), arch, space);
        let mut is_innermost = true;
        if limit > 0 && is_address(registers.ip) {
            out.push(registers.ip);
        }
        while out.len() < end {
            let frame = FrameState {
                arch,
                registers: &registers,
                stack: &snapshot.stack,
            };
            let caller_was_interrupted = self.is_signal(cached_step);
            let caller = match self.caller(cached_step, &frame, space, is_innermost) {
                Ok(Some(caller)) => caller,
                Ok(None) => return Ending::Complete,
                Err(UnwindStop { cause, module }) => return Ending::Truncated { cause, module },
            };
            *guessed += u32::from(caller.is_guess);
            let caller = caller.registers;
            match caller.ip {
                0 => return Ending::Complete,
                ip if !is_address(ip) => return truncated(TruncationCause::Unmapped),
                _ if advances(arch, &registers, &caller, caller_was_interrupted) => {}
                // The outermost frame of a thread is marked by a register that is 0.
                _ if heuristics::is_marked_outermost(arch, &registers) => return Ending::Complete,
                _ => return truncated(TruncationCause::Stuck),
            }
            registers = caller;
            is_innermost = false;
            // The instruction at which the signal interrupted the caller is executed next.
            let is_exact = caller_was_interrupted;
            cached_step = self.find(StepAddress::of(registers.ip, is_exact), arch, space);
            out.push(registers.ip - u64::from(!is_exact));
        }
        match limit <= most_frames {
            true => Ending::Limit,
            // There are more frames than the copy can hold.
            false => truncated(TruncationCause::Stuck),
        }
    }

    /// The caller of a frame; `None` if there is none.
    fn caller(
        &self,
        cached_step: CachedStep,
        frame: &FrameState<'_>,
        space: &impl AddressSpace,
        is_innermost: bool,
    ) -> Result<Option<Caller>, UnwindStop> {
        let stop = match cached_step {
            CachedStep::None(stop) => stop,
            CachedStep::Step(index) => return self.apply_step(index, frame),
        };
        let guess = match stop.cause {
            TruncationCause::Unmapped if is_innermost => {
                heuristics::after_invalid_call(frame, space).map(Some)
            }
            TruncationCause::Unmapped => return Err(stop),
            // There is code, but no usable frame information for it.
            _ => heuristics::by_frame_pointer(frame, space, is_innermost),
        };
        match guess {
            Ok(registers) => Ok(registers.map(Caller::guessed)),
            Err(heuristics::NoPlausibleFrame) => Err(stop),
        }
    }

    /// The caller according to the step at `index`; `None` if there is none.
    fn apply_step(&self, index: u32, frame: &FrameState<'_>) -> Result<Option<Caller>, UnwindStop> {
        let Some((step, module)) = self.steps.get(index as usize) else {
            return Err(UnwindStop::of(TruncationCause::BadFrameInfo));
        };
        match step.apply(frame) {
            Ok(registers) => Ok(registers.map(Caller::certain)),
            // Of the causes, only invalid frame information is in the object; the others are in the sample.
            Err(cause) => Err(UnwindStop {
                cause,
                module: (cause == TruncationCause::BadFrameInfo).then_some(*module),
            }),
        }
    }

    /// Whether a frame with this step is a signal frame: its caller was interrupted by the signal.
    fn is_signal(&self, cached_step: CachedStep) -> bool {
        let CachedStep::Step(index) = cached_step else {
            return false;
        };
        self.steps
            .get(index as usize)
            .is_some_and(|(step, _)| step.is_signal)
    }

    /// The step at an address, looked up once.
    #[inline]
    fn find(&mut self, at: StepAddress, arch: Arch, space: &impl AddressSpace) -> CachedStep {
        let key = (space.epoch(), at.key(at.address));
        if let Some(cached_step) = self.by_address.get(&key) {
            return *cached_step;
        }
        let cached_step = self.look_up(at, arch, space);
        self.by_address.insert(key, cached_step);
        cached_step
    }

    #[cold]
    fn look_up(&mut self, at: StepAddress, arch: Arch, space: &impl AddressSpace) -> CachedStep {
        let Some(code) = space.code_at(at.address) else {
            return CachedStep::None(UnwindStop::of(TruncationCause::Unmapped));
        };
        let no_step = |cause| {
            let module = Some(code.module);
            CachedStep::None(UnwindStop { cause, module })
        };
        let frame_info = match code.frame_info {
            Ok(frame_info) if frame_info.arch() == arch => frame_info,
            // The file has another architecture than the task: it is not the one that was mapped.
            Ok(_) => return no_step(TruncationCause::LostFile),
            Err(cause) => return no_step(cause),
        };
        let key = (code.module, at.key(code.offset));
        if let Some(cached_step) = self.by_offset.get(&key) {
            return *cached_step;
        }
        let context = self.context.get_or_insert_with(Box::default);
        let cached_step = match frame_info.step(code.offset, at.exact, context) {
            Ok(step) => {
                let index = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
                self.steps.push((step, code.module));
                CachedStep::Step(index)
            }
            Err(cause) => no_step(cause),
        };
        self.by_offset.insert(key, cached_step);
        cached_step
    }

    /// Clears the caches if one is full. Only called between stacks: during a walk, a step is referred to by its index.
    fn clear_if_full(&mut self) {
        if self.by_address.len().max(self.by_offset.len()) > MAX_CACHED {
            self.by_address.clear();
            self.by_offset.clear();
            self.steps.clear();
        }
    }
}

/// Whether `ip` is valid in a callchain: not 0 and not a context marker.
fn is_address(ip: u64) -> bool {
    ip != 0 && ip < PERF_CONTEXT_MAX
}

/// The maximum number of frames in a copy of a stack. Without this maximum, unwinding might only end at the `limit` of
/// [`Unwinder::unwind`], as a damaged object may describe an endless chain of frames: signal frames that return to themselves, or
/// frames of which each increases the stack pointer, but reads nothing from the stack.
fn max_frames(stack: &StackBytes<'_>) -> usize {
    const SMALLEST_WORD: usize = 4;
    (stack.bytes.len() / SMALLEST_WORD).saturating_add(FRAMES_WITHOUT_WORDS)
}

/// Whether the caller's frame is further out than `frame`. A signal handler may have a separate stack, so any caller that was
/// interrupted by a signal is accepted. A function that uses no stack doesn't move the stack pointer: its caller is accepted if
/// only the address differs.
fn advances(
    arch: Arch,
    frame: &Registers,
    caller: &Registers,
    caller_was_interrupted: bool,
) -> bool {
    let register = arch.stack_pointer();
    let (Some(from), Some(to)) = (frame.get(register), caller.get(register)) else {
        return false;
    };
    caller_was_interrupted || to > from || to == from && caller.ip != frame.ip
}
