//! From an address back to the place that a user would name.

use std::ops::ControlFlow;

use crate::dwarf::{Die, Functions, Instances, World};
use crate::object::Object;

/// A place in source text, or as near to that as it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The function, by its name in the source; one that is inlined there, where the place is in its body.
    pub function: String,
    /// `:LINE` counted from the declaration of the function, or `+BYTES` from its entry; nothing at the entry.
    pub suffix: String,
    /// The source file.
    pub file: Option<String>,
}

/// Describes the place at `file_offset` of the object; `None` where no function is known.
#[must_use]
pub fn describe(object: &Object<'_>, file_offset: u64) -> Option<Described> {
    let in_source = object.address_of(file_offset).and_then(|address| {
        let mut found = None;
        let info = object.sources.info?;
        info.for_units_at(object.sources.files, address, &mut |unit| {
            let world = World::new(unit);
            found = in_unit(&world, address);
            match found {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        found
    });
    in_source.or_else(|| by_symbol(object, file_offset))
}

fn by_symbol(object: &Object<'_>, file_offset: u64) -> Option<Described> {
    let function = object.function_at(file_offset)?;
    Some(Described {
        suffix: bytes(file_offset - function.offset),
        function: function.name,
        file: None,
    })
}

fn bytes(offset: u64) -> String {
    match offset {
        0 => String::new(),
        offset => format!("+{offset}"),
    }
}

fn in_unit(world: &World<'_>, address: u64) -> Option<Described> {
    let functions = Functions::read(world);
    let outer = functions.around(address)?;
    let entry = outer.entry_address()?;
    let file = outer.declared_file();
    if entry == address {
        return Some(Described {
            function: outer.name()?,
            suffix: String::new(),
            file,
        });
    }
    let (inner, call) = innermost(&outer, address);
    let line = match call {
        Some(line) => Some((inner.declared_file(), line)),
        None => world.lines().at(address).map(|row| {
            let path = world.lines().file(row.file).map(str::to_owned);
            (path, row.line)
        }),
    };
    let relative = line.and_then(|(path, line)| {
        let declared = inner.declared_line()?;
        (path.is_some() && path == inner.declared_file()).then(|| line.checked_sub(declared))?
    });
    match relative {
        Some(line) => Some(Described {
            function: inner.name()?,
            suffix: format!(":{line}"),
            file: inner.declared_file(),
        }),
        None => Some(Described {
            function: outer.name()?,
            suffix: bytes(address.wrapping_sub(entry)),
            file,
        }),
    }
}

/// The innermost function whose body `address` is in; at the entry of an inlined one, the function that calls it and the
/// line of the call.
fn innermost<'w, 'u>(outer: &Die<'w, 'u>, address: u64) -> (Die<'w, 'u>, Option<u32>) {
    let mut found = outer.clone();
    for inlined in Instances::at(outer, address).into_iter().skip(1) {
        if inlined.entry_address() == Some(address) {
            return (found, inlined.call_line());
        }
        found = inlined;
    }
    (found, None)
}
