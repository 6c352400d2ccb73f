//! From the expression trees of a `print fmt` to a flat program.

mod number;

use super::eval::STACK;
use super::parse;
use super::pointer::{Style, style_of};
use super::program::{
    Dynamic, Literal, Load, Names, Number, Output, Piece, Place, PrintFmt, SHORT, Source, Span,
    TableEntry,
};
use super::spec::{Base, Conversion, ConversionKind, IntegerSpec, Part, parts};
use super::tree::{Entry, Node, Operation};
use crate::{Abi, Field, Format, Warning};

impl PrintFmt {
    /// Compiles the `print fmt` of `format` for samples of `machine`. Never fails: a text that is
    /// not understood gives a [`PrintFmt::warning`] and the generic form.
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
            steps: Vec::new(),
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
    /// Values on the stack at this point of the steps, and the most there ever are.
    depth: usize,
    max_depth: usize,
}

/// The operand inside all casts.
fn uncast(mut node: &Node) -> &Node {
    while let Node::Cast { item, .. } = node {
        node = item;
    }
    node
}

impl Compiler<'_> {
    fn print_fmt(&mut self) -> Result<(), Warning> {
        let (format, arguments) = parse::parse(&self.format.print_fmt)?;
        let mut arguments = arguments.iter();
        let mut before = Vec::new();
        for part in parts(&format)? {
            match part {
                Part::Literal(bytes) => before.extend_from_slice(&bytes),
                Part::Conversion(conversion) => {
                    let output = self.conversion(&conversion, &mut arguments)?;
                    self.piece(&mut before, output);
                }
            }
        }
        if !before.is_empty() {
            self.piece(&mut before, Output::Nothing);
        }
        if self.max_depth > STACK {
            return Err(Warning::TooDeep);
        }
        Ok(())
    }

    /// Appends `output` with the text before it, which is taken.
    fn piece(&mut self, before: &mut Vec<u8>, output: Output) {
        let span = self.text(before);
        before.resize(before.len().max(SHORT), 0);
        let start = before.first_chunk().copied().unwrap_or_default();
        before.clear();
        let before = Literal { start, span };
        self.program.pieces.push(Piece { before, output });
    }

    fn conversion<'n>(
        &mut self,
        conversion: &Conversion,
        arguments: &mut impl Iterator<Item = &'n Node>,
    ) -> Result<Output, Warning> {
        let star = match conversion.takes_star {
            true => {
                let argument = arguments.next().ok_or(Warning::TooFewArguments)?;
                Some(self.number(argument))
            }
            false => None,
        };
        let argument = arguments.next().ok_or(Warning::TooFewArguments)?;
        Ok(match &conversion.kind {
            ConversionKind::Integer(spec) => Output::Integer {
                number: self.number(argument),
                spec: self.narrowed(*spec, argument),
                star,
            },
            ConversionKind::Text(spec) => Output::Text {
                source: self.source(argument)?,
                spec: *spec,
                star,
            },
            ConversionKind::Pointer(suffix) => self.pointer(suffix, argument, star),
        })
    }

    fn text(&mut self, bytes: &[u8]) -> Span {
        let start = self.program.text.len() as u32;
        self.program.text.extend_from_slice(bytes);
        let end = self.program.text.len() as u32;
        Span { start, end }
    }

    fn table(&mut self, entries: &[Entry]) -> Span {
        let start = self.program.entries.len() as u32;
        for entry in entries {
            let name = self.text(entry.name.as_bytes());
            let value = entry.value;
            self.program.entries.push(TableEntry { value, name });
        }
        let end = self.program.entries.len() as u32;
        Span { start, end }
    }

    fn dynamic(&self, name: &str) -> Result<Dynamic, Warning> {
        let field = self.format.field(name);
        let field = field.ok_or_else(|| Warning::UnknownField(name.to_owned()))?;
        Ok(dynamic_of(field))
    }

    /// Where the bytes of `REC->field` or `__get_dynamic_array(field)` are.
    fn place(&self, node: &Node) -> Result<Place, Warning> {
        match uncast(node) {
            Node::DynamicArray(name) => Ok(Place::Dynamic(self.dynamic(name)?)),
            Node::Field(name) => {
                let field = self.format.field(name);
                let field = field.ok_or_else(|| Warning::UnknownField(name.to_owned()))?;
                Ok(fixed(field))
            }
            _ => Err(Warning::Unexpected {
                expected: "a field",
                found: String::new(),
            }),
        }
    }

    /// Compiles an argument of `%s`; the result is an index of [`PrintFmt::sources`].
    fn source(&mut self, node: &Node) -> Result<usize, Warning> {
        let source = match node {
            Node::Atom(text) => Source::Literal(self.text(text.as_bytes())),
            Node::Field(name) => self.field(name),
            Node::Flags {
                value,
                delimiter,
                table,
            } => Source::Names {
                value: self.number(value),
                names: Names::OfBits {
                    delimiter: self.text(delimiter.as_bytes()),
                    table: self.table(table),
                },
            },
            Node::Symbolic { value, table } => Source::Names {
                value: self.number(value),
                names: Names::OfValues(self.table(table)),
            },
            Node::Hex {
                bytes,
                count,
                separator,
            } => Source::Hex {
                place: self.place(bytes)?,
                count: self.number(count),
                is_spaced: !separator.is_empty(),
            },
            Node::Array {
                array,
                count,
                element_size,
            } => Source::Array {
                place: self.place(array)?,
                count: self.number(count),
                element_size: self.number(element_size),
            },
            Node::Str(name) => match self.dynamic(name) {
                Ok(dynamic) => Source::Dynamic(dynamic),
                Err(_) => Source::Nothing,
            },
            Node::Bitmask(name) => Source::Bitmask(self.dynamic(name)?),
            Node::Operation(operation) => self.choice(operation)?,
            Node::Null | Node::Cast { .. } | Node::DynamicArray(_) | Node::DynamicLength(_) => {
                Source::Nothing
            }
        };
        self.program.sources.push(source);
        Ok(self.program.sources.len() - 1)
    }

    /// A string in the record, or one of the kernel to which a pointer leads.
    fn field(&self, name: &str) -> Source {
        let long_size = usize::from(self.program.abi.long_size);
        match self.format.field(name) {
            Some(field) if !field.is_array && field.size == long_size => {
                Source::Address(load_of(field))
            }
            Some(field) => Source::Field(fixed(field)),
            None => Source::Nothing,
        }
    }

    fn choice(&mut self, operation: &Operation) -> Result<Source, Warning> {
        match (operation.operator.as_str(), &operation.right) {
            ("?", Node::Operation(branches)) => Ok(Source::Choice {
                condition: self.number(&operation.left),
                yes: self.source(&branches.left)?,
                no: self.source(&branches.right)?,
            }),
            _ => Ok(Source::Nothing),
        }
    }

    /// `%d` of a field that has fewer bits and a sign, which those of probes do (`s8`, `s16`), as the kernel prints it: Linux
    /// perf takes such numbers for positive ones.
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
        let is_wider = spec.base == Base::Signed && spec.bits == 32;
        IntegerSpec {
            bits: if is_wider { bits } else { spec.bits },
            ..spec
        }
    }

    fn pointer(&mut self, suffix: &str, node: &Node, star: Option<Number>) -> Output {
        let letters = suffix.as_bytes();
        match letters.first() {
            Some(b'F' | b'S') => Output::Function {
                number: self.number(node),
                with_offset: true,
            },
            Some(b'f' | b's') => Output::Function {
                number: self.number(node),
                with_offset: false,
            },
            Some(_) => self.address(letters, uncast(node), star),
            None => Output::Pointer(self.number(node)),
        }
    }

    fn address(&mut self, letters: &[u8], node: &Node, star: Option<Number>) -> Output {
        let Some((style, size, name)) = style_of(letters, self.program.abi) else {
            return Output::Nothing;
        };
        let takes_dynamic = matches!(style, Style::Socket { .. } | Style::Bytes { .. });
        let place = match node {
            Node::Field(name) if !matches!(style, Style::Bytes { .. }) => {
                match self.format.field(name) {
                    Some(field) => Some(fixed(field)),
                    None => return Output::Nothing,
                }
            }
            Node::DynamicArray(name) if takes_dynamic => {
                self.dynamic(name).ok().map(Place::Dynamic)
            }
            _ => None,
        };
        let complaint = match place {
            None if matches!(style, Style::Socket { .. }) => {
                let kind = node.type_number();
                format!("ARG NOT FIELD NOR DYNAMIC ARRAY BUT TYPE {kind}")
            }
            None => format!("ARG TYPE NOT FIELD BUT {}", node.type_number()),
            Some(Place::Fixed { size: found, .. }) if size != 0 && found != size => {
                format!("INVALID{name}")
            }
            Some(place) => {
                return Output::Address {
                    place,
                    style,
                    limit: star,
                };
            }
        };
        Output::Complaint(self.text(complaint.as_bytes()))
    }
}

fn load_of(field: &Field) -> Load {
    Load {
        offset: field.offset as u32,
        size: field.size as u8,
    }
}

fn dynamic_of(field: &Field) -> Dynamic {
    Dynamic {
        offset: field.offset as u32,
        size: field.size as u8,
        is_relative: field.is_relative,
    }
}

fn fixed(field: &Field) -> Place {
    Place::Fixed {
        offset: field.offset as u32,
        size: field.size as u32,
    }
}
