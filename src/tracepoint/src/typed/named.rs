//! Numbers with names.

use std::fmt;

use super::field_type::RequiredField;
use crate::{Field, FieldReader, Tracepoint, ValueNames};

/// A number with the recording kernel's names for its values or bits. Displayed as these names; values and bits
/// without a name are displayed in hexadecimal.
#[derive(Clone, Copy, Default)]
pub struct NamedValue<'r> {
    /// The number, zero-extended.
    pub value: u64,
    names: Option<&'r ValueNames>,
}

/// The state of a task that is switched out, displayed as the kernel's letters: `R`, `S`, `D`,
/// `R+`, ….
///
/// The bits and letters differ between kernels; they are taken from the tracepoint's `print fmt`.
#[derive(Clone, Copy, Default)]
pub struct TaskState<'r>(NamedValue<'r>);

/// A field type: a number that may have names, see [`NamedValue`].
#[derive(Debug, Clone, Copy)]
pub struct NamedNumber;

/// A field type: the state of a task, see [`TaskState`].
#[derive(Debug, Clone, Copy)]
pub struct TaskStateField;

/// Reads a number; holds the names of its values.
#[derive(Debug, Clone)]
pub struct NamedReader {
    number: FieldReader,
    names: Option<ValueNames>,
}

impl NamedReader {
    fn new(tracepoint: &Tracepoint, field: &Field) -> Option<Self> {
        let number = field.reader(tracepoint.abi.endian);
        number.is_number().then(|| Self {
            number,
            names: ValueNames::of(&tracepoint.format, &field.name),
        })
    }

    #[inline]
    fn read(&self, raw: &[u8]) -> Option<NamedValue<'_>> {
        Some(NamedValue {
            value: self.number.u64(raw)?,
            names: self.names.as_ref(),
        })
    }
}

impl TaskState<'_> {
    /// The kernel's state bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.0.value
    }

    /// Whether the task is still runnable: it was preempted, or yielded. Without names in the
    /// `print fmt`, false if any bit is set.
    #[must_use]
    pub fn is_runnable(&self) -> bool {
        // The mask is that of the state's names, without the bit of `+`: a preempted task is runnable.
        let mask = self.0.names.map_or(u64::MAX, ValueNames::mask);
        self.bits() & mask == 0
    }

    /// Whether the task was preempted (`+`). False on very old kernels, which don't trace that, and without names in the
    /// `print fmt`.
    #[must_use]
    pub fn is_preempted(&self) -> bool {
        self.0
            .names
            .is_some_and(|names| names.has_suffix(self.bits()))
    }
}

impl fmt::Display for NamedValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names {
            Some(names) => names.write(self.value, f),
            None => write!(f, "{:#x}", self.value),
        }
    }
}

impl fmt::Debug for NamedValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} ({self})", self.value)
    }
}

impl fmt::Display for TaskState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TaskState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl RequiredField for NamedNumber {
    const EXPECTED: &'static str = "a number";
    type Reader = NamedReader;
    type Value<'r> = NamedValue<'r>;

    fn reader(tracepoint: &Tracepoint, field: &Field) -> Option<NamedReader> {
        NamedReader::new(tracepoint, field)
    }

    fn bytes_reader(reader: &NamedReader) -> &FieldReader {
        &reader.number
    }

    #[inline]
    fn read<'r>(reader: &'r NamedReader, raw: &'r [u8]) -> Option<NamedValue<'r>> {
        reader.read(raw)
    }
}

impl RequiredField for TaskStateField {
    const EXPECTED: &'static str = "a number";
    type Reader = NamedReader;
    type Value<'r> = TaskState<'r>;

    fn reader(tracepoint: &Tracepoint, field: &Field) -> Option<NamedReader> {
        NamedReader::new(tracepoint, field)
    }

    fn bytes_reader(reader: &NamedReader) -> &FieldReader {
        &reader.number
    }

    #[inline]
    fn read<'r>(reader: &'r NamedReader, raw: &'r [u8]) -> Option<TaskState<'r>> {
        reader.read(raw).map(TaskState)
    }
}
