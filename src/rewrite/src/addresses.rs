//! Moves mappings to other addresses, and the addresses in samples with them.
//!
//! Each mapping of user space gets a separate address range while there is room; all of kernel space is shifted by one
//! distance. Offsets within mappings are unchanged, so that the same functions are found. All other addresses, such as those
//! of user space outside of mappings, keep only their offset within the page; addresses in the first page are unchanged.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use rperf_perfdata::EventDesc;
use rperf_replay::{LiveWorld, Machine, MappingId, Order};
use rperf_wire::{
    CallchainDeferred, CpuMode, Encoder, Endian, Ksymbol, Mmap, Mmap2, RawRecord, Record,
    RecordHeader, RecordKind, SampleLayout, SampleType, U64s,
};
use rustc_hash::FxHashMap;

use crate::context_mode::{chain_entries, mode_of_address};
use crate::pipeline::Transform;

/// Fields of samples that reveal addresses or memory and are dropped, since their addresses cannot be moved.
const UNMOVABLE_FIELDS: SampleType = SampleType(
    SampleType::REGS_USER.0
        | SampleType::STACK_USER.0
        | SampleType::REGS_INTR.0
        | SampleType::PHYS_ADDR.0
        | SampleType::AUX.0,
);

/// Bytes of a page.
pub(crate) const PAGE: u64 = 1 << 12;
/// First address of moved mappings, and the end of the area.
const AREA: u64 = 0x5000_0000_0000;
const AREA_END: u64 = 0x7000_0000_0000;
/// The first mapping starts less than this number of pages after [`AREA`].
const START_PAGES: u64 = 1 << 20;
/// Bytes between moved mappings.
const GAP: u64 = 1 << 20;
/// Area to which addresses outside of mappings are moved: 2^34 pages from here.
const UNMAPPED: u64 = 0x1000_0000_0000;
const UNMAPPED_PAGES: u64 = 1 << 34;
/// The kernel is shifted by 1 to `KERNEL_STEPS` times this.
const KERNEL_STEP: u64 = 2 << 20;
const KERNEL_STEPS: u64 = 255;

/// The new addresses of a recording.
struct AddressMap {
    /// The World (the processes and mappings at each time) of the records so far.
    live: LiveWorld,
    /// Random in each run, so that the original addresses can't be computed from the new ones.
    key: RandomState,
    /// New starts of mappings.
    starts: FxHashMap<MappingId, u64>,
    /// New start of the next mapping.
    next: u64,
    /// The distance by which addresses of the kernel are lowered.
    kernel_shift: u64,
}

/// The process, mode and time of an address. Its machine follows from the process and the mode.
#[derive(Debug, Clone, Copy)]
struct Place {
    pid: u32,
    mode: CpuMode,
    order: Order,
}

impl AddressMap {
    fn new(endian: Endian, events: &[EventDesc]) -> Self {
        let key = RandomState::new();
        let steps = 1 + key.hash_one("kernel") % KERNEL_STEPS;
        let pages = key.hash_one("start") % START_PAGES;
        Self {
            live: LiveWorld::new(endian, events),
            starts: FxHashMap::default(),
            next: AREA + pages * PAGE,
            kernel_shift: steps * KERNEL_STEP,
            key,
        }
    }

    /// Returns the new address of an address.
    fn moved(&mut self, place: Place, address: u64) -> u64 {
        match place.mode {
            // Programs don't map the first page: such numbers are not addresses.
            _ if address < PAGE => address,
            CpuMode::Kernel | CpuMode::GuestKernel => address.wrapping_sub(self.kernel_shift),
            CpuMode::User | CpuMode::GuestUser => self.moved_user(place, address),
            CpuMode::Unknown | CpuMode::Hypervisor => self.moved_unmapped(place, address),
        }
    }

    fn moved_user(&mut self, place: Place, address: u64) -> u64 {
        let machine = Machine::of(place.mode, place.pid);
        let world = self.live.world();
        let found = world.lookup(machine, place.mode, place.pid, place.order, address);
        let Some(found) = found else {
            return self.moved_unmapped(place, address);
        };
        let mapping = *world.mapping(found);
        let start = self.start_of(found, mapping.start, mapping.end);
        address.wrapping_sub(mapping.start).wrapping_add(start)
    }

    /// The new start of a mapping from `start` to `end`.
    fn start_of(&mut self, mapping: MappingId, start: u64, end: u64) -> u64 {
        if let Some(start) = self.starts.get(&mapping) {
            return *start;
        }
        let new = self.new_start(start, end.saturating_sub(start));
        self.starts.insert(mapping, new);
        new
    }

    fn new_start(&mut self, start: u64, len: u64) -> u64 {
        let len = len.min(AREA_END - AREA - GAP).next_multiple_of(PAGE);
        if self.next + len > AREA_END {
            self.next = AREA;
        }
        let new = self.next + start % PAGE;
        self.next += len + GAP;
        new
    }

    /// Returns the new address of an address outside of mappings: a page of a process is always moved to the same page.
    fn moved_unmapped(&self, place: Place, address: u64) -> u64 {
        let page = self.key.hash_one((place.pid, address / PAGE)) % UNMAPPED_PAGES;
        UNMAPPED + page * PAGE + address % PAGE
    }

    /// Appends a callchain with new addresses. `place` has the process and time of the callchain; `place.mode` is ignored.
    fn moved_chain(&mut self, place: Place, chain: U64s<'_>, to: &mut Vec<u64>) {
        for (word, mode) in chain_entries(&chain) {
            to.push(match mode {
                Some(mode) => self.moved(Place { mode, ..place }, word),
                None => word,
            });
        }
    }
}

/// Moves the addresses of a recording, and drops sample fields that cannot be moved, hardware traces, and changes of kernel code.
pub struct AddressShifter {
    map: AddressMap,
    endian: Endian,
    /// Layouts of the new samples, by event.
    layouts: Vec<SampleLayout>,
    /// Orders (time and position) of the MMAP and MMAP2 records that were noted and have not been rewritten yet.
    orders: VecDeque<Order>,
    /// Position of the next record to be rewritten, counted as in [`LiveWorld`]: the bytes of the records before it.
    position: u64,
}

impl AddressShifter {
    /// Creates a shifter for a recording with these events, which are changed to those of the result.
    #[must_use]
    pub fn new(endian: Endian, events: &mut [EventDesc]) -> Self {
        let map = AddressMap::new(endian, events);
        Self {
            map,
            endian,
            layouts: crate::fields::drop_fields(events, UNMOVABLE_FIELDS),
            orders: VecDeque::new(),
            position: 0,
        }
    }

    /// Appends the sample with its new addresses; returns `false`, and appends nothing, if it can't be decoded.
    fn sample(&mut self, raw: &RawRecord<'_>, position: u64, to: &mut Vec<u8>) -> bool {
        let Ok(Some(sample)) = self.map.live.sample(raw, position) else {
            return false;
        };
        let Some(layout) = self.layouts.get(sample.event.0 as usize) else {
            return false;
        };
        let (endian, map) = (self.endian, &mut self.map);
        let place = Place {
            pid: sample.pid,
            mode: sample.cpu_mode(),
            order: sample.order,
        };
        let mut wire = sample.wire.clone();
        wire.ip = wire.ip.map(|ip| map.moved(place, ip));
        wire.addr = wire
            .addr
            .map(|address| map.moved(with_mode_of_address(place, address), address));
        let chain = encode_computed(endian, wire.callchain, |chain, to| {
            map.moved_chain(place, chain, to)
        });
        wire.callchain = wire.callchain.map(|_| U64s::new(&chain, endian));
        let branches = wire.branch_stack.map(|stack| stack.words());
        let branches = encode_computed(endian, branches, |entries, to| {
            for (index, word) in entries.iter().enumerate() {
                let is_flags = index % 3 == 2;
                let moved =
                    |map: &mut AddressMap| map.moved(with_mode_of_address(place, word), word);
                to.push(if is_flags { word } else { moved(map) });
            }
        });
        wire.branch_stack = wire
            .branch_stack
            .map(|stack| stack.with_words(U64s::new(&branches, endian)));
        RecordHeader::encode_record(raw.kind, raw.misc, to, endian, |to| {
            layout.encode(&wire, to);
        })
    }

    /// The record at `position` with its new addresses; `None` if the record must be dropped. `order` is the time and position
    /// of an MMAP or MMAP2 record. The result may refer to words in `buffer`.
    fn with_moved_addresses<'a>(
        &mut self,
        raw: &RawRecord<'a>,
        position: u64,
        order: Option<Order>,
        buffer: &'a mut Vec<u8>,
    ) -> Option<Record<'a>> {
        match Record::decode(raw, self.endian).ok()? {
            Record::Mmap(mmap) => Some(Record::Mmap(self.moved_mapping(raw, mmap, order))),
            Record::Mmap2(mmap2) => Some(Record::Mmap2(Mmap2 {
                mmap: self.moved_mapping(raw, mmap2.mmap, order),
                ..mmap2
            })),
            Record::Ksymbol(symbol) => Some(Record::Ksymbol(Ksymbol {
                addr: symbol.addr.wrapping_sub(self.map.kernel_shift),
                ..symbol
            })),
            Record::CallchainDeferred(deferred) => {
                let place = self.place_of(raw, position)?;
                let mut chain = Vec::new();
                self.map.moved_chain(place, deferred.ips, &mut chain);
                *buffer = encoded(self.endian, &chain);
                let ips = U64s::new(buffer, self.endian);
                Some(Record::CallchainDeferred(CallchainDeferred {
                    ips,
                    ..deferred
                }))
            }
            _ => None,
        }
    }

    /// The process and time of the CALLCHAIN_DEFERRED record at `position`; `None` if it has no process id. The mode is only a
    /// placeholder: [`AddressMap::moved_chain`] ignores it.
    fn place_of(&self, raw: &RawRecord<'_>, position: u64) -> Option<Place> {
        let order = Order {
            // The flush limit, for records without a time: no record of an earlier time can follow.
            time: self.map.live.limit(),
            position,
        };
        let id = self.map.live.non_sample(*raw, order).id;
        Some(Place {
            pid: id.pid_tid?.0,
            mode: CpuMode::User,
            order: Order {
                time: id.time.unwrap_or(order.time),
                ..order
            },
        })
    }

    /// The mapping in a record, with its new start.
    fn moved_mapping<'a>(
        &mut self,
        raw: &RawRecord<'_>,
        mmap: Mmap<'a>,
        order: Option<Order>,
    ) -> Mmap<'a> {
        let mode = raw.misc.cpu_mode();
        if matches!(mode, CpuMode::Kernel | CpuMode::GuestKernel) {
            // In the mapping of the kernel itself, the file offset is the address of a symbol (such as `_text`), whose highest
            // bit is set. Other file offsets are not addresses.
            let shift = self.map.kernel_shift;
            let pgoff = match mmap.pgoff.cast_signed() < 0 {
                true => mmap.pgoff.wrapping_sub(shift),
                false => mmap.pgoff,
            };
            let start = mmap.start.wrapping_sub(shift);
            return Mmap {
                start,
                pgoff,
                ..mmap
            };
        }
        let pid = mmap.pid.cast_unsigned();
        // The World has the mapping of this record only at positions after the record.
        let after = order.map(|order| Order {
            position: order.position + 1,
            ..order
        });
        let world = self.map.live.world();
        let found = after.and_then(|after| {
            let machine = Machine::of(mode, pid);
            let found = world.lookup(machine, mode, pid, after, mmap.start)?;
            let mapping = world.mapping(found);
            (mapping.start == mmap.start).then_some((found, mapping.end))
        });
        let start = match found {
            Some((found, end)) => self.map.start_of(found, mmap.start, end),
            None => self.map.new_start(mmap.start, mmap.len),
        };
        Mmap { start, ..mmap }
    }
}

/// The place of a data address or a branch of a sample at `place`.
fn with_mode_of_address(place: Place, address: u64) -> Place {
    let mode = mode_of_address(place.mode, address);
    Place { mode, ..place }
}

/// Encodes the words that `compute` appends for `before`; empty without `before`.
fn encode_computed(
    endian: Endian,
    before: Option<U64s<'_>>,
    compute: impl FnOnce(U64s<'_>, &mut Vec<u64>),
) -> Vec<u8> {
    let mut after = Vec::new();
    if let Some(before) = before {
        compute(before, &mut after);
    }
    encoded(endian, &after)
}

fn encoded(endian: Endian, words: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(words));
    let mut to = Encoder::new(&mut bytes, endian);
    words.iter().for_each(|word| to.u64(*word));
    bytes
}

/// Whether records of this type, other than samples, have addresses that are moved.
fn is_moved(kind: RecordKind) -> bool {
    matches!(
        kind,
        RecordKind::MMAP | RecordKind::MMAP2 | RecordKind::KSYMBOL | RecordKind::CALLCHAIN_DEFERRED
    )
}

/// Whether records of this type are dropped, since they belong to hardware traces or contain code.
fn is_dropped(kind: RecordKind) -> bool {
    matches!(
        kind,
        RecordKind::TEXT_POKE
            | RecordKind::AUX
            | RecordKind::ITRACE_START
            | RecordKind::AUXTRACE_INFO
            | RecordKind::AUXTRACE
            | RecordKind::AUXTRACE_ERROR
    )
}

impl Transform for AddressShifter {
    fn is_ordered(&self) -> bool {
        // A mapping in the next round may be older than a sample in this one.
        true
    }

    fn note(&mut self, records: &[u8]) {
        let orders = &mut self.orders;
        self.map.live.add_each(records, |order, raw| {
            if matches!(raw.kind, RecordKind::MMAP | RecordKind::MMAP2) {
                orders.push_back(order);
            }
        });
    }

    fn note_end(&mut self) {
        self.map.live.apply_all();
    }

    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        // Applies the noted mappings up to the flush limit: the samples to be rewritten are not later.
        self.map.live.apply_complete();
        for (raw, record) in RawRecord::all(records, self.endian) {
            let position = self.position;
            self.position += record.len() as u64;
            if raw.kind == RecordKind::SAMPLE {
                // A sample that can't be decoded is dropped.
                self.sample(&raw, position, to);
                continue;
            }
            let order = match raw.kind {
                RecordKind::MMAP | RecordKind::MMAP2 => self.orders.pop_front(),
                _ => None,
            };
            if is_dropped(raw.kind) {
                continue;
            }
            if !is_moved(raw.kind) {
                to.extend_from_slice(record);
                continue;
            }
            let mut buffer = Vec::new();
            let trailer = trailer(&self.map.live, &raw).to_vec();
            if let Some(moved) = self.with_moved_addresses(&raw, position, order, &mut buffer) {
                RecordHeader::encode_record(raw.kind, raw.misc, to, self.endian, |to| {
                    moved.encode_body(to);
                    to.bytes(&trailer);
                });
            }
        }
    }

    fn special(&mut self, record: &[u8], to: &mut Vec<u8>) {
        let kind = RawRecord::split(record, self.endian).map(|(raw, _)| raw.kind);
        if !kind.is_some_and(is_dropped) {
            to.extend_from_slice(record);
        }
    }
}

/// The bytes of a record's trailer.
fn trailer<'a>(live: &LiveWorld, raw: &RawRecord<'a>) -> &'a [u8] {
    let fields = live.fields(raw).len();
    raw.body.get(fields..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rperf_replay::EventTable;
    use rperf_wire::{Attr, AttrFlags, Misc};

    use super::*;

    const PID: u32 = 7;
    const START: u64 = 0x5000_0000;
    const GUEST_USER: Misc = Misc(5);

    fn record(kind: RecordKind, misc: Misc, encode: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(RecordHeader::encode_record(
            kind,
            misc,
            &mut bytes,
            Endian::NATIVE,
            encode
        ));
        bytes
    }

    #[test]
    fn data_addresses_and_branches_in_guests_are_moved_with_the_mappings_of_the_guest() {
        let attr = Attr {
            sample_type: SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::ADDR
                | SampleType::BRANCH_STACK,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        let mut events = [EventDesc::new(attr, vec![1])];
        let mapping = |misc, time: u64| {
            let mmap = Record::Mmap(Mmap {
                pid: PID.cast_signed(),
                tid: PID,
                start: START,
                len: 0x1000,
                pgoff: 0,
                filename: b"/bin/x",
            });
            record(RecordKind::MMAP, misc, |to| {
                mmap.encode_body(to);
                to.u32(PID);
                to.u32(PID);
                to.u64(time);
            })
        };
        let sample = record(RecordKind::SAMPLE, GUEST_USER, |to| {
            to.u64(START + 0x10);
            to.u32(PID);
            to.u32(PID);
            to.u64(3);
            to.u64(START + 0x20);
            // One branch: from, to, flags.
            for word in [1, START + 0x30, START + 0x40, 0] {
                to.u64(word);
            }
        });
        let records = [mapping(Misc::USER, 1), mapping(GUEST_USER, 2), sample].concat();
        let mut shifter = AddressShifter::new(Endian::NATIVE, &mut events);
        shifter.note(&records);
        shifter.note_end();
        let mut moved = Vec::new();
        shifter.rewrite(&records, &mut moved);
        let (raw, _) = RawRecord::all(&moved, Endian::NATIVE)
            .last()
            .expect("the sample");
        let table = EventTable::new(Endian::NATIVE, &events);
        let sample = table.sample(&raw, |_| Order::default());
        let wire = sample.expect("a sample").expect("of the event").wire;
        let start = wire.ip.expect("an address") - 0x10;
        assert_ne!(start, START);
        assert_eq!(wire.addr, Some(start + 0x20));
        let branches = wire.branch_stack.expect("branches").words();
        assert_eq!(
            branches.iter().collect::<Vec<_>>(),
            [start + 0x30, start + 0x40, 0]
        );
    }
}
