//! What probes need of DWARF: functions and their inlined instances, line tables, variables, types.
//!
//! A [`World`] is one unit of compilation with what its entries refer to in others; a [`Die`] is one entry in it.

mod beginnings;
mod die;
mod frame;
mod function;
mod lines;
mod location;
mod types;
mod world;

pub(crate) use beginnings::Beginnings;
pub(crate) use die::Die;
pub(crate) use frame::Frames;
pub(crate) use function::{Copies, Functions, Instances};
pub(crate) use location::{Base, Located, Place, Trouble, behind_entry, locate, stretches};
pub(crate) use world::World;
