//! Unwinding of user stacks from the registers and the copy of the stack in a sample
//! (`PERF_SAMPLE_REGS_USER`, `PERF_SAMPLE_STACK_USER`).
//!
//! ```text
//! Snapshot (registers, stack) --Unwinder--> addresses, innermost first, and an UnwindOutcome: complete, or truncated and why
//!                                  |
//!                     AddressSpace: code at an address --> ObjectOffset with FrameInfo: the object's call frame information
//! ```
//!
//! An [`Unwinder`] belongs to one worker. It caches a step for each address: the frame information, compiled to compute the
//! caller's registers quickly. [`FrameInfo`]s are immutable and shared by all workers. The result depends only on the sample, the
//! mappings and the objects, not on the cache, so it doesn't depend on the number of threads.
//!
//! **Facts before heuristics.** Signal returns are recognized by their instructions; the outermost frame of a coroutine by a
//! return address that is the start of a function, with no call before it. For other code, call frame information (`.eh_frame`,
//! `.debug_frame`, the exception tables of 32-bit Arm) is used first; then instructions whose effect on the stack is known (such
//! as PLT entries). Heuristics are the last resort: frame pointers, and the return address of a call to an invalid address. A
//! caller that they find is accepted only if the byte before its address is in a code mapping; the outcome contains the number of
//! such callers ([`UnwindOutcome::guessed`]).
//!
//! **Required:** an [`AddressSpace`] with the mappings at the time of the sample. **Not for:** kernel code, and callchains
//! recorded by the kernel, except for the caller of the innermost function if a callchain lacks it
//! ([`Unwinder::is_caller_missing`], [`Unwinder::caller_of_leaf`]).
//!
//! No input makes the crate panic, whatever the registers, the stack and the object files contain.

mod arch;
mod arm_program;
mod arm_table;
mod compile;
mod epilogue;
mod expression;
mod frames;
mod heuristics;
mod image;
mod leaf;
mod machine;
mod machine_code;
mod object_file;
mod outcome;
mod registers;
mod space;
mod stack;
mod step;
mod unwinder;

pub use arch::Arch;
pub use leaf::LeafSample;
pub use object_file::{Error, FrameInfo};
pub use outcome::{Ending, TruncationCause, UnwindOutcome};
pub use registers::Registers;
pub use space::{AddressSpace, ModuleId, ObjectOffset};
pub use stack::StackBytes;
pub use unwinder::{Snapshot, Unwinder};
