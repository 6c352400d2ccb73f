//! A probe point in a function, out-of-line or inlined.

use crate::dwarf::{CompileUnit, Die, Functions, InlinedInstances};

/// A probe point in a function.
pub(crate) struct PointInFunction<'w, 'u> {
    /// The function that contains the code.
    pub(crate) function: Die<'w, 'u>,
    /// The function whose variables are visible: `function`, or one inlined into it.
    pub(crate) scope: Die<'w, 'u>,
    pub(crate) address: u64,
}

impl<'w, 'u> PointInFunction<'w, 'u> {
    /// Returns the probe point at `address`; `None` if no function contains `address`. Its scope is the function of this `name`:
    /// the one that contains `address`, or one inlined there. If none has this name, the scope is the innermost one.
    pub(crate) fn point_at(
        compile_unit: &'w CompileUnit<'u>,
        address: u64,
        name: &str,
    ) -> Option<Self> {
        let function = Functions::read(compile_unit).containing(address)?;
        let is_named = |die: &Die<'w, 'u>| die.name().as_deref() == Some(name);
        // From `function` itself to the innermost function inlined at `address`.
        let nested = InlinedInstances::at(&function, address);
        let mut named = nested.iter().find(|die| is_named(die)).cloned();
        // An instance's ranges need not contain its entry, so instances with their entry at `address` are searched, too.
        function.walk(&mut |die| {
            let is_inlined = die.tag() == gimli::DW_TAG_inlined_subroutine;
            if named.is_none()
                && is_inlined
                && die.entry_address() == Some(address)
                && is_named(die)
            {
                named = Some(die.clone());
            }
            named.is_none()
        });
        let scope = named.or_else(|| nested.last().cloned())?;
        Some(Self {
            function,
            scope,
            address,
        })
    }
}
