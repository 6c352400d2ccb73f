//! Disassembly with samples: the data of `annotate`.
//!
//! - [`AddressCounts`] folds samples by address.
//! - [`SampledFunctions`] groups the addresses by function, in one [`SampledFunction`] for each.
//! - A [`Listing`] has a function's instructions, with samples and source locations.
//! - [`Labels`] replace addresses in the text of instructions.
//! - [`FunctionCode`] is a copy of a listing without references to its inputs.
//!
//! **Invariants.** No machine code causes a panic. Addresses in a listing are those of the object, as in
//! objdump's output.

mod code;
mod function;
mod hits;
mod labels;
mod line;
mod listing;
mod objdump;

pub use code::{BranchTarget, CodeLocation, CodeSite, FunctionCode, Instruction};
pub use function::{HitCount, SampledFunction, SampledFunctions};
pub use hits::AddressCounts;
pub use labels::{Arrow, Labels};
pub use line::{InstructionLine, LineSite, OperandAddress};
pub use listing::{ListOptions, Listing, NoCode};
pub use objdump::ObjdumpListing;
pub use rperf_insn::InsnFlow;
