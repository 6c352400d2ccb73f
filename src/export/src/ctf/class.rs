//! Event classes: the fields of each event, and their encoding.

use rperf_perfdata::{EventDesc, Metadata};
use rperf_replay::Sample;
use rperf_wire::{RecordKind, SampleType, U64s};

use super::fields::{CtfField, CtfType, FieldNames, SampleField};

/// Names and types of a record's fields.
type RecordFields = &'static [(&'static str, CtfType)];

/// Records other than samples that a trace may have, each with its event name and fields.
const RECORDS: [(RecordKind, &str, RecordFields); 5] = [
    (
        RecordKind::COMM,
        "perf_comm",
        &[
            ("pid", CtfType::S32),
            ("tid", CtfType::S32),
            ("comm", CtfType::Text),
        ],
    ),
    (RecordKind::FORK, "perf_fork", TASK_FIELDS),
    (RecordKind::EXIT, "perf_exit", TASK_FIELDS),
    (
        RecordKind::MMAP,
        "perf_mmap",
        &[
            ("pid", CtfType::S32),
            ("tid", CtfType::S32),
            ("start", CtfType::HEX64),
            ("len", CtfType::HEX64),
            ("pgoff", CtfType::HEX64),
            ("filename", CtfType::Text),
        ],
    ),
    (
        RecordKind::MMAP2,
        "perf_mmap2",
        &[
            ("pid", CtfType::S32),
            ("tid", CtfType::S32),
            ("start", CtfType::HEX64),
            ("len", CtfType::HEX64),
            ("pgoff", CtfType::HEX64),
            ("prot", CtfType::HEX32),
            ("flags", CtfType::HEX32),
            ("filename", CtfType::Text),
        ],
    ),
];

const TASK_FIELDS: RecordFields = &[
    ("pid", CtfType::S32),
    ("ppid", CtfType::S32),
    ("tid", CtfType::S32),
    ("ptid", CtfType::S32),
    ("time", CtfType::U64),
];

/// The event classes of a trace. The id of a class is its index.
#[derive(Debug)]
pub struct CtfLayout {
    /// First the class of each event of the recording, then those of other records.
    pub(super) classes: Vec<CtfClass>,
    /// Index of the first class of other records; `None` if there are none.
    first_record_class: Option<usize>,
}

/// One event class.
#[derive(Debug)]
pub(super) struct CtfClass {
    /// Name of the event.
    pub(super) name: String,
    /// Its fields, in the order of the payload.
    pub(super) fields: Vec<CtfField>,
}

impl CtfLayout {
    /// The layout of a recording's samples, and of other records if `with_records`.
    #[must_use]
    pub fn new(recording: Metadata<'_>, with_records: bool) -> Self {
        // If the tracepoint formats cannot be read or have none for an event, the event's raw data is one field.
        let formats = recording.formats().unwrap_or_default();
        let mut classes: Vec<CtfClass> = recording
            .events
            .iter()
            .map(|event| {
                let mut fields = sample_fields(event);
                let is_raw = event.attr.sample_type.contains(SampleType::RAW);
                match formats.of_event(&event.attr) {
                    Ok(tracepoint) if is_raw => {
                        let format = &tracepoint.format;
                        let all = format.common_fields.iter().chain(&format.fields);
                        let endian = tracepoint.abi.endian;
                        fields.extend(all.map(|field| CtfField::of_tracepoint(field, endian)));
                    }
                    // Raw data is a sequence of 4-byte words, as in perf.
                    _ if is_raw => fields.push(CtfField::new(
                        "raw_data",
                        CtfType::hex_sequence(4),
                        SampleField::Raw,
                    )),
                    _ => {}
                }
                CtfClass::new(&event.name, fields)
            })
            .collect();
        let first_record_class = with_records.then_some(classes.len());
        if with_records {
            classes.extend(RECORDS.iter().map(|(_, name, fields)| {
                let fields = fields.iter().map(|(field_name, field_type)| {
                    // The source is not used: records are encoded from their own fields.
                    CtfField::new(field_name, *field_type, SampleField::Raw)
                });
                CtfClass::new(name, fields.collect())
            }));
        }
        Self {
            classes,
            first_record_class,
        }
    }

    /// The id of the class of records of this type; `None` if the trace does not have them.
    pub(super) fn record_class_id(&self, kind: RecordKind) -> Option<u32> {
        let index = RECORDS.iter().position(|(known, _, _)| *known == kind)?;
        u32::try_from(self.first_record_class? + index).ok()
    }

    /// The types of records, other than samples, that the trace has.
    pub(super) fn record_kinds(&self) -> Vec<RecordKind> {
        let kinds = RECORDS.iter().map(|(kind, _, _)| *kind);
        kinds
            .filter(|kind| self.record_class_id(*kind).is_some())
            .collect()
    }
}

impl CtfClass {
    fn new(name: &str, mut fields: Vec<CtfField>) -> Self {
        let mut names = FieldNames::default();
        for field in &mut fields {
            field.name_uniquely(&mut names);
        }
        Self {
            name: name.to_owned(),
            fields,
        }
    }

    /// Appends the payload of a sample. `chain` is its unwound or recorded callchain.
    pub(super) fn encode(&self, sample: &Sample<'_>, chain: Option<U64s<'_>>, out: &mut Vec<u8>) {
        for field in &self.fields {
            field.encode(sample, chain, out);
        }
    }
}

/// Fields of samples. Each exists if `sample_type` has any of its bits. Unlike in perf, `perf_period` exists for any
/// `sample_type` except 0; if no period was recorded, its value is the attr's `sample_period`.
const SAMPLE_FIELDS: [(SampleType, &str, CtfType, SampleField); 12] = [
    (SampleType::IP, "perf_ip", CtfType::HEX64, SampleField::Ip),
    (SampleType::TID, "perf_tid", CtfType::S32, SampleField::Tid),
    (SampleType::TID, "perf_pid", CtfType::S32, SampleField::Pid),
    (
        SampleType(SampleType::ID.0 | SampleType::IDENTIFIER.0),
        "perf_id",
        CtfType::U64,
        SampleField::Id,
    ),
    (
        SampleType::STREAM_ID,
        "perf_stream_id",
        CtfType::U64,
        SampleField::StreamId,
    ),
    (
        SampleType::ALL,
        "perf_period",
        CtfType::U64,
        SampleField::Period,
    ),
    (
        SampleType::ADDR,
        "perf_addr",
        CtfType::HEX64,
        SampleField::Addr,
    ),
    (
        SampleType(SampleType::WEIGHT.0 | SampleType::WEIGHT_STRUCT.0),
        "perf_weight",
        CtfType::U64,
        SampleField::Weight,
    ),
    (
        SampleType::DATA_SRC,
        "perf_data_src",
        CtfType::U64,
        SampleField::DataSource,
    ),
    (
        SampleType::TRANSACTION,
        "perf_transaction",
        CtfType::U64,
        SampleField::Transaction,
    ),
    (
        SampleType::PHYS_ADDR,
        "perf_phys_addr",
        CtfType::HEX64,
        SampleField::PhysAddr,
    ),
    (
        SampleType::CALLCHAIN,
        "perf_callchain",
        CtfType::hex_sequence(8),
        SampleField::Callchain,
    ),
];

/// The fields that an event's `sample_type` selects.
fn sample_fields(event: &EventDesc) -> Vec<CtfField> {
    let selected = |bits: SampleType| event.attr.sample_type.intersects(bits);
    let fields = SAMPLE_FIELDS.iter().filter(|(bits, ..)| selected(*bits));
    fields
        .map(|(_, name, field_type, source)| CtfField::new(name, *field_type, *source))
        .collect()
}
