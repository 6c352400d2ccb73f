//! Names of field values in a `print fmt`.

use std::fmt;

use super::parse::arguments_one_by_one;
use super::tree::{Entry, Node, Operation, constant};
use crate::Format;

/// The kernel's names for the values of a field: the table of a `__print_flags` or
/// `__print_symbolic` in its `print fmt`, with the surrounding text.
///
/// ```text
/// REC->prev_state & 0xff ? __print_flags(REC->prev_state & 0xff, "|", { 1, "S" }, …) : "R",  REC->prev_state & 0x100 ? "+" : ""
///                   zero.bits                              mask  delimiter, entries    zero.text               suffix.bits, text
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueNames {
    /// Delimiter between names of bits; `None` if the names are for whole values.
    delimiter: Option<String>,
    mask: u64,
    entries: Vec<Entry>,
    /// Its `text` replaces the names of a value in which none of its `bits` is set.
    zero: Option<BitsText>,
    /// Its `text` follows the names of a value in which at least one of its `bits` is set.
    suffix: Option<BitsText>,
}

/// Text that depends on certain bits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BitsText {
    bits: u64,
    text: String,
}

impl ValueNames {
    /// The names of the values of `field`. `None` if the `print fmt` has no table for it.
    ///
    /// Arguments are parsed separately, so that an unsupported one doesn't affect the others.
    #[must_use]
    pub fn of(format: &Format, field: &str) -> Option<Self> {
        let arguments = arguments_one_by_one(&format.print_fmt);
        let arguments: Vec<Node> = arguments.into_iter().flatten().collect();
        let mut names = arguments.iter().find_map(|node| table(node, field))?;
        names.suffix = arguments.iter().find_map(|node| suffix(node, field));
        Some(names)
    }

    /// Delimiter between names of bits; `None` if the names are for whole values.
    #[must_use]
    pub fn delimiter(&self) -> Option<&str> {
        self.delimiter.as_deref()
    }

    /// The values with their names, in the table's order.
    pub fn entries(&self) -> impl Iterator<Item = (i64, &str)> {
        self.entries
            .iter()
            .map(|entry| (entry.value, entry.name.as_str()))
    }

    /// Mask applied to a value before its names are looked up. The suffix depends on the value without the mask.
    #[must_use]
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Whether the value has a bit that adds the suffix.
    #[must_use]
    pub fn has_suffix(&self, value: u64) -> bool {
        let suffix = self.suffix.as_ref();
        suffix.is_some_and(|suffix| value & suffix.bits != 0)
    }

    /// Writes the names of `value`, and its suffix if it has one. Bits without a name are written as one hexadecimal number,
    /// and so is a whole value without a name.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, value: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        let masked = value & self.mask;
        match (&self.zero, &self.delimiter) {
            (Some(zero), _) if value & zero.bits == 0 => out.write_str(&zero.text)?,
            (_, Some(delimiter)) => self.write_bits(masked, delimiter, out)?,
            (_, None) => self.write_value(masked, out)?,
        }
        match &self.suffix {
            Some(suffix) if value & suffix.bits != 0 => out.write_str(&suffix.text),
            _ => Ok(()),
        }
    }

    fn write_bits(&self, value: u64, delimiter: &str, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut remaining = value;
        for entry in &self.entries {
            let bits = entry.value.cast_unsigned();
            // As in perf, an entry with a negative value is the text for no remaining bits: it ends the names, and is written
            // without a delimiter even after other names.
            if remaining == 0 && entry.value < 0 {
                return out.write_str(&entry.name);
            }
            if entry.value > 0 && remaining & bits == bits {
                if remaining != value {
                    out.write_str(delimiter)?;
                }
                out.write_str(&entry.name)?;
                remaining &= !bits;
            }
        }
        match remaining {
            0 => Ok(()),
            _ if remaining == value => write!(out, "{remaining:#x}"),
            _ => write!(out, "{delimiter}{remaining:#x}"),
        }
    }

    fn write_value(&self, value: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut entries = self.entries.iter();
        match entries.find(|entry| entry.value.cast_unsigned() == value) {
            Some(entry) => out.write_str(&entry.name),
            None => write!(out, "{value:#x}"),
        }
    }
}

/// The table for `field` in `node`.
fn table(node: &Node, field: &str) -> Option<ValueNames> {
    let (value, delimiter, entries) = match node {
        Node::Flags {
            value,
            delimiter,
            table,
        } => (value, Some(delimiter.clone()), table),
        Node::Symbolic { value, table } => (value, None, table),
        Node::Cast { operand, .. } => return table(operand, field),
        Node::Operation(operation) => return conditional(operation, field),
        _ => return None,
    };
    Some(ValueNames {
        delimiter,
        mask: mask(value, field)?,
        entries: entries.clone(),
        zero: None,
        suffix: None,
    })
}

/// Matches `condition ? table : "zero"`. The table is used for any condition, the text only if the condition is `field` or
/// `field & bits`.
fn conditional(operation: &Operation, field: &str) -> Option<ValueNames> {
    let (condition, yes, no) = branches(operation)?;
    let mut names = table(yes, field)?;
    if let (Some(bits), Node::Atom(text)) = (mask(condition, field), no) {
        let text = text.clone();
        names.zero = Some(BitsText { bits, text });
    }
    Some(names)
}

/// Matches `field & bits ? "text" : ""`.
fn suffix(node: &Node, field: &str) -> Option<BitsText> {
    let Node::Operation(operation) = node else {
        return None;
    };
    match branches(operation)? {
        (condition, Node::Atom(text), Node::Atom(nothing)) if nothing.is_empty() => {
            Some(BitsText {
                bits: mask(condition, field)?,
                text: text.clone(),
            })
        }
        _ => None,
    }
}

/// Condition, true branch and false branch of a conditional.
fn branches(operation: &Operation) -> Option<(&Node, &Node, &Node)> {
    match &operation.right {
        Node::Operation(branches) if operation.operator == "?" => {
            Some((&operation.left, &branches.left, &branches.right))
        }
        _ => None,
    }
}

/// The mask of `field` in `node`: all bits for `field` itself, the constant for `field & constant`.
fn mask(node: &Node, field: &str) -> Option<u64> {
    match node {
        Node::Field(name) => (name == field).then_some(u64::MAX),
        Node::Cast { operand, .. } => mask(operand, field),
        Node::Operation(operation) if operation.operator == "&" => {
            let sides = [
                (&operation.left, &operation.right),
                (&operation.right, &operation.left),
            ];
            sides.into_iter().find_map(|(masked, bits)| {
                Some(mask(masked, field)? & constant(bits)?.cast_unsigned())
            })
        }
        _ => None,
    }
}
