//! Dynamic probes: what a user writes, the places and values it stands for, and the text that creates it.
//!
//! A definition (`FUNC[@SRC][+OFF|%return|:LINE|;PATTERN] ARGUMENT…`) is parsed into a [`Definition`].
//!
//! **Invariants.** No input makes it panic. The crate opens no file, prints nothing and knows nothing of the machine that
//! it runs on.

mod definition;

pub use definition::{
    Argument, Definition, Fault, Member, Place, Point, SourcePlace, Value, parse,
};
