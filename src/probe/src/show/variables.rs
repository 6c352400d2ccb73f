//! The variables available at the probe points of a definition.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::definition::{Definition, FunctionPlace, Point};
use crate::dwarf::{
    AccessPoint, CompileUnit, Die, ValueBase, ValueLocation, locate, relative_to_entry,
    valid_ranges,
};
use crate::error::Error;
use crate::filter::NameFilter;
use crate::object::ProbeObject;
use crate::register;
use crate::search::{PointInFunction, SearchOptions, VariableInScope, all_variables, globals};

/// Selects variables.
#[derive(Debug, Clone, Default)]
pub struct VariableOptions {
    /// Whether to include global variables.
    pub externs: bool,
    /// Whether to include variables available elsewhere in the function, and show all ranges.
    pub ranges: bool,
    /// Filter of names.
    pub filter: Option<NameFilter>,
}

/// A probe point with its variables, sorted for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPoint {
    /// The probe point.
    pub place: ShownPlace,
    /// Its variables.
    pub variables: Vec<Variable>,
    /// Names of unlisted variables in registers that probes cannot read, with the reason.
    pub unrecordable: Vec<(String, String)>,
}

/// A location in a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPlace {
    /// The function.
    pub function: String,
    /// Offset from its entry in bytes.
    pub offset: u64,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variable {
    /// Its type in C; for a value of a USDT marker, the type in the kernel's syntax.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether it is declared outside of functions.
    pub is_external: bool,
    /// Whether it can be recorded by name at the probe point, or is external. Other variables are only listed if ranges are
    /// requested.
    pub is_available: bool,
    /// Its ranges as offsets from the function's entry, if requested.
    pub ranges: Vec<(u64, u64)>,
}

/// Returns the variables at every probe point of `definition`.
///
/// # Errors
///
/// [`Error::NoDebugInfo`], and errors of [`find`](crate::find).
pub fn variables(
    object: &ProbeObject<'_>,
    definition: &Definition,
    options: &SearchOptions,
    wanted: &VariableOptions,
) -> Result<Vec<ListedPoint>, Error> {
    let Some(info) = object.inputs.info else {
        return match definition.point {
            Point::Marker { .. } => marker_points(object, definition, options),
            _ => Err(Error::NoDebugInfo {
                path: object.inputs.path.to_owned(),
            }),
        };
    };
    let mut definition = definition.clone();
    definition.arguments.clear();
    // For a return probe, the variables at the function's entry are listed.
    if let Point::Function { place, .. } = &mut definition.point
        && *place == FunctionPlace::Return
    {
        *place = FunctionPlace::Offset(0);
    }
    let found = crate::search::find(object, &definition, options)?;
    let mut listed = Vec::new();
    for probe in found.probes {
        let Some(address) = object.address_of(probe.file_offset) else {
            continue;
        };
        info.for_units_at(object.inputs.files, address, &mut |unit| {
            let compile_unit = CompileUnit::new(unit);
            match PointInFunction::point_at(&compile_unit, address, &probe.name) {
                Some(point) => {
                    listed.push(listed_point(object, &compile_unit, &point, wanted));
                    ControlFlow::Break(())
                }
                None => ControlFlow::Continue(()),
            }
        });
    }
    Ok(listed)
}

fn listed_point<'w, 'u>(
    object: &ProbeObject<'_>,
    compile_unit: &'w CompileUnit<'u>,
    point: &PointInFunction<'w, 'u>,
    wanted: &VariableOptions,
) -> ListedPoint {
    let entry = point.function.entry_address().unwrap_or(point.address);
    let access_point = AccessPoint {
        function: &point.function,
        frames: &object.frames,
        address: point.address,
    };
    let (mut found, mut unrecordable) = (BTreeSet::new(), Vec::new());
    let filter = wanted.filter.as_ref();
    // `is_meant`: the variable's name refers to it at the probe point, and not to another variable of that name.
    let mut add = |die: &Die<'w, 'u>, is_external: bool, is_meant: bool| {
        let is_wanted = |name: &String| filter.is_none_or(|filter| filter.matches(name));
        let Some(name) = die.name().filter(is_wanted) else {
            return;
        };
        // An external variable needs no location.
        let location = locate(die, access_point).ok().filter(|_| !is_external);
        let unreadable = (location.as_ref()).and_then(|location| unreadable_at(object, location));
        let is_available = is_external || (is_meant && location.is_some() && unreadable.is_none());
        let ranges = match wanted.ranges {
            true => relative(die, point, entry, is_external),
            false => Vec::new(),
        };
        if is_available || !ranges.is_empty() {
            found.insert(Variable {
                kind: die.type_name(),
                name,
                is_external,
                is_available,
                ranges,
            });
        } else if let Some(reason) = unreadable.filter(|_| is_meant) {
            unrecordable.push((name, reason));
        }
    };
    for VariableInScope { die, is_meant, .. } in all_variables(&point.scope, point.address) {
        let is_external = false;
        add(&die, is_external, is_meant);
    }
    if wanted.externs {
        for die in globals(compile_unit) {
            let (is_external, is_meant) = (true, true);
            add(&die, is_external, is_meant);
        }
    }
    ListedPoint {
        place: ShownPlace {
            function: point.function.name().unwrap_or_default(),
            offset: point.address.wrapping_sub(entry),
        },
        variables: found.into_iter().collect(),
        unrecordable,
    }
}

/// Returns the probe points of USDT markers with the markers' values, for an object without debug information.
fn marker_points(
    object: &ProbeObject<'_>,
    definition: &Definition,
    options: &SearchOptions,
) -> Result<Vec<ListedPoint>, Error> {
    let found = crate::search::find(object, definition, options)?;
    let listed = found.probes.into_iter().map(|probe| {
        let function = object.function_at(probe.file_offset);
        let place = match function {
            Some(function) => ShownPlace {
                offset: probe.file_offset - function.offset,
                function: function.name,
            },
            // Without a symbol, the marker is shown as the function: `%` and its name.
            None => ShownPlace {
                function: probe.symbol,
                offset: 0,
            },
        };
        let values = probe.fields.into_iter().filter_map(|field| {
            Some(Variable {
                kind: field.kind.unwrap_or_default(),
                name: field.name?,
                is_external: false,
                is_available: true,
                ranges: Vec::new(),
            })
        });
        ListedPoint {
            place,
            variables: values.collect(),
            unrecordable: Vec::new(),
        }
    });
    Ok(listed.collect())
}

/// Returns why probes cannot read the register at the base of a location; `None` if they can, or if the base is not a register.
fn unreadable_at(object: &ProbeObject<'_>, location: &ValueLocation) -> Option<String> {
    let architecture = object.architecture();
    match location.base {
        ValueBase::Register(register) if register::name(architecture, register).is_none() => {
            Some(register::why_unreadable(architecture, register))
        }
        _ => None,
    }
}

/// Returns the ranges of a variable, relative to `entry`, the entry of the function that contains the code; all ranges of that
/// function if the variable has no location list. Empty for an external variable.
fn relative(
    die: &Die<'_, '_>,
    point: &PointInFunction<'_, '_>,
    entry: u64,
    is_external: bool,
) -> Vec<(u64, u64)> {
    if is_external {
        return Vec::new();
    }
    let everywhere = || point.function.ranges();
    let ranges = valid_ranges(die).unwrap_or_else(everywhere);
    relative_to_entry(ranges, &point.function, entry).collect()
}
