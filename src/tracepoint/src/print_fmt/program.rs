//! A compiled `print fmt`.

use rperf_wire::Endian;

use super::PrintkFormats;
use super::dynamic::dynamic_place;
use super::pointer::Style;
use super::spec::{IntegerSpec, TextSpec};
use crate::{Abi, Field, Warning};

/// What the text of a sample depends on besides its bytes and its format.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Names the functions that `%pS`, `%ps`, `%pF` and `%pf` point to.
    pub symbols: &'a dyn KernelSymbols,
    /// Strings of the kernel that `%s` of a pointer shows.
    pub printk: &'a PrintkFormats,
}

/// Kernel symbols by address.
pub trait KernelSymbols {
    /// The symbol that covers `address`, and its first address.
    fn symbol_at(&self, address: u64) -> Option<(&str, u64)>;
}

/// Knows no symbol: addresses are printed as numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSymbols;

impl KernelSymbols for NoSymbols {
    fn symbol_at(&self, _address: u64) -> Option<(&str, u64)> {
        None
    }
}

/// A `print fmt`, ready to run over raw records.
#[derive(Debug, Clone)]
pub struct PrintFmt {
    pub(super) abi: Abi,
    pub(super) pieces: Vec<Piece>,
    pub(super) steps: Vec<Step>,
    pub(super) sources: Vec<Source>,
    pub(super) entries: Vec<TableEntry>,
    /// All constant text, cut by [`Span`]s.
    pub(super) text: Vec<u8>,
    /// Fields for the generic form; empty unless there is a warning.
    pub(super) fields: Vec<Field>,
    pub(super) warning: Option<Warning>,
}

/// A conversion with the text before it.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) before: Literal,
    pub(super) output: Output,
}

/// Constant text; the start of it is at hand, since most of it is short.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Literal {
    pub(super) start: [u8; SHORT],
    pub(super) span: Span,
}

/// Bytes of constant text that are copied with one instruction.
pub(super) const SHORT: usize = 16;

/// What a conversion shows.
#[derive(Debug, Clone)]
pub(super) enum Output {
    /// Nothing more: the text before it ends the format.
    Nothing,
    Integer {
        number: Number,
        spec: IntegerSpec,
        star: Option<Number>,
    },
    Text {
        source: usize,
        spec: TextSpec,
        star: Option<Number>,
    },
    Function {
        number: Number,
        with_offset: bool,
    },
    Pointer(Number),
    Address {
        place: Place,
        style: Style,
        limit: Option<Number>,
    },
    /// Perf's error text for an argument that does not fit.
    Complaint(Span),
}

/// A piece of [`PrintFmt::text`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A number: known, in the record, or the result of [`Step`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Constant(u64),
    Load(Load),
    Steps { start: u32, end: u32 },
}

/// A number in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) offset: u32,
    pub(super) size: u8,
}

/// The word of a dynamic field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dynamic {
    pub(super) offset: u32,
    pub(super) size: u8,
    pub(super) is_relative: bool,
}

impl Dynamic {
    /// Offset and length of what the field points to.
    pub(super) fn place(self, raw: &[u8], endian: Endian) -> (usize, usize) {
        let (offset, size) = (self.offset as usize, usize::from(self.size));
        dynamic_place(raw, offset, size, self.is_relative, endian)
    }
}

/// Where bytes lie in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At `offset`; a size of 0 means the rest of the record.
    Fixed {
        offset: u32,
        size: u32,
    },
    Dynamic(Dynamic),
}

impl Place {
    /// Offset and length.
    pub(super) fn resolve(self, raw: &[u8], endian: Endian) -> (usize, usize) {
        match self {
            Self::Fixed { offset, size: 0 } => {
                let offset = offset as usize;
                (offset, raw.len().saturating_sub(offset))
            }
            Self::Fixed { offset, size } => (offset as usize, size as usize),
            Self::Dynamic(dynamic) => dynamic.place(raw, endian),
        }
    }
}

/// One instruction of the stack machine that evaluates numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Push(u64),
    Load(Load),
    /// Pops an index, pushes that element of an array.
    Element {
        offset: u32,
        size: u8,
    },
    /// Pops a count of bytes, pushes the number that far into a dynamic array.
    DynamicElement {
        array: Dynamic,
        size: u8,
    },
    DynamicLength(Dynamic),
    DynamicOffset(Dynamic),
    Mask(u64),
    Not,
    Complement,
    Binary(Binary),
    /// Pops the value if false, the value if true and the condition; pushes one of the values.
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

/// Where the text of a `%s` comes from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Nothing,
    Literal(Span),
    /// Bytes of a field up to the first NUL.
    Field(Place),
    /// A string of the dynamic part of the record.
    Dynamic(Dynamic),
    /// The address of a string of the kernel.
    Address(Load),
    /// What a number is called.
    Names {
        value: Number,
        names: Names,
    },
    Hex {
        place: Place,
        count: Number,
        is_spaced: bool,
    },
    Array {
        place: Place,
        count: Number,
        element_size: Number,
    },
    Bitmask(Dynamic),
    Choice {
        condition: Number,
        yes: usize,
        no: usize,
    },
}

/// How a number gets names out of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Names {
    /// One for each of its bits, with a delimiter between them (`__print_flags`).
    OfBits { table: Span, delimiter: Span },
    /// One for all of it (`__print_symbolic`).
    OfValues(Span),
}

/// A value and its name; tables are [`Span`]s over [`PrintFmt::entries`].
#[derive(Debug, Clone, Copy)]
pub(super) struct TableEntry {
    pub(super) value: i64,
    pub(super) name: Span,
}

impl PrintFmt {
    /// Why the `print fmt` could not be compiled, if so: the output then starts with
    /// `[FAILED TO PARSE]` and lists the fields.
    #[must_use]
    pub fn warning(&self) -> Option<&Warning> {
        self.warning.as_ref()
    }

    /// The constant text of `span`.
    pub(super) fn literal(&self, span: Span) -> &[u8] {
        let range = span.start as usize..span.end as usize;
        self.text.get(range).unwrap_or_default()
    }

    /// The entries of `table`.
    pub(super) fn table(&self, table: Span) -> &[TableEntry] {
        let range = table.start as usize..table.end as usize;
        self.entries.get(range).unwrap_or_default()
    }
}
