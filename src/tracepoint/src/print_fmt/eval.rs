//! Evaluation of a compiled `print fmt` on a raw record.

use rperf_wire::Endian;

use super::digits::{put_integer, put_prefixed_hex, put_start};
use super::generic;
use super::program::{
    Binary, ConversionOutput, INLINE_BYTES, Instruction, Load, NumberSource, PrintContext,
    PrintFmt, TextPiece,
};
use super::strings::TextShape;
use crate::value::read_number;

/// Maximum stack depth; `compile` refuses programs that need more.
pub(super) const STACK: usize = 24;

impl PrintFmt {
    /// Appends the text for the record `raw` (the bytes of `PERF_SAMPLE_RAW`, including padding), as in Linux perf 6.1, except
    /// that `%d` prints signed 8- and 16-bit fields with their sign. Values beyond the end of `raw` are 0 or empty.
    pub fn write(&self, raw: &[u8], context: &PrintContext<'_>, out: &mut Vec<u8>) {
        if self.warning.is_some() {
            out.extend_from_slice(b"[FAILED TO PARSE]");
            generic::write_fields(&self.fields, raw, self.abi, out);
            return;
        }
        for piece in &self.pieces {
            self.write_piece(piece, raw, context, out);
        }
    }

    #[inline]
    fn write_piece(
        &self,
        piece: &TextPiece,
        raw: &[u8],
        context: &PrintContext<'_>,
        out: &mut Vec<u8>,
    ) {
        let length = (piece.before.span.end - piece.before.span.start) as usize;
        if length <= INLINE_BYTES {
            put_start(out, &piece.before.inline, length);
        } else {
            out.extend_from_slice(self.literal(piece.before.span));
        }
        match &piece.output {
            ConversionOutput::Nothing => {}
            ConversionOutput::Integer { number, spec, star } => {
                let star = star.map(|star| self.number(star, raw));
                put_integer(out, self.number(*number, raw), spec, star);
            }
            ConversionOutput::Text { source, spec, star } => {
                let star = star.map(|star| self.number(star, raw));
                let shape = TextShape { spec: *spec, star };
                self.write_source(*source, raw, context, shape, out);
            }
            ConversionOutput::Function {
                number,
                with_offset,
            } => write_function(self.number(*number, raw), *with_offset, context, out),
            ConversionOutput::Pointer(number) => match self.number(*number, raw) {
                0 => out.extend_from_slice(b"(nil)"),
                address => put_prefixed_hex(out, address),
            },
            ConversionOutput::Pointee {
                location,
                style,
                limit,
            } => {
                let limit = limit.map(|limit| self.number(limit, raw));
                self.write_pointee(*location, *style, limit, raw, out);
            }
            ConversionOutput::Complaint(text) => out.extend_from_slice(self.literal(*text)),
        }
    }

    /// The value of `number` in `raw`.
    #[inline]
    pub(super) fn number(&self, number: NumberSource, raw: &[u8]) -> u64 {
        match number {
            NumberSource::Constant(value) => value,
            NumberSource::Load(load) => self.load(load, raw),
            NumberSource::Instructions { start, end } => {
                let instructions = self.instructions.get(start as usize..end as usize);
                run(instructions.unwrap_or_default(), raw, self.abi.endian)
            }
        }
    }

    /// The number at the place of `load` in `raw`.
    #[inline]
    pub(super) fn load(&self, load: Load, raw: &[u8]) -> u64 {
        load_at(load, raw, self.abi.endian)
    }
}

#[inline]
fn load_at(load: Load, raw: &[u8], endian: Endian) -> u64 {
    read_number(raw, load.offset as usize, load.size.into(), endian).unwrap_or(0)
}

/// Appends `name` or `name+0xoffset` of the kernel's function at `address`, or the address if it has no symbol.
fn write_function(address: u64, with_offset: bool, context: &PrintContext<'_>, out: &mut Vec<u8>) {
    let Some((name, start)) = context.symbols.symbol_at(address) else {
        return put_prefixed_hex(out, address);
    };
    out.extend_from_slice(name.as_bytes());
    if with_offset {
        out.push(b'+');
        put_prefixed_hex(out, address.wrapping_sub(start));
    }
}

/// Runs `instructions`, which leave one number on the stack.
fn run(instructions: &[Instruction], raw: &[u8], endian: Endian) -> u64 {
    let mut stack = Stack {
        values: [0; STACK],
        len: 0,
    };
    for instruction in instructions {
        let value = match *instruction {
            Instruction::Push(value) => value,
            Instruction::Load(load) => load_at(load, raw, endian),
            Instruction::Element { offset, size } => {
                let index = stack.pop() as u32;
                let start = offset.wrapping_add(index.wrapping_mul(size.into()));
                read_number(raw, start as usize, size.into(), endian).unwrap_or(0)
            }
            // As in perf, the index is not multiplied by the size: it is an offset in bytes.
            Instruction::DynamicElement { array, size } => {
                let (start, _) = array.locate(raw, endian);
                let start = start.saturating_add(stack.pop() as u32 as usize);
                read_number(raw, start, size.into(), endian).unwrap_or(0)
            }
            Instruction::DynamicLength(dynamic) => dynamic.locate(raw, endian).1 as u64,
            Instruction::DynamicOffset(dynamic) => dynamic.locate(raw, endian).0 as u64,
            Instruction::Mask(mask) => stack.pop() & mask,
            Instruction::Not => u64::from(stack.pop() == 0),
            Instruction::Complement => !stack.pop(),
            Instruction::Binary(operator) => {
                let right = stack.pop();
                operator.apply(stack.pop(), right)
            }
            Instruction::Select => {
                let (no, yes) = (stack.pop(), stack.pop());
                if stack.pop() != 0 { yes } else { no }
            }
        };
        stack.push(value);
    }
    stack.pop()
}

/// Numbers that instructions operate on. Pushing to a full stack has no effect; popping from an empty stack returns an
/// unspecified number. Compiled programs do neither.
struct Stack {
    values: [u64; STACK],
    len: usize,
}

impl Stack {
    #[inline]
    fn push(&mut self, value: u64) {
        if let Some(top) = self.values.get_mut(self.len) {
            *top = value;
            self.len += 1;
        }
    }

    #[inline]
    fn pop(&mut self) -> u64 {
        self.len = self.len.saturating_sub(1);
        self.values.get(self.len).copied().unwrap_or(0)
    }
}

impl Binary {
    /// The result for unsigned numbers; quotient and remainder of a division by zero are 0; shift counts are modulo 64.
    #[inline]
    pub(super) fn apply(self, left: u64, right: u64) -> u64 {
        match self {
            Self::Or => left | right,
            Self::LogicalOr => u64::from(left != 0 || right != 0),
            Self::And => left & right,
            Self::LogicalAnd => u64::from(left != 0 && right != 0),
            Self::Less => u64::from(left < right),
            Self::LessOrEqual => u64::from(left <= right),
            Self::ShiftLeft => left.wrapping_shl(right as u32),
            Self::Greater => u64::from(left > right),
            Self::GreaterOrEqual => u64::from(left >= right),
            Self::ShiftRight => left.wrapping_shr(right as u32),
            Self::Equal => u64::from(left == right),
            Self::NotEqual => u64::from(left != right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Add => left.wrapping_add(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide => left.checked_div(right).unwrap_or(0),
            Self::Remainder => left.checked_rem(right).unwrap_or(0),
        }
    }
}
