//! `bench internals inject-build-id`: the build-id injection of `rperf inject`, on a generated recording.

use std::io::sink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgMatches, Command};
use rperf_bench::{BenchError, Value};
use rperf_count::Spread;
use rperf_perfdata::{EventDesc, FeatureSet, FileHeader, PipeReader, PipeWriter};
use rperf_replay::DsoKind;
use rperf_rewrite::{
    BuildIdInjector, BuildIdSource, InjectedObjects, ObjectName, Pipeline, StreamCopy,
};
use rperf_safefs::{FileKind, Folder};
use rperf_symbol::{BuildId, Files as _, build_id_of_elf};
use rperf_sys::Children;
use rperf_wire::{
    Attr, AttrFlags, Comm, Encoder, Endian, EventType, Misc, Mmap, Mmap2, MmapId, PROT_EXEC,
    PROT_READ, Record, RecordHeader, RecordKind, SampleId, SampleIdLayout, SampleLayout,
    SampleRecord, SampleType,
};

use super::system;
use crate::cli::commands::bench::args::{BenchOptions, lettered_switch, numeric};
use crate::cli::commands::bench::runner::{RunOutput, Runner, not_applicable};
use crate::cli::error::CliError;
use rperf_input::DiskFiles;

/// The folder that is searched for objects.
const LIBRARIES: &str = "/usr/lib";
/// Maximum number of objects.
const MAX_OBJECTS: usize = 1000;
/// Maximum depth of folders below [`LIBRARIES`].
const MAX_DEPTH: usize = 10;
/// Page size in bytes.
const PAGE: u64 = 4096;
/// Size of each mapping in bytes. The samples of a mapping hit its pages in turn, and start over after the last page.
const MAPPING: u64 = 256 * PAGE;
/// The process in the recording.
const PID: u32 = 1;

pub(super) fn command() -> Command {
    Command::new("internals")
        .arg(numeric("iterations", 'i', "repetitions (default: 100)"))
        .arg(numeric(
            "nr-mmaps",
            'm',
            "mappings in the recording (default: 100)",
        ))
        .arg(numeric(
            "nr-samples",
            'n',
            "samples for each mapping (default: 100)",
        ))
        .arg(lettered_switch(
            "verbose",
            'v',
            "show the size of the recording",
        ))
}

pub(super) fn run(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let iterations = options.positive("iterations", 100)?;
    let mappings = options.positive_count("nr-mmaps", 100)?;
    let samples = options.positive_count("nr-samples", 100)?;
    let objects = objects();
    if objects.is_empty() {
        let reason = format!("no object below {LIBRARIES} has a build-id");
        return Err(not_applicable(reason));
    }
    let recording = recording(&objects, mappings, samples)?;
    if options.is_on("verbose") {
        runner.print_unless_json(&format!(
            "  Recording: {mappings} mappings of {} objects, {samples} samples each, {} bytes\n",
            objects.len().min(mappings as usize),
            recording.len()
        ))?;
    }
    // The number of records, which the output calls events, as perf does: COMM; and for each mapping MMAP2, samples and
    // FINISHED_ROUND.
    let event_count = f64::from(mappings) * (f64::from(samples) + 2.0) + 1.0;
    runner.measure(
        || {
            Ok([
                measure(&recording, InjectedObjects::Hit, iterations)?,
                measure(&recording, InjectedObjects::Mapped, iterations)?,
            ])
        },
        |measured| {
            let names = ["build-id", "build-id-all"];
            let (mut text, mut values) = (String::new(), Vec::new());
            for (name, injection) in names.iter().zip(measured) {
                text.push_str(&injection.text(name, event_count));
                values.push(injection.value(name, event_count));
            }
            RunOutput {
                text,
                simple: None,
                values,
            }
        },
    )
}

/// Microseconds of each injection, and the peak of its process's memory in KB.
struct MeasuredInjection {
    micros: Spread,
    memory: Spread,
}

impl MeasuredInjection {
    fn text(&self, name: &str, event_count: f64) -> String {
        let (mean, error) = (self.micros.mean(), self.micros.standard_error());
        format!(
            "  Average {name} injection took: {:.3} msec (+- {:.3} msec)\n\
             \x20 Average time per event: {:.3} usec (+- {:.3} usec)\n\
             \x20 Average memory usage: {:.0} KB (+- {:.0} KB)\n",
            mean / 1e3,
            error / 1e3,
            mean / event_count,
            error / event_count,
            self.memory.mean(),
            self.memory.standard_error()
        )
    }

    /// Returns the time per event. The memory is not a value: it varies so little between runs that every difference from a
    /// baseline would be significant.
    fn value(&self, name: &str, event_count: f64) -> Value {
        Value::lower_is_better("usec/event", self.micros.mean() / event_count).with_variant(name)
    }
}

/// Injects build-ids into the recording `iterations` times, each time in a new process: it starts with nothing cached, and its
/// peak of memory is that of one injection.
fn measure(
    recording: &[u8],
    objects: InjectedObjects,
    iterations: u64,
) -> Result<MeasuredInjection, BenchError> {
    let (mut micros, mut memory) = (Spread::default(), Spread::default());
    for _ in 0..iterations {
        let start = Instant::now();
        let mut children = Children::default();
        // The exit status of the child: 1 if the injection fails.
        let run_child = || u8::from(inject(recording, objects).is_none());
        children.fork(run_child).map_err(system("fork"))?;
        let (failed_status, peak_kb) = children.wait_with_peak_memory().map_err(system("wait"))?;
        if let Some(status) = failed_status {
            return Err(BenchError::Child(status));
        }
        micros.add(start.elapsed().as_secs_f64() * 1e6);
        memory.add(peak_kb as f64);
    }
    Ok(MeasuredInjection { micros, memory })
}

/// Reads build-ids from the files themselves.
struct FileBuildIds;

impl BuildIdSource for FileBuildIds {
    fn find(&mut self, object: ObjectName<'_>) -> Option<BuildId> {
        match object.kind {
            DsoKind::User => build_id_of_elf(&DiskFiles.read(&object.path()).ok()?),
            _ => None,
        }
    }
}

/// Copies the recording with build-ids; returns the size of the copy in bytes, `None` if the copy fails or is incomplete.
fn inject(recording: &[u8], objects: InjectedObjects) -> Option<u64> {
    let header_size = usize::try_from(FileHeader::PIPE_SIZE).ok()?;
    let (header, rest) = recording.split_at_checked(header_size)?;
    let copy = StreamCopy::begin(PipeReader::new(header.to_vec(), rest).ok()?).ok()?;
    let events = copy.head().events().to_vec();
    let mut pipeline = Pipeline::new();
    pipeline.add(BuildIdInjector::new(
        Endian::NATIVE,
        &events,
        // The metadata of the generated recording contain no build-ids.
        &[],
        objects,
        FileBuildIds,
    ));
    let summary = copy.copy(&events, pipeline, &mut sink()).ok()?;
    let is_complete = summary.read_error.is_none();
    is_complete.then_some(summary.bytes)
}

/// Returns this program and libraries of this machine that have a build-id; at most [`MAX_OBJECTS`].
fn objects() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::env::current_exe().into_iter().collect();
    add_objects(Path::new(LIBRARIES), MAX_DEPTH, &mut found);
    found.retain(|path| {
        DiskFiles
            .read(path)
            .is_ok_and(|bytes| build_id_of_elf(&bytes).is_some())
    });
    found
}

/// Adds the files of a folder, and of the folders at most `depth` levels below it, that are named like shared libraries. Folders
/// that can't be read are skipped.
fn add_objects(path: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(folder) = Folder::open(path) else {
        return;
    };
    for name in folder.names().unwrap_or_default() {
        if found.len() >= MAX_OBJECTS {
            return;
        }
        let is_library = name.to_string_lossy().contains(".so");
        match folder.kind(&name) {
            Ok(Some(FileKind::File)) if is_library => found.push(path.join(&name)),
            Ok(Some(FileKind::Folder)) if depth > 0 => {
                add_objects(&path.join(&name), depth - 1, found);
            }
            _ => {}
        }
    }
}

/// Generates a recording of one process in pipe mode. The process has `mappings` mappings, which map the objects in turn; each
/// mapping has `samples` samples.
fn recording(objects: &[PathBuf], mappings: u32, samples: u32) -> Result<Vec<u8>, CliError> {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::MMAP | AttrFlags::MMAP2 | AttrFlags::COMM,
        ..Attr::default()
    };
    let mut records = GeneratedRecords::new(&attr);
    records.add_non_sample(&Record::Comm(Comm {
        pid: PID,
        tid: PID,
        comm: b"bench",
    }));
    for (number, object) in (0..u64::from(mappings)).zip(objects.iter().cycle()) {
        let start = (number + 1) * MAPPING;
        records.add_mapping(object, start);
        (0..u64::from(samples))
            .for_each(|sample| records.add_sample(start + sample * PAGE % MAPPING));
        records.add_finished_round();
    }
    let mut stream = Vec::new();
    let ids = vec![1];
    let events = [EventDesc::new(attr, ids)];
    let features = FeatureSet::new(Endian::NATIVE);
    PipeWriter::new(&mut stream, &events, &features)
        .and_then(|mut writer| writer.write_data(&records.bytes))
        .map_err(|error| CliError::failure(1, error))?;
    Ok(stream)
}

/// Encoded records with increasing times.
struct GeneratedRecords {
    bytes: Vec<u8>,
    sample_layout: SampleLayout,
    /// The layout of the sample id of records other than samples.
    id_layout: SampleIdLayout,
    /// The time of the next record.
    time: u64,
}

impl GeneratedRecords {
    fn new(attr: &Attr) -> Self {
        Self {
            bytes: Vec::new(),
            sample_layout: SampleLayout::new(attr),
            id_layout: SampleIdLayout::new(attr.sample_type),
            time: 0,
        }
    }

    /// Adds a record. If the record has a time, `body` encodes it; the caller took it from `self.time` before.
    fn add(&mut self, kind: RecordKind, misc: Misc, body: impl FnOnce(&mut Encoder<'_>)) {
        self.time += 1;
        // The result is ignored: only a path longer than PATH_MAX would make a record too large.
        RecordHeader::encode_record(kind, misc, &mut self.bytes, Endian::NATIVE, body);
    }

    fn add_non_sample(&mut self, record: &Record<'_>) {
        let (kind, misc) = record.kind_and_misc();
        let id = SampleId {
            pid_tid: Some((PID, PID)),
            time: Some(self.time),
            ..SampleId::default()
        };
        let layout = self.id_layout;
        self.add(kind, Misc(misc.0 | Misc::USER.0), |to| {
            record.encode_body(to);
            layout.encode(&id, to);
        });
    }

    fn add_mapping(&mut self, object: &Path, start: u64) {
        let mmap = Mmap {
            pid: PID.cast_signed(),
            tid: PID,
            start,
            len: MAPPING,
            pgoff: 0,
            filename: object.as_os_str().as_encoded_bytes(),
        };
        self.add_non_sample(&Record::Mmap2(Mmap2 {
            mmap,
            id: MmapId::Inode {
                major: 0,
                minor: 0,
                inode: 0,
                generation: 0,
            },
            prot: PROT_READ | PROT_EXEC,
            flags: rperf_wire::MAP_PRIVATE,
        }));
    }

    fn add_sample(&mut self, ip: u64) {
        let sample = SampleRecord {
            ip: Some(ip),
            pid_tid: Some((PID, PID)),
            time: Some(self.time),
            ..SampleRecord::default()
        };
        let layout = self.sample_layout.clone();
        self.add(RecordKind::SAMPLE, Misc::USER, |to| {
            layout.encode(&sample, to)
        });
    }

    fn add_finished_round(&mut self) {
        self.add(RecordKind::FINISHED_ROUND, Misc(0), |_| {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_ids_of_readable_objects_are_injected() {
        let program = std::env::current_exe().unwrap();
        let objects = [program, PathBuf::from("/nonexistent")];
        let recording = recording(&objects, 3, 4).unwrap();
        for objects in [InjectedObjects::Hit, InjectedObjects::Mapped] {
            let size = inject(&recording, objects).unwrap();
            // One HEADER_BUILD_ID record: that of the program, which has two of the three mappings; the other object can't be
            // read. The record has 36 bytes, and at least 8 of the padded path, whose length depends on where the program was
            // built.
            let added = size - recording.len() as u64;
            assert!((44..512).contains(&added), "{added} bytes for {objects:?}");
        }
        // The copy of a recording that ends inside its last record fails.
        assert_eq!(
            inject(&recording[..recording.len() - 1], InjectedObjects::Hit),
            None
        );
    }

    #[test]
    fn a_failed_injection_is_an_error() {
        let failed = measure(b"PERFILE2", InjectedObjects::Hit, 1);
        assert!(matches!(failed, Err(BenchError::Child(_))));
    }
}
