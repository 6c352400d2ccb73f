//! Arguments in the kernel's syntax, which need no debug information, such as registers, memory at symbols, the stack, constants.

use object::Architecture;

use crate::definition::{Argument, ArgumentValue, signed_number};
use crate::error::Error;
use crate::field::ProbeField;
use crate::object::{ProbeObject, nearest};
use crate::register;

/// Where values are fetched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchAddress {
    pub(crate) file_offset: u64,
    /// Whether this is a function's first instruction, where parameters are located by the calling convention.
    pub(crate) is_entry: bool,
    /// Whether a return probe fetches the values.
    pub(crate) is_return: bool,
}

/// Returns the fields of the arguments that need no debug information; others are skipped.
pub(crate) fn fields(
    object: &ProbeObject<'_>,
    arguments: &[Argument],
    fetch: FetchAddress,
) -> Result<Vec<ProbeField>, Error> {
    let raw = arguments
        .iter()
        .filter_map(|argument| match &argument.value {
            ArgumentValue::Raw(text) => Some(field(object, argument, text, fetch)),
            _ => None,
        });
    raw.collect()
}

/// Returns the field for an argument whose value is `text`, in the kernel's syntax.
pub(super) fn field(
    object: &ProbeObject<'_>,
    argument: &Argument,
    text: &str,
    fetch: FetchAddress,
) -> Result<ProbeField, Error> {
    let (before, core, after) = parts(text);
    let core = match object.is_kernel() {
        true => checked(object.architecture(), core, fetch.is_return)?.to_owned(),
        false => translate(object, core, fetch)?,
    };
    Ok(ProbeField {
        name: argument.name.clone(),
        base: format!("{before}{core}{after}"),
        // Dereferences are part of the text.
        reads: Vec::new(),
        kind: argument.kind.clone(),
    })
}

/// Splits nested dereferences into prefix, innermost base and suffix: `+8(-16(`, `%bp` and `))`.
fn parts(text: &str) -> (&str, &str, &str) {
    let start = text.rfind('(').map_or(0, |at| at + 1);
    let (before, rest) = text.split_at(start);
    let end = rest.find(')').unwrap_or(rest.len());
    let (core, after) = rest.split_at(end);
    (before, core, after)
}

/// Checks `text`, the value of a kernel probe's argument, and returns it unchanged: the kernel knows its own symbols and
/// parameters.
pub(crate) fn kernel_text(
    architecture: Architecture,
    text: &str,
    is_return: bool,
) -> Result<String, Error> {
    let (_, core, _) = parts(text);
    checked(architecture, core, is_return)?;
    Ok(text.to_owned())
}

/// Rejects registers that the kernel doesn't know, and `$retval` without a return probe. Returns any other `core` unchanged.
fn checked(architecture: Architecture, core: &str, is_return: bool) -> Result<&str, Error> {
    if core.starts_with('%') && !register::is_known(architecture, core) {
        return Err(Error::NoRegister {
            name: core.to_owned(),
            instead: register::kernel_name(architecture, core),
        });
    }
    if core == "$retval" && !is_return {
        return Err(Error::Unsupported {
            message: "$retval is only available where a function returns: write FUNCTION%return"
                .to_owned(),
            known: Vec::new(),
        });
    }
    Ok(core)
}

/// Checks the innermost base of a uprobe's argument, and translates what the kernel supports only in kernel probes: `$argN`
/// and `@SYMBOL`.
fn translate(object: &ProbeObject<'_>, core: &str, fetch: FetchAddress) -> Result<String, Error> {
    let core = checked(object.architecture(), core, fetch.is_return)?;
    if let Some(number) = core.strip_prefix("$arg") {
        return parameter(object, core, number, fetch);
    }
    match core.strip_prefix('@') {
        Some(symbol) if symbol.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
            memory(object, symbol, fetch)
        }
        _ => Ok(core.to_owned()),
    }
}

/// Replaces `$argN`, which the kernel supports only for kernel probes, by the register of that parameter.
fn parameter(
    object: &ProbeObject<'_>,
    core: &str,
    number: &str,
    fetch: FetchAddress,
) -> Result<String, Error> {
    let register_of = |number| register::parameter(object.architecture(), number);
    let register = number.parse().ok().and_then(register_of);
    match register.filter(|_| fetch.is_entry && !fetch.is_return) {
        Some(register) => Ok(register.to_owned()),
        None => Err(Error::Unsupported {
            message: format!(
                "{core} is not available: only the first parameters, which are in registers, and only at the entry of a function"
            ),
            known: Vec::new(),
        }),
    }
}

/// Converts `@SYMBOL[+OFFSET|-OFFSET]` to `@+FILE_OFFSET`, the kernel's syntax for memory of the probed file.
fn memory(object: &ProbeObject<'_>, text: &str, fetch: FetchAddress) -> Result<String, Error> {
    let end = text.find(['+', '-']).unwrap_or(text.len());
    let (symbol, offset) = text.split_at(end);
    let unknown = || {
        let table = object.symbol_table();
        let names: Vec<String> = table
            .iter()
            .map(|(index, _)| table.raw_name(index).to_owned())
            .collect();
        Error::NoSymbol {
            name: symbol.to_owned(),
            path: object.inputs.path.to_owned(),
            nearest: nearest(symbol, &names),
        }
    };
    let distance = match offset {
        "" => 0,
        offset => signed_number(offset).ok_or_else(|| Error::Unsupported {
            message: format!("@{text}: the offset is not a number of bytes"),
            known: Vec::new(),
        })?,
    };
    let address = object.symbol(symbol).ok_or_else(unknown)?;
    // The kernel counts from the start of the file, as if the whole file were mapped like the probed code.
    let code = object.address_of(fetch.file_offset).ok_or_else(unknown)?;
    let place = object.memory_offset(address.wrapping_add_signed(distance), code);
    Ok(format!("@+{:#x}", place.ok_or_else(unknown)?))
}
