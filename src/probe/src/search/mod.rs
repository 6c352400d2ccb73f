//! The search for a definition's probe points and the values fetched there.

mod access_path;
mod alias;
mod argument;
mod convert;
mod lines;
mod names;
mod point_in_function;
mod raw;
mod source;
mod symbols;
mod unit;
mod unit_query;
mod variables;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::definition::{Definition, Point};
use crate::error::Error;
use crate::field::ProbeField;
use crate::object::ProbeObject;
use argument::FetchedValue;
use unit::UnitSearch;

pub(crate) use access_path::PathValue;
pub(crate) use lines::line_places;
pub(crate) use names::is_wanted;
pub(crate) use point_in_function::PointInFunction;
pub(crate) use raw::{FetchAddress, fields as raw_fields, kernel_text as raw_kernel_text};
pub(crate) use source::{SourceText, is_path_end};
pub(crate) use unit_query::UnitQuery;
pub(crate) use variables::{VariableInScope, all as all_variables, globals};

/// Limits and settings of a search.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// Maximum number of probe points of a definition.
    pub max_probes: usize,
    /// Whether a function given by name is also probed where it is inlined. Lines of inlined functions are always probed.
    pub inlines: bool,
    /// The directory below which source files are searched; `None` to read them at their compile-time paths.
    pub source_root: Option<PathBuf>,
    /// Number of threads that search for compilation units.
    pub threads: NonZeroUsize,
}

impl Default for SearchOptions {
    /// Returns perf's defaults (at most 128 probe points, inlined instances included) and one thread.
    fn default() -> Self {
        Self {
            max_probes: 128,
            inlines: true,
            source_root: None,
            threads: NonZeroUsize::MIN,
        }
    }
}

/// A probe point with the values fetched there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The function that contains the code, empty if unknown; for a USDT marker, `%` and its name.
    pub symbol: String,
    /// Offset from that function's entry in bytes; 0 for a marker or if the function is unknown.
    pub offset: u64,
    /// The function that the definition selects, which may be inlined into `symbol`; a marker's name; `abs_ADDRESS` for an
    /// address.
    pub name: String,
    /// The provider of a USDT marker; `None` for other probe points.
    pub provider: Option<String>,
    /// The file offset; an address for a probe point found in kallsyms.
    pub file_offset: u64,
    /// The USDT semaphore's file offset; `None` if there is none.
    pub semaphore: Option<u64>,
    /// Whether it is a return probe.
    pub is_return: bool,
    /// Whether the named function is inlined here.
    pub is_inlined: bool,
    /// The fetched values.
    pub fields: Vec<ProbeField>,
}

/// A note about a successful search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchNote {
    /// The probe was moved to the end of the prologue, since locations of variables are not valid within it.
    SkippedPrologue {
        /// The entry of the function.
        address: u64,
    },
    /// A variable is unavailable at some of the probe points, which record a placeholder.
    Incomplete {
        /// The argument as written.
        argument: String,
        /// The number of probe points without it.
        places: usize,
    },
    /// A value is too wide to be recorded completely.
    Truncated {
        /// The argument as written.
        argument: String,
    },
    /// The probed function is an IFUNC resolver, which only chooses the implementation that later calls run.
    Indirect {
        /// The function.
        name: String,
        /// Some of its implementations.
        variants: Vec<String>,
    },
    /// Files with split debug information (`.dwo`) are missing.
    MissingSplit {
        /// Number of units that could not be searched.
        units: usize,
    },
}

/// The probe points of a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbePoints {
    /// The probe points; at least one in the result of [`find`].
    pub probes: Vec<Probe>,
    /// Notes for the user.
    pub notes: Vec<SearchNote>,
}

/// Finds the probe points of `definition` in `object`.
///
/// # Errors
///
/// There is no probe point or there are too many, an offset is not at an instruction, debug information or a source file is
/// missing, or a value cannot be fetched.
pub fn find(
    object: &ProbeObject<'_>,
    definition: &Definition,
    options: &SearchOptions,
) -> Result<ProbePoints, Error> {
    if let Point::Marker { provider, name } = &definition.point {
        let provider = provider.as_deref();
        return crate::marker::find(object, provider, name, &definition.arguments);
    }
    if let Point::Address { address, is_return } = definition.point {
        return symbols::at_address(object, definition, address, is_return);
    }
    // Tried in this order, until there are probe points: the debug information, the symbol table, the function's other name in
    // the debug information (alias), PLT entries.
    let mut points = ProbePoints::default();
    if object.inputs.info.is_some() {
        points = in_debug_info(object, definition, options)?;
    } else if definition.needs_debug_info() {
        let path = object.inputs.path.to_owned();
        return Err(Error::NoDebugInfo { path });
    }
    if points.probes.is_empty() && !definition.needs_debug_info() {
        points.probes = symbols::by_symbol(object, definition)?;
    }
    if points.probes.is_empty() {
        points = alias::find(object, definition, options)?;
    }
    if points.probes.is_empty() && !definition.needs_debug_info() {
        points.probes = symbols::plt_entries(object, definition)?;
    }
    points
        .notes
        .extend(alias::ifunc_note(object, &points.probes));
    match points.probes.len() {
        0 => Err(no_point(object, definition)),
        count if count > options.max_probes => Err(Error::TooMany {
            limit: options.max_probes,
        }),
        _ => Ok(points),
    }
}

/// The error if there is no probe point.
fn no_point(object: &ProbeObject<'_>, definition: &Definition) -> Error {
    let nearest = match &definition.point {
        Point::Function { name, .. } => object.nearest(name),
        _ => Vec::new(),
    };
    Error::NoPoint {
        point: definition.point.to_string(),
        nearest,
    }
}

/// A probe point whose values may be unavailable.
pub(crate) struct Candidate {
    pub(crate) probe: Probe,
    pub(crate) values: Vec<FetchedValue>,
}

fn in_debug_info(
    object: &ProbeObject<'_>,
    definition: &Definition,
    options: &SearchOptions,
) -> Result<ProbePoints, Error> {
    let Some(info) = object.inputs.info else {
        return Ok(ProbePoints::default());
    };
    let query = match &definition.point {
        Point::Function { name, file, .. } => UnitQuery {
            function: Some(name),
            file: file.as_deref(),
        },
        Point::File { file, .. } => UnitQuery {
            function: None,
            file: Some(file),
        },
        Point::Address { .. } | Point::Marker { .. } => return Ok(ProbePoints::default()),
    };
    let mut search = UnitSearch::new(object, definition, options);
    let mut failure = None;
    let missing = query.for_each(info, object, options, &mut |compile_unit| match search
        .visit(compile_unit)
    {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let mut points = search.finish()?;
    if missing > 0 {
        points
            .notes
            .push(SearchNote::MissingSplit { units: missing });
    }
    Ok(points)
}
