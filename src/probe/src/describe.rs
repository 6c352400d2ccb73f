//! Converts a file offset back to a probe point that a user could write.

use std::ops::ControlFlow;

use crate::dwarf::{CompileUnit, Die, Functions, InlinedInstances};
use crate::object::ProbeObject;

/// A probe point: a place in a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeDescription {
    /// The function's name. If `suffix` is a line, the function may be an inlined one; otherwise, for a place in inlined code, it
    /// is the function into which that code is inlined.
    pub function: String,
    /// `:LINE` relative to the function's declaration, or `+BYTES` from its entry; empty at the
    /// entry.
    pub suffix: String,
    /// The source file of the function's declaration; `None` if unknown.
    pub file: Option<String>,
}

/// Describes the location at `file_offset` of the object; `None` if no function is known there.
#[must_use]
pub fn describe(object: &ProbeObject<'_>, file_offset: u64) -> Option<ProbeDescription> {
    let from_debug_info = object.address_of(file_offset).and_then(|address| {
        let mut description = None;
        let info = object.inputs.info?;
        info.for_units_at(object.inputs.files, address, &mut |unit| {
            let compile_unit = CompileUnit::new(unit);
            description = in_unit(&compile_unit, address);
            match description {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        description
    });
    from_debug_info.or_else(|| by_symbol(object, file_offset))
}

fn by_symbol(object: &ProbeObject<'_>, file_offset: u64) -> Option<ProbeDescription> {
    let function = object.function_at(file_offset)?;
    Some(ProbeDescription {
        suffix: byte_suffix(file_offset - function.offset),
        function: function.name,
        file: None,
    })
}

fn byte_suffix(offset: u64) -> String {
    match offset {
        0 => String::new(),
        offset => format!("+{offset}"),
    }
}

fn in_unit(compile_unit: &CompileUnit<'_>, address: u64) -> Option<ProbeDescription> {
    let functions = Functions::read(compile_unit);
    let outer = functions.containing(address)?;
    let entry = outer.entry_address()?;
    let file = outer.declared_file();
    if entry == address {
        return Some(ProbeDescription {
            function: outer.name()?,
            suffix: String::new(),
            file,
        });
    }
    let (inner, call_line) = innermost(&outer, address);
    let location = match call_line {
        // The call is taken to be in the file that declares the caller.
        Some(line) => Some((inner.declared_file(), line)),
        None => compile_unit.lines().at(address).map(|row| {
            let path = compile_unit.lines().file(row.file).map(str::to_owned);
            (path, row.line)
        }),
    };
    // A line relative to a declaration makes sense only in the same file.
    let relative_line = location.and_then(|(path, line)| {
        let declared = inner.declared_line()?;
        (path.is_some() && path == inner.declared_file()).then(|| line.checked_sub(declared))?
    });
    match relative_line {
        Some(line) => Some(ProbeDescription {
            function: inner.name()?,
            suffix: format!(":{line}"),
            file: inner.declared_file(),
        }),
        None => Some(ProbeDescription {
            function: outer.name()?,
            // As in perf, the offset wraps around if `address` is below the entry, for example in a cold part.
            suffix: byte_suffix(address.wrapping_sub(entry)),
            file,
        }),
    }
}

/// Returns the innermost function that contains `address`. As in perf, if an inlined function begins at `address`, returns
/// instead that function's caller, with the line of the call if known.
fn innermost<'w, 'u>(outer: &Die<'w, 'u>, address: u64) -> (Die<'w, 'u>, Option<u32>) {
    let mut innermost = outer.clone();
    // The first item is `outer` itself.
    for inlined in InlinedInstances::at(outer, address).into_iter().skip(1) {
        if inlined.entry_address() == Some(address) {
            return (innermost, inlined.call_line());
        }
        innermost = inlined;
    }
    (innermost, None)
}
