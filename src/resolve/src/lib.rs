//! Resolves sampled addresses to frames, using the World (the processes and mappings at a time) and the symbol tables of the
//! mapped objects.
//!
//! A [`Resolver`] is shared by all threads of an analysis. It loads an object's symbols when the
//! first address in the object is looked up, and demangles a name when it is first displayed; both happen once.
//!
//! The results are those of Linux perf 6.1: the mode (user, kernel or hypervisor) of each callchain address, the treatment
//! of corrupted callchains, the displayed address of a frame.

mod call_stack;
pub mod chain;
mod code;
mod displayed_names;
mod filter;
mod frame;
mod inline;
mod interval;
mod jit;
mod jit_functions;
mod leaf;
mod loaded;
mod object;
mod resolver;
mod truncated;
mod user_stacks;

pub use chain::{bytes_within, chain_addresses};
pub use code::CodeBytes;
pub use filter::{SampleCriteria, SymbolNames};
pub use frame::{AddressContext, Frame, Level, SymbolId};
pub use inline::{CallFrame, SourceLine};
pub use interval::{IntervalError, TimeIntervals};
pub use jit_functions::add_jit_functions;
pub use leaf::{LEAF_REGISTERS, LeafCallerCheck};
pub use loaded::LoadedObjects;
pub use resolver::{ObjectFinding, Resolver};
pub use user_stacks::{
    STACK_FIELDS, StackOptions, StackScratch, StackSummary, TruncatedStacks, UnsampledStack,
    UnwoundFold, UserStacks, completes_callchains, has_lbr_call_stacks,
};
