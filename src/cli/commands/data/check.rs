//! Checks a recording for faults.

use std::collections::BTreeMap;
use std::fmt::Display;

use rperf_names::{counted, is_or_are, was_or_were};
use rperf_perfdata::{EventDesc, EventUpdate, FileFinding, PerfData};
use rperf_replay::{Diagnostics, RecordContent, Replay};
use rperf_tracepoint::Error;
use rperf_wire::{RawRecord, Record, RecordKind, SampleType, UserRecord};

use crate::cli::error::CliError;

/// The results of a check.
#[derive(Debug, Default)]
pub(super) struct CheckResult {
    /// Faults of the file: one line for each, or for each group of faults in records.
    pub(super) faults: Vec<String>,
    /// Findings that are no faults: one line for each, or for each group of findings in records.
    pub(super) notes: Vec<String>,
    records: u64,
    samples: u64,
    events: usize,
    features: usize,
}

/// Findings of one group: their number, and the text of the first.
#[derive(Debug)]
struct FindingGroup {
    count: u64,
    first: String,
}

/// Findings in records, faults or not, grouped by record kind and problem.
#[derive(Debug, Default)]
struct GroupedFindings(BTreeMap<(RecordKind, &'static str), FindingGroup>);

impl GroupedFindings {
    fn add(&mut self, kind: RecordKind, problem: &'static str, text: impl FnOnce() -> String) {
        let group = self
            .0
            .entry((kind, problem))
            .or_insert_with(|| FindingGroup {
                count: 0,
                first: text(),
            });
        group.count += 1;
    }

    fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|((kind, _), group)| {
            let first = group.first;
            match group.count - 1 {
                0 => first,
                more => format!("{first}; {more} more of this kind ({kind})"),
            }
        })
    }
}

/// Checks the whole recording.
pub(super) fn check(data: &PerfData<'_>) -> Result<CheckResult, CliError> {
    let mut checked = CheckResult {
        events: data.events().len(),
        features: data.features().present().count(),
        ..CheckResult::default()
    };
    for finding in data.findings() {
        match finding {
            // A newer recorder wrote fields that are unknown here.
            FileFinding::AttrLarger { .. } => checked.notes.push(finding.to_string()),
            _ => checked.faults.push(finding.to_string()),
        }
    }
    checked.check_ids(data.events());
    checked.check_tracepoints(data);
    let replay = Replay::open(data)?;
    checked.check_records(&replay);
    checked.add_diagnostics(&replay.diagnostics());
    Ok(checked)
}

impl CheckResult {
    /// The summary line.
    pub(super) fn summary(&self) -> String {
        let records = counted(self.records, "record");
        let samples = counted(self.samples, "sample");
        let events = counted(self.events as u64, "event");
        let features = counted(self.features as u64, "header feature");
        let verdict = match self.faults.len() as u64 {
            0 => "complete".to_owned(),
            faults => counted(faults, "fault"),
        };
        format!("{records}, {samples} of {events}, {features}: {verdict}")
    }

    fn fault(&mut self, line: impl Display) {
        self.faults.push(line.to_string());
    }

    fn note(&mut self, line: impl Display) {
        self.notes.push(line.to_string());
    }

    /// Checks that no id is listed twice and, if there are several events, that the samples of each have an id.
    fn check_ids(&mut self, events: &[EventDesc]) {
        let mut owners: BTreeMap<u64, (usize, &str)> = BTreeMap::new();
        for (index, event) in events.iter().enumerate() {
            for id in &event.ids {
                match owners.insert(*id, (index, &event.name)) {
                    None => {}
                    Some((owner_index, name)) if owner_index == index => {
                        self.fault(format_args!("event id {id} is listed twice by {name}"));
                    }
                    Some((_, owner)) => self.fault(format_args!(
                        "event id {id} is used by two events, {owner} and {}",
                        event.name
                    )),
                }
            }
        }
        if events.len() < 2 {
            return;
        }
        for event in events {
            let has = |bit| event.attr.sample_type.contains(bit);
            if !has(SampleType::IDENTIFIER) && !has(SampleType::ID) {
                self.fault(format_args!(
                    "samples of {} have no id, so they cannot be attributed to one of several events",
                    event.name
                ));
            }
        }
    }

    fn check_tracepoints(&mut self, data: &PerfData<'_>) {
        let formats = match data.metadata().formats() {
            Ok(formats) => formats,
            Err(error) => return self.fault(format_args!("descriptions of tracepoints: {error}")),
        };
        let mut undescribed = Vec::new();
        for event in data.events() {
            let name = &event.name;
            match formats.of_event(&event.attr) {
                Ok(_) | Err(Error::NotATracepoint) => {}
                Err(Error::Undescribed) => undescribed.push(name.as_str()),
                Err(error) => self.fault(format_args!("description of {name}: {error}")),
            }
        }
        if let [first, more @ ..] = &undescribed[..] {
            let others = match more.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            self.note(format_args!(
                "no format of {first}{others}: fields cannot be shown"
            ));
        }
    }

    fn check_records(&mut self, replay: &Replay<'_>) {
        let mut faults = GroupedFindings::default();
        let mut unknown_types = GroupedFindings::default();
        let endian = replay.data().endian();
        for ordered in replay.ordered_records().in_file_order() {
            let (kind, position) = (ordered.record.raw.kind, ordered.record.position);
            let undecodable = |error: &dyn Display| {
                format!("{kind} at offset {position:#x} cannot be decoded: {error}")
            };
            match ordered.content {
                RecordContent::Sample(_) => self.samples += 1,
                RecordContent::UnknownEvent => faults.add(kind, "unknown event", || {
                    format!("{kind} at offset {position:#x} has an unknown event id")
                }),
                RecordContent::Broken(error) => faults.add(kind, "broken", || undecodable(&error)),
                // `body` is the record's body without the trailer of `sample_id_all`.
                RecordContent::Kernel { body, .. } => {
                    let raw = RawRecord {
                        body,
                        ..ordered.record.raw
                    };
                    if let Err(error) = Record::decode(&raw, endian) {
                        faults.add(kind, "broken", || undecodable(&error));
                    }
                }
                // `UserRecord` does not decode the body of this type.
                _ if kind == RecordKind::EVENT_UPDATE => {
                    if let Err(error) = EventUpdate::decode(ordered.record.raw.body, endian) {
                        faults.add(kind, "broken", || undecodable(&error));
                    }
                }
                RecordContent::User(_) => {
                    if let Err(error) = UserRecord::decode(&ordered.record.raw, endian) {
                        faults.add(kind, "broken", || undecodable(&error));
                    }
                }
                _ => {}
            }
            if kind.name().is_none() {
                unknown_types.add(kind, "unknown", || {
                    format!("{kind} at offset {position:#x} has an unknown type")
                });
            }
        }
        self.faults.extend(faults.lines());
        self.notes.extend(unknown_types.lines());
    }

    /// Adds the number of records, the damage at which reading ended, and notes on lost records and samples, and on
    /// records out of order.
    fn add_diagnostics(&mut self, diagnostics: &Diagnostics) {
        self.records = diagnostics.records;
        if let Some(end) = &diagnostics.end {
            self.fault(end);
        }
        if diagnostics.lost_chunks > 0 {
            self.note(format_args!(
                "{} {} lost while recording (LOST records: {})",
                counted(diagnostics.lost_records, "record"),
                was_or_were(diagnostics.lost_records),
                diagnostics.lost_chunks
            ));
        }
        if diagnostics.lost_samples > 0 {
            self.note(format_args!(
                "{} {} lost while recording",
                counted(diagnostics.lost_samples, "sample"),
                was_or_were(diagnostics.lost_samples)
            ));
        }
        if diagnostics.out_of_order > 0 {
            self.note(format_args!(
                "{} {} older than a preceding FINISHED_ROUND record",
                counted(diagnostics.out_of_order, "record"),
                is_or_are(diagnostics.out_of_order)
            ));
        }
    }
}
