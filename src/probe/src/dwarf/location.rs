//! Converts the location expressions of variables to forms that the kernel can fetch.

use gimli::{AttributeValue, Expression, Operation, Register};
use rperf_symbol::dwarf::Slice;
use thiserror::Error;

use super::die::Die;
use super::frame::Frames;

/// The base of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueBase {
    Register(Register),
    /// An address in the object.
    Address(u64),
    Constant(i64),
}

/// The location of a value: the base itself, or memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueLocation {
    pub(crate) base: ValueBase,
    /// The offsets of successive dereferences; empty if the value is the base itself.
    pub(crate) reads: Vec<i64>,
}

/// Why a variable cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum UnavailableVariable {
    #[error("it is not available here")]
    Absent,
    #[error("it is split over several locations")]
    Pieces,
    #[error("only its value at the entry of the function is known")]
    Entry,
    #[error("its value is computed and not stored")]
    Computed,
    #[error("it is a thread-local variable")]
    ThreadLocal,
    #[error("the stack frame's address is unknown")]
    NoFrame,
    #[error("its location description is not supported")]
    Unknown,
}

/// Where a variable is accessed.
#[derive(Clone, Copy)]
pub(crate) struct AccessPoint<'s, 'w, 'u> {
    /// The function whose frame is used.
    pub(crate) function: &'s Die<'w, 'u>,
    pub(crate) frames: &'s Frames<'s>,
    /// The address of the probe.
    pub(crate) address: u64,
}

/// Returns the location of `variable`, or its constant value.
pub(crate) fn locate<'w, 'u>(
    variable: &Die<'w, 'u>,
    at: AccessPoint<'_, 'w, 'u>,
) -> Result<ValueLocation, UnavailableVariable> {
    if let Some((_, value)) = variable.find(gimli::DW_AT_const_value)
        && let Some(constant) = constant(&value)
    {
        return Ok(ValueLocation {
            base: ValueBase::Constant(constant),
            reads: Vec::new(),
        });
    }
    // The holder is the DIE that has the attribute: the variable or its origin.
    let (holder, value) = variable
        .find(gimli::DW_AT_location)
        .ok_or(UnavailableVariable::Absent)?;
    let expression = match value {
        AttributeValue::Exprloc(expression) => expression,
        value => listed(&holder, value, variable, at)?,
    };
    let mut machine = ExpressionEvaluator {
        holder: &holder,
        at,
        stack: Vec::new(),
    };
    machine.run(expression)
}

/// Returns the value of `DW_AT_const_value`; `None` if it is not a number of at most 8 bytes. Fixed-size forms are read as
/// unsigned, since compilers use `DW_FORM_sdata` for negative values.
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

/// Decodes a little-endian number without sign; `None` if it has more than 8 bytes.
fn number(bytes: &[u8]) -> Option<i64> {
    let mut value = [0; 8];
    value.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(value))
}

/// Returns the expression of a location list for the address of the probe; `holder` is the DIE that refers to the list. As in
/// perf, for a probe at the entry of the function, a parameter whose list does not cover the entry gets the expression of the
/// first later range in the function.
fn listed<'u>(
    holder: &Die<'_, 'u>,
    value: AttributeValue<Slice<'u>>,
    variable: &Die<'_, '_>,
    at: AccessPoint<'_, '_, '_>,
) -> Result<Expression<Slice<'u>>, UnavailableVariable> {
    let list = location_list(holder, value);
    let covers = |range: &(u64, u64)| (range.0..range.1).contains(&at.address);
    if let Some((_, found)) = list.iter().find(|(range, _)| covers(range)) {
        return Ok(*found);
    }
    let is_entry = at.function.entry_address() == Some(at.address);
    if !is_entry || variable.tag() != gimli::DW_TAG_formal_parameter {
        return Err(UnavailableVariable::Absent);
    }
    let later = list
        .iter()
        .filter(|((start, _), _)| *start > at.address && at.function.covers(*start));
    let first = later.min_by_key(|((start, _), _)| *start);
    first
        .map(|(_, found)| *found)
        .ok_or(UnavailableVariable::Absent)
}

type LocationList<'u> = Vec<((u64, u64), Expression<Slice<'u>>)>;

fn location_list<'u>(holder: &Die<'_, 'u>, value: AttributeValue<Slice<'u>>) -> LocationList<'u> {
    let mut found = Vec::new();
    if let Ok(Some(mut entries)) = holder.unit().attr_locations(value) {
        while let Ok(Some(entry)) = entries.next() {
            found.push(((entry.range.begin, entry.range.end), entry.data));
        }
    }
    found
}

/// Returns the address ranges in which `variable` has a location. `None` if it has no location list: it has one location
/// everywhere, or none.
pub(crate) fn valid_ranges(variable: &Die<'_, '_>) -> Option<Vec<(u64, u64)>> {
    let (holder, value) = variable.find(gimli::DW_AT_location)?;
    if matches!(value, AttributeValue::Exprloc(_)) {
        return None;
    }
    let list = location_list(&holder, value);
    Some(list.into_iter().map(|(range, _)| range).collect())
}

/// Returns the ranges that start in the code of `function`, relative to its `entry`.
pub(crate) fn relative_to_entry(
    ranges: Vec<(u64, u64)>,
    function: &Die<'_, '_>,
    entry: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let inside = ranges
        .into_iter()
        .filter(|(start, _)| function.covers(*start));
    inside.map(move |(start, end)| (start.wrapping_sub(entry), end.wrapping_sub(entry)))
}

/// A number computed from a base: the dereferences `reads` are applied to the base, then `offset` is added.
#[derive(Debug, Clone)]
struct RelativeNumber {
    base: ValueBase,
    reads: Vec<i64>,
    offset: i64,
}

impl RelativeNumber {
    fn of(base: ValueBase, offset: i64) -> Self {
        let reads = Vec::new();
        Self {
            base,
            reads,
            offset,
        }
    }

    /// Returns this number itself as a value, if the kernel can fetch it: a constant, or a register or a word in memory
    /// without an added offset.
    fn value(self) -> Result<ValueLocation, UnavailableVariable> {
        let Self {
            base,
            reads,
            offset,
        } = self;
        let base = match base {
            ValueBase::Constant(value) if reads.is_empty() => {
                ValueBase::Constant(value.wrapping_add(offset))
            }
            _ if offset != 0 => return Err(UnavailableVariable::Computed),
            ValueBase::Address(_) if reads.is_empty() => return Err(UnavailableVariable::Computed),
            base => base,
        };
        Ok(ValueLocation { base, reads })
    }

    /// Returns the memory whose address is this number.
    fn memory(mut self) -> Result<ValueLocation, UnavailableVariable> {
        if matches!(self.base, ValueBase::Constant(_)) {
            return Err(UnavailableVariable::Unknown);
        }
        self.reads.push(self.offset);
        Ok(ValueLocation {
            base: self.base,
            reads: self.reads,
        })
    }
}

/// Evaluates an expression symbolically: registers and memory are known only when the probe is hit.
struct ExpressionEvaluator<'s, 'w, 'u> {
    /// The DIE that has the expression: the variable or its origin.
    holder: &'s Die<'w, 'u>,
    /// Where the variable is accessed.
    at: AccessPoint<'s, 'w, 'u>,
    stack: Vec<RelativeNumber>,
}

impl<'u> ExpressionEvaluator<'_, '_, 'u> {
    fn run(
        &mut self,
        expression: Expression<Slice<'_>>,
    ) -> Result<ValueLocation, UnavailableVariable> {
        let encoding = self.holder.unit().header.encoding();
        let mut operations = expression.operations(encoding);
        let mut is_value = false;
        while let Some(operation) = operations
            .next()
            .map_err(|_| UnavailableVariable::Unknown)?
        {
            match operation {
                Operation::Register { register } => {
                    // If the value is in pieces, further operations follow.
                    return match operations.next() {
                        Ok(None) => Ok(ValueLocation {
                            base: ValueBase::Register(register),
                            reads: Vec::new(),
                        }),
                        _ => Err(UnavailableVariable::Pieces),
                    };
                }
                Operation::ImplicitValue { data } => {
                    let constant = number(data.slice()).ok_or(UnavailableVariable::Computed)?;
                    self.stack
                        .push(RelativeNumber::of(ValueBase::Constant(constant), 0));
                    is_value = true;
                }
                Operation::StackValue => is_value = true,
                operation => self.step(operation)?,
            }
        }
        let last = self.stack.pop().ok_or(UnavailableVariable::Absent)?;
        if is_value {
            last.value()
        } else {
            last.memory()
        }
    }

    fn step(&mut self, operation: Operation<Slice<'_>>) -> Result<(), UnavailableVariable> {
        let number = match operation {
            Operation::RegisterOffset {
                register, offset, ..
            } => RelativeNumber::of(ValueBase::Register(register), offset),
            Operation::FrameOffset { offset } => {
                let mut base = self.frame_base()?;
                base.offset = base.offset.wrapping_add(offset);
                base
            }
            Operation::CallFrameCFA => self.cfa()?,
            Operation::Address { address } => RelativeNumber::of(ValueBase::Address(address), 0),
            Operation::AddressIndex { index } => {
                let address = self.holder.unit().address(index);
                RelativeNumber::of(
                    ValueBase::Address(address.map_err(|_| UnavailableVariable::Unknown)?),
                    0,
                )
            }
            Operation::UnsignedConstant { value } => {
                RelativeNumber::of(ValueBase::Constant(value.cast_signed()), 0)
            }
            Operation::SignedConstant { value } => {
                RelativeNumber::of(ValueBase::Constant(value), 0)
            }
            Operation::Nop => return Ok(()),
            Operation::PlusConstant { value } => return self.add(value.cast_signed()),
            Operation::Plus => return self.add_top_two(),
            Operation::Minus => {
                let constant = self
                    .pop()?
                    .constant()
                    .ok_or(UnavailableVariable::Computed)?;
                return self.add(constant.wrapping_neg());
            }
            Operation::Deref {
                size, space: false, ..
            } if size == self.holder.unit().header.address_size() => {
                let place = self.pop()?.memory()?;
                RelativeNumber {
                    base: place.base,
                    reads: place.reads,
                    offset: 0,
                }
            }
            other => return Err(unavailable(&other)),
        };
        self.stack.push(number);
        Ok(())
    }

    fn pop(&mut self) -> Result<RelativeNumber, UnavailableVariable> {
        self.stack.pop().ok_or(UnavailableVariable::Unknown)
    }

    /// Replaces the two top numbers, one of which must be a constant, with their sum.
    fn add_top_two(&mut self) -> Result<(), UnavailableVariable> {
        let top = self.pop()?;
        if let Some(constant) = top.constant() {
            return self.add(constant);
        }
        let constant = self
            .pop()?
            .constant()
            .ok_or(UnavailableVariable::Computed)?;
        self.stack.push(top);
        self.add(constant)
    }

    /// Adds a constant to the top number.
    fn add(&mut self, constant: i64) -> Result<(), UnavailableVariable> {
        let top = self.stack.last_mut().ok_or(UnavailableVariable::Unknown)?;
        top.offset = top.offset.wrapping_add(constant);
        Ok(())
    }

    /// Evaluates `DW_AT_frame_base` of the function.
    fn frame_base(&self) -> Result<RelativeNumber, UnavailableVariable> {
        let at = self.at;
        let found = at.function.find(gimli::DW_AT_frame_base);
        let (holder, value) = found.ok_or(UnavailableVariable::NoFrame)?;
        let expression = match value {
            AttributeValue::Exprloc(expression) => expression,
            value => {
                let mut list = location_list(&holder, value).into_iter();
                let found = list.find(|((start, end), _)| (*start..*end).contains(&at.address));
                found.ok_or(UnavailableVariable::NoFrame)?.1
            }
        };
        let mut operations = expression.operations(holder.unit().header.encoding());
        match operations.next() {
            Ok(Some(Operation::CallFrameCFA)) => self.cfa(),
            Ok(Some(Operation::Register { register })) => {
                Ok(RelativeNumber::of(ValueBase::Register(register), 0))
            }
            Ok(Some(Operation::RegisterOffset {
                register, offset, ..
            })) => Ok(RelativeNumber::of(ValueBase::Register(register), offset)),
            _ => Err(UnavailableVariable::NoFrame),
        }
    }

    /// Returns the canonical frame address from call frame information.
    fn cfa(&self) -> Result<RelativeNumber, UnavailableVariable> {
        let at = self.at;
        let (register, offset) = at
            .frames
            .cfa(at.address)
            .ok_or(UnavailableVariable::NoFrame)?;
        Ok(RelativeNumber::of(ValueBase::Register(register), offset))
    }
}

impl RelativeNumber {
    fn constant(&self) -> Option<i64> {
        match self.base {
            ValueBase::Constant(value) if self.reads.is_empty() => {
                Some(value.wrapping_add(self.offset))
            }
            _ => None,
        }
    }
}

fn unavailable(operation: &Operation<Slice<'_>>) -> UnavailableVariable {
    match operation {
        Operation::Piece { .. } => UnavailableVariable::Pieces,
        Operation::EntryValue { .. } => UnavailableVariable::Entry,
        Operation::TLS => UnavailableVariable::ThreadLocal,
        Operation::ImplicitPointer { .. } => UnavailableVariable::Computed,
        Operation::VariableValue { .. } | Operation::Call { .. } => UnavailableVariable::Unknown,
        _ => UnavailableVariable::Computed,
    }
}
