//! Dynamic probes: definitions, the probe points and values they select, and the lines that create
//! the events in `kprobe_events` and `uprobe_events`.
//!
//! **Invariants.** No input causes a panic. The crate opens no files, prints nothing and does not
//! depend on the host.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod cached;
mod definition;
mod describe;
mod dwarf;
mod error;
mod event;
mod field;
mod filter;
mod kernel;
mod kernel_types;
mod marker;
mod object;
mod register;
mod search;
mod shape;
mod show;

pub use cached::{CachedEntry, cached_entries, heading, put_entry};
pub use definition::{
    Argument, ArgumentValue, Definition, FunctionPlace, Member, Point, SourcePlace, SyntaxError,
    parse,
};
pub use describe::{ProbeDescription, describe};
pub use error::Error;
pub use event::{
    ExistingEvent, ExistingTarget, KERNEL_GROUP, ProbeEvent, ProbeTarget, base_name, distinct_name,
    group_of, group_of_provider,
};
pub use field::{Dereference, ProbeField};
pub use filter::NameFilter;
pub use kernel::{Kernel, KernelSymbol, KernelSymbolList, kernel_image_target};
pub use marker::{Marker, marker_cache_text, markers};
pub use object::{ObjectInputs, ProbeObject, Symbols};
pub use search::{Probe, ProbePoints, SearchNote, SearchOptions, find};
pub use show::{
    LineRange, ListedPoint, ShownLine, ShownPlace, SourceRange, Variable, VariableOptions,
    functions, lines, variables,
};
