//! From a definition to the places it stands for, and what is fetched there.

mod alias;
mod argument;
mod convert;
mod lines;
mod names;
mod raw;
mod source;
mod spot;
mod symbols;
mod unit;
mod variables;
mod walk;
mod wanted;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::definition::{Definition, Point};
use crate::error::Error;
use crate::field::Field;
use crate::object::Object;
use argument::Slot;
use unit::UnitSearch;

pub(crate) use lines::line_places;
pub(crate) use names::is_wanted;
pub(crate) use raw::{Entry, fields as raw_fields, kernel_text as raw_kernel_text};
pub(crate) use source::{SourceText, is_path_end};
pub(crate) use spot::Spot;
pub(crate) use variables::{Visible, all as all_variables, globals};
pub(crate) use walk::Walk;
pub(crate) use wanted::Wanted;

/// What bounds a search.
#[derive(Debug, Clone)]
pub struct Options {
    /// The most places that one definition may stand for.
    pub max_probes: usize,
    /// Whether copies of inlined functions are probed.
    pub inlines: bool,
    /// The folder that source files are below.
    pub source_root: Option<PathBuf>,
    /// How many threads look for the units of compilation that are searched.
    pub threads: NonZeroUsize,
}

impl Default for Options {
    /// As perf has it: 128 places, inlined functions too.
    fn default() -> Self {
        Self {
            max_probes: 128,
            inlines: true,
            source_root: None,
            threads: NonZeroUsize::MIN,
        }
    }
}

/// One place, and what is fetched there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The function whose code it is in; empty where none is known.
    pub symbol: String,
    /// Bytes behind the entry of that function.
    pub offset: u64,
    /// The function that was asked for, which may be inlined into the other one.
    pub name: String,
    /// Who marked the place, for a marker.
    pub provider: Option<String>,
    /// Where it is in the file.
    pub file_offset: u64,
    /// The counter that switches the marker on, by its place in the file.
    pub semaphore: Option<u64>,
    /// Whether the return of the function is probed.
    pub is_return: bool,
    /// Whether the function that was asked for is inlined here.
    pub is_inlined: bool,
    /// What is fetched.
    pub fields: Vec<Field>,
}

/// What is worth knowing about a search that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The probe is behind the instructions that make the stack frame, as variables are not in their places before.
    SkippedPrologue {
        /// The entry of the function.
        address: u64,
    },
    /// A variable is known at some of the places only; a mark is recorded at the others.
    Incomplete {
        /// As it was asked for.
        argument: String,
        /// How many of the places lack it.
        places: usize,
    },
    /// A value is too wide to be recorded as a whole.
    Cut {
        /// As it was asked for.
        argument: String,
    },
    /// What is probed chooses the function that runs, once, when a program starts.
    Indirect {
        /// The function.
        name: String,
        /// Some that may be chosen.
        variants: Vec<String>,
    },
    /// Debug information in other files is not at hand.
    MissingSplit {
        /// How many units lack theirs.
        units: usize,
    },
}

/// The places of a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// At least one.
    pub probes: Vec<Probe>,
    /// What is worth knowing.
    pub notes: Vec<Note>,
}

/// Finds the places that `definition` stands for in `object`.
///
/// # Errors
///
/// There are none, or too many; or what is to be fetched there is not to be had.
pub fn find(
    object: &Object<'_>,
    definition: &Definition,
    options: &Options,
) -> Result<Found, Error> {
    if let Point::Marker { provider, name } = &definition.point {
        let provider = provider.as_deref();
        return crate::marker::find(object, provider, name, &definition.arguments);
    }
    if let Point::Address { address, is_return } = definition.point {
        return symbols::at_address(object, definition, address, is_return);
    }
    let mut found = Found::default();
    if object.sources.info.is_some() {
        found = in_debug_info(object, definition, options)?;
    } else if definition.needs_debug_info() {
        let path = object.sources.path.to_owned();
        return Err(Error::NoDebugInfo { path });
    }
    if found.probes.is_empty() && !definition.needs_debug_info() {
        found.probes = symbols::named(object, definition)?;
    }
    if found.probes.is_empty() {
        found = alias::find(object, definition, options)?;
    }
    if found.probes.is_empty() && !definition.needs_debug_info() {
        found.probes = symbols::called(object, definition)?;
    }
    found.notes.extend(alias::indirect(object, &found.probes));
    match found.probes.len() {
        0 => Err(no_point(object, definition)),
        count if count > options.max_probes => Err(Error::TooMany {
            limit: options.max_probes,
        }),
        _ => Ok(found),
    }
}

/// What is said of a place that is not there.
fn no_point(object: &Object<'_>, definition: &Definition) -> Error {
    let nearest = match &definition.point {
        Point::Function { name, .. } => object.nearest(name),
        _ => Vec::new(),
    };
    Error::NoPoint {
        point: definition.point.to_string(),
        nearest,
    }
}

/// A place whose values may be missing.
pub(crate) struct Candidate {
    pub(crate) probe: Probe,
    pub(crate) slots: Vec<Slot>,
}

fn in_debug_info(
    object: &Object<'_>,
    definition: &Definition,
    options: &Options,
) -> Result<Found, Error> {
    let Some(info) = object.sources.info else {
        return Ok(Found::default());
    };
    let wanted = match &definition.point {
        Point::Function { name, file, .. } => Wanted {
            function: Some(name),
            file: file.as_deref(),
        },
        Point::File { file, .. } => Wanted {
            function: None,
            file: Some(file),
        },
        Point::Address { .. } | Point::Marker { .. } => return Ok(Found::default()),
    };
    let mut search = UnitSearch::new(object, definition, options);
    let mut failure = None;
    let missing = wanted.for_each(
        info,
        object,
        options,
        &mut |world| match search.visit(world) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        },
    );
    if let Some(error) = failure {
        return Err(error);
    }
    let mut found = search.finish()?;
    if missing > 0 {
        found.notes.push(Note::MissingSplit { units: missing });
    }
    Ok(found)
}
