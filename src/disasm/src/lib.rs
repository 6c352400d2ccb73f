//! Instructions with the samples that fell on them: what `annotate` shows, as plain data.
//!
//! [`Hits`] folds samples by address; [`Functions`] has them by function, where a [`Function`] is what some events saw of
//! one; a [`Listing`] has its instructions, each with its samples and its place in the source; [`Labels`] tell them in few
//! words; [`Code`] is all of that on its own, without what it was read from.
//!
//! **Invariants.** No code makes it panic. Addresses in a listing are those of the object, as objdump prints them.

mod code;
mod function;
mod hits;
mod labels;
mod line;
mod listing;
mod told;

pub use code::{Code, CodeSite, Goes, Instruction, Landmark};
pub use function::{Function, Functions, Hit};
pub use hits::Hits;
pub use labels::{Arrow, Labels};
pub use line::{Line, Named, Site};
pub use listing::{ListOptions, Listing, NoCode};
pub use rperf_insn::Flow;
pub use told::Told;
