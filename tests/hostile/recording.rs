//! The parts of a perf.data file, as far as mutations need them (tools/perf/Documentation/perf.data-file-format.txt).

use crate::mutate::{self, Field, number};
use crate::names;
use crate::random::Random;

// Sizes of the headers of files, pipes and records, in bytes.
const FILE_HEADER: usize = 104;
const PIPE_HEADER: usize = 16;
const RECORD_HEADER: usize = 8;

// Offsets in the file header. The sections of attrs and data are an offset and a size, of 8 bytes each.
const ATTRS_SECTION: usize = 24;
const DATA_SECTION: usize = 40;
const DATA_SIZE: usize = DATA_SECTION + 8;
const FEATURE_BITS: usize = 72;

// Record types.
const MMAP: u64 = 1;
const COMM: u64 = 3;
const MMAP2: u64 = 10;
const KSYMBOL: u64 = 17;
const CGROUP: u64 = 19;
/// Followed by tracepoint formats, whose size is in the record.
const TRACING_DATA: u64 = 66;
/// Followed by a hardware trace.
const AUXTRACE: u64 = 71;

/// A recording, split into records. All numbers are little-endian.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    /// Everything before the records: header, attrs and ids.
    head: Vec<u8>,
    /// The records, each with the data that follows it.
    pub(crate) records: Vec<Vec<u8>>,
    /// Everything after the records: the feature table and the feature sections.
    tail: Vec<u8>,
    is_pipe: bool,
}

impl Recording {
    /// `None` unless the bytes are a little-endian recording whose records are complete.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        // `number` takes bytes after the end as 0.
        let is_recording = bytes.len() >= PIPE_HEADER && bytes.starts_with(b"PERFILE2");
        let header_size = number(bytes, 8, 8) as usize;
        let is_pipe = header_size == PIPE_HEADER;
        let (start, end) = match is_pipe {
            true => (header_size, bytes.len()),
            false => {
                let start = number(bytes, DATA_SECTION, 8) as usize;
                let size = number(bytes, DATA_SIZE, 8) as usize;
                (start, start.checked_add(size)?)
            }
        };
        // A pipe's header consists of the magic number and the header's size; a file's header begins with them.
        if !is_recording || start < PIPE_HEADER || !is_pipe && header_size != FILE_HEADER {
            return None;
        }
        let mut rest = bytes.get(start..end)?;
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (record, after) = rest.split_at_checked(record_size(rest))?;
            records.push(record.to_vec());
            rest = after;
        }
        Some(Self {
            head: bytes[..start].to_vec(),
            records,
            tail: bytes[end..].to_vec(),
            is_pipe,
        })
    }

    /// Returns the file, with updated sizes and offsets.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        bytes.extend(self.records.concat());
        let (old_end, new_end) = (self.data_end(), bytes.len());
        bytes.extend(&self.tail);
        if self.is_pipe {
            return bytes;
        }
        let size = Field::new(DATA_SIZE, 8);
        size.write(&mut bytes, (new_end - self.head.len()) as u64);
        for entry in features(&bytes) {
            let offset = entry.read(&bytes);
            if offset >= old_end as u64 {
                entry.write(&mut bytes, offset - old_end as u64 + new_end as u64);
            }
        }
        bytes
    }

    /// The end of the records in the file that was parsed.
    fn data_end(&self) -> usize {
        self.head.len() + number(&self.head, DATA_SIZE, 8) as usize
    }

    /// Drops, repeats or swaps records, or inserts some of another recording.
    pub(crate) fn shuffle(&mut self, other: &Self, random: &mut Random) {
        if self.records.is_empty() {
            return;
        }
        let at = random.below(self.records.len());
        let from = random.below(self.records.len());
        match random.below(6) {
            0 => drop(self.records.remove(at)),
            1 => self.records.insert(at, self.records[from].clone()),
            2 => self.records.swap(at, from),
            3 => self.records.truncate(at),
            4 => {
                let count = 1 + random.below(20);
                let start = random.below(other.records.len());
                let taken = other.records.iter().skip(start).take(count);
                self.records.splice(at..at, taken.cloned());
            }
            _ => drop(self.records.drain(at.min(from)..at.max(from))),
        }
    }

    /// Replaces up to four names of mapped files, tasks, kernel symbols and cgroups.
    pub(crate) fn rename(
        &mut self,
        new_name: impl Fn(&mut Random) -> Vec<u8>,
        random: &mut Random,
    ) {
        let named: Vec<usize> = (0..self.records.len())
            .filter(|index| name_location(&self.records[*index]).is_some())
            .collect();
        for _ in 0..1 + random.below(4) {
            if let Some(index) = random.try_pick(&named) {
                set_name(&mut self.records[*index], &new_name(random));
            }
        }
    }

    /// Renames mapped files from `from` to `to`, and tasks, kernel symbols and cgroups that have the same name.
    pub(crate) fn redirect(&mut self, from: &str, to: &str) {
        for record in &mut self.records {
            let Some((start, end)) = name_location(record) else {
                continue;
            };
            if record[start..end].split(|byte| *byte == 0).next() == Some(from.as_bytes()) {
                set_name(record, to.as_bytes());
            }
        }
    }

    /// The length that the file needs to be complete: the end of the last of the attrs, the data and the feature sections.
    fn complete_length(bytes: &[u8]) -> usize {
        let end = |at: usize| number(bytes, at, 8).saturating_add(number(bytes, at + 8, 8));
        let sections = [ATTRS_SECTION, DATA_SECTION].into_iter().map(end);
        let features = features(bytes).into_iter().map(|entry| end(entry.at));
        sections.chain(features).max().unwrap_or_default() as usize
    }
}

/// The size of the first record, with the data that follows the record; at least the size of a record header.
fn record_size(bytes: &[u8]) -> usize {
    let size = (number(bytes, 6, 2) as usize).max(RECORD_HEADER);
    let more = match number(bytes, 0, 4) {
        TRACING_DATA => (number(bytes, RECORD_HEADER, 4) as usize).next_multiple_of(8),
        AUXTRACE => number(bytes, RECORD_HEADER, 8) as usize,
        _ => 0,
    };
    size.saturating_add(more)
}

/// Start and end of a record's name, including the NULs after it; `None` if the record has no name.
fn name_location(record: &[u8]) -> Option<(usize, usize)> {
    let start = match number(record, 0, 4) {
        MMAP => 40,
        COMM => 16,
        MMAP2 => 72,
        KSYMBOL => 24,
        CGROUP => 16,
        _ => return None,
    };
    let length = record.get(start..)?.iter().position(|byte| *byte == 0)?;
    let end = start + (length + 1).next_multiple_of(8);
    (end <= record.len()).then_some((start, end))
}

/// Replaces the name of a record, if it has one.
fn set_name(record: &mut Vec<u8>, name: &[u8]) {
    let Some((start, end)) = name_location(record) else {
        return;
    };
    // A record has at most 64 KB.
    let mut name = name[..name.len().min(60_000)].to_vec();
    name.resize((name.len() + 1).next_multiple_of(8), 0);
    record.splice(start..end, name);
    let size = record.len() as u64;
    Field::new(6, 2).write(record, size);
}

/// The offsets in the feature table, each of which is followed by a size.
fn features(bytes: &[u8]) -> Vec<Field> {
    let flags = (FEATURE_BITS..FILE_HEADER).step_by(8);
    let count: u32 = flags.map(|at| number(bytes, at, 8).count_ones()).sum();
    let start = number(bytes, DATA_SECTION, 8).wrapping_add(number(bytes, DATA_SIZE, 8)) as usize;
    let entries = (0..count as usize).map(|index| start.saturating_add(index * 16));
    entries
        .filter(|at| at.saturating_add(16) <= bytes.len())
        .map(|at| Field::new(at, 8))
        .collect()
}

/// The number fields of a file, by the part of the file.
#[derive(Debug, Default)]
struct Fields {
    header: Vec<Field>,
    attrs: Vec<Field>,
    feature_table: Vec<Field>,
    feature_contents: Vec<Field>,
    record_headers: Vec<Field>,
    record_bodies: Vec<Field>,
}

impl Fields {
    fn of(recording: &Recording, bytes: &[u8]) -> Self {
        let mut fields = Self {
            header: Field::all(0, recording.head.len().min(FILE_HEADER), 8).collect(),
            attrs: Field::all(FILE_HEADER, recording.head.len(), 4).collect(),
            ..Self::default()
        };
        let mut at = recording.head.len();
        for record in &recording.records {
            // Offset and width of type, misc and size.
            let header_fields = [(0, 4), (4, 2), (6, 2)];
            let headers = header_fields.map(|(offset, width)| Field::new(at + offset, width));
            fields.record_headers.extend(headers);
            // The body as numbers of 4 or 8 bytes. The width depends on the record's length, so that a recording has both.
            let width = if record.len() % 3 == 0 { 4 } else { 8 };
            let body = at + RECORD_HEADER..at + record.len();
            fields
                .record_bodies
                .extend(Field::all(body.start, body.end, width));
            at = body.end;
        }
        if !recording.is_pipe {
            let offsets = features(bytes);
            let sizes: Vec<Field> = offsets
                .iter()
                .map(|offset| Field::new(offset.at + 8, 8))
                .collect();
            for (offset, size) in offsets.iter().zip(&sizes) {
                let start = offset.read(bytes) as usize;
                // Of a long section, only the first 4000 bytes: they have the sizes and counts of what follows.
                let end = start.saturating_add((size.read(bytes) as usize).min(4000));
                fields
                    .feature_contents
                    .extend(Field::all(start, end.min(bytes.len()), 4));
            }
            fields.feature_table = [offsets, sizes].concat();
        }
        fields
    }

    fn pick(&self, random: &mut Random) -> Option<Field> {
        let groups = [
            &self.header,
            &self.attrs,
            &self.feature_table,
            &self.feature_contents,
            &self.record_headers,
            &self.record_bodies,
        ];
        let group = groups[random.weighted(&[1, 2, 1, 3, 3, 5])];
        random.try_pick(group).copied()
    }
}

/// A mutated recording, and the damage that commands must report; `None` if they need not report anything.
#[derive(Debug)]
pub(crate) struct Mutated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) must_report_error: Option<&'static str>,
}

/// Mutates a recording, possibly with parts of `other`.
pub(crate) fn mutate(seed: &[u8], other: &[u8], random: &mut Random) -> Mutated {
    let parsed = Recording::parse(seed);
    if random.one_in(12) {
        return damage(seed, parsed.as_ref(), random);
    }
    let mut bytes = match parsed {
        Some(recording) => mutate_parts(recording, other, random),
        None => seed.to_vec(),
    };
    if random.one_in(3) {
        for _ in 0..1 + random.below(4) {
            mutate::bytes(&mut bytes, other, random);
        }
    }
    if random.one_in(30) {
        mutate::truncate(&mut bytes, random);
    }
    Mutated {
        bytes,
        must_report_error: None,
    }
}

fn mutate_parts(mut recording: Recording, other: &[u8], random: &mut Random) -> Vec<u8> {
    if let Some(other) = Recording::parse(other)
        && random.one_in(3)
    {
        for _ in 0..1 + random.below(4) {
            recording.shuffle(&other, random);
        }
    }
    if random.one_in(5) {
        recording.rename(names::hostile, random);
    }
    let mut bytes = recording.bytes();
    if random.one_in(8) {
        rename_texts(&recording, &mut bytes, random);
    }
    if random.one_in(3) {
        change_tracepoint_format(&mut bytes, random);
    }
    let fields = Fields::of(&recording, &bytes);
    for _ in 0..random.below(5) {
        if let Some(field) = fields.pick(random) {
            field.corrupt(&mut bytes, random);
        }
    }
    bytes
}

/// Changes a tracepoint format, if there is one, without changing its length.
fn change_tracepoint_format(bytes: &mut [u8], random: &mut Random) {
    let begins = |at: &usize| bytes[*at..].starts_with(b"name: ");
    let starts: Vec<usize> = (0..bytes.len()).filter(begins).collect();
    let Some(start) = random.try_pick(&starts).copied() else {
        return;
    };
    let is_text = |byte: &&u8| matches!(**byte, b'\n' | b'\t' | b' '..=b'~');
    let length = bytes[start..].iter().take_while(is_text).count();
    let valid = bytes[start..start + length].to_vec();
    let mut text = valid.clone();
    for _ in 0..1 + random.below(4) {
        mutate::text(&mut text, &valid, random);
    }
    text.resize(length, b' ');
    bytes[start..start + length].copy_from_slice(&text);
}

/// A recording with many names replaced.
pub(crate) fn renamed(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let Some(mut recording) = Recording::parse(seed) else {
        return seed.to_vec();
    };
    recording.rename(names::hostile, random);
    let mut bytes = recording.bytes();
    for _ in 0..8 {
        rename_texts(&recording, &mut bytes, random);
    }
    bytes
}

/// Replaces up to three strings in feature sections.
fn rename_texts(recording: &Recording, bytes: &mut [u8], random: &mut Random) {
    let tail_start = bytes.len() - recording.tail.len();
    let texts = mutate::texts(&bytes[tail_start..]);
    for _ in 0..1 + random.below(3) {
        if let Some(text) = random.try_pick(&texts) {
            let name = names::hostile(random);
            mutate::replace_text(&mut bytes[tail_start..], *text, &name);
        }
    }
}

/// Damages a recording so that each command that reads the damaged part must report it. A seed that cannot be parsed is
/// truncated, which commands need not report.
fn damage(seed: &[u8], parsed: Option<&Recording>, random: &mut Random) -> Mutated {
    let mut bytes = seed.to_vec();
    let Some(recording) = parsed else {
        mutate::truncate(&mut bytes, random);
        return Mutated {
            bytes,
            must_report_error: None,
        };
    };
    let start = recording.head.len();
    let must_report_error = match random.below(3) {
        0 => {
            bytes[random.below(8)] ^= 1 << random.below(8);
            "another magic number"
        }
        1 if !recording.records.is_empty() => {
            let index = random.below(recording.records.len());
            let before: usize = recording.records[..index].iter().map(Vec::len).sum();
            let size = Field::new(start + before + 6, 2);
            size.write(&mut bytes, random.next() % 8);
            "a record that is shorter than its header"
        }
        _ if recording.is_pipe => {
            bytes.truncate(random.below(start));
            "the end within the header"
        }
        _ => {
            bytes.truncate(random.below(Recording::complete_length(seed)));
            "an early end"
        }
    };
    Mutated {
        bytes,
        must_report_error: Some(must_report_error),
    }
}
