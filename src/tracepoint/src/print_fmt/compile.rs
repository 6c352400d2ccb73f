//! Compilation of the expression trees of a `print fmt` to a flat program.

mod number;

use super::eval::STACK;
use super::parse;
use super::pointer::{Style, style_of};
use super::program::{
    ByteLocation, ConversionOutput, DynamicField, INLINE_BYTES, IndexRange, Literal, Load,
    NumberSource, PrintFmt, TableEntry, TextPiece, TextSource, ValueTable,
};
use super::spec::{Base, Conversion, ConversionKind, FormatPart, IntegerSpec, parts};
use super::tree::{Entry, Node, Operation};
use crate::{Abi, Field, Format, FormatWarning};

impl PrintFmt {
    /// Compiles the `print fmt` of `format` for samples of a kernel with this ABI. Never fails: if
    /// the text is not supported, the result has a [`PrintFmt::warning`], and prints a list of the
    /// event's own fields.
    #[must_use]
    pub fn compile(format: &Format, abi: Abi) -> Self {
        let mut compiler = Compiler {
            format,
            program: Self::empty(abi),
            depth: 0,
            max_depth: 0,
        };
        match compiler.print_fmt() {
            Ok(()) => compiler.program,
            Err(warning) => Self {
                fields: format.fields.clone(),
                warning: Some(warning),
                ..Self::empty(abi)
            },
        }
    }

    fn empty(abi: Abi) -> Self {
        Self {
            abi,
            pieces: Vec::new(),
            instructions: Vec::new(),
            sources: Vec::new(),
            entries: Vec::new(),
            text: Vec::new(),
            fields: Vec::new(),
            warning: None,
        }
    }
}

struct Compiler<'a> {
    format: &'a Format,
    program: PrintFmt,
    /// Number of values on the stack after the instructions emitted so far for the current numeric argument.
    depth: usize,
    /// The largest `depth` in all numeric arguments.
    max_depth: usize,
}

/// Removes the casts around an expression.
fn uncast(mut node: &Node) -> &Node {
    while let Node::Cast { operand, .. } = node {
        node = operand;
    }
    node
}

impl Compiler<'_> {
    fn print_fmt(&mut self) -> Result<(), FormatWarning> {
        let (format, arguments) = parse::parse(&self.format.print_fmt)?;
        let mut arguments = arguments.iter();
        let mut before = Vec::new();
        for part in parts(&format)? {
            match part {
                FormatPart::Literal(bytes) => before.extend_from_slice(&bytes),
                FormatPart::Conversion(conversion) => {
                    let output = self.conversion(&conversion, &mut arguments)?;
                    self.piece(&mut before, output);
                }
            }
        }
        if !before.is_empty() {
            self.piece(&mut before, ConversionOutput::Nothing);
        }
        if self.max_depth > STACK {
            return Err(FormatWarning::TooDeep);
        }
        Ok(())
    }

    /// Appends `output` with the preceding literal text in `before`, which is cleared.
    fn piece(&mut self, before: &mut Vec<u8>, output: ConversionOutput) {
        let span = self.text(before);
        // Padded, so that a short text has a first chunk too.
        before.resize(before.len().max(INLINE_BYTES), 0);
        let inline = before.first_chunk().copied().unwrap_or_default();
        before.clear();
        self.program.pieces.push(TextPiece {
            before: Literal { inline, span },
            output,
        });
    }

    /// Compiles a conversion with its arguments, which it takes from `arguments`.
    fn conversion<'n>(
        &mut self,
        conversion: &Conversion,
        arguments: &mut impl Iterator<Item = &'n Node>,
    ) -> Result<ConversionOutput, FormatWarning> {
        let star = match conversion.takes_star {
            true => {
                let argument = arguments.next().ok_or(FormatWarning::TooFewArguments)?;
                Some(self.number(argument))
            }
            false => None,
        };
        let argument = arguments.next().ok_or(FormatWarning::TooFewArguments)?;
        Ok(match &conversion.kind {
            ConversionKind::Integer(spec) => ConversionOutput::Integer {
                number: self.number(argument),
                spec: self.narrowed(*spec, argument),
                star,
            },
            ConversionKind::Text(spec) => ConversionOutput::Text {
                source: self.source(argument)?,
                spec: *spec,
                star,
            },
            ConversionKind::Pointer(suffix) => self.pointer(suffix, argument, star),
        })
    }

    /// Adds constant text to the program.
    fn text(&mut self, bytes: &[u8]) -> IndexRange {
        let start = self.program.text.len() as u32;
        self.program.text.extend_from_slice(bytes);
        let end = self.program.text.len() as u32;
        IndexRange { start, end }
    }

    /// Adds a table of flags or symbols to the program.
    fn table(&mut self, entries: &[Entry]) -> IndexRange {
        let start = self.program.entries.len() as u32;
        for entry in entries {
            let name = self.text(entry.name.as_bytes());
            let value = entry.value;
            self.program.entries.push(TableEntry { value, name });
        }
        let end = self.program.entries.len() as u32;
        IndexRange { start, end }
    }

    fn dynamic(&self, name: &str) -> Result<DynamicField, FormatWarning> {
        let field = self.format.field(name);
        let field = field.ok_or_else(|| FormatWarning::UnknownField(name.to_owned()))?;
        Ok(dynamic_of(field))
    }

    /// Returns the location of the bytes of `REC->field` or `__get_dynamic_array(field)`.
    fn locate(&self, node: &Node) -> Result<ByteLocation, FormatWarning> {
        match uncast(node) {
            Node::DynamicArray(name) => Ok(ByteLocation::Dynamic(self.dynamic(name)?)),
            Node::Field(name) => {
                let field = self.format.field(name);
                let field = field.ok_or_else(|| FormatWarning::UnknownField(name.to_owned()))?;
                Ok(fixed(field))
            }
            _ => Err(FormatWarning::Unexpected {
                expected: "a field",
                found: String::new(),
            }),
        }
    }

    /// Compiles an argument of `%s`; returns its index in [`PrintFmt::sources`].
    fn source(&mut self, node: &Node) -> Result<usize, FormatWarning> {
        let source = match node {
            Node::Atom(text) => TextSource::Literal(self.text(text.as_bytes())),
            Node::Field(name) => self.field_text(name),
            Node::Flags {
                value,
                delimiter,
                table,
            } => TextSource::Names {
                value: self.number(value),
                names: ValueTable::OfBits {
                    delimiter: self.text(delimiter.as_bytes()),
                    table: self.table(table),
                },
            },
            Node::Symbolic { value, table } => TextSource::Names {
                value: self.number(value),
                names: ValueTable::OfValues(self.table(table)),
            },
            Node::Hex {
                bytes,
                count,
                separator,
            } => TextSource::Hex {
                location: self.locate(bytes)?,
                count: self.number(count),
                is_spaced: !separator.is_empty(),
            },
            Node::Array {
                array,
                count,
                element_size,
            } => TextSource::Array {
                location: self.locate(array)?,
                count: self.number(count),
                element_size: self.number(element_size),
            },
            // As with `Node::Field`, an unknown field prints nothing.
            Node::Str(name) => match self.dynamic(name) {
                Ok(dynamic) => TextSource::Dynamic(dynamic),
                Err(_) => TextSource::Nothing,
            },
            Node::Bitmask(name) => TextSource::Bitmask(self.dynamic(name)?),
            Node::Operation(operation) => self.choice(operation)?,
            Node::Null | Node::Cast { .. } | Node::DynamicArray(_) | Node::DynamicLength(_) => {
                TextSource::Nothing
            }
        };
        self.program.sources.push(source);
        Ok(self.program.sources.len() - 1)
    }

    /// Returns the source of a field printed with `%s`: a pointer to a string of the kernel if it has the size of a
    /// `long` and is not an array, otherwise a string in the record. An unknown field prints nothing.
    fn field_text(&self, name: &str) -> TextSource {
        let long_size = usize::from(self.program.abi.long_size);
        match self.format.field(name) {
            Some(field) if !field.is_array && field.size == long_size => {
                TextSource::Address(load_of(field))
            }
            Some(field) => TextSource::Field(fixed(field)),
            None => TextSource::Nothing,
        }
    }

    /// Returns the source of `condition ? yes : no`; any other operation prints nothing.
    fn choice(&mut self, operation: &Operation) -> Result<TextSource, FormatWarning> {
        match (operation.operator.as_str(), &operation.right) {
            ("?", Node::Operation(branches)) => Ok(TextSource::Choice {
                condition: self.number(&operation.left),
                yes: self.source(&branches.left)?,
                no: self.source(&branches.right)?,
            }),
            _ => Ok(TextSource::Nothing),
        }
    }

    /// Makes `%d` print signed fields and array elements of 8 and 16 bits with their sign, as the kernel does. Probes have such
    /// fields (`s8`, `s16`). Linux perf prints them as unsigned.
    fn narrowed(&self, spec: IntegerSpec, argument: &Node) -> IntegerSpec {
        let (name, is_element) = match argument {
            Node::Field(name) => (name, false),
            Node::Operation(operation) if operation.operator == "[" => match &operation.left {
                Node::Field(name) => (name, true),
                _ => return spec,
            },
            _ => return spec,
        };
        let field = self.format.field(name).filter(|field| field.is_signed);
        let size = field.map(|field| match is_element {
            true => field.element_size,
            false => field.size,
        });
        let bits = match size {
            Some(1) => 8,
            Some(2) => 16,
            _ => return spec,
        };
        let is_signed_int = spec.base == Base::Signed && spec.bits == 32;
        IntegerSpec {
            bits: if is_signed_int { bits } else { spec.bits },
            ..spec
        }
    }

    /// Compiles `%p` with the letters of `suffix`.
    fn pointer(
        &mut self,
        suffix: &str,
        node: &Node,
        star: Option<NumberSource>,
    ) -> ConversionOutput {
        let letters = suffix.as_bytes();
        match letters.first() {
            Some(b'F' | b'S') => ConversionOutput::Function {
                number: self.number(node),
                with_offset: true,
            },
            Some(b'f' | b's') => ConversionOutput::Function {
                number: self.number(node),
                with_offset: false,
            },
            Some(_) => self.pointee(letters, uncast(node), star),
            None => ConversionOutput::Pointer(self.number(node)),
        }
    }

    /// Compiles a `%p` that prints the data that its argument refers to. As in perf, `%*ph` takes only dynamic arrays, `%pIS`
    /// dynamic arrays and fields, and the others only fields.
    fn pointee(
        &mut self,
        letters: &[u8],
        node: &Node,
        star: Option<NumberSource>,
    ) -> ConversionOutput {
        let Some((style, required_size, type_name)) = style_of(letters, self.program.abi) else {
            return ConversionOutput::Nothing;
        };
        let takes_dynamic = matches!(style, Style::Socket { .. } | Style::Bytes { .. });
        let location = match node {
            Node::Field(name) if !matches!(style, Style::Bytes { .. }) => {
                match self.format.field(name) {
                    Some(field) => Some(fixed(field)),
                    None => return ConversionOutput::Nothing,
                }
            }
            Node::DynamicArray(name) if takes_dynamic => {
                self.dynamic(name).ok().map(ByteLocation::Dynamic)
            }
            _ => None,
        };
        let complaint = match location {
            None if matches!(style, Style::Socket { .. }) => {
                let kind = node.type_number();
                format!("ARG NOT FIELD NOR DYNAMIC ARRAY BUT TYPE {kind}")
            }
            None => format!("ARG TYPE NOT FIELD BUT {}", node.type_number()),
            Some(ByteLocation::Fixed { size, .. })
                if required_size != 0 && size != required_size =>
            {
                format!("INVALID{type_name}")
            }
            Some(location) => {
                return ConversionOutput::Pointee {
                    location,
                    style,
                    limit: star,
                };
            }
        };
        ConversionOutput::Complaint(self.text(complaint.as_bytes()))
    }
}

fn load_of(field: &Field) -> Load {
    Load {
        offset: field.offset as u32,
        size: field.size as u8,
    }
}

fn dynamic_of(field: &Field) -> DynamicField {
    DynamicField {
        offset: field.offset as u32,
        size: field.size as u8,
        is_relative: field.is_relative,
    }
}

/// Returns the location of the bytes at the field's offset: for a dynamic field, its location word, not its data.
fn fixed(field: &Field) -> ByteLocation {
    ByteLocation::Fixed {
        offset: field.offset as u32,
        size: field.size as u32,
    }
}
