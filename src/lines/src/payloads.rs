//! What tracepoints tell, as text: the `print fmt` of every tracepoint of a recording, compiled once.

use std::fmt;

use rperf_perfdata::Described;
use rperf_replay::{EventIndex, Machine, Order};
use rperf_resolve::{Place, Resolver};
use rperf_tracepoint::{
    Context, EventFormat, Format, KernelSymbols, Machine as Recorder, PrintFmt, PrintkFormats,
};
use rperf_wire::{CpuMode, EventType};
use rustc_hash::FxHashMap;

/// The tracepoints of a recording, ready to be printed.
#[derive(Debug, Default)]
pub struct Payloads {
    /// By event; `None` for events that are no tracepoints, and for those without a description.
    events: Vec<Option<Tracepoint>>,
    printk: PrintkFormats,
    findings: Vec<PayloadFinding>,
}

/// A tracepoint of a recording.
#[derive(Debug)]
pub struct Tracepoint {
    /// Its fields.
    pub format: Format,
    /// The machine that it was recorded on.
    pub recorder: Recorder,
    text: PrintFmt,
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
    Format(rperf_tracepoint::Error),
    Generic(rperf_tracepoint::Warning),
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
    /// As [`rperf_tracepoint::TracingData::parse`], where there are tracepoints to describe.
    pub fn new(recording: Described<'_>) -> Result<Self, rperf_perfdata::Error> {
        let is_tracepoint =
            |event: &&rperf_perfdata::EventDesc| event.attr.kind == EventType::TRACEPOINT;
        if !recording.events.iter().any(|event| is_tracepoint(&event)) {
            return Ok(Self::default());
        }
        let tracing_data = recording.features.tracing_data()?;
        let mut payloads = Self::default();
        let mut formats: FxHashMap<u64, &EventFormat<'_>> = FxHashMap::default();
        let mut recorder = Recorder {
            endian: recording.endian,
            long_size: 8,
        };
        if let Some(tracing_data) = &tracing_data {
            let numbered = tracing_data.events.iter();
            formats.extend(numbered.filter_map(|event| Some((event.id()?, event))));
            recorder.long_size = tracing_data.long_size;
            let printk = String::from_utf8_lossy(tracing_data.printk_formats);
            payloads.printk = PrintkFormats::parse(&printk);
        }
        for event in recording.events {
            let compiled = is_tracepoint(&event)
                .then(|| compile(formats.get(&event.attr.config).copied(), recorder));
            let program = match compiled.transpose() {
                Ok(program) => program,
                Err(what) => {
                    payloads.note(&event.name, what);
                    None
                }
            };
            if let Some(warning) = program.as_ref().and_then(|program| program.text.warning()) {
                payloads.note(&event.name, What::Generic(warning.clone()));
            }
            payloads.events.push(program);
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
        self.events.get(event.0 as usize)?.as_ref()
    }

    /// Appends the text of a sample of `event` with the raw data `raw`; nothing for events without a description.
    #[inline]
    pub fn write(&self, event: EventIndex, raw: &[u8], resolver: &Resolver<'_>, out: &mut Vec<u8>) {
        let Some(tracepoint) = self.tracepoint(event) else {
            return;
        };
        let context = Context {
            symbols: &KernelNames(resolver),
            printk: &self.printk,
        };
        tracepoint.text.write(raw, &context, out);
    }

    fn note(&mut self, event: &str, what: What) {
        self.findings.push(PayloadFinding {
            event: event.to_owned(),
            what,
        });
    }
}

fn compile(format: Option<&EventFormat<'_>>, recorder: Recorder) -> Result<Tracepoint, What> {
    let text = format.ok_or(What::Missing)?.to_str();
    let format = Format::parse_for(&text, recorder.long_size.into()).map_err(What::Format)?;
    Ok(Tracepoint {
        text: PrintFmt::compile(&format, recorder),
        format,
        recorder,
    })
}

/// The kernel's functions, for the addresses that tracepoints tell.
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
