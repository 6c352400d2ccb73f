//! A compiled `print fmt`.

use rperf_wire::Endian;

use super::PrintkFormats;
use super::dynamic::dynamic_place;
use super::pointer::Style;
use super::spec::{IntegerSpec, TextSpec};
use crate::{Abi, Field, FormatWarning};

/// Inputs of a sample's text besides its bytes and format.
#[derive(Clone, Copy)]
pub struct PrintContext<'a> {
    /// Resolves the function addresses of `%pS`, `%ps`, `%pF` and `%pf`.
    pub symbols: &'a dyn KernelSymbols,
    /// Strings at kernel addresses, for `%s` of a pointer.
    pub printk: &'a PrintkFormats,
}

/// Kernel symbols by address.
pub trait KernelSymbols {
    /// The symbol that covers `address`, and its first address.
    fn symbol_at(&self, address: u64) -> Option<(&str, u64)>;
}

/// Resolves no symbols: addresses are printed as numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSymbols;

impl KernelSymbols for NoSymbols {
    fn symbol_at(&self, _address: u64) -> Option<(&str, u64)> {
        None
    }
}

/// A compiled `print fmt`, to be evaluated for raw records.
#[derive(Debug, Clone)]
pub struct PrintFmt {
    pub(super) abi: Abi,
    pub(super) pieces: Vec<TextPiece>,
    pub(super) instructions: Vec<Instruction>,
    pub(super) sources: Vec<TextSource>,
    pub(super) entries: Vec<TableEntry>,
    /// All constant text, addressed by [`IndexRange`]s.
    pub(super) text: Vec<u8>,
    /// The fields, which are printed one by one if there is a warning; otherwise empty.
    pub(super) fields: Vec<Field>,
    pub(super) warning: Option<FormatWarning>,
}

/// A conversion with the preceding literal text.
#[derive(Debug, Clone)]
pub(super) struct TextPiece {
    pub(super) before: Literal,
    pub(super) output: ConversionOutput,
}

/// Constant text, with its start stored inline, since most texts are short.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Literal {
    /// Copy of the first bytes; zeros follow a shorter text.
    pub(super) inline: [u8; INLINE_BYTES],
    /// The whole text in [`PrintFmt::text`].
    pub(super) span: IndexRange,
}

/// Number of bytes of constant text stored inline.
pub(super) const INLINE_BYTES: usize = 16;

/// Output of a conversion.
#[derive(Debug, Clone)]
pub(super) enum ConversionOutput {
    /// Nothing: the piece only has the literal text after the last conversion, or its `%p` has an unknown suffix or an unknown
    /// field.
    Nothing,
    Integer {
        number: NumberSource,
        spec: IntegerSpec,
        /// The argument of the `*`: the width or the precision.
        star: Option<NumberSource>,
    },
    Text {
        /// Index in [`PrintFmt::sources`].
        source: usize,
        spec: TextSpec,
        /// The argument of the `*`: the width or the precision.
        star: Option<NumberSource>,
    },
    /// The kernel function at an address: `name+0xoffset` (`%pF`, `%pS`), or `name` (`%pf`, `%ps`).
    Function {
        number: NumberSource,
        with_offset: bool,
    },
    Pointer(NumberSource),
    /// The data that a `%p` with a suffix refers to: a network address, a UUID or a buffer.
    Pointee {
        location: ByteLocation,
        style: Style,
        /// The argument of the `*`: the maximum number of bytes printed of a buffer.
        limit: Option<NumberSource>,
    },
    /// Perf's error text for an unsuitable argument.
    Complaint(IndexRange),
}

/// A range of [`PrintFmt::text`] or of [`PrintFmt::entries`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IndexRange {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A number: constant, in the record, or the result of a range of [`PrintFmt::instructions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberSource {
    Constant(u64),
    Load(Load),
    Instructions { start: u32, end: u32 },
}

/// A number in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) offset: u32,
    pub(super) size: u8,
}

/// The location word of a dynamic field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DynamicField {
    pub(super) offset: u32,
    pub(super) size: u8,
    pub(super) is_relative: bool,
}

impl DynamicField {
    /// Offset and length of the data in `raw`.
    pub(super) fn locate(self, raw: &[u8], endian: Endian) -> (usize, usize) {
        let (offset, size) = (self.offset as usize, usize::from(self.size));
        dynamic_place(raw, offset, size, self.is_relative, endian)
    }
}

/// Location of bytes in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteLocation {
    /// At `offset`; size 0 means the rest of the record.
    Fixed {
        offset: u32,
        size: u32,
    },
    Dynamic(DynamicField),
}

impl ByteLocation {
    /// Offset and length of the bytes in `raw`.
    pub(super) fn resolve(self, raw: &[u8], endian: Endian) -> (usize, usize) {
        match self {
            Self::Fixed { offset, size: 0 } => {
                let offset = offset as usize;
                (offset, raw.len().saturating_sub(offset))
            }
            Self::Fixed { offset, size } => (offset as usize, size as usize),
            Self::Dynamic(dynamic) => dynamic.locate(raw, endian),
        }
    }
}

/// One instruction of the stack machine that evaluates numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    Push(u64),
    Load(Load),
    /// Pops an index, pushes that element of an array.
    Element {
        offset: u32,
        size: u8,
    },
    /// Pops a byte offset (perf does not multiply the index by `size`), pushes the number there in a dynamic array.
    DynamicElement {
        array: DynamicField,
        size: u8,
    },
    DynamicLength(DynamicField),
    DynamicOffset(DynamicField),
    /// Keeps the bits of the mask, which are those of a cast's type; for an element of a cast array, `((u8 *)array)[i]`, those of
    /// the element type.
    Mask(u64),
    Not,
    Complement,
    Binary(Binary),
    /// Pops the false value, the true value and the condition; pushes one of the values.
    Select,
}

/// A binary operator on unsigned 64-bit numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    LogicalOr,
    And,
    LogicalAnd,
    Less,
    LessOrEqual,
    ShiftLeft,
    Greater,
    GreaterOrEqual,
    ShiftRight,
    Equal,
    NotEqual,
    Subtract,
    Add,
    Multiply,
    Divide,
    Remainder,
}

/// Source of the text of a `%s`.
#[derive(Debug, Clone)]
pub(super) enum TextSource {
    Nothing,
    /// A constant argument of the `%s`, in [`PrintFmt::text`]; not a [`Literal`] between conversions.
    Literal(IndexRange),
    /// A field up to the first NUL.
    Field(ByteLocation),
    /// A string in the dynamic data of the record.
    Dynamic(DynamicField),
    /// The address of a kernel string.
    Address(Load),
    /// The names of a number in a table.
    Names {
        value: NumberSource,
        names: ValueTable,
    },
    Hex {
        location: ByteLocation,
        count: NumberSource,
        is_spaced: bool,
    },
    Array {
        location: ByteLocation,
        count: NumberSource,
        element_size: NumberSource,
    },
    Bitmask(DynamicField),
    /// One of two sources, by their indices in [`PrintFmt::sources`].
    Choice {
        condition: NumberSource,
        yes: usize,
        no: usize,
    },
}

/// How a number is converted to names by a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueTable {
    /// The names of all entries whose bits are set in the number, separated by a delimiter (`__print_flags`).
    OfBits {
        table: IndexRange,
        delimiter: IndexRange,
    },
    /// One name for the whole value (`__print_symbolic`).
    OfValues(IndexRange),
}

/// A value and its name; tables are [`IndexRange`]s of [`PrintFmt::entries`].
#[derive(Debug, Clone, Copy)]
pub(super) struct TableEntry {
    pub(super) value: i64,
    pub(super) name: IndexRange,
}

impl PrintFmt {
    /// Why the `print fmt` could not be compiled; `None` if it was. With a warning, the output is
    /// `[FAILED TO PARSE]` and the fields.
    #[must_use]
    pub fn warning(&self) -> Option<&FormatWarning> {
        self.warning.as_ref()
    }

    /// The constant text of `span`.
    pub(super) fn literal(&self, span: IndexRange) -> &[u8] {
        let range = span.start as usize..span.end as usize;
        self.text.get(range).unwrap_or_default()
    }

    /// The entries of `table`.
    pub(super) fn table(&self, table: IndexRange) -> &[TableEntry] {
        let range = table.start as usize..table.end as usize;
        self.entries.get(range).unwrap_or_default()
    }
}
