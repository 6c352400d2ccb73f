//! Samples as columns of a table.

use rperf_replay::{CommId, DsoId, Epoch, EventIndex, Render, Sample, ThreadCache, World};
use rperf_resolve::{AddressContext, Frame, Resolver, StackScratch, SymbolId, UserStacks, chain};
use rperf_tracepoint::FieldReader;
use rperf_wire::SampleType;

use crate::recent_frames::{ModeAddress, RecentFrames};

/// A column of a table of samples.
#[derive(Debug, Clone)]
pub(crate) enum SampleColumn {
    /// A number of the sample.
    Number(SampleNumber),
    /// The event's name.
    Event,
    /// The name of the thread.
    Comm,
    /// The object at the instruction pointer.
    Dso,
    /// The function at the instruction pointer.
    Symbol,
    /// The callchain as folded text, outermost first.
    Stack,
    /// A field of tracepoints that is a number, with its readers by event; 0 for other events.
    FieldNumber(Vec<Option<FieldReader>>),
    /// A field of tracepoints that is text, with its readers by event; empty for other events.
    FieldText(Vec<Option<FieldReader>>),
}

/// A number of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleNumber {
    Time,
    Cpu,
    Pid,
    Tid,
    Period,
    Ip,
    Addr,
    Id,
    Weight,
    DataSrc,
    PhysAddr,
    Transaction,
}

/// Names and types of the numbers. `i` is a signed number of 4 bytes, `Q` an unsigned one of 8 bytes.
const NUMBERS: &[(&str, SampleNumber, char)] = &[
    ("time", SampleNumber::Time, 'Q'),
    ("cpu", SampleNumber::Cpu, 'i'),
    ("pid", SampleNumber::Pid, 'i'),
    ("tid", SampleNumber::Tid, 'i'),
    ("period", SampleNumber::Period, 'Q'),
    ("ip", SampleNumber::Ip, 'Q'),
    ("addr", SampleNumber::Addr, 'Q'),
    ("sample_id", SampleNumber::Id, 'Q'),
    ("weight", SampleNumber::Weight, 'Q'),
    ("data_src", SampleNumber::DataSrc, 'Q'),
    ("phys_addr", SampleNumber::PhysAddr, 'Q'),
    ("transaction", SampleNumber::Transaction, 'Q'),
];

impl SampleColumn {
    /// The column of this name, except fields of tracepoints.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "event" => Self::Event,
            "comm" => Self::Comm,
            "dso" => Self::Dso,
            "symbol" => Self::Symbol,
            "stack" => Self::Stack,
            _ => {
                let mut numbers = NUMBERS.iter();
                let (_, number, _) = numbers.find(|(known, ..)| *known == name)?;
                Self::Number(*number)
            }
        })
    }

    /// The names of all columns, except fields of tracepoints.
    pub(crate) fn all() -> Vec<&'static str> {
        let numbers = NUMBERS.iter().map(|(name, ..)| *name);
        numbers
            .chain(["event", "comm", "dso", "symbol", "stack"])
            .collect()
    }

    /// The type of the column's items, as a character of Python's module `struct`. The items of text columns are indexes into the
    /// column's categories.
    pub(crate) fn format(&self) -> char {
        match self {
            Self::Number(number) => {
                let mut numbers = NUMBERS.iter();
                let entry = numbers.find(|(_, known, _)| known == number);
                entry.map_or('Q', |(_, _, format)| *format)
            }
            Self::FieldNumber(_) => 'q',
            _ => 'i',
        }
    }

    /// The sample fields that the column needs, besides task, time and period, which are always decoded.
    fn fields(&self) -> SampleType {
        match self {
            Self::Number(number) => match number {
                SampleNumber::Cpu => SampleType::CPU,
                SampleNumber::Ip => SampleType::IP,
                SampleNumber::Addr => SampleType::ADDR,
                SampleNumber::Id => SampleType::ID | SampleType::IDENTIFIER,
                SampleNumber::Weight => SampleType::WEIGHT | SampleType::WEIGHT_STRUCT,
                SampleNumber::DataSrc => SampleType::DATA_SRC,
                SampleNumber::PhysAddr => SampleType::PHYS_ADDR,
                SampleNumber::Transaction => SampleType::TRANSACTION,
                SampleNumber::Time
                | SampleNumber::Pid
                | SampleNumber::Tid
                | SampleNumber::Period => SampleType::default(),
            },
            Self::Event | Self::Comm => SampleType::default(),
            Self::Dso | Self::Symbol => SampleType::IP,
            // Completing a callchain may take registers, the stack copy and the branch stack.
            Self::Stack => SampleType::ALL,
            Self::FieldNumber(_) | Self::FieldText(_) => SampleType::RAW,
        }
    }
}

impl SampleNumber {
    /// Returns this number of `sample`. If it was not recorded: `u32::MAX` (-1) for the CPU, process and thread, `u64::MAX` for
    /// the time, the event's fixed period for the period, and 0 for the others.
    fn of(self, sample: &Sample<'_>) -> u64 {
        let wire = &sample.wire;
        match self {
            Self::Time => wire.time.unwrap_or(u64::MAX),
            Self::Cpu => sample.cpu.into(),
            Self::Pid => sample.pid.into(),
            Self::Tid => sample.tid.into(),
            Self::Period => sample.period,
            Self::Ip => wire.ip.unwrap_or_default(),
            Self::Addr => wire.addr.unwrap_or_default(),
            Self::Id => wire.id.unwrap_or_default(),
            Self::Weight => wire.weight.unwrap_or_default(),
            Self::DataSrc => wire.data_src.unwrap_or_default(),
            Self::PhysAddr => wire.phys_addr.unwrap_or_default(),
            Self::Transaction => wire.transaction.unwrap_or_default(),
        }
    }
}

/// The items of a column for a block of samples. A worker renders a block at a time.
#[derive(Debug, Clone)]
pub(crate) enum ColumnItems {
    /// Numbers, or indexes of events: bytes of the table's column as they are, in native byte order. The items of all other
    /// variants are replaced by indexes into the column's categories.
    Final(Vec<u8>),
    /// Threads' names.
    Comms(Vec<CommId>),
    /// Objects.
    Dsos(Vec<Option<DsoId>>),
    /// Functions.
    Symbols(Vec<Option<SymbolId>>),
    /// The stacks of all rows.
    Stacks {
        /// The frames of all stacks, one stack after the other, innermost first.
        frames: Vec<FoldedFrame>,
        /// The end of each stack in `frames`.
        ends: Vec<usize>,
    },
    /// The texts of all rows.
    Texts {
        /// The texts, one after the other.
        bytes: Vec<u8>,
        /// The end of each text in `bytes`.
        ends: Vec<usize>,
    },
}

/// A frame of a stack: its function, otherwise its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FoldedFrame {
    /// A known function.
    Symbol(SymbolId),
    /// An unknown function of an object.
    Dso(DsoId),
    /// An address without a mapping.
    Unknown,
}

impl FoldedFrame {
    fn of(frame: &Frame) -> Self {
        match (frame.symbol, frame.dso) {
            (Some(symbol), _) => Self::Symbol(symbol),
            (None, Some(dso)) => Self::Dso(dso),
            (None, None) => Self::Unknown,
        }
    }
}

impl ColumnItems {
    fn of(column: &SampleColumn) -> Self {
        match column {
            SampleColumn::Number(_) | SampleColumn::Event | SampleColumn::FieldNumber(_) => {
                Self::Final(Vec::new())
            }
            SampleColumn::Comm => Self::Comms(Vec::new()),
            SampleColumn::Dso => Self::Dsos(Vec::new()),
            SampleColumn::Symbol => Self::Symbols(Vec::new()),
            SampleColumn::Stack => Self::Stacks {
                frames: Vec::new(),
                ends: Vec::new(),
            },
            SampleColumn::FieldText(_) => Self::Texts {
                bytes: Vec::new(),
                ends: Vec::new(),
            },
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Final(bytes) => bytes.clear(),
            Self::Comms(ids) => ids.clear(),
            Self::Dsos(ids) => ids.clear(),
            Self::Symbols(ids) => ids.clear(),
            Self::Stacks { frames, ends } => {
                frames.clear();
                ends.clear();
            }
            Self::Texts { bytes, ends } => {
                bytes.clear();
                ends.clear();
            }
        }
    }
}

/// The columns of a block of samples.
#[derive(Debug, Default)]
pub(crate) struct ColumnBlock {
    pub(crate) rows: usize,
    pub(crate) items: Vec<ColumnItems>,
}

/// Decodes samples into columns.
pub(crate) struct ColumnRenderer<'r, 'w> {
    pub(crate) resolver: &'r Resolver<'w>,
    pub(crate) stacks: UserStacks<'r, 'w>,
    pub(crate) max_stack: usize,
    pub(crate) columns: Vec<SampleColumn>,
    /// By event: whether its samples are rows.
    pub(crate) is_row_by_event: Vec<bool>,
}

/// A worker's caches.
#[derive(Default)]
pub(crate) struct ColumnScratch {
    threads: ThreadCache,
    unwinding: StackScratch,
    frames: RecentFrames,
}

impl ColumnRenderer<'_, '_> {
    /// Appends the frames of a sample's callchain; those of a damaged chain are dropped.
    fn stack(
        &self,
        row: &SampleRow<'_, '_>,
        scratch: &mut ColumnScratch,
        frames: &mut Vec<FoldedFrame>,
    ) {
        let sample = row.sample;
        let completed = self.stacks.chain(sample, &mut scratch.unwinding);
        let Some(callchain) = completed.or(sample.wire.callchain) else {
            return;
        };
        let start = frames.len();
        let at = AddressContext::of(sample);
        let is_valid = chain::walk(callchain, self.max_stack, |mode, ip| {
            let address = ModeAddress { mode, ip };
            let cache = &mut scratch.frames;
            let frame = cache.locate(self.resolver, at, row.epoch, address);
            frames.push(FoldedFrame::of(&frame));
        });
        if !is_valid {
            frames.truncate(start);
        }
    }

    /// Appends the sample's item of `column` to `items`, which are of this column ([`ColumnItems::of`]).
    fn add(
        &self,
        column: &SampleColumn,
        items: &mut ColumnItems,
        row: &SampleRow<'_, '_>,
        scratch: &mut ColumnScratch,
    ) {
        let sample = row.sample;
        let event = sample.event.0 as usize;
        match (column, items) {
            (SampleColumn::Number(number), ColumnItems::Final(bytes)) => {
                let value = number.of(sample);
                match column.format() {
                    'i' => bytes.extend_from_slice(&(value as u32).to_ne_bytes()),
                    _ => bytes.extend_from_slice(&value.to_ne_bytes()),
                }
            }
            (SampleColumn::Event, ColumnItems::Final(bytes)) => {
                bytes.extend_from_slice(&sample.event.0.to_ne_bytes());
            }
            (SampleColumn::FieldNumber(readers), ColumnItems::Final(bytes)) => {
                let reader = readers.get(event).and_then(Option::as_ref);
                let value = reader.zip(sample.wire.raw);
                let value = value.and_then(|(reader, raw)| reader.i64(raw));
                bytes.extend_from_slice(&value.unwrap_or_default().to_ne_bytes());
            }
            (SampleColumn::FieldText(readers), ColumnItems::Texts { bytes, ends }) => {
                let reader = readers.get(event).and_then(Option::as_ref);
                let text = reader.zip(sample.wire.raw);
                let text = text.and_then(|(reader, raw)| reader.text(raw));
                bytes.extend_from_slice(text.unwrap_or_default());
                ends.push(bytes.len());
            }
            (SampleColumn::Comm, ColumnItems::Comms(ids)) => ids.push(row.comm),
            (SampleColumn::Dso, ColumnItems::Dsos(ids)) => {
                ids.push(row.frame.and_then(|frame| frame.dso))
            }
            (SampleColumn::Symbol, ColumnItems::Symbols(ids)) => {
                ids.push(row.frame.and_then(|frame| frame.symbol));
            }
            (SampleColumn::Stack, ColumnItems::Stacks { frames, ends }) => {
                self.stack(row, scratch, frames);
                ends.push(frames.len());
            }
            _ => {}
        }
    }
}

/// A sample, and values that columns need besides its fields.
struct SampleRow<'a, 's> {
    sample: &'a Sample<'s>,
    comm: CommId,
    /// The state of the process's and the kernel's mappings at the sample: the same address has the same frame in equal epochs.
    epoch: Epoch,
    /// The frame of the instruction pointer, if a column needs it and the pointer is recorded.
    frame: Option<Frame>,
}

impl Render for ColumnRenderer<'_, '_> {
    type Out = ColumnBlock;
    type Scratch = ColumnScratch;

    fn reuse(&self, block: &mut ColumnBlock) {
        block.rows = 0;
        block.items.iter_mut().for_each(ColumnItems::clear);
    }

    fn fields(&self) -> SampleType {
        let fields = self.columns.iter().map(SampleColumn::fields);
        fields.fold(SampleType::default(), |all, own| all | own)
    }

    fn reads(&self, event: EventIndex) -> bool {
        self.is_row_by_event
            .get(event.0 as usize)
            .copied()
            .unwrap_or(false)
    }

    fn render(
        &self,
        world: &World,
        sample: &Sample<'_>,
        scratch: &mut ColumnScratch,
        block: &mut ColumnBlock,
    ) {
        // If any event has the modifier `S`, a sample may count for several events: then samples are delivered whatever `reads`
        // returns.
        if !self.reads(sample.event) {
            return;
        }
        if block.items.is_empty() {
            block.items = self.columns.iter().map(ColumnItems::of).collect();
        }
        let mut columns = self.columns.iter();
        let needs_frame =
            columns.any(|column| matches!(column, SampleColumn::Dso | SampleColumn::Symbol));
        let ip = sample.wire.ip.filter(|_| needs_frame);
        let at = AddressContext::of(sample);
        let state = scratch.threads.state_at(world, sample.who(), sample.order);
        let mode = sample.cpu_mode();
        let row = SampleRow {
            sample,
            comm: state.comm_at,
            epoch: state.epoch,
            frame: ip.map(|ip| {
                let address = ModeAddress { mode, ip };
                scratch
                    .frames
                    .locate(self.resolver, at, state.epoch, address)
            }),
        };
        block.rows += 1;
        for (column, items) in self.columns.iter().zip(&mut block.items) {
            self.add(column, items, &row, scratch);
        }
    }
}
