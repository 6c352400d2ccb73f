//! From the records of a recording to samples that know where they were taken.
//!
//! Two passes over the mapped file. Pass 1 ([`Replay::open`]) walks record headers, keeps the few
//! records that change state and builds the [`World`], which answers "what was mapped there, then".
//! Pass 2 hands samples to the consumer: [`Replay::fold`] in any order on all cores, or
//! [`Replay::ordered`] rendered on all cores and delivered in order of time. There is no global sort
//! of records and no mutable state that samples wait for.
//!
//! What comes through a pipe ([`Stream`]) is read once: the World grows, and samples are delivered as soon as
//! nothing older can follow.

mod ahead;
mod deferred;
mod diagnostics;
mod drive;
mod dso;
mod error;
mod events;
mod fold;
mod growing;
mod hash;
mod ids;
mod off_cpu;
mod ordered;
mod pages;
mod render;
mod replay;
mod rounds;
mod sample;
mod scan;
mod shares;
mod sides;
mod sieve;
mod stream;
mod tally;
mod timeline;
mod turns;
mod world;

pub use ahead::Walked;
pub use diagnostics::{Bad, Diagnostics};
pub use drive::{Flow, Fold, Render, Take};
pub use dso::{Dso, DsoKind, Mapping};
pub use error::Error;
pub use growing::Growing;
pub use hash::hash;
pub use ids::{CommId, DsoId, EventIndex, Machine, MappingId, Order};
pub use off_cpu::OffCpu;
pub use replay::Replay;
pub use rounds::Rounds;
pub use sample::{Sample, SideRecord};
pub use sieve::Sieve;
pub use stream::Stream;
pub use turns::{Turn, Turns, What};
pub use world::{Epoch, Function, Moment, Recent, UserMapping, Who, World, WorldBuilder};
