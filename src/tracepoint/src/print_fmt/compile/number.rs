//! Compilation of numeric arguments to instructions of a stack machine, with constant folding.

use super::{Compiler, dynamic_of, load_of, uncast};
use crate::print_fmt::program::{Binary, DynamicField, Instruction, Load, NumberSource};
use crate::print_fmt::tree::{Node, Operation, cast_mask, number_prefix};
use crate::{Abi, Field};

impl Compiler<'_> {
    /// Compiles a numeric argument. A single constant or load needs no instructions.
    pub(super) fn number(&mut self, node: &Node) -> NumberSource {
        let start = self.program.instructions.len();
        self.depth = 0;
        self.emit_value(node);
        let number = match self.program.instructions.get(start..) {
            Some(&[Instruction::Push(value)]) => NumberSource::Constant(value),
            Some(&[Instruction::Load(load)]) => NumberSource::Load(load),
            _ => {
                let end = self.program.instructions.len() as u32;
                let start = start as u32;
                return NumberSource::Instructions { start, end };
            }
        };
        self.program.instructions.truncate(start);
        number
    }

    /// Appends an instruction that pops `pops` values from the stack and pushes one. Unary and binary
    /// operations on constants are folded, and an element of a static array with a constant index becomes a load.
    fn emit(&mut self, instruction: Instruction, pops: usize) {
        self.depth = (self.depth + 1).saturating_sub(pops);
        self.max_depth = self.max_depth.max(self.depth);
        let instructions = &mut self.program.instructions;
        if let (Instruction::Element { offset, size }, [.., Instruction::Push(index)]) =
            (instruction, instructions.as_slice())
        {
            let offset = offset.wrapping_add((*index as u32).wrapping_mul(size.into()));
            instructions.pop();
            instructions.push(Instruction::Load(Load { offset, size }));
            return;
        }
        let folded = match (instruction, instructions.as_slice()) {
            (Instruction::Mask(mask), [.., Instruction::Push(value)]) => Some(value & mask),
            (Instruction::Not, [.., Instruction::Push(value)]) => Some(u64::from(*value == 0)),
            (Instruction::Complement, [.., Instruction::Push(value)]) => Some(!value),
            (
                Instruction::Binary(operator),
                [.., Instruction::Push(left), Instruction::Push(right)],
            ) => Some(operator.apply(*left, *right)),
            _ => None,
        };
        match folded {
            Some(value) => {
                instructions.truncate(instructions.len() - pops);
                instructions.push(Instruction::Push(value));
            }
            None => instructions.push(instruction),
        }
    }

    /// Appends the instructions that leave the value of `node` on the stack.
    fn emit_value(&mut self, node: &Node) {
        match node {
            Node::Atom(text) => self.emit(Instruction::Push(number_prefix(text)), 0),
            Node::Field(name) => match self.format.field(name) {
                Some(field) if matches!(field.size, 1 | 2 | 4 | 8) => {
                    self.emit(Instruction::Load(load_of(field)), 0);
                }
                _ => self.emit(Instruction::Push(0), 0),
            },
            Node::Cast { type_name, operand } => {
                self.emit_value(operand);
                let mask = cast_mask(type_name);
                if mask != u64::MAX {
                    self.emit(Instruction::Mask(mask), 1);
                }
            }
            Node::DynamicLength(name) => self.emit_dynamic(name, Instruction::DynamicLength),
            Node::DynamicArray(name) => self.emit_dynamic(name, Instruction::DynamicOffset),
            Node::Operation(operation) => self.operation(operation),
            // `Null`, the left side of a unary `+` or `-`, is 0. The value of helpers that print text is 0 too.
            _ => self.emit(Instruction::Push(0), 0),
        }
    }

    fn emit_dynamic(&mut self, name: &str, make: fn(DynamicField) -> Instruction) {
        let instruction = self.dynamic(name).map_or(Instruction::Push(0), make);
        self.emit(instruction, 0);
    }

    fn operation(&mut self, operation: &Operation) {
        match (operation.operator.as_str(), &operation.right) {
            // The right side of `?` is the operation `:`, which has both results.
            ("?", Node::Operation(branches)) => {
                self.emit_value(&operation.left);
                self.emit_value(&branches.left);
                self.emit_value(&branches.right);
                self.emit(Instruction::Select, 3);
            }
            ("[", _) => self.element(operation),
            ("!", right) => {
                self.emit_value(right);
                self.emit(Instruction::Not, 1);
            }
            ("~", right) => {
                self.emit_value(right);
                self.emit(Instruction::Complement, 1);
            }
            (operator, right) => match binary(operator) {
                Some(binary) => {
                    self.emit_value(&operation.left);
                    self.emit_value(right);
                    self.emit(Instruction::Binary(binary), 2);
                }
                None => self.emit(Instruction::Push(0), 0),
            },
        }
    }

    /// Compiles `array[index]`. A cast of the array limits the bits of the element. The value is 0 if the array is not a known
    /// field. As in perf, the index of a dynamic array counts bytes, not elements.
    fn element(&mut self, operation: &Operation) {
        let instruction = match uncast(&operation.left) {
            Node::Field(name) => self.format.field(name).map(element_of),
            Node::DynamicArray(name) => {
                let field = self.format.field(name);
                field.map(|field| dynamic_element_of(field, self.program.abi))
            }
            _ => None,
        };
        let Some(instruction) = instruction else {
            return self.emit(Instruction::Push(0), 0);
        };
        self.emit_value(&operation.right);
        self.emit(instruction, 1);
        let mask = element_mask(&operation.left);
        if mask != u64::MAX {
            self.emit(Instruction::Mask(mask), 1);
        }
    }
}

/// Mask of the element type of an array such as `((u8 *)array)`: the outermost cast's type without its `*`. All ones without such
/// a cast.
fn element_mask(array: &Node) -> u64 {
    match array {
        Node::Cast { type_name, .. } => {
            let element = type_name.strip_suffix(" *");
            element.map_or(u64::MAX, cast_mask)
        }
        _ => u64::MAX,
    }
}

fn element_of(field: &Field) -> Instruction {
    Instruction::Element {
        offset: field.offset as u32,
        size: field.element_size as u8,
    }
}

/// Returns the instruction that loads an element of a dynamic array. An element of unknown size is read as a `long`.
fn dynamic_element_of(field: &Field, abi: Abi) -> Instruction {
    Instruction::DynamicElement {
        array: dynamic_of(field),
        size: match field.element_size {
            0 => abi.long_size,
            size => size as u8,
        },
    }
}

fn binary(operator: &str) -> Option<Binary> {
    Some(match operator {
        "|" => Binary::Or,
        "||" => Binary::LogicalOr,
        "&" => Binary::And,
        "&&" => Binary::LogicalAnd,
        "<" => Binary::Less,
        "<=" => Binary::LessOrEqual,
        "<<" => Binary::ShiftLeft,
        ">" => Binary::Greater,
        ">=" => Binary::GreaterOrEqual,
        ">>" => Binary::ShiftRight,
        "==" => Binary::Equal,
        "!=" => Binary::NotEqual,
        "-" => Binary::Subtract,
        "+" => Binary::Add,
        "*" => Binary::Multiply,
        "/" => Binary::Divide,
        "%" => Binary::Remainder,
        // As in perf, `^` is accepted, but its result is 0.
        _ => return None,
    })
}
