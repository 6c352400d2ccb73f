//! Removes data that identify a machine and its users from a recording: names, paths, command lines, the texts and addresses in
//! the raw data of samples, and the addresses of breakpoints. The processor's description and build-ids are kept. Other addresses
//! are left to [`AddressShifter`](crate::AddressShifter), a separate transform.
//!
//! Records and features that are neither known to be harmless nor redacted are dropped.

mod raw;
mod replacements;

use rperf_perfdata::feature::BuildIdEntry;
use rperf_perfdata::{
    EventDesc, EventProperty, EventUpdate, FeatureId, FeatureSet, encode_tracing_data,
};
use rperf_replay::{EventTable, Order};
use rperf_tracepoint::{Formats, TracingData, TracingDataBuilder};
use rperf_wire::{
    BpfEvent, Cgroup, Comm, CpuMode, Endian, EventType, Ksymbol, Mmap, Mmap2, MmapId, RawRecord,
    Record, RecordHeader, RecordKind,
};

use self::raw::RawRedaction;
use self::replacements::{NameKind, Replacements};
use crate::pipeline::Transform;

/// Replaces or drops identifying parts.
pub struct Redactor {
    events: EventTable,
    /// The redacted events.
    descriptions: Vec<EventDesc>,
    /// How the raw data of samples are redacted, by event.
    raws: Vec<RawRedaction>,
    endian: Endian,
    names: Replacements,
}

/// The text in place of the host's name and the kernel's release.
const REDACTED: &str = "redacted";

impl Redactor {
    /// Creates the transform for a recording with these `events`, and redacts the events: names of cgroups are
    /// replaced, and the addresses of breakpoints are removed from their attrs and names.
    #[must_use]
    pub fn new(endian: Endian, events: &mut [EventDesc], formats: &Formats) -> Self {
        let mut names = Replacements::new();
        for (number, event) in (1..).zip(events.iter_mut()) {
            event.name = redacted_name(&event.name, &mut names);
            if event.attr.kind == EventType::BREAKPOINT {
                event.attr.config1 = 0;
                event.name = format!("breakpoint-{number}");
            }
        }
        let raws = events.iter().map(|event| RawRedaction::new(event, formats));
        Self {
            raws: raws.collect(),
            events: EventTable::new(endian, events),
            descriptions: events.to_vec(),
            endian,
            names,
        }
    }

    /// Returns the names of the events whose raw data have numbers that may be addresses without being declared as such. Of these
    /// numbers, only those in the usual address ranges of 64-bit programs and of the kernel are replaced.
    #[must_use]
    pub fn uncertain_events(&self) -> Vec<&str> {
        let events = self.descriptions.iter().zip(&self.raws);
        let uncertain = events.filter(|(_, redaction)| redaction.is_uncertain());
        uncertain.map(|(event, _)| event.name.as_str()).collect()
    }

    /// Appends a sample with redacted raw data, or unchanged if it has no raw data. Drops it if it cannot be decoded or its
    /// event is unknown.
    fn sample(&mut self, raw: &RawRecord<'_>, record: &[u8], to: &mut Vec<u8>) {
        // The sample's position in the order is not used.
        let Ok(Some(sample)) = self.events.sample(raw, |_| Order::default()) else {
            return;
        };
        let event = sample.event.0 as usize;
        let (Some(data), Some(redaction)) = (sample.wire.raw, self.raws.get(event)) else {
            return to.extend_from_slice(record);
        };
        let Some(layout) = self.events.layout(sample.event) else {
            return;
        };
        let data = redaction.apply(data, self.endian, &mut self.names);
        let mut wire = sample.wire.clone();
        wire.raw = Some(&data);
        RecordHeader::encode_record(raw.kind, raw.misc, to, self.endian, |to| {
            layout.encode(&wire, to);
        });
    }

    /// Appends a record with its names replaced; drops it if it cannot be decoded, or if its type is not handled here.
    fn named(&mut self, raw: &RawRecord<'_>, to: &mut Vec<u8>) {
        let Ok(record) = Record::decode(raw, self.endian) else {
            return;
        };
        let is_kernel = matches!(raw.misc.cpu_mode(), CpuMode::Kernel | CpuMode::GuestKernel);
        let names = &mut self.names;
        let name = match &record {
            Record::Comm(comm) => names.of(NameKind::Task, comm.comm),
            Record::Mmap(mmap) => names.of_mapping(mmap.filename, is_kernel),
            Record::Mmap2(mmap2) => names.of_mapping(mmap2.mmap.filename, is_kernel),
            Record::Ksymbol(symbol) => names.of(NameKind::Symbol, symbol.name),
            Record::Cgroup(cgroup) => names.of(NameKind::Cgroup, cgroup.path),
            // It has no name, but a tag, which is removed below.
            Record::BpfEvent(_) => String::new(),
            _ => return,
        };
        let name = name.as_bytes();
        let mapping = |mmap| Mmap {
            filename: name,
            ..mmap
        };
        let redacted = match record {
            Record::Comm(comm) => Record::Comm(Comm { comm: name, ..comm }),
            Record::Mmap(mmap) => Record::Mmap(mapping(mmap)),
            Record::Mmap2(mmap2) => Record::Mmap2(Mmap2 {
                mmap: mapping(mmap2.mmap),
                id: identity(mmap2.id, names),
                ..mmap2
            }),
            Record::Ksymbol(symbol) => Record::Ksymbol(Ksymbol { name, ..symbol }),
            Record::Cgroup(cgroup) => Record::Cgroup(Cgroup {
                path: name,
                ..cgroup
            }),
            Record::BpfEvent(event) => Record::BpfEvent(BpfEvent {
                tag: [0; 8],
                ..event
            }),
            // Not reached: records of other types are dropped above.
            other => other,
        };
        // The trailer (`sample_id` of linux/perf_event.h) is copied; only the fields before it were redacted.
        let fields_size = self.events.split(raw).0.len();
        let trailer = raw.body.get(fields_size..).unwrap_or_default();
        RecordHeader::encode_record(raw.kind, raw.misc, to, self.endian, |to| {
            redacted.encode_body(to);
            to.bytes(trailer);
        });
    }

    /// Copies an EVENT_UPDATE record; the cgroup in an event's name and the name of a breakpoint are replaced. Drops a record
    /// that cannot be decoded.
    fn event_update(&mut self, raw: &RawRecord<'_>, record: &[u8], to: &mut Vec<u8>) {
        let endian = self.endian;
        let Ok(update) = EventUpdate::decode(raw.body, endian) else {
            return;
        };
        let EventProperty::Name(name) = &update.property else {
            return to.extend_from_slice(record);
        };
        let mut breakpoints = self.descriptions.iter().filter(|event| {
            event.attr.kind == EventType::BREAKPOINT && event.ids.contains(&update.id)
        });
        let name = match breakpoints.next() {
            // Its name was redacted by `new`; the name in the record contains the address.
            Some(breakpoint) => breakpoint.name.clone(),
            None => redacted_name(name, &mut self.names),
        };
        // Type and id precede the name.
        let head = raw.body.get(..2 * size_of::<u64>()).unwrap_or_default();
        // At least one 0 byte ends the name.
        let padding = vec![0; size_of::<u64>() - name.len() % size_of::<u64>()];
        RecordHeader::encode_record(raw.kind, raw.misc, to, endian, |to| {
            to.bytes(head);
            to.bytes(name.as_bytes());
            to.bytes(&padding);
        });
    }

    /// Replaces the name of the object in a build-id entry.
    fn build_id(&mut self, mut entry: BuildIdEntry) -> BuildIdEntry {
        let is_kernel = matches!(
            entry.misc.cpu_mode(),
            CpuMode::Kernel | CpuMode::GuestKernel
        );
        let name = &*rperf_wire::name_bytes(&entry.filename);
        entry.filename = self.names.of_mapping(name, is_kernel);
        entry
    }

    /// The redacted content of a feature; `None` if it is dropped.
    fn feature(&mut self, feature: FeatureId, content: &[u8]) -> Option<Vec<u8>> {
        // Encodes this one feature.
        let mut set = FeatureSet::new(self.endian);
        match feature {
            FeatureId::ARCH
            | FeatureId::NRCPUS
            | FeatureId::CPUDESC
            | FeatureId::CPUID
            | FeatureId::CPU_TOPOLOGY
            | FeatureId::BRANCH_STACK
            | FeatureId::PMU_MAPPINGS
            | FeatureId::GROUP_DESC
            | FeatureId::STAT
            | FeatureId::CACHE
            | FeatureId::SAMPLE_TIME
            | FeatureId::CLOCKID
            | FeatureId::CPU_PMU_CAPS
            | FeatureId::HYBRID_TOPOLOGY
            | FeatureId::PMU_CAPS
            | FeatureId::CPU_DOMAIN_INFO
            | FeatureId::E_MACHINE
            | FeatureId::CLN_SIZE => return Some(content.to_vec()),
            FeatureId::EVENT_DESC => set.event_desc(&self.descriptions),
            FeatureId::HOSTNAME => set.hostname(REDACTED),
            FeatureId::OSRELEASE => set.os_release(REDACTED),
            FeatureId::TRACING_DATA => return formats_only(content),
            FeatureId::BUILD_ID => {
                let records = RawRecord::all(content, self.endian);
                let endian = self.endian;
                let entries =
                    records.filter_map(|(raw, _)| BuildIdEntry::decode_record(&raw, endian).ok());
                let entries: Vec<BuildIdEntry> = entries.collect();
                let entries = entries.into_iter().map(|entry| self.build_id(entry));
                set.build_ids(&entries.collect::<Vec<_>>())
            }
            _ => return None,
        };
        set.sections().next().map(|(_, bytes)| bytes.to_vec())
    }
}

/// Returns the name of an event; the cgroup that may follow a tab in it is replaced.
fn redacted_name(name: &str, names: &mut Replacements) -> String {
    match name.split_once('\t') {
        None => name.to_owned(),
        Some((event, cgroup)) => {
            let cgroup = names.of(NameKind::Cgroup, cgroup.as_bytes());
            format!("{event}\t{cgroup}")
        }
    }
}

/// Returns an identity in which a number replaces device and inode; a build-id is kept.
fn identity(id: MmapId, names: &mut Replacements) -> MmapId {
    match id {
        MmapId::BuildId { .. } => id,
        MmapId::Inode {
            major,
            minor,
            inode,
            ..
        } => MmapId::Inode {
            major: 0,
            minor: 0,
            inode: names.of_inode(major, minor, inode),
            generation: 0,
        },
    }
}

/// Returns tracing data with only the formats of tracepoints, without the kernel's strings and the command names of
/// tasks. `None` if `section` cannot be parsed.
fn formats_only(section: &[u8]) -> Option<Vec<u8>> {
    let data = TracingData::parse(section).ok()?;
    let mut formats = TracingDataBuilder::new(data.endian, data.long_size, data.page_size);
    formats.headers(data.header_page, data.header_event);
    for event in &data.events {
        formats.event(event.system, event.text);
    }
    Some(formats.encode())
}

/// Whether records of this type are known to have no names.
fn is_nameless(kind: RecordKind) -> bool {
    matches!(
        kind,
        RecordKind::FORK
            | RecordKind::EXIT
            | RecordKind::LOST
            | RecordKind::LOST_SAMPLES
            | RecordKind::THROTTLE
            | RecordKind::UNTHROTTLE
            | RecordKind::SWITCH
            | RecordKind::SWITCH_CPU_WIDE
            | RecordKind::READ
            | RecordKind::NAMESPACES
            | RecordKind::CALLCHAIN_DEFERRED
            | RecordKind::FINISHED_ROUND
            | RecordKind::FINISHED_INIT
            | RecordKind::ID_INDEX
            | RecordKind::CPU_MAP
            | RecordKind::STAT
            | RecordKind::STAT_ROUND
            | RecordKind::STAT_CONFIG
            | RecordKind::TIME_CONV
    )
}

impl Transform for Redactor {
    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, self.endian) {
            match raw.kind {
                RecordKind::SAMPLE => self.sample(&raw, record, to),
                kind if is_nameless(kind) => to.extend_from_slice(record),
                _ => self.named(&raw, to),
            }
        }
    }

    /// Handles a metadata record (`HEADER_*`, EVENT_UPDATE). The other records that are passed here have a payload behind them,
    /// for example AUXTRACE: they are dropped.
    fn special(&mut self, record: &[u8], to: &mut Vec<u8>) {
        let endian = self.endian;
        let Some((raw, size)) = RawRecord::split(record, endian) else {
            return;
        };
        match raw.kind {
            // The attr in it is replaced by the redacted one when the record is copied to the output (`AttrRewriter`).
            RecordKind::HEADER_ATTR => to.extend_from_slice(record),
            RecordKind::EVENT_UPDATE => self.event_update(&raw, record, to),
            RecordKind::HEADER_TRACING_DATA => {
                // The payload follows the record; the size in the record's header doesn't include it.
                let section = record.get(size..).unwrap_or_default();
                if let Some(section) = formats_only(section) {
                    encode_tracing_data(to, &section, endian);
                }
            }
            RecordKind::HEADER_BUILD_ID => {
                if let Ok(entry) = BuildIdEntry::decode_record(&raw, endian) {
                    self.build_id(entry).encode_record(endian, to);
                }
            }
            RecordKind::HEADER_FEATURE => {
                let number = endian.u64_at(raw.body, 0);
                let number = number.and_then(|number| u8::try_from(number).ok());
                let content = raw.body.get(size_of::<u64>()..).unwrap_or_default();
                let redacted = number.and_then(|number| self.feature(FeatureId(number), content));
                if let (Some(number), Some(redacted)) = (number, redacted) {
                    RecordHeader::encode_record(raw.kind, raw.misc, to, endian, |to| {
                        to.u64(u64::from(number));
                        to.bytes(&redacted);
                    });
                }
            }
            _ => {}
        }
    }

    fn features(&mut self, features: &mut FeatureSet) {
        let sections = features.sections();
        let before: Vec<(FeatureId, Vec<u8>)> = sections
            .map(|(feature, bytes)| (feature, bytes.to_vec()))
            .collect();
        for (feature, content) in before {
            match self.feature(feature, &content) {
                Some(content) => features.opaque(feature, &content),
                None => features.remove(feature),
            };
        }
    }
}
