//! The variables in scope at an address.

use std::collections::{BTreeMap, BTreeSet};

use crate::dwarf::{CompileUnit, Die};

/// A variable or parameter whose scope contains an address; another one of the same name may hide it.
pub(crate) struct VariableInScope<'w, 'u> {
    pub(crate) die: Die<'w, 'u>,
    /// Its name in the source; `None` if it has no name.
    pub(crate) name: Option<String>,
    /// Whether it belongs to the scope's function, and not to one inlined into it.
    pub(crate) is_own: bool,
    /// Whether its name refers to it, and not to another variable of that name; true if it has no name. Set by [`all`].
    pub(crate) is_meant: bool,
}

/// Returns the variables of [`all`] to which their name refers, and those without a name.
pub(crate) fn visible<'w, 'u>(scope: &Die<'w, 'u>, address: u64) -> Vec<VariableInScope<'w, 'u>> {
    let all = all(scope, address).into_iter();
    all.filter(|variable| variable.is_meant).collect()
}

/// Returns the variables and parameters of `scope`, and of the blocks and inlined functions in it that cover `address`, outermost
/// first. As in the source, a name refers to the innermost declaration. But at the entry of `scope`, where only its parameters
/// are valid, it refers to the outermost declaration of `scope` itself. A name refers to a variable of an inlined function only
/// if `scope` does not declare the name. Variables that cannot have a value are omitted.
pub(crate) fn all<'w, 'u>(scope: &Die<'w, 'u>, address: u64) -> Vec<VariableInScope<'w, 'u>> {
    let mut declared = declared(scope, address);
    let is_entry = scope.entry_address() == Some(address);
    // For each name, the variable to which it refers: whether it is own, and its index.
    let mut meant: BTreeMap<&str, (bool, usize)> = BTreeMap::new();
    for (index, variable) in declared.iter().enumerate() {
        let Some(name) = &variable.name else {
            continue;
        };
        let is_own = variable.is_own;
        let replaces = match meant.get(name.as_str()) {
            None => true,
            Some((previous_is_own, _)) if *previous_is_own != is_own => is_own,
            Some(_) => !(is_entry && is_own),
        };
        if replaces {
            meant.insert(name, (is_own, index));
        }
    }
    let meant: BTreeSet<usize> = meant.into_values().map(|(_, index)| index).collect();
    // If a variable of `scope` was optimised out, perhaps only the abstract origin declares it. Its name must not refer to a
    // variable of an inlined function instead. If there are no variables of inlined functions, the origin need not be read.
    let hidden = match declared.iter().all(|variable| variable.is_own) {
        true => BTreeSet::new(),
        false => names_of_origin(scope),
    };
    for (index, variable) in declared.iter_mut().enumerate() {
        variable.is_meant = match &variable.name {
            Some(name) => meant.contains(&index) && (variable.is_own || !hidden.contains(name)),
            None => true,
        };
    }
    declared.retain(|variable| may_have_value(&variable.die));
    declared
}

/// Returns the variables declared in `scope` and in the blocks and inlined functions in it that cover `address`, outer blocks
/// first.
fn declared<'w, 'u>(scope: &Die<'w, 'u>, address: u64) -> Vec<VariableInScope<'w, 'u>> {
    let is_lexical_block = |die: &Die<'_, '_>| die.tag() == gimli::DW_TAG_lexical_block;
    // Own variables are those that are reached without a descent into inlined functions.
    let mut own_offsets = BTreeSet::new();
    scope.walk(&mut |die| {
        if is_variable(die) {
            own_offsets.insert(die.offset().0);
        }
        is_lexical_block(die) && die.covers(address)
    });
    let mut variables = Vec::new();
    scope.walk(&mut |die| {
        if is_variable(die) {
            variables.push(VariableInScope {
                name: die.name(),
                is_own: own_offsets.contains(&die.offset().0),
                is_meant: false,
                die: die.clone(),
            });
        }
        let is_block = is_lexical_block(die) || die.tag() == gimli::DW_TAG_inlined_subroutine;
        is_block && die.covers(address)
    });
    variables
}

/// Returns the names of the variables that the abstract origin of `scope` declares outside of blocks.
fn names_of_origin(scope: &Die<'_, '_>) -> BTreeSet<String> {
    let origin = scope.origin();
    let declared = origin.iter().flat_map(Die::children);
    let variables = declared.filter(is_variable);
    variables.filter_map(|die| die.name()).collect()
}

/// Returns the unit's global variables that may have a location or a constant value, including variables of namespaces.
pub(crate) fn globals<'w, 'u>(compile_unit: &'w CompileUnit<'u>) -> Vec<Die<'w, 'u>> {
    let mut variables = Vec::new();
    let Some(root) = compile_unit.root() else {
        return variables;
    };
    root.walk(&mut |die| {
        if die.tag() == gimli::DW_TAG_variable && may_have_value(die) {
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

/// Whether the variable may have a location or a constant value; an external variable may have its location in another unit.
fn may_have_value(die: &Die<'_, '_>) -> bool {
    let has = |name| die.find(name).is_some();
    has(gimli::DW_AT_location) || has(gimli::DW_AT_const_value) || has(gimli::DW_AT_external)
}
