//! Samples of system calls and of other events, decoded.

use std::sync::Arc;

use rperf_perfdata::EventDesc;
use rperf_replay::{Sample, World};
use rperf_syscalls::{CapturedBytes, CapturedRecord, write_name};
use rperf_tracepoint::typed::TypedEvent;
use rperf_tracepoint::{FieldReader, Formats, Tracepoint, Value};
use rperf_wire::{EventType, SampleType};

use super::{AddressOptions, EnumerationNames};
use crate::PrepareSamples;

/// `PERF_COUNT_SW_PAGE_FAULTS_MIN` and `_MAJ`.
const MINOR_FAULTS: u64 = 5;
const MAJOR_FAULTS: u64 = 6;

/// Selects and decodes the samples of a trace.
#[derive(Debug)]
pub struct TraceSamples {
    /// The kind of each event, by its index.
    events: Vec<EventKind>,
    addresses: AddressOptions,
    enumerations: Option<Arc<dyn EnumerationNames>>,
}

#[derive(Debug)]
enum EventKind {
    Enter {
        number: FieldReader,
        arguments: FieldReader,
    },
    Exit {
        number: FieldReader,
        result: FieldReader,
    },
    /// Records of captured memory.
    Memory,
    /// Page faults.
    Fault { is_major: bool },
    /// Another event, with its format if it is a tracepoint.
    Other {
        name: String,
        tracepoint: Option<Arc<Tracepoint>>,
    },
}

/// Memory that an argument points to, copied when the call began or returned, or read later.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedArgument {
    /// Index of the argument, from 0.
    pub argument: usize,
    /// Index of the text or buffer, if the argument is a list of them; for messages, see [`rperf_syscalls::captured_record`].
    pub item: usize,
    /// The bytes; those of a text without its NUL.
    pub bytes: Vec<u8>,
    /// Whether more bytes were there than were copied.
    pub is_truncated: bool,
    /// Whether it could not be read.
    pub is_unreadable: bool,
    /// Whether this only marks that the list has more items than were copied.
    pub marks_more_items: bool,
    /// Whether the tracer read it, some time after the call had begun. Otherwise a program in the kernel copied it when
    /// the call began or returned.
    pub is_late: bool,
}

impl CapturedArgument {
    pub(super) fn new(memory: &CapturedBytes<'_>) -> Self {
        Self {
            argument: memory.argument,
            item: memory.item,
            bytes: memory.bytes.to_vec(),
            is_truncated: memory.is_truncated,
            is_unreadable: memory.is_unreadable,
            marks_more_items: memory.marks_more_items,
            is_late: memory.is_late,
        }
    }

    pub(super) fn borrowed(&self) -> CapturedBytes<'_> {
        CapturedBytes {
            argument: self.argument,
            item: self.item,
            bytes: &self.bytes,
            is_truncated: self.is_truncated,
            is_unreadable: self.is_unreadable,
            marks_more_items: self.marks_more_items,
            is_late: self.is_late,
        }
    }
}

/// A decoded sample, and its stack if stacks are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedSample {
    /// The content of the sample.
    pub record: TraceRecord,
    /// The frames, innermost first; `None` if the sample has no callchain or stacks are not shown for it.
    pub stack: Option<Vec<String>>,
}

/// The content of a decoded sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceRecord {
    /// A call begins.
    Enter {
        /// Its number.
        number: u32,
        /// The six argument registers, used or not.
        arguments: [u64; 6],
    },
    /// Captured memory of the arguments of a call. It usually precedes the `Enter` or `Exit` of the call.
    Memory {
        /// The number of the call.
        number: u32,
        /// Whether it was copied when the call returned, not when it began.
        is_return: bool,
        /// The memory.
        memory: Vec<CapturedArgument>,
    },
    /// A call returns.
    Exit {
        /// Its number.
        number: u32,
        /// Its result; -4095 to -1 is a negated errno.
        result: i64,
    },
    /// A page fault.
    Fault {
        /// Whether it is a major fault, which waits for I/O.
        is_major: bool,
        /// The code and the memory, as [`AddressNames::fault`](super::AddressNames::fault) returns them; `[ip]` if
        /// [`AddressOptions::names`] is `None`.
        text: String,
    },
    /// Another event, such as `sched:sched_switch(prev_comm: "x", ...)`.
    Event {
        /// Its name.
        name: String,
        /// Its fields: name and value.
        fields: Vec<(String, String)>,
    },
}

impl TraceSamples {
    /// Returns the decoder of `events`, described by `formats`.
    #[must_use]
    pub fn new(events: &[EventDesc], formats: &Formats) -> Self {
        let kind = |event: &EventDesc| {
            let tracepoint = formats.of_event(&event.attr).ok().cloned();
            let reader = |field| tracepoint.as_ref()?.reader(field);
            let name = tracepoint.as_ref().map(|tracepoint| tracepoint.name());
            let syscall = match name.as_deref() {
                Some("raw_syscalls:sys_enter") => reader("id")
                    .zip(reader("args"))
                    .map(|(number, arguments)| EventKind::Enter { number, arguments }),
                Some("raw_syscalls:sys_exit") => reader("id")
                    .zip(reader("ret"))
                    .map(|(number, result)| EventKind::Exit { number, result }),
                _ => None,
            };
            syscall.unwrap_or_else(|| EventKind::Other {
                // The name of a tracepoint has no terms and modifiers, as in perf.
                name: name.as_deref().unwrap_or(&event.name).to_owned(),
                tracepoint,
            })
        };
        Self {
            events: events.iter().map(kind).collect(),
            addresses: AddressOptions::default(),
            enumerations: None,
        }
    }

    /// Shows the values of enumeration fields of tracepoints by name.
    #[must_use]
    pub fn with_enumerations(mut self, names: Arc<dyn EnumerationNames>) -> Self {
        self.enumerations = Some(names);
        self
    }

    /// Also decodes stacks and page faults if `addresses` says so. `events` are those of [`TraceSamples::new`].
    #[must_use]
    pub fn with_addresses(mut self, events: &[EventDesc], addresses: AddressOptions) -> Self {
        for (kind, event) in self.events.iter_mut().zip(events) {
            if addresses.shows_faults && is_page_fault(event) {
                *kind = EventKind::Fault {
                    is_major: event.attr.config == MAJOR_FAULTS,
                };
            }
        }
        self.addresses = addresses;
        self
    }

    /// Calls [`AddressNames::forget_mappings`](super::AddressNames::forget_mappings) of the names, if there are any. `world`
    /// has the processes and mappings of the recording, by time.
    pub fn forget_mappings(&self, world: &World) {
        if let Some(names) = &self.addresses.names {
            names.forget_mappings(world);
        }
    }

    /// Decodes the samples of the event with this index as captured memory ([`CapturedRecord`]).
    #[must_use]
    pub fn with_memory_event(mut self, event: usize) -> Self {
        if let Some(kind) = self.events.get_mut(event) {
            *kind = EventKind::Memory;
        }
        self
    }

    /// Whether samples of an event of this name are decoded to [`TraceRecord::Event`].
    #[must_use]
    pub fn has_event(&self, event_name: &str) -> bool {
        let mut events = self.events.iter();
        events.any(|event| matches!(event, EventKind::Other { name, .. } if name == event_name))
    }

    /// Whether there are events of system calls.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|event| matches!(event, EventKind::Enter { .. } | EventKind::Exit { .. }))
    }
}

impl PrepareSamples for TraceSamples {
    type Detail = TracedSample;

    /// The parts of the samples that are decoded. The fields of tracepoints are in `RAW`.
    fn fields(&self) -> SampleType {
        match self.addresses.names {
            None => SampleType::RAW,
            Some(_) => {
                let stack = SampleType::CALLCHAIN | SampleType::REGS_USER | SampleType::STACK_USER;
                SampleType::RAW | SampleType::IP | SampleType::ADDR | stack
            }
        }
    }

    fn prepare(
        &self,
        world: &World,
        sample: &Sample<'_>,
        _: Option<&TypedEvent<'_>>,
    ) -> Option<TracedSample> {
        let record = self.record(world, sample)?;
        // The stack of a call is that of its return.
        let has_stack = !matches!(
            record,
            TraceRecord::Enter { .. } | TraceRecord::Memory { .. }
        );
        let names = self.addresses.names.as_ref().filter(|_| has_stack);
        Some(TracedSample {
            record,
            stack: names.and_then(|names| names.stack(world, sample)),
        })
    }
}

impl TraceSamples {
    fn record(&self, world: &World, sample: &Sample<'_>) -> Option<TraceRecord> {
        let raw = sample.wire.raw.unwrap_or_default();
        let event = self.events.get(usize::try_from(sample.event.0).ok()?)?;
        // -1 is not a system call: the kernel reports this number at the return from a signal handler, for example.
        let as_number = |reader: &FieldReader| u32::try_from(reader.i64(raw)?).ok();
        Some(match event {
            EventKind::Enter { number, arguments } => {
                let mut values = [0; 6];
                let elements = arguments.elements(raw)?;
                for (value, element) in values.iter_mut().zip(elements.iter()) {
                    *value = element;
                }
                TraceRecord::Enter {
                    number: as_number(number)?,
                    arguments: values,
                }
            }
            EventKind::Exit { number, result } => TraceRecord::Exit {
                number: as_number(number)?,
                result: result.i64(raw)?,
            },
            EventKind::Memory => {
                let record = CapturedRecord::decode(raw)?;
                TraceRecord::Memory {
                    number: record.number,
                    is_return: record.is_return,
                    memory: record
                        .memory()
                        .map(|memory| CapturedArgument::new(&memory))
                        .collect(),
                }
            }
            EventKind::Fault { is_major } => TraceRecord::Fault {
                is_major: *is_major,
                text: match &self.addresses.names {
                    Some(names) => names.fault(world, sample),
                    None => format!("[{:#x}]", sample.wire.ip.unwrap_or_default()),
                },
            },
            EventKind::Other { name, tracepoint } => TraceRecord::Event {
                name: name.clone(),
                fields: tracepoint
                    .as_ref()
                    .map(|tracepoint| {
                        tracepoint_fields(tracepoint, raw, self.enumerations.as_deref())
                    })
                    .unwrap_or_default(),
            },
        })
    }
}

/// Whether an event counts minor or major page faults.
#[must_use]
pub fn is_page_fault(event: &EventDesc) -> bool {
    event.attr.kind == EventType::SOFTWARE
        && matches!(event.attr.config, MINOR_FAULTS | MAJOR_FAULTS)
}

/// Returns names and values of a tracepoint's fields, without the common ones and `__syscall_nr`: the name of the event
/// already has the call.
fn tracepoint_fields(
    tracepoint: &Tracepoint,
    raw: &[u8],
    enumerations: Option<&dyn EnumerationNames>,
) -> Vec<(String, String)> {
    let shown_fields = tracepoint
        .fields()
        .filter(|(field, _)| !field.name.starts_with("common_") && field.name != "__syscall_nr");
    let texts = shown_fields.filter_map(|(field, reader)| {
        let value = reader.value(raw)?;
        let number = match &value {
            Value::Unsigned(number) => i64::try_from(*number).ok(),
            Value::Signed(number) => Some(*number),
            _ => None,
        };
        let enumeration = field.type_name.strip_prefix("enum ");
        let name = number.and_then(|number| enumerations?.name(enumeration?, number));
        if let Some(name) = name {
            return Some((field.name.clone(), name.to_owned()));
        }
        let text = match value {
            Value::Unsigned(number) => number.to_string(),
            Value::Signed(number) => number.to_string(),
            Value::Str(bytes) => quoted(bytes),
            Value::Bytes(bytes) => {
                let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("[{}]", digits.join(""))
            }
            Value::Array(elements) => {
                let numbers: Vec<String> = elements.iter().map(|one| one.to_string()).collect();
                format!("[{}]", numbers.join(", "))
            }
        };
        Some((field.name.clone(), text))
    });
    texts.collect()
}

/// Returns a text in quotes. Control characters are escaped: a newline would begin another line.
fn quoted(bytes: &[u8]) -> String {
    let mut text = b"\"".to_vec();
    // Writing to a `Vec` does not fail.
    let _ = write_name(&mut text, bytes);
    text.push(b'"');
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(quoted(b"a b\n1 \x1b\xff"), "\"a b\\n1 \\033\u{fffd}\"");
    }
}
