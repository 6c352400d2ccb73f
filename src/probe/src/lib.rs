//! Dynamic probes: what a user writes, the places and values it stands for, and the text that creates it.
//!
//! A definition (`FUNC[@SRC][+OFF|%return|:LINE|;PATTERN] ARGUMENT…`) is parsed into a [`Definition`].
//!
//! **Invariants.** No input makes it panic. The crate opens no file, prints nothing and knows nothing of the machine that
//! it runs on.

mod btf;
mod cached;
mod definition;
mod describe;
mod dwarf;
mod error;
mod event;
mod field;
mod filter;
mod kernel;
mod marker;
mod object;
mod register;
mod search;
mod shape;
mod show;

pub use btf::Btf;
pub use cached::{CachedEntry, cached_entries, heading, keep_entry};
pub use definition::{
    Argument, Definition, Fault, Member, Place, Point, SourcePlace, Value, parse,
};
pub use describe::{Described, describe};
pub use error::Error;
pub use event::{
    Event, Existing, ExistingPlace, KERNEL_GROUP, Target, base_name, distinct_name, group_of,
    group_of_provider,
};
pub use field::{Field, Read};
pub use filter::NameFilter;
pub use kernel::{Kernel, KernelSymbol, KernelSymbols, place_in_kernel};
pub use marker::{Marker, cached_list, markers};
pub use object::{Object, Sources, Symbols};
pub use search::{Found, Note, Options, Probe, find};
pub use show::{
    LineRange, Listed, Place as ShownPlace, ShownLine, Source, Variable, VariableOptions,
    functions, lines, variables,
};
