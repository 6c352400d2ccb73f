//! Text of tracepoint samples, with kernel symbols resolved.

use std::fmt;
use std::sync::Arc;

use rperf_perfdata::Metadata;
use rperf_replay::{EventIndex, Machine, Order};
use rperf_resolve::{AddressContext, Resolver};
use rperf_tracepoint::{
    Error, FormatWarning, Formats, KernelSymbols, PrintContext, PrintFmt, Tracepoint,
};
use rperf_wire::CpuMode;

/// The tracepoints of a recording, ready for printing.
#[derive(Debug, Default)]
pub struct TracepointPrinter {
    /// By event; `None` if the event is not a tracepoint, or has no valid format.
    events: Vec<Option<Arc<Tracepoint>>>,
    formats: Arc<Formats>,
    findings: Vec<PayloadFinding>,
}

/// The reason why a tracepoint is not printed as the kernel prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadFinding {
    /// The event's name.
    pub event: String,
    problem: PayloadProblem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PayloadProblem {
    /// The recording has no format of the tracepoint.
    Missing,
    /// The format is invalid.
    Format(Error),
    /// The `print fmt` of a valid format is not understood, so fields are shown in a generic way: one by one.
    Generic(FormatWarning),
}

impl fmt::Display for PayloadFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = &self.event;
        match &self.problem {
            PayloadProblem::Missing => write!(
                f,
                "the recording has no format of {event}: its fields are not shown"
            ),
            PayloadProblem::Format(error) => {
                write!(f, "{event}: {error}: its fields are not shown")
            }
            PayloadProblem::Generic(warning) => {
                write!(f, "{event}: {warning}: its fields are shown one by one")
            }
        }
    }
}

impl TracepointPrinter {
    /// Loads the tracepoints of a recording.
    ///
    /// # Errors
    /// As [`Metadata::formats`].
    pub fn new(recording: Metadata<'_>) -> Result<Self, rperf_perfdata::Error> {
        let formats = recording.formats()?;
        let mut printer = Self {
            formats: Arc::clone(&formats),
            ..Self::default()
        };
        for event in recording.events {
            let tracepoint = match formats.of_event(&event.attr) {
                Ok(tracepoint) => Some(Arc::clone(tracepoint)),
                Err(Error::NotATracepoint) => None,
                Err(Error::Undescribed) => {
                    printer.note(&event.name, PayloadProblem::Missing);
                    None
                }
                Err(error) => {
                    printer.note(&event.name, PayloadProblem::Format(error.clone()));
                    None
                }
            };
            let print_fmt = tracepoint.as_ref().map(|tracepoint| tracepoint.print_fmt());
            if let Some(warning) = print_fmt.and_then(PrintFmt::warning) {
                printer.note(&event.name, PayloadProblem::Generic(warning.clone()));
            }
            printer.events.push(tracepoint);
        }
        Ok(printer)
    }

    /// Problems with tracepoint formats.
    #[must_use]
    pub fn findings(&self) -> &[PayloadFinding] {
        &self.findings
    }

    /// Whether `event` is a tracepoint with a valid format.
    #[must_use]
    pub fn has(&self, event: EventIndex) -> bool {
        self.tracepoint(event).is_some()
    }

    /// The tracepoint of `event`, if it has a valid format.
    #[must_use]
    pub fn tracepoint(&self, event: EventIndex) -> Option<&Tracepoint> {
        self.events.get(event.0 as usize)?.as_deref()
    }

    /// Appends the text of a sample of `event` with the raw data `raw`; nothing for events without
    /// a valid format.
    #[inline]
    pub fn write(&self, event: EventIndex, raw: &[u8], resolver: &Resolver<'_>, out: &mut Vec<u8>) {
        let Some(tracepoint) = self.tracepoint(event) else {
            return;
        };
        let context = PrintContext {
            symbols: &KernelNames(resolver),
            printk: self.formats.printk(),
        };
        tracepoint.print_fmt().write(raw, &context, out);
    }

    fn note(&mut self, event: &str, problem: PayloadProblem) {
        self.findings.push(PayloadFinding {
            event: event.to_owned(),
            problem,
        });
    }
}

/// Resolves kernel addresses in raw data.
struct KernelNames<'a, 'w>(&'a Resolver<'w>);

impl KernelSymbols for KernelNames<'_, '_> {
    fn symbol_at(&self, address: u64) -> Option<(&str, u64)> {
        // Modules are loaded and unloaded; those at the end of the recording are used.
        let at = AddressContext {
            machine: Machine::Host,
            pid: 0,
            order: Order::MAX,
        };
        // Only the difference of `frame.address` and the symbol's start is used, since both may be addresses in the object. The
        // returned start is an address in memory.
        let frame = self.0.locate(at, CpuMode::Kernel, address);
        let symbol = frame.symbol?;
        let offset = frame.address.wrapping_sub(self.0.symbol(symbol)?.start);
        Some((self.0.symbol_name(symbol), address.wrapping_sub(offset)))
    }
}
