//! Arguments that are numbers: steps on a stack, done at once where they are constant.

use super::{Compiler, load_of, uncast};
use crate::Field;
use crate::print_fmt::program::{Binary, Dynamic, Load, Number, Step};
use crate::print_fmt::tree::{Node, Operation, cast_mask, number_prefix};

impl Compiler<'_> {
    /// Compiles an argument that is a number.
    pub(super) fn number(&mut self, node: &Node) -> Number {
        let start = self.program.steps.len();
        self.depth = 0;
        self.steps(node);
        let number = match self.program.steps.get(start..) {
            Some(&[Step::Push(value)]) => Number::Constant(value),
            Some(&[Step::Load(load)]) => Number::Load(load),
            _ => {
                let end = self.program.steps.len() as u32;
                let start = start as u32;
                return Number::Steps { start, end };
            }
        };
        self.program.steps.truncate(start);
        number
    }

    /// Appends a step that takes `pops` values from the stack and leaves one. Steps on constants
    /// are done at once.
    fn step(&mut self, step: Step, pops: usize) {
        self.depth = (self.depth + 1).saturating_sub(pops);
        self.max_depth = self.max_depth.max(self.depth);
        let steps = &mut self.program.steps;
        if let (Step::Element { offset, size }, [.., Step::Push(index)]) = (step, steps.as_slice())
        {
            let offset = offset.wrapping_add((*index as u32).wrapping_mul(size.into()));
            steps.pop();
            steps.push(Step::Load(Load { offset, size }));
            return;
        }
        let folded = match (step, steps.as_slice()) {
            (Step::Mask(mask), [.., Step::Push(value)]) => Some(value & mask),
            (Step::Not, [.., Step::Push(value)]) => Some(u64::from(*value == 0)),
            (Step::Complement, [.., Step::Push(value)]) => Some(!value),
            (Step::Binary(operator), [.., Step::Push(left), Step::Push(right)]) => {
                Some(operator.apply(*left, *right))
            }
            _ => None,
        };
        match folded {
            Some(value) => {
                steps.truncate(steps.len() - pops);
                steps.push(Step::Push(value));
            }
            None => steps.push(step),
        }
    }

    /// Appends the steps that leave the value of `node` on the stack.
    fn steps(&mut self, node: &Node) {
        match node {
            Node::Atom(text) => self.step(Step::Push(number_prefix(text)), 0),
            Node::Field(name) => match self.format.field(name) {
                Some(field) if matches!(field.size, 1 | 2 | 4 | 8) => {
                    self.step(Step::Load(load_of(field)), 0);
                }
                _ => self.step(Step::Push(0), 0),
            },
            Node::Cast { type_name, item } => {
                self.steps(item);
                let mask = cast_mask(type_name);
                if mask != u64::MAX {
                    self.step(Step::Mask(mask), 1);
                }
            }
            Node::DynamicLength(name) => self.dynamic_step(name, Step::DynamicLength),
            Node::DynamicArray(name) => self.dynamic_step(name, Step::DynamicOffset),
            Node::Operation(operation) => self.operation(operation),
            // Texts have no value.
            _ => self.step(Step::Push(0), 0),
        }
    }

    fn dynamic_step(&mut self, name: &str, make: fn(Dynamic) -> Step) {
        let step = self.dynamic(name).map_or(Step::Push(0), make);
        self.step(step, 0);
    }

    fn operation(&mut self, operation: &Operation) {
        match (operation.operator.as_str(), &operation.right) {
            ("?", Node::Operation(branches)) => {
                self.steps(&operation.left);
                self.steps(&branches.left);
                self.steps(&branches.right);
                self.step(Step::Select, 3);
            }
            ("[", _) if self.element(operation) => {}
            ("!", right) => {
                self.steps(right);
                self.step(Step::Not, 1);
            }
            ("~", right) => {
                self.steps(right);
                self.step(Step::Complement, 1);
            }
            (operator, right) => match binary(operator) {
                Some(binary) => {
                    self.steps(&operation.left);
                    self.steps(right);
                    self.step(Step::Binary(binary), 2);
                }
                None => self.step(Step::Push(0), 0),
            },
        }
    }

    /// Compiles `array[index]`; a cast of the array gives the type of the element.
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
                        Step::DynamicElement { array, size },
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
            self.step(Step::Mask(mask), 1);
        }
        true
    }

    /// `((u8 *)array)[index]`: the type is that of the outermost cast without its ` *`.
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

fn element_of(field: &Field) -> Step {
    Step::Element {
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
        // Perf evaluates no `^` outside constants.
        _ => return None,
    })
}
