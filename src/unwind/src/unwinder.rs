//! The [`Unwinder`]: frame after frame, with all that was learnt of earlier ones.

use gimli::UnwindContext;
use rperf_wire::PERF_CONTEXT_MAX;
use rustc_hash::FxHashMap;

use crate::Arch;
use crate::machine::Machine;
use crate::outcome::{Cause, Ending, Outcome};
use crate::registers::Registers;
use crate::rescue;
use crate::space::{AddressSpace, ModuleId};
use crate::stack::Stack;
use crate::step::Step;

/// Addresses that are remembered; about 40 MiB. Then everything is learnt anew.
const MAX_REMEMBERED: usize = 1 << 20;

/// What a sample knows of a stack.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The task's architecture.
    pub arch: Arch,
    /// Its registers.
    pub registers: Registers,
    /// The top of its stack.
    pub stack: Stack<'a>,
}

/// Unwinds stacks for one worker.
#[derive(Default)]
pub struct Unwinder {
    /// With the object that each belongs to.
    steps: Vec<(Step, ModuleId)>,
    /// By epoch and [`Spot::key`].
    by_address: FxHashMap<(u64, u64), Found>,
    /// By object and [`Spot::key`] of the offset in its file: the same in all processes.
    by_offset: FxHashMap<(ModuleId, u64), Found>,
    context: Option<Box<UnwindContext<usize>>>,
}

/// What is known of an address.
#[derive(Debug, Clone, Copy)]
enum Found {
    /// An index of [`Unwinder::steps`].
    Step(u32),
    Nothing(Stop),
}

/// Why there is no way on, and where.
#[derive(Debug, Clone, Copy)]
struct Stop {
    cause: Cause,
    module: Option<ModuleId>,
}

impl Stop {
    fn of(cause: Cause) -> Self {
        Self {
            cause,
            module: None,
        }
    }
}

/// The frame that called another.
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

/// Where a frame is looked up.
#[derive(Debug, Clone, Copy)]
struct Spot {
    address: u64,
    /// Whether the instruction there is the next to run. Otherwise it is the last byte of a call.
    exact: bool,
}

impl Spot {
    /// A return address may be the first of the next function, where the called one never returns.
    fn of(ip: u64, exact: bool) -> Self {
        Self {
            address: ip.wrapping_sub(u64::from(!exact)),
            exact,
        }
    }

    fn key(self, address: u64) -> u64 {
        address << 1 | u64::from(self.exact)
    }
}

impl Unwinder {
    /// An unwinder that knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the addresses of the frames of `snapshot` to `out`, innermost first, at most `limit` of them.
    ///
    /// As perf has it, the first is where the sample was taken; of the others it is the return address less one, except
    /// for what a signal interrupted.
    pub fn unwind(
        &mut self,
        snapshot: &Snapshot<'_>,
        space: &impl AddressSpace,
        limit: usize,
        out: &mut Vec<u64>,
    ) -> Outcome {
        self.forget_if_full();
        let mut guessed = 0;
        let ending = self.walk(snapshot, space, limit, out, &mut guessed);
        Outcome { ending, guessed }
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
        let end = out.len().saturating_add(limit);
        let mut registers = snapshot.registers;
        let mut found = self.find(Spot::of(registers.ip, true), arch, space);
        let mut is_innermost = true;
        if limit > 0 && is_address(registers.ip) {
            out.push(registers.ip);
        }
        while out.len() < end {
            let machine = Machine {
                arch,
                registers: &registers,
                stack: &snapshot.stack,
            };
            let interrupted = self.is_signal(found);
            let caller = match self.caller(found, &machine, space, is_innermost) {
                Ok(Some(caller)) => caller,
                Ok(None) => return Ending::Complete,
                Err(Stop { cause, module }) => return Ending::Cut { cause, module },
            };
            *guessed += u32::from(caller.is_guess);
            let caller = caller.registers;
            let cause = match caller.ip {
                0 => return Ending::Complete,
                ip if !is_address(ip) => Some(Cause::Unmapped),
                _ if advances(arch, &registers, &caller, interrupted) => None,
                // The outermost frames of threads say so in their frame pointer, if in nothing else.
                _ if rescue::is_marked_outermost(arch, &registers) => return Ending::Complete,
                _ => Some(Cause::Stuck),
            };
            if let Some(cause) = cause {
                return Ending::Cut {
                    cause,
                    module: None,
                };
            }
            registers = caller;
            is_innermost = false;
            found = self.find(Spot::of(registers.ip, interrupted), arch, space);
            out.push(registers.ip - u64::from(!interrupted));
        }
        Ending::Limit
    }

    /// The caller of a frame; `None` where there is none.
    fn caller(
        &self,
        found: Found,
        machine: &Machine<'_>,
        space: &impl AddressSpace,
        is_innermost: bool,
    ) -> Result<Option<Caller>, Stop> {
        let stop = match found {
            Found::Nothing(stop) => stop,
            Found::Step(index) => {
                let Some((step, module)) = self.steps.get(index as usize) else {
                    return Err(Stop::of(Cause::BadFrameInfo));
                };
                return match step.apply(machine) {
                    Ok(registers) => Ok(registers.map(Caller::certain)),
                    // Other causes lie in the sample.
                    Err(cause) => Err(Stop {
                        cause,
                        module: (cause == Cause::BadFrameInfo).then_some(*module),
                    }),
                };
            }
        };
        let guess = match stop.cause {
            Cause::Unmapped if is_innermost => rescue::after_wild_call(machine, space).map(Some),
            Cause::Unmapped => return Err(stop),
            _ => rescue::by_frame_pointer(machine, space, is_innermost),
        };
        match guess {
            Ok(registers) => Ok(registers.map(Caller::guessed)),
            Err(rescue::NoGuess) => Err(stop),
        }
    }

    fn is_signal(&self, found: Found) -> bool {
        let Found::Step(index) = found else {
            return false;
        };
        self.steps
            .get(index as usize)
            .is_some_and(|(step, _)| step.is_signal)
    }

    #[inline]
    fn find(&mut self, spot: Spot, arch: Arch, space: &impl AddressSpace) -> Found {
        let key = (space.epoch(), spot.key(spot.address));
        if let Some(found) = self.by_address.get(&key) {
            return *found;
        }
        let found = self.look_up(spot, arch, space);
        self.by_address.insert(key, found);
        found
    }

    #[cold]
    fn look_up(&mut self, spot: Spot, arch: Arch, space: &impl AddressSpace) -> Found {
        let Some(code) = space.code_at(spot.address) else {
            return Found::Nothing(Stop::of(Cause::Unmapped));
        };
        let nothing = |cause| {
            let module = Some(code.module);
            Found::Nothing(Stop { cause, module })
        };
        let object = match code.object {
            Ok(object) if object.arch() == arch => object,
            Ok(_) => return nothing(Cause::LostFile),
            Err(cause) => return nothing(cause),
        };
        let key = (code.module, spot.key(code.offset));
        if let Some(found) = self.by_offset.get(&key) {
            return *found;
        }
        let context = self.context.get_or_insert_with(Box::default);
        let found = match object.step(code.offset, spot.exact, context) {
            Ok(step) => {
                let index = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
                self.steps.push((step, code.module));
                Found::Step(index)
            }
            Err(cause) => nothing(cause),
        };
        self.by_offset.insert(key, found);
        found
    }

    /// Only between stacks: steps are referred to by their numbers.
    fn forget_if_full(&mut self) {
        if self.by_address.len().max(self.by_offset.len()) > MAX_REMEMBERED {
            self.by_address.clear();
            self.by_offset.clear();
            self.steps.clear();
        }
    }
}

/// Whether `ip` can stand in a callchain: neither nothing, nor one of the markers between its parts.
fn is_address(ip: u64) -> bool {
    ip != 0 && ip < PERF_CONTEXT_MAX
}

/// Whether the caller's frame lies further out. A signal's handler may have had a stack of its own, and a function
/// without a frame leaves the stack pointer where it was.
fn advances(arch: Arch, frame: &Registers, caller: &Registers, interrupted: bool) -> bool {
    let register = arch.stack_pointer();
    let (Some(from), Some(to)) = (frame.get(register), caller.get(register)) else {
        return false;
    };
    interrupted || to > from || to == from && caller.ip != frame.ip
}
