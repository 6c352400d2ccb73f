//! Disassembly with samples: the data of `annotate`.
//!
//! [`AddressCounts`] folds samples by address; [`SampledFunctions`] groups them by function, each a [`SampledFunction`]; a
//! [`Listing`] has its instructions with samples and source locations; [`Labels`] provide the short
//! disassembly; [`FunctionCode`] is a copy of all of this without references to its inputs.
//!
//! **Invariants.** No code makes it panic. Addresses in a listing are those of the object, as in
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
