//! The parts of DWARF that probes need: functions and their inlined instances, line tables,
//! variables, types.
//!
//! A [`CompileUnit`] is a compilation unit with the units that its entries refer to; a [`Die`] is one of
//! its entries.

mod compile_unit;
mod die;
mod entry_points;
mod frame;
mod function;
mod lines;
mod location;
mod types;

pub(crate) use compile_unit::CompileUnit;
pub(crate) use die::Die;
pub(crate) use entry_points::EntryPoints;
pub(crate) use frame::Frames;
pub(crate) use function::{FunctionInstances, Functions, InlinedInstances};
pub(crate) use location::{
    AccessPoint, UnavailableVariable, ValueBase, ValueLocation, locate, relative_to_entry,
    valid_ranges,
};
