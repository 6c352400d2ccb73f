//! User stacks out of what a sample carries: the registers at the sample and a copy of the top of the stack
//! (`PERF_SAMPLE_REGS_USER`, `PERF_SAMPLE_STACK_USER`).
//!
//! ```text
//! Snapshot (registers, stack) --Unwinder--> addresses, innermost first, and an Outcome: complete, or cut and why
//!                                  |
//!                     AddressSpace: what code is at an address --> Object: its call frame information
//! ```
//!
//! An [`Unwinder`] belongs to one worker and keeps what it has learnt of each address as a compiled
//! step; [`Object`]s never change and are shared by all workers. The answer is a function of the sample and the objects
//! alone, never of the cache, so that it doesn't depend on the number of threads.
//!
//! **Facts before guesses.** Call frame information (`.eh_frame`, `.debug_frame`, the exception tables of 32-bit Arm) is
//! followed with all registers; then come stretches of code whose effect on the stack is known from their instructions
//! (procedure linkage, signal returns); a frame-pointer chain is the last resort, is believed only where it leads to code,
//! and is counted.
//!
//! **Your duties:** an [`AddressSpace`] whose answers are those of the moment of the sample. **Not for:** callchains that
//! the kernel took, and code of the kernel.
//!
//! No input makes it panic, neither registers, stacks nor object files.

mod arch;
mod arm_program;
mod arm_table;
mod compile;
mod expression;
mod frames;
mod image;
mod leaf;
mod machine;
mod machine_code;
mod object_file;
mod outcome;
mod popped;
mod registers;
mod rescue;
mod space;
mod stack;
mod step;
mod unwinder;

pub use arch::Arch;
pub use leaf::Leaf;
pub use object_file::{Error, Object};
pub use outcome::{Cause, Ending, Outcome};
pub use registers::Registers;
pub use space::{AddressSpace, Code, ModuleId};
pub use stack::Stack;
pub use unwinder::{Snapshot, Unwinder};
