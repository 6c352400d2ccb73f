//! The dict that describes a sample: the argument of `process_event`, and the last argument of handlers that take it.

use std::sync::PoisonError;

use rperf_lines::{BranchFlags, ResolvedAddress};
use rperf_replay::{DsoId, DsoKind, Sample};
use rperf_resolve::{AddressContext, Frame};
use rperf_symbol::Binding;
use rperf_wire::{BranchEntry, DataSource, ReadFormat, ReadValues};

use crate::calls::EventCall;
use crate::encoder::EventEncoder;
use crate::marshal::MarshalWriter;

/// `PERF_MEM_DATA_SRC_NONE`.
pub(crate) const NO_DATA_SOURCE: u64 = 0x0508_0021;
/// The key of the inner dict, which has the values of the sample itself.
const SAMPLE: &str = "sample";
/// Keys of a resolved address: object, its build-id, start and end of the mapping, symbol, offset in the symbol.
type AddressKeys = [&'static str; 6];
const ADDRESS: AddressKeys = [
    "dso",
    "dso_bid",
    "dso_map_start",
    "dso_map_end",
    "symbol",
    "symoff",
];
const DATA_ADDRESS: AddressKeys = [
    "addr_dso",
    "addr_dso_bid",
    "addr_dso_map_start",
    "addr_dso_map_end",
    "addr_symbol",
    "addr_symoff",
];

/// A dict that is being written. It gets only the keys for which `reads` returns true: those that the script's function reads.
struct DictWriter<'d> {
    reads: &'d dyn Fn(&str) -> bool,
    writer: &'d mut MarshalWriter,
}

impl DictWriter<'_> {
    fn put(&mut self, key: &str, write: impl FnOnce(&mut MarshalWriter)) {
        if (self.reads)(key) {
            self.writer.text(key.as_bytes());
            write(self.writer);
        }
    }

    fn number(&mut self, key: &str, value: u64) {
        self.put(key, |writer| writer.unsigned(value));
    }
}

impl EventEncoder<'_, '_> {
    /// Writes the dict of a sample, with the keys that the called function of the script reads.
    pub(crate) fn sample_dict(
        &self,
        call: &EventCall,
        sample: &Sample<'_>,
        comm: &str,
        frames: &[Frame],
        writer: &mut MarshalWriter,
    ) {
        let wire = &sample.wire;
        writer.dict();
        let dict = &mut DictWriter {
            reads: &|key| call.function.reads_key(key),
            writer,
        };
        dict.put("ev_name", |to| to.text(call.name.as_bytes()));
        dict.put("attr", |to| to.byte_string(&call.attr));
        dict.put(SAMPLE, |to| {
            to.dict();
            let inner = &mut DictWriter {
                reads: &|key| call.function.reads_inner_key(SAMPLE, key),
                writer: to,
            };
            self.own_values(call, sample, inner);
            to.end_dict();
        });
        dict.put("raw_buf", |to| {
            to.byte_string(wire.raw.unwrap_or_default());
        });
        dict.put("comm", |to| to.text(comm.as_bytes()));
        if ADDRESS.iter().any(|key| (dict.reads)(key)) {
            let ip = wire.ip.unwrap_or_default();
            let at = AddressContext::of(sample);
            let frame = self.resolver.locate(at, sample.cpu_mode(), ip);
            self.address(&frame, ADDRESS, dict);
        }
        dict.put("callchain", |to| self.callchain(call, frames, to));
        dict.put("brstack", |to| self.branches(sample, to));
        dict.put("brstacksym", |to| self.named_branches(sample, to));
        for (key, registers) in [("iregs", &wire.regs_intr), ("uregs", &wire.regs_user)] {
            dict.put(key, |to| {
                let text = registers.as_ref().map(&self.registers);
                to.text(text.unwrap_or_default().as_bytes());
            });
        }
        writer.end_dict();
    }

    /// Writes the inner dict: the values of the sample itself, and as in perf its resolved data address.
    fn own_values(&self, call: &EventCall, sample: &Sample<'_>, dict: &mut DictWriter<'_>) {
        let wire = &sample.wire;
        dict.put("pid", |to| to.signed(sample.pid.cast_signed().into()));
        dict.put("tid", |to| to.signed(sample.tid.cast_signed().into()));
        dict.number("cpu", sample.cpu.into());
        dict.number("ip", wire.ip.unwrap_or_default());
        dict.number("time", self.time(sample));
        dict.number("period", sample.period);
        dict.number("phys_addr", wire.phys_addr.unwrap_or_default());
        dict.number("addr", wire.addr.unwrap_or_default());
        let read = wire.read.as_ref();
        if call.read_format.contains(ReadFormat::TOTAL_TIME_ENABLED) {
            let time = read.and_then(ReadValues::time_enabled);
            dict.number("time_enabled", time.unwrap_or_default());
        }
        if call.read_format.contains(ReadFormat::TOTAL_TIME_RUNNING) {
            let time = read.and_then(ReadValues::time_running);
            dict.number("time_running", time.unwrap_or_default());
        }
        dict.put("values", |to| read_values(sample, to));
        // With `PERF_SAMPLE_WEIGHT_STRUCT`, the weight is the low 32 bits; the rest are other parts.
        let weight = wire.weight.unwrap_or_default();
        dict.number(
            "weight",
            match call.has_weight_parts {
                true => weight & u64::from(u32::MAX),
                false => weight,
            },
        );
        dict.number("transaction", wire.transaction.unwrap_or_default());
        let source = self.data_source(sample);
        dict.number("datasrc", source);
        dict.put("datasrc_decode", |to| {
            to.text(source_text(source).as_bytes());
        });
        dict.number("cpumode", sample.misc.mode_bits().0.into());
        let branch = match (dict.reads)("flags") || (dict.reads)("flags_disp") {
            true => self.branch_flags(sample),
            false => BranchFlags::default(),
        };
        if branch != BranchFlags::default() {
            dict.put("flags", |to| to.text(branch.letters().as_bytes()));
            // perf pads the text for display to 21 columns.
            dict.put("flags_disp", |to| {
                to.text(format!("{:<21}", branch.name()).as_bytes());
            });
        }
        if call.symbolizes_data {
            let at = AddressContext::of(sample);
            let address = wire.addr.unwrap_or_default();
            let frame = self.resolver.locate_data(at, sample.cpu_mode(), address);
            dict.put("addr_correlates_sym", |to| to.boolean(true));
            self.address(&frame, DATA_ADDRESS, dict);
        }
    }

    /// Writes object, mapping and symbol of an address under these keys; nothing for an address without a mapping.
    fn address(&self, frame: &Frame, keys: AddressKeys, dict: &mut DictWriter<'_>) {
        // The World: the recording's processes, mappings and DSOs, by time.
        let world = self.resolver.world();
        let Some(id) = frame.mapping else {
            return;
        };
        let [object, build_id, start, end, symbol, offset] = keys;
        let named = self.lines.resolved(frame);
        let mapping = world.mapping(id);
        let dso = world.dso(mapping.dso);
        dict.put(object, |to| {
            to.text(named.object.unwrap_or_default().as_bytes());
        });
        dict.put(build_id, |to| {
            to.text(self.build_id(mapping.dso).as_bytes());
        });
        let mapping_end = match dso.kind {
            DsoKind::Kernel => mapping.end.max(self.end_of_symbols(mapping.dso)),
            _ => mapping.end,
        };
        dict.number(start, mapping.start);
        dict.number(end, mapping_end);
        if let Some(resolved) = named.symbol {
            dict.put(symbol, |to| to.text(resolved.name.as_bytes()));
            dict.number(offset, resolved.offset);
        }
    }

    /// The end of the last symbol of a kernel. Symbols may lie after the end of the kernel's recorded mapping.
    fn end_of_symbols(&self, kernel: DsoId) -> u64 {
        let ends = self.ends_of_kernels.lock();
        let mut ends = ends.unwrap_or_else(PoisonError::into_inner);
        *ends.entry(kernel).or_insert_with(|| {
            let symbols = self.resolver.symbols(kernel);
            let end = symbols.map(|(_, symbol)| symbol.end).max();
            end.unwrap_or_default()
        })
    }

    /// Writes a callchain.
    pub(crate) fn callchain(&self, call: &EventCall, frames: &[Frame], writer: &mut MarshalWriter) {
        let start = writer.open_list();
        let mut count = 0;
        for frame in frames {
            let mut write = |named| {
                count += 1;
                self.frame(frame, &named, writer);
            };
            // Whether to add inlined functions: if not given, only for events with copies of user stacks.
            match self.inlines.unwrap_or(call.has_stack_copies) {
                true => self.lines.expand(frame, write),
                false => write(self.lines.resolved(frame)),
            }
        }
        writer.set_length(start, count);
    }

    /// Writes a frame of a callchain. `named` is the function at `frame`, which may be inlined there. Start, end and binding are
    /// always those of the symbol that contains the code.
    fn frame(&self, frame: &Frame, named: &ResolvedAddress<'_>, writer: &mut MarshalWriter) {
        writer.dict();
        writer.text(b"ip");
        writer.unsigned(named.ip);
        let symbol = frame.symbol.and_then(|id| self.resolver.symbol(id));
        if let (Some(resolved), Some(symbol)) = (named.symbol, symbol) {
            writer.text(b"sym");
            writer.dict();
            for (key, value) in [
                ("start", symbol.start),
                ("end", symbol.end),
                ("binding", binding(symbol.binding)),
            ] {
                writer.text(key.as_bytes());
                writer.unsigned(value);
            }
            writer.text(b"name");
            writer.text(resolved.name.as_bytes());
            writer.end_dict();
            writer.text(b"sym_off");
            writer.unsigned(resolved.offset);
        }
        if let Some(object) = named.object {
            writer.text(b"dso");
            writer.text(object.as_bytes());
        }
        writer.end_dict();
    }

    fn branches(&self, sample: &Sample<'_>, writer: &mut MarshalWriter) {
        let start = writer.open_list();
        let mut count = 0;
        for entry in branch_entries(sample) {
            count += 1;
            writer.dict();
            for (key, value) in [("from", entry.from), ("to", entry.to)] {
                writer.text(key.as_bytes());
                writer.unsigned(value);
            }
            for (key, bit) in [("mispred", 0), ("predicted", 1), ("in_tx", 2), ("abort", 3)] {
                writer.text(key.as_bytes());
                writer.boolean(entry.flags >> bit & 1 != 0);
            }
            writer.text(b"cycles");
            writer.unsigned(entry.cycles());
            for (key, address) in [("from_dsoname", entry.from), ("to_dsoname", entry.to)] {
                let frame = self.branch_end(sample, address);
                let object = self.lines.resolved(&frame).object;
                writer.text(key.as_bytes());
                writer.text(object.unwrap_or("[unknown]").as_bytes());
            }
            writer.end_dict();
        }
        writer.set_length(start, count);
    }

    fn named_branches(&self, sample: &Sample<'_>, writer: &mut MarshalWriter) {
        let start = writer.open_list();
        let mut count = 0;
        for entry in branch_entries(sample) {
            count += 1;
            let bits: [u32; 4] = [0, 1, 2, 3];
            let [is_mispredicted, is_predicted, is_in_tx, is_abort] =
                bits.map(|bit| entry.flags >> bit & 1 != 0);
            writer.dict();
            for (key, address) in [("from", entry.from), ("to", entry.to)] {
                let frame = self.branch_end(sample, address);
                let text = match self.lines.resolved(&frame).symbol {
                    Some(symbol) => format!("{}+0x{:x}", symbol.name, symbol.offset),
                    None => "[unknown]".to_owned(),
                };
                writer.text(key.as_bytes());
                writer.text(text.as_bytes());
            }
            let prediction = match (is_mispredicted, is_predicted) {
                (false, false) => "-",
                (true, _) => "M",
                (false, true) => "P",
            };
            let values = [
                ("pred", prediction),
                ("in_tx", if is_in_tx { "X" } else { "-" }),
                ("abort", if is_abort { "A" } else { "-" }),
            ];
            for (key, text) in values {
                writer.text(key.as_bytes());
                writer.text(text.as_bytes());
            }
            writer.end_dict();
        }
        writer.set_length(start, count);
    }

    /// Resolves the source or the target of a branch, like a data address: it may be in the kernel although the sample is in user
    /// mode, and vice versa.
    fn branch_end(&self, sample: &Sample<'_>, address: u64) -> Frame {
        let at = AddressContext::of(sample);
        self.resolver.locate_data(at, sample.cpu_mode(), address)
    }
}

fn branch_entries<'s>(sample: &'s Sample<'_>) -> impl Iterator<Item = BranchEntry> + 's {
    let stack = sample.wire.branch_stack.as_ref();
    stack.into_iter().flat_map(|stack| stack.iter())
}

/// Writes the counters of a sample as tuples of id, value and lost samples; one tuple of zeros if there are none.
fn read_values(sample: &Sample<'_>, writer: &mut MarshalWriter) {
    let values = sample.wire.read.as_ref().map(|read| read.values());
    let mut counters: Vec<[u64; 3]> = values
        .unwrap_or_default()
        .iter()
        .map(|value| [value.id.unwrap_or(0), value.value, value.lost.unwrap_or(0)])
        .collect();
    if counters.is_empty() {
        counters.push([0; 3]);
    }
    writer.list(counters.len());
    for counter in counters {
        writer.tuple(counter.len());
        for number in counter {
            writer.unsigned(number);
        }
    }
}

/// The text of a data source, without the number before it.
fn source_text(source: u64) -> String {
    let text = DataSource(source).to_string();
    let start = text.find('|').unwrap_or(text.len());
    text.get(start..).unwrap_or_default().to_owned()
}

/// The number of a symbol's binding, `STB_*` of elf(5); `STB_GNU_UNIQUE` for [`Binding::Other`].
pub(crate) fn binding(binding: Binding) -> u64 {
    match binding {
        Binding::Local => 0,
        Binding::Global => 1,
        Binding::Weak => 2,
        Binding::Other => 10,
    }
}
