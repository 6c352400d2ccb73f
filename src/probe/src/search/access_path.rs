//! Follows an access path (`->member`, `.member`, `[index]`) from a variable, through the types of the values on the way.

use crate::definition::Member;
use crate::error::Error;
use crate::field::Dereference;
use crate::object::nearest;
use crate::shape::{BitField, RecordMember, TypeCategory, TypeShape};

/// The maximum width of a recorded number in bits.
const MAX_BITS: u64 = 64;

/// The value reached so far on an access path.
pub(crate) struct PathValue<T> {
    /// The dereferences so far.
    pub(crate) reads: Vec<Dereference>,
    /// Where the value comes from: the variable or member, or, for an element, the type of the indexed pointer or array. Its
    /// [`TypeShape::real_type`] is the type of the value or, while `depth` is not 0, of the whole array.
    shape: T,
    /// The number of indices applied so far to a multi-dimensional array; 0 again when all its dimensions are indexed.
    depth: usize,
    /// The place of the value in its container if the value is a bit field.
    bits: Option<BitField>,
    /// The name of the variable or of the last member.
    name: String,
    /// Whether dereferences of the access path read user memory. As in perf, this includes the last dereference of the variable's
    /// location if `.member` or `[index]` changes its offset.
    is_user: bool,
}

pub(crate) fn unsupported(message: String) -> Error {
    Error::Unsupported {
        message,
        known: Vec::new(),
    }
}

impl<T: TypeShape> PathValue<T> {
    /// Starts at a variable whose location is `reads`. `is_user` means that pointers on the path refer to user memory.
    pub(crate) fn new(variable: T, name: &str, reads: Vec<Dereference>, is_user: bool) -> Self {
        Self {
            reads,
            shape: variable,
            depth: 0,
            bits: None,
            name: name.to_owned(),
            is_user,
        }
    }

    /// Applies all steps of the path.
    pub(crate) fn apply_all(&mut self, members: &[Member]) -> Result<(), Error> {
        members.iter().try_for_each(|step| self.apply(step))
    }

    fn apply(&mut self, step: &Member) -> Result<(), Error> {
        let real = self.shape.real_type();
        let real =
            real.ok_or_else(|| unsupported(format!("Failed to get the type of {}.", self.name)))?;
        match step {
            Member::Element(index) => self.element(&real, *index),
            Member::Field(name) | Member::Pointed(name) => {
                let is_arrow = matches!(step, Member::Pointed(_));
                self.field(&real, name, is_arrow)
            }
        }
    }

    fn element(&mut self, real: &T, index: i64) -> Result<(), Error> {
        let category = real.kind();
        let name = &self.name;
        if !matches!(category, TypeCategory::Array | TypeCategory::Pointer) {
            return Err(unsupported(format!(
                "Semantic error: {name} is not a pointer nor array."
            )));
        }
        let inner_lengths = match category {
            TypeCategory::Array => real.lengths().into_iter().skip(self.depth + 1).collect(),
            _ => Vec::new(),
        };
        let element_size = real.real_type().and_then(|element| element.whole_size());
        let size = inner_lengths
            .iter()
            .fold(element_size, |size, length| size?.checked_mul((*length)?));
        let size = size.and_then(|size| i64::try_from(size).ok());
        let distance = size.and_then(|size| size.checked_mul(index));
        let distance = distance.ok_or_else(|| {
            unsupported(format!(
                "{name}[{index}]: the size of the elements is unknown or too large"
            ))
        })?;
        match category {
            TypeCategory::Pointer => self.read(distance),
            _ => self.shift(distance)?,
        }
        self.bits = None;
        match inner_lengths.is_empty() {
            true => self.continue_at(real.clone()),
            // The result is still an array.
            false => self.depth += 1,
        }
        Ok(())
    }

    /// Sets `shape`, whose real type must be the type of the value.
    fn continue_at(&mut self, shape: T) {
        self.shape = shape;
        self.depth = 0;
    }

    fn field(&mut self, real: &T, name: &str, is_arrow: bool) -> Result<(), Error> {
        let (record, is_pointer) = match real.kind() {
            TypeCategory::Pointer => {
                if !is_arrow && !real.is_reference() {
                    return Err(unsupported(format!(
                        "Semantic error: {name} must be referred by '->'"
                    )));
                }
                (real.real_type(), true)
            }
            TypeCategory::Record if is_arrow => {
                return Err(unsupported(format!(
                    "Semantic error: {name} must be referred by '.'"
                )));
            }
            _ => (Some(real.clone()), false),
        };
        let record = record.filter(|record| record.kind() == TypeCategory::Record);
        let record = record.ok_or_else(|| {
            unsupported(format!(
                "{} is not a data structure nor a union.",
                self.name
            ))
        })?;
        let found = record.member(name).ok_or_else(|| {
            let type_name = record.name().unwrap_or_default();
            Error::Unsupported {
                message: format!("{}(type:{type_name}) has no member {name}.", self.name),
                known: nearest(name, &record.member_names()),
            }
        })?;
        let RecordMember {
            offset,
            member,
            bits,
        } = found;
        match is_pointer {
            true => self.read(offset),
            false => self.shift(offset)?,
        }
        self.continue_at(member);
        self.bits = bits;
        name.clone_into(&mut self.name);
        Ok(())
    }

    /// Dereferences the value plus `offset`.
    fn read(&mut self, offset: i64) {
        self.reads.push(Dereference {
            offset,
            is_user: self.is_user,
        });
    }

    /// Adds `distance` bytes to the address of the value. Fails if the value is not in memory.
    fn shift(&mut self, distance: i64) -> Result<(), Error> {
        let last = self.reads.last_mut().ok_or_else(|| {
            unsupported("Structure on a register is not supported yet.".to_owned())
        })?;
        last.offset = last.offset.wrapping_add(distance);
        last.is_user |= self.is_user;
        Ok(())
    }

    /// Returns the type of the event's field that records the value, in the kernel's syntax, and whether the value is too wide to
    /// be recorded completely. The type is `cast` if given, otherwise the value's own (`None` if unknown); `u`, `s` or `x` alone
    /// takes the width of the value. For a string, a dereference is added to `reads` if the value is a pointer.
    pub(crate) fn finish_with_type(
        &mut self,
        cast: Option<&str>,
    ) -> Result<(Option<String>, bool), Error> {
        let (letter, is_text) = match cast {
            None => (None, false),
            Some("string" | "ustring") => (None, true),
            Some(letter @ ("u" | "s" | "x")) => (Some(letter), false),
            Some(other) => return Ok((Some(other.to_owned()), false)),
        };
        if let Some(field) = self.bits.filter(|_| !is_text) {
            // The kernel has a single type for bit fields: a letter has no effect.
            let container = field.container_size * 8;
            let bit_type = format!("b{}@{}/{container}", field.width, field.low);
            return Ok((Some(bit_type), false));
        }
        let Some(real) = self.shape.real_type() else {
            return Ok((cast.map(str::to_owned), false));
        };
        if is_text {
            self.read_string(&real)?;
            return Ok((cast.map(str::to_owned), false));
        }
        // As in perf, unsigned values are recorded as hexadecimal by default.
        let letter = letter.unwrap_or(if real.is_signed() { "s" } else { "x" });
        let size = real.byte_size().filter(|size| *size > 0);
        let Some(bits) = size.map(|size| size.saturating_mul(8)) else {
            return Ok((None, false));
        };
        let is_truncated = bits > MAX_BITS;
        // The kernel's widths are powers of two.
        let bits = bits.min(MAX_BITS).checked_next_power_of_two();
        Ok((bits.map(|bits| format!("{letter}{bits}")), is_truncated))
    }

    /// Adds a dereference if the value is a pointer, since the kernel reads the text at the address of the last dereference; an
    /// array is itself the text. Fails unless the elements are characters.
    fn read_string(&mut self, real: &T) -> Result<(), Error> {
        let name = self.shape.name().unwrap_or_default();
        let kind = real.kind();
        if !matches!(kind, TypeCategory::Pointer | TypeCategory::Array) {
            let type_name = real.name().unwrap_or_default();
            return Err(unsupported(format!(
                "Failed to cast into string: {name}({type_name}) is not a pointer nor array."
            )));
        }
        if kind == TypeCategory::Pointer {
            self.read(0);
        }
        let element = real.real_type();
        match element.is_some_and(|element| element.is_character()) {
            true => Ok(()),
            false => Err(unsupported(format!(
                "Failed to cast into string: {name} is not (unsigned) char *."
            ))),
        }
    }
}
