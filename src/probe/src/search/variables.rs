//! The variables that exist at a place.

use crate::dwarf::{Die, World};

/// The variables and parameters of `scope` and of the blocks in it that cover `address`, outer ones first.
pub(crate) fn visible<'w, 'u>(scope: &Die<'w, 'u>, address: u64) -> Vec<Die<'w, 'u>> {
    let mut found = Vec::new();
    scope.walk(&mut |die| {
        if is_variable(die) {
            found.push(die.clone());
            return false;
        }
        let is_block = matches!(
            die.tag(),
            gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine
        );
        is_block && die.covers(address)
    });
    found
}

/// The variables of the whole unit, those of namespaces too.
pub(crate) fn globals<'w, 'u>(world: &'w World<'u>) -> Vec<Die<'w, 'u>> {
    let mut found = Vec::new();
    let Some(root) = world.root() else {
        return found;
    };
    root.walk(&mut |die| {
        if die.tag() == gimli::DW_TAG_variable && is_variable(die) {
            found.push(die.clone());
        }
        die.tag() == gimli::DW_TAG_namespace
    });
    found
}

/// Whether it is a variable that may be somewhere.
fn is_variable(die: &Die<'_, '_>) -> bool {
    let has = |name| die.find(name).is_some();
    matches!(
        die.tag(),
        gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable
    ) && (has(gimli::DW_AT_location) || has(gimli::DW_AT_const_value) || has(gimli::DW_AT_external))
}
