//! The variables that exist at the places of a definition.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::definition::{Definition, Point};
use crate::dwarf::{Base, Die, Located, Place as Value, World, behind_entry, locate, stretches};
use crate::error::Error;
use crate::filter::NameFilter;
use crate::object::Object;
use crate::register;
use crate::search::{Options, Spot, Visible, all_variables, globals};

/// Which variables are listed, and how.
#[derive(Debug, Clone, Default)]
pub struct VariableOptions {
    /// Global variables too.
    pub externs: bool,
    /// Those that are not at the place but elsewhere in the function too, and where all are.
    pub ranges: bool,
    /// Those with such names.
    pub filter: Option<NameFilter>,
}

/// One place with its variables, sorted as they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The place.
    pub place: Place,
    /// Its variables.
    pub variables: Vec<Variable>,
    /// Names of those that are there but cannot be recorded, each with the reason.
    pub beyond: Vec<(String, String)>,
}

/// A place in a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The function.
    pub function: String,
    /// Bytes behind its entry.
    pub offset: u64,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variable {
    /// Its type in C.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// It stands outside of functions.
    pub is_external: bool,
    /// It can be recorded at the place by its name. Others are listed with ranges alone.
    pub is_here: bool,
    /// Where it is, in bytes behind the entry of the function, where ranges were asked for.
    pub ranges: Vec<(u64, u64)>,
}

/// The variables at every place that `definition` stands for.
///
/// # Errors
///
/// As of [`find`](crate::find).
pub fn variables(
    object: &Object<'_>,
    definition: &Definition,
    options: &Options,
    wanted: &VariableOptions,
) -> Result<Vec<Listed>, Error> {
    let Some(info) = object.sources.info else {
        return match definition.point {
            Point::Marker { .. } => marked(object, definition, options),
            _ => Err(Error::NoDebugInfo {
                path: object.sources.path.to_owned(),
            }),
        };
    };
    // Where a function returns, its variables are those of its entry.
    let mut definition = definition.clone();
    definition.arguments.clear();
    if let Point::Function { place, .. } = &mut definition.point
        && *place == crate::definition::Place::Return
    {
        *place = crate::definition::Place::Offset(0);
    }
    let found = crate::search::find(object, &definition, options)?;
    let mut listed = Vec::new();
    for probe in found.probes {
        let Some(address) = object.address_of(probe.file_offset) else {
            continue;
        };
        info.for_units_at(object.sources.files, address, &mut |unit| {
            let world = World::new(unit);
            match Spot::around(&world, address, &probe.name) {
                Some(spot) => {
                    listed.push(at(object, &world, &spot, wanted));
                    ControlFlow::Break(())
                }
                None => ControlFlow::Continue(()),
            }
        });
    }
    Ok(listed)
}

fn at<'w, 'u>(
    object: &Object<'_>,
    world: &'w World<'u>,
    spot: &Spot<'w, 'u>,
    wanted: &VariableOptions,
) -> Listed {
    let entry = spot.function.entry_address().unwrap_or(spot.address);
    let located = Located {
        function: &spot.function,
        frames: &object.frames,
        address: spot.address,
    };
    let (mut found, mut beyond) = (BTreeSet::new(), Vec::new());
    let filter = wanted.filter.as_ref();
    let mut add = |die: &Die<'w, 'u>, is_external: bool, is_meant: bool| {
        let is_wanted = |name: &String| filter.is_none_or(|filter| filter.matches(name));
        let Some(name) = die.name().filter(is_wanted) else {
            return;
        };
        let place = locate(die, located).ok().filter(|_| !is_external);
        let unreadable = place
            .as_ref()
            .and_then(|place| unreadable_at(object, place));
        let is_here = is_external || (is_meant && place.is_some() && unreadable.is_none());
        let ranges = match wanted.ranges {
            true => relative(die, spot, entry, is_external),
            false => Vec::new(),
        };
        if is_here || !ranges.is_empty() {
            found.insert(Variable {
                kind: die.type_name(),
                name,
                is_external,
                is_here,
                ranges,
            });
        } else if let Some(reason) = unreadable.filter(|_| is_meant) {
            beyond.push((name, reason));
        }
    };
    for Visible { die, is_meant, .. } in all_variables(&spot.scope, spot.address) {
        add(&die, false, is_meant);
    }
    if wanted.externs {
        for die in globals(world) {
            add(&die, true, true);
        }
    }
    Listed {
        place: Place {
            function: spot.function.name().unwrap_or_default(),
            offset: spot.address.wrapping_sub(entry),
        },
        variables: found.into_iter().collect(),
        beyond,
    }
}

/// The values that the program's author marked, where nothing else is known of the places.
fn marked(
    object: &Object<'_>,
    definition: &Definition,
    options: &Options,
) -> Result<Vec<Listed>, Error> {
    let found = crate::search::find(object, definition, options)?;
    let listed = found.probes.into_iter().map(|probe| {
        let function = object.function_at(probe.file_offset);
        let place = match function {
            Some(function) => Place {
                offset: probe.file_offset - function.offset,
                function: function.name,
            },
            None => Place {
                function: probe.symbol,
                offset: 0,
            },
        };
        let values = probe.fields.into_iter().filter_map(|field| {
            Some(Variable {
                kind: field.kind.unwrap_or_default(),
                name: field.name?,
                is_external: false,
                is_here: true,
                ranges: Vec::new(),
            })
        });
        Listed {
            place,
            variables: values.collect(),
            beyond: Vec::new(),
        }
    });
    Ok(listed.collect())
}

/// Why probes cannot record what is at a place.
fn unreadable_at(object: &Object<'_>, place: &Value) -> Option<String> {
    let architecture = object.architecture();
    match place.base {
        Base::Register(register) if register::name(architecture, register).is_none() => {
            Some(register::unreadable(architecture, register))
        }
        _ => None,
    }
}

/// Where a variable is, behind the entry of its function.
fn relative(
    die: &Die<'_, '_>,
    spot: &Spot<'_, '_>,
    entry: u64,
    is_external: bool,
) -> Vec<(u64, u64)> {
    if is_external {
        return Vec::new();
    }
    let everywhere = || spot.function.ranges();
    let places = stretches(die).unwrap_or_else(everywhere);
    behind_entry(places, &spot.function, entry).collect()
}
