//! The variables visible at an address.

use std::collections::{BTreeMap, BTreeSet};

use crate::dwarf::{CompileUnit, Die};

/// A variable or parameter visible at an address.
pub(crate) struct VisibleVariable<'w, 'u> {
    pub(crate) die: Die<'w, 'u>,
    /// Its name in the source; `None` if it has no name.
    pub(crate) name: Option<String>,
    /// Whether it belongs to the requested function, and not to one inlined there.
    pub(crate) is_own: bool,
    /// Whether its name refers to it, and not to another variable of that name.
    pub(crate) is_meant: bool,
}

/// Returns the variables of [`all`] to which their name refers, and those without a name.
pub(crate) fn visible<'w, 'u>(scope: &Die<'w, 'u>, address: u64) -> Vec<VisibleVariable<'w, 'u>> {
    let all = all(scope, address).into_iter();
    all.filter(|variable| variable.is_meant).collect()
}

/// Returns the variables and parameters of `scope` and of its blocks that cover `address`, outermost first. As in the source, a
/// name refers to the innermost block that declares it, except at the entry of the function: only parameters are valid there, so
/// the name refers to the outermost. Variables of functions inlined there are used for names that `scope` doesn't declare.
pub(crate) fn all<'w, 'u>(scope: &Die<'w, 'u>, address: u64) -> Vec<VisibleVariable<'w, 'u>> {
    let mut declared = declared(scope, address);
    let is_entry = scope.entry_address() == Some(address);
    let mut meant: BTreeMap<&str, (bool, usize)> = BTreeMap::new();
    for (at, variable) in declared.iter().enumerate() {
        if let Some(name) = &variable.name {
            let best = meant.entry(name).or_insert((variable.is_own, at));
            let is_inner = variable.is_own == best.0 && !(is_entry && variable.is_own);
            if is_inner || (variable.is_own && !best.0) {
                *best = (variable.is_own, at);
            }
        }
    }
    let places: BTreeSet<usize> = meant.into_values().map(|(_, at)| at).collect();
    // A variable optimised out of an instance may only be in its abstract origin.
    let hidden = match declared.iter().all(|variable| variable.is_own) {
        true => BTreeSet::new(),
        false => names_of_origin(scope),
    };
    for (at, variable) in declared.iter_mut().enumerate() {
        variable.is_meant = match &variable.name {
            Some(name) => places.contains(&at) && (variable.is_own || !hidden.contains(name)),
            None => true,
        };
    }
    declared.retain(|variable| may_be_somewhere(&variable.die));
    declared
}

/// Returns all declarations around `address`, outer blocks first.
fn declared<'w, 'u>(scope: &Die<'w, 'u>, address: u64) -> Vec<VisibleVariable<'w, 'u>> {
    let is_lexical_block = |die: &Die<'_, '_>| die.tag() == gimli::DW_TAG_lexical_block;
    let mut own = BTreeSet::new();
    scope.walk(&mut |die| {
        if is_variable(die) {
            own.insert(die.offset().0);
        }
        is_lexical_block(die) && die.covers(address)
    });
    let mut variables = Vec::new();
    scope.walk(&mut |die| {
        if is_variable(die) {
            variables.push(VisibleVariable {
                name: die.name(),
                is_own: own.contains(&die.offset().0),
                is_meant: false,
                die: die.clone(),
            });
        }
        let is_block = is_lexical_block(die) || die.tag() == gimli::DW_TAG_inlined_subroutine;
        is_block && die.covers(address)
    });
    variables
}

/// Returns the names declared in the abstract origin of `scope`.
fn names_of_origin(scope: &Die<'_, '_>) -> BTreeSet<String> {
    let origin = scope.origin();
    let declared = origin.iter().flat_map(Die::children);
    let variables = declared.filter(is_variable);
    variables.filter_map(|die| die.name()).collect()
}

/// Returns the unit's global variables that may have a location, including variables of namespaces.
pub(crate) fn globals<'w, 'u>(compile_unit: &'w CompileUnit<'u>) -> Vec<Die<'w, 'u>> {
    let mut variables = Vec::new();
    let Some(root) = compile_unit.root() else {
        return variables;
    };
    root.walk(&mut |die| {
        if die.tag() == gimli::DW_TAG_variable && may_be_somewhere(die) {
            variables.push(die.clone());
        }
        die.tag() == gimli::DW_TAG_namespace
    });
    variables
}

fn is_variable(die: &Die<'_, '_>) -> bool {
    matches!(
        die.tag(),
        gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable
    )
}

/// Whether the variable may have a location or a constant value.
fn may_be_somewhere(die: &Die<'_, '_>) -> bool {
    let has = |name| die.find(name).is_some();
    has(gimli::DW_AT_location) || has(gimli::DW_AT_const_value) || has(gimli::DW_AT_external)
}
