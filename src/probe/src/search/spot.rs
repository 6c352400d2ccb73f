//! A place in a function, of its own or inlined.

use crate::dwarf::{Die, Functions, Instances, World};

/// A place in a function.
pub(crate) struct Spot<'w, 'u> {
    /// The function whose code it is.
    pub(crate) function: Die<'w, 'u>,
    /// The function that was asked for.
    pub(crate) scope: Die<'w, 'u>,
    pub(crate) address: u64,
}

impl<'w, 'u> Spot<'w, 'u> {
    /// The place at `address` in the function, inlined or not, of this name; in the innermost where none has it.
    pub(crate) fn around(world: &'w World<'u>, address: u64, name: &str) -> Option<Self> {
        let function = Functions::read(world).around(address)?;
        let is_named = |die: &Die<'w, 'u>| die.name().as_deref() == Some(name);
        let at = Instances::at(&function, address);
        let mut named = at.iter().find(|die| is_named(die)).cloned();
        // The entry of a copy need not be among the addresses that it covers.
        function.walk(&mut |die| {
            let is_copy = die.tag() == gimli::DW_TAG_inlined_subroutine;
            if named.is_none() && is_copy && die.entry_address() == Some(address) && is_named(die) {
                named = Some(die.clone());
            }
            named.is_none()
        });
        let scope = named.or_else(|| at.last().cloned())?;
        Some(Self {
            function,
            scope,
            address,
        })
    }
}
