//! Where a variable is: a location expression in the few forms that the kernel can follow.

use gimli::{AttributeValue, Expression, Operation, Register};
use rperf_symbol::dwarf::Slice;
use thiserror::Error;

use super::die::Die;
use super::frame::Frames;

/// What a value is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Register(Register),
    /// An address of the object.
    Address(u64),
    Constant(i64),
}

/// Where a value is: at the base itself, or in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) base: Base,
    /// What is added before memory is read, time after time.
    pub(crate) reads: Vec<i64>,
}

/// Why a variable cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Trouble {
    #[error("it is not there")]
    Absent,
    #[error("it is spread over several places")]
    Pieces,
    #[error("only its value at the entry of the function is known")]
    Entry,
    #[error("its value is computed and stands nowhere")]
    Computed,
    #[error("each thread has its own")]
    ThreadLocal,
    #[error("nothing tells where the stack frame is")]
    NoFrame,
    #[error("its place is described in a way that is not understood")]
    Unknown,
}

/// Where a variable is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Located<'s, 'w, 'u> {
    /// The function whose frame it is in.
    pub(crate) function: &'s Die<'w, 'u>,
    pub(crate) frames: &'s Frames<'s>,
    /// The place of the probe.
    pub(crate) address: u64,
}

/// The place of `variable`.
pub(crate) fn locate<'w, 'u>(
    variable: &Die<'w, 'u>,
    at: Located<'_, 'w, 'u>,
) -> Result<Place, Trouble> {
    if let Some((_, value)) = variable.find(gimli::DW_AT_const_value)
        && let Some(constant) = constant(&value)
    {
        return Ok(Place {
            base: Base::Constant(constant),
            reads: Vec::new(),
        });
    }
    let (holder, value) = variable
        .find(gimli::DW_AT_location)
        .ok_or(Trouble::Absent)?;
    let expression = match value {
        AttributeValue::Exprloc(expression) => expression,
        value => listed(&holder, value, variable, at)?,
    };
    let mut machine = Machine {
        holder: &holder,
        at: Some(at),
        stack: Vec::new(),
    };
    machine.run(expression)
}

/// The value of `DW_AT_const_value`. Forms of a fixed size tell no sign: compilers write what is negative with a sign.
fn constant(value: &AttributeValue<Slice<'_>>) -> Option<i64> {
    match value {
        AttributeValue::Data1(value) => Some(i64::from(*value)),
        AttributeValue::Data2(value) => Some(i64::from(*value)),
        AttributeValue::Data4(value) => Some(i64::from(*value)),
        AttributeValue::Sdata(value) => Some(*value),
        AttributeValue::Block(bytes) => number(bytes.slice()),
        value => value.udata_value().map(u64::cast_signed),
    }
}

/// The number that stands in a few bytes, the lowest first.
fn number(bytes: &[u8]) -> Option<i64> {
    let mut value = [0; 8];
    value.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(value))
}

/// The entry of a list that counts at the place. A parameter is where it is found first, if that is behind the entry of
/// the function.
fn listed<'u>(
    holder: &Die<'_, 'u>,
    value: AttributeValue<Slice<'u>>,
    variable: &Die<'_, '_>,
    at: Located<'_, '_, '_>,
) -> Result<Expression<Slice<'u>>, Trouble> {
    let list = list(holder, value);
    let covers = |range: &(u64, u64)| (range.0..range.1).contains(&at.address);
    if let Some((_, found)) = list.iter().find(|(range, _)| covers(range)) {
        return Ok(*found);
    }
    let is_entry = at.function.entry_address() == Some(at.address);
    if !is_entry || variable.tag() != gimli::DW_TAG_formal_parameter {
        return Err(Trouble::Absent);
    }
    let later = list
        .iter()
        .filter(|((start, _), _)| *start > at.address && at.function.covers(*start));
    let first = later.min_by_key(|((start, _), _)| *start);
    first.map(|(_, found)| *found).ok_or(Trouble::Absent)
}

type Listed<'u> = Vec<((u64, u64), Expression<Slice<'u>>)>;

fn list<'u>(holder: &Die<'_, 'u>, value: AttributeValue<Slice<'u>>) -> Listed<'u> {
    let mut found = Vec::new();
    if let Ok(Some(mut entries)) = holder.unit().attr_locations(value) {
        while let Ok(Some(entry)) = entries.next() {
            found.push(((entry.range.begin, entry.range.end), entry.data));
        }
    }
    found
}

/// The addresses at which `variable` is somewhere; `None` where it is the same everywhere.
pub(crate) fn stretches(variable: &Die<'_, '_>) -> Option<Vec<(u64, u64)>> {
    let (holder, value) = variable.find(gimli::DW_AT_location)?;
    if matches!(value, AttributeValue::Exprloc(_)) {
        return None;
    }
    let list = list(&holder, value);
    Some(list.into_iter().map(|(range, _)| range).collect())
}

/// Those of `stretches` that begin in the code of `function`, in bytes behind `entry`.
pub(crate) fn behind_entry(
    stretches: Vec<(u64, u64)>,
    function: &Die<'_, '_>,
    entry: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let inside = stretches
        .into_iter()
        .filter(|(start, _)| function.covers(*start));
    inside.map(move |(start, end)| (start.wrapping_sub(entry), end.wrapping_sub(entry)))
}

/// A number that is known but for its base.
#[derive(Debug, Clone)]
struct Number {
    base: Base,
    reads: Vec<i64>,
    /// Added to all of it.
    offset: i64,
}

impl Number {
    fn of(base: Base, offset: i64) -> Self {
        let reads = Vec::new();
        Self {
            base,
            reads,
            offset,
        }
    }

    /// The value itself, if it is one that stands somewhere.
    fn value(self) -> Result<Place, Trouble> {
        let Self {
            base,
            reads,
            offset,
        } = self;
        let base = match base {
            Base::Constant(value) if reads.is_empty() => Base::Constant(value.wrapping_add(offset)),
            _ if offset != 0 => return Err(Trouble::Computed),
            Base::Address(_) if reads.is_empty() => return Err(Trouble::Computed),
            base => base,
        };
        Ok(Place { base, reads })
    }

    /// What stands in memory there.
    fn memory(mut self) -> Result<Place, Trouble> {
        if matches!(self.base, Base::Constant(_)) {
            return Err(Trouble::Unknown);
        }
        self.reads.push(self.offset);
        Ok(Place {
            base: self.base,
            reads: self.reads,
        })
    }
}

/// Runs an expression on numbers whose bases are known only when the probe is hit.
struct Machine<'s, 'w, 'u> {
    holder: &'s Die<'w, 'u>,
    /// `None` within the expression of a frame base, which has no other one.
    at: Option<Located<'s, 'w, 'u>>,
    stack: Vec<Number>,
}

impl<'u> Machine<'_, '_, 'u> {
    fn run(&mut self, expression: Expression<Slice<'_>>) -> Result<Place, Trouble> {
        let encoding = self.holder.unit().header.encoding();
        let mut operations = expression.operations(encoding);
        let mut is_value = false;
        while let Some(operation) = operations.next().map_err(|_| Trouble::Unknown)? {
            match operation {
                Operation::Register { register } => {
                    // In pieces, others follow.
                    return match operations.next() {
                        Ok(None) => Ok(Place {
                            base: Base::Register(register),
                            reads: Vec::new(),
                        }),
                        _ => Err(Trouble::Pieces),
                    };
                }
                Operation::ImplicitValue { data } => {
                    let constant = number(data.slice()).ok_or(Trouble::Computed)?;
                    self.stack.push(Number::of(Base::Constant(constant), 0));
                    is_value = true;
                }
                Operation::StackValue => is_value = true,
                operation => self.step(operation)?,
            }
        }
        let last = self.stack.pop().ok_or(Trouble::Absent)?;
        if is_value {
            last.value()
        } else {
            last.memory()
        }
    }

    fn step(&mut self, operation: Operation<Slice<'_>>) -> Result<(), Trouble> {
        let number = match operation {
            Operation::RegisterOffset {
                register, offset, ..
            } => Number::of(Base::Register(register), offset),
            Operation::FrameOffset { offset } => {
                let mut base = self.frame_base()?;
                base.offset = base.offset.wrapping_add(offset);
                base
            }
            Operation::CallFrameCFA => self.frame()?,
            Operation::Address { address } => Number::of(Base::Address(address), 0),
            Operation::AddressIndex { index } => {
                let address = self.holder.unit().address(index);
                Number::of(Base::Address(address.map_err(|_| Trouble::Unknown)?), 0)
            }
            Operation::UnsignedConstant { value } => {
                Number::of(Base::Constant(value.cast_signed()), 0)
            }
            Operation::SignedConstant { value } => Number::of(Base::Constant(value), 0),
            Operation::Nop => return Ok(()),
            Operation::PlusConstant { value } => return self.add(value.cast_signed()),
            Operation::Plus => return self.plus(),
            Operation::Minus => {
                let constant = self.pop()?.constant().ok_or(Trouble::Computed)?;
                return self.add(constant.wrapping_neg());
            }
            Operation::Deref {
                size, space: false, ..
            } if size == self.holder.unit().header.address_size() => {
                let place = self.pop()?.memory()?;
                Number {
                    base: place.base,
                    reads: place.reads,
                    offset: 0,
                }
            }
            other => return Err(trouble(&other)),
        };
        self.stack.push(number);
        Ok(())
    }

    fn pop(&mut self) -> Result<Number, Trouble> {
        self.stack.pop().ok_or(Trouble::Unknown)
    }

    /// Adds two numbers one of which is a constant.
    fn plus(&mut self) -> Result<(), Trouble> {
        let other = self.pop()?;
        if let Some(constant) = other.constant() {
            return self.add(constant);
        }
        let constant = self.pop()?.constant().ok_or(Trouble::Computed)?;
        self.stack.push(other);
        self.add(constant)
    }

    fn add(&mut self, constant: i64) -> Result<(), Trouble> {
        let top = self.stack.last_mut().ok_or(Trouble::Unknown)?;
        top.offset = top.offset.wrapping_add(constant);
        Ok(())
    }

    /// `DW_AT_frame_base` of the function.
    fn frame_base(&self) -> Result<Number, Trouble> {
        let at = self.at.ok_or(Trouble::NoFrame)?;
        let found = at.function.find(gimli::DW_AT_frame_base);
        let (holder, value) = found.ok_or(Trouble::NoFrame)?;
        let expression = match value {
            AttributeValue::Exprloc(expression) => expression,
            value => {
                let mut list = list(&holder, value).into_iter();
                let found = list.find(|((start, end), _)| (*start..*end).contains(&at.address));
                found.ok_or(Trouble::NoFrame)?.1
            }
        };
        let mut operations = expression.operations(holder.unit().header.encoding());
        match operations.next() {
            Ok(Some(Operation::CallFrameCFA)) => self.frame(),
            Ok(Some(Operation::Register { register })) => {
                Ok(Number::of(Base::Register(register), 0))
            }
            Ok(Some(Operation::RegisterOffset {
                register, offset, ..
            })) => Ok(Number::of(Base::Register(register), offset)),
            _ => Err(Trouble::NoFrame),
        }
    }

    /// By call frame information.
    fn frame(&self) -> Result<Number, Trouble> {
        let at = self.at.ok_or(Trouble::NoFrame)?;
        let (register, offset) = at.frames.base(at.address).ok_or(Trouble::NoFrame)?;
        Ok(Number::of(Base::Register(register), offset))
    }
}

impl Number {
    fn constant(&self) -> Option<i64> {
        match self.base {
            Base::Constant(value) if self.reads.is_empty() => Some(value.wrapping_add(self.offset)),
            _ => None,
        }
    }
}

fn trouble(operation: &Operation<Slice<'_>>) -> Trouble {
    match operation {
        Operation::Piece { .. } => Trouble::Pieces,
        Operation::EntryValue { .. } => Trouble::Entry,
        Operation::TLS => Trouble::ThreadLocal,
        Operation::ImplicitPointer { .. } => Trouble::Computed,
        Operation::VariableValue { .. } | Operation::Call { .. } => Trouble::Unknown,
        _ => Trouble::Computed,
    }
}
