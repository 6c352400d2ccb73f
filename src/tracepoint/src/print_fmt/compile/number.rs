//! Compilation of numeric arguments to stack steps, with constant folding.

use super::{Compiler, load_of, uncast};
use crate::Field;
use crate::print_fmt::program::{Binary, DynamicField, Instruction, Load, NumberSource};
use crate::print_fmt::tree::{Node, Operation, cast_mask, number_prefix};

impl Compiler<'_> {
    /// Compiles a numeric argument.
    pub(super) fn number(&mut self, node: &Node) -> NumberSource {
        let start = self.program.steps.len();
        self.depth = 0;
        self.steps(node);
        let number = match self.program.steps.get(start..) {
            Some(&[Instruction::Push(value)]) => NumberSource::Constant(value),
            Some(&[Instruction::Load(load)]) => NumberSource::Load(load),
            _ => {
                let end = self.program.steps.len() as u32;
                let start = start as u32;
                return NumberSource::Steps { start, end };
            }
        };
        self.program.steps.truncate(start);
        number
    }

    /// Appends a step that pops `pops` values from the stack and pushes one. Unary and binary
    /// operations on constants are folded.
    fn step(&mut self, step: Instruction, pops: usize) {
        self.depth = (self.depth + 1).saturating_sub(pops);
        self.max_depth = self.max_depth.max(self.depth);
        let steps = &mut self.program.steps;
        if let (Instruction::Element { offset, size }, [.., Instruction::Push(index)]) =
            (step, steps.as_slice())
        {
            let offset = offset.wrapping_add((*index as u32).wrapping_mul(size.into()));
            steps.pop();
            steps.push(Instruction::Load(Load { offset, size }));
            return;
        }
        let folded = match (step, steps.as_slice()) {
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
                steps.truncate(steps.len() - pops);
                steps.push(Instruction::Push(value));
            }
            None => steps.push(step),
        }
    }

    /// Appends the steps that leave the value of `node` on the stack.
    fn steps(&mut self, node: &Node) {
        match node {
            Node::Atom(text) => self.step(Instruction::Push(number_prefix(text)), 0),
            Node::Field(name) => match self.format.field(name) {
                Some(field) if matches!(field.size, 1 | 2 | 4 | 8) => {
                    self.step(Instruction::Load(load_of(field)), 0);
                }
                _ => self.step(Instruction::Push(0), 0),
            },
            Node::Cast { type_name, item } => {
                self.steps(item);
                let mask = cast_mask(type_name);
                if mask != u64::MAX {
                    self.step(Instruction::Mask(mask), 1);
                }
            }
            Node::DynamicLength(name) => self.dynamic_step(name, Instruction::DynamicLength),
            Node::DynamicArray(name) => self.dynamic_step(name, Instruction::DynamicOffset),
            Node::Operation(operation) => self.operation(operation),
            // Texts have no numeric value.
            _ => self.step(Instruction::Push(0), 0),
        }
    }

    fn dynamic_step(&mut self, name: &str, make: fn(DynamicField) -> Instruction) {
        let step = self.dynamic(name).map_or(Instruction::Push(0), make);
        self.step(step, 0);
    }

    fn operation(&mut self, operation: &Operation) {
        match (operation.operator.as_str(), &operation.right) {
            ("?", Node::Operation(branches)) => {
                self.steps(&operation.left);
                self.steps(&branches.left);
                self.steps(&branches.right);
                self.step(Instruction::Select, 3);
            }
            ("[", _) if self.element(operation) => {}
            ("!", right) => {
                self.steps(right);
                self.step(Instruction::Not, 1);
            }
            ("~", right) => {
                self.steps(right);
                self.step(Instruction::Complement, 1);
            }
            (operator, right) => match binary(operator) {
                Some(binary) => {
                    self.steps(&operation.left);
                    self.steps(right);
                    self.step(Instruction::Binary(binary), 2);
                }
                None => self.step(Instruction::Push(0), 0),
            },
        }
    }

    /// Compiles `array[index]`; a cast of the array determines the element type. Returns false, without adding steps, if the
    /// array is not a known field.
    fn element(&mut self, operation: &Operation) -> bool {
        let array = uncast(&operation.left);
        let (step, mask) = match array {
            Node::Field(name) => match self.format.field(name) {
                Some(field) => (element_of(field), self.element_mask(operation)),
                None => return false,
            },
            Node::DynamicArray(name) => match (self.format.field(name), self.dynamic(name)) {
                (Some(field), Ok(array)) => {
                    let size = match field.element_size {
                        0 => self.program.abi.long_size,
                        size => size as u8,
                    };
                    (
                        Instruction::DynamicElement { array, size },
                        self.element_mask(operation),
                    )
                }
                _ => return false,
            },
            _ => return false,
        };
        self.steps(&operation.right);
        self.step(step, 1);
        if mask != u64::MAX {
            self.step(Instruction::Mask(mask), 1);
        }
        true
    }

    /// Mask of the element type of `((u8 *)array)[index]`, which is the outermost cast's type without its `*`; all ones without such a cast.
    fn element_mask(&self, operation: &Operation) -> u64 {
        match &operation.left {
            Node::Cast { type_name, .. } => {
                let element = type_name.strip_suffix(" *");
                element.map_or(u64::MAX, cast_mask)
            }
            _ => u64::MAX,
        }
    }
}

fn element_of(field: &Field) -> Instruction {
    Instruction::Element {
        offset: field.offset as u32,
        size: field.element_size as u8,
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
        // Perf doesn't support `^` outside constants.
        _ => return None,
    })
}
