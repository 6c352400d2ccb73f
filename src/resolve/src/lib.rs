//! From sampled addresses to named frames: the time-indexed World joined with the symbol tables of its objects.
//!
//! A [`Resolver`] is shared by all threads of an analysis. It reads an object's symbols when the first frame falls
//! into it, and demangles a name when it is first shown; both happen once, behind locks that cost readers a load.
//!
//! The answers are those of Linux perf 6.1: which mode an address of a callchain is looked up in, what a broken
//! callchain is worth, which address an object's frame shows.

mod call_stack;
mod chain;
mod code;
mod cut;
mod filter;
mod frame;
mod inline;
mod interval;
mod jit;
mod leaf;
mod live;
mod made;
mod object;
mod resolver;
mod shown;
mod user_stacks;

pub use chain::Split;
pub use code::Code;
pub use filter::{Filter, SymbolNames};
pub use frame::{Frame, Level, Place, SymbolId};
pub use inline::{Call, SourceLine};
pub use interval::{IntervalError, Intervals};
pub use jit::add_jit_functions;
pub use leaf::{HiddenCallers, LEAF_REGISTERS};
pub use live::{LiveOptions, LiveStacks};
pub use resolver::{Finding, Known, Resolver};
pub use user_stacks::{
    CutStacks, StackOptions, StackScratch, StackSummary, UnwoundFold, UserStacks,
};
