//! Replaying recordings: samples with the state of the system at their time.
//!
//! Two passes over the mapped file. Pass 1 ([`Replay::open_on`]) reads record headers, keeps the few
//! records that change state and builds the [`World`], which has the mappings at any time. Pass 2
//! passes samples to the consumer: [`Replay::fold`] in any order, or [`Replay::ordered`] in order
//! of time. Both passes run on several threads. There is no global sort of records and no
//! mutable state that samples depend on.
//!
//! A pipe ([`Stream`]) is read once: the World grows, and samples are delivered as soon as no older
//! record can follow. A [`LiveWorld`] grows in the same way from records in memory.

mod consumers;
mod deferred;
mod diagnostics;
mod dso;
mod error;
mod event_ids;
mod events;
mod fold;
mod group_samples;
mod hash;
mod ids;
mod live_world;
mod non_samples;
mod ordered;
mod ordered_records;
mod prefetch;
mod record_counter;
mod render;
mod replay;
mod rounds;
mod sample;
mod scan;
mod stream;
mod threads;
mod timeline;
mod world;

pub use consumers::{Fold, FoldControl, Render, Take};
pub use diagnostics::{BadRecord, DecodeErrors, Diagnostics};
pub use dso::{Dso, DsoKind, Mapping};
pub use error::Error;
pub use events::{EventTable, SampleHead};
pub use hash::hash;
pub use ids::{CommId, DsoId, EventIndex, Machine, MappingId, Order};
pub use live_world::LiveWorld;
pub use ordered_records::{OrderedRecord, OrderedRecords, RecordContent};
pub use prefetch::BytesRead;
pub use replay::Replay;
pub use rounds::{Rounds, take_up_to};
pub use sample::{NonSampleRecord, Sample};
pub use stream::{STAT_RECORD_KINDS, Stream};
pub use threads::on_threads;
pub use world::{
    CommChange, DsoName, Epoch, OrderRange, RecordedName, RuntimeFunction, ThreadCache, ThreadInfo,
    ThreadKey, ThreadState, VisibleMapping, World, WorldBuilder, kernel_object, perf_map_name,
};
