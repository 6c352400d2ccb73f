//! Text of tracepoint samples, with the names of the kernel's functions in it.

use std::fmt;
use std::sync::Arc;

use rperf_perfdata::Described;
use rperf_replay::{EventIndex, Machine, Order};
use rperf_resolve::{Place, Resolver};
use rperf_tracepoint::{Context, Error, Formats, KernelSymbols, PrintFmt, Tracepoint, Warning};
use rperf_wire::CpuMode;

/// The tracepoints of a recording, ready to be printed.
#[derive(Debug, Default)]
pub struct Payloads {
    /// By event; `None` for events that are no tracepoints, and for those without a description.
    events: Vec<Option<Arc<Tracepoint>>>,
    formats: Arc<Formats>,
    findings: Vec<PayloadFinding>,
}

/// Why a tracepoint is not shown as the kernel would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadFinding {
    /// The event's name.
    pub event: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Missing,
    Format(Error),
    Generic(Warning),
}

impl fmt::Display for PayloadFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = &self.event;
        match &self.what {
            What::Missing => write!(
                f,
                "the recording has no description of {event}: its fields are not shown"
            ),
            What::Format(error) => write!(f, "{event}: {error}: its fields are not shown"),
            What::Generic(warning) => {
                write!(f, "{event}: {warning}: its fields are shown one by one")
            }
        }
    }
}

impl Payloads {
    /// Compiles the tracepoints of a recording.
    ///
    /// # Errors
    /// As [`Described::formats`].
    pub fn new(recording: Described<'_>) -> Result<Self, rperf_perfdata::Error> {
        let formats = recording.formats()?;
        let mut payloads = Self {
            formats: Arc::clone(&formats),
            ..Self::default()
        };
        for event in recording.events {
            let tracepoint = match formats.of_event(&event.attr) {
                Ok(tracepoint) => Some(Arc::clone(tracepoint)),
                Err(Error::NotATracepoint) => None,
                Err(Error::Undescribed) => {
                    payloads.note(&event.name, What::Missing);
                    None
                }
                Err(error) => {
                    payloads.note(&event.name, What::Format(error.clone()));
                    None
                }
            };
            let text = tracepoint.as_ref().map(|tracepoint| tracepoint.print_fmt());
            if let Some(warning) = text.and_then(PrintFmt::warning) {
                payloads.note(&event.name, What::Generic(warning.clone()));
            }
            payloads.events.push(tracepoint);
        }
        Ok(payloads)
    }

    /// What is not shown as it should be.
    #[must_use]
    pub fn findings(&self) -> &[PayloadFinding] {
        &self.findings
    }

    /// Whether samples of `event` have a text.
    #[must_use]
    pub fn has(&self, event: EventIndex) -> bool {
        self.tracepoint(event).is_some()
    }

    /// The tracepoint that `event` is, if it is described.
    #[must_use]
    pub fn tracepoint(&self, event: EventIndex) -> Option<&Tracepoint> {
        self.events.get(event.0 as usize)?.as_deref()
    }

    /// Appends the text of a sample of `event` with the raw data `raw`; nothing for events without a description.
    #[inline]
    pub fn write(&self, event: EventIndex, raw: &[u8], resolver: &Resolver<'_>, out: &mut Vec<u8>) {
        let Some(tracepoint) = self.tracepoint(event) else {
            return;
        };
        let context = Context {
            symbols: &KernelNames(resolver),
            printk: self.formats.printk(),
        };
        tracepoint.print_fmt().write(raw, &context, out);
    }

    fn note(&mut self, event: &str, what: What) {
        self.findings.push(PayloadFinding {
            event: event.to_owned(),
            what,
        });
    }
}

/// The kernel's functions, for addresses in raw data.
struct KernelNames<'a, 'w>(&'a Resolver<'w>);

impl KernelSymbols for KernelNames<'_, '_> {
    fn symbol_at(&self, address: u64) -> Option<(&str, u64)> {
        // Modules come and go, but those of the end are the ones that readers of an address know.
        let place = Place {
            machine: Machine::Host,
            pid: 0,
            order: Order::MAX,
        };
        let frame = self.0.locate(place, CpuMode::Kernel, address);
        let symbol = frame.symbol?;
        let into = frame.address.wrapping_sub(self.0.symbol(symbol)?.start);
        Some((self.0.symbol_name(symbol), address.wrapping_sub(into)))
    }
}
