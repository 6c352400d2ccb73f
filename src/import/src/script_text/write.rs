//! Writes the samples of `perf script` output as a perf.data.

use std::collections::HashMap;

use rperf_perfdata::feature::BuildIdEntry;
use rperf_perfdata::{EventDesc, FeatureSet, Output, Writer};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::{
    Comm, Encoder, Endian, Misc, Mmap, PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER, Record,
    RecordHeader, SampleId, SampleIdLayout, SampleLayout, SampleRecord, SampleType, U64s,
};

use super::ScriptText;
use super::addresses::Mappings;
use super::events::TextEvents;
use super::frame::is_kernel;
use super::image::{SymbolFile, SymbolFileKind, elf_file};
use super::objects::Objects;
use super::parse::{LineProblem, TextItem, TextSample};
use crate::Error;
use crate::trace_dat::KernelSymbols;

/// Records are written in blocks of about this size, in bytes.
const BLOCK: usize = 1 << 20;
const ENDIAN: Endian = Endian::Little;
/// Assumed sizes in bytes of a `long` and of a page on the recorded machine.
const LONG: u8 = 8;
const PAGE: u32 = 4096;
/// The part of tracefs' `header_page` that readers need.
const HEADER_PAGE: &[u8] = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n";

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedText {
    /// Number of samples.
    pub samples: u64,
    /// Size of the perf.data in bytes.
    pub bytes: u64,
    /// Number of lines with records other than samples, which are not converted.
    pub skipped_lines: u64,
    /// Files with the functions, which readers find by the build-ids in the recording.
    pub symbol_files: Vec<SymbolFile>,
}

/// Results of the first pass over the text.
#[derive(Default)]
struct Survey<'t> {
    events: TextEvents<'t>,
    objects: Objects<'t>,
    /// Number of lines with records other than samples.
    skipped: u64,
    /// Values of `perf script --header` by name.
    headers: HashMap<&'t str, &'t str>,
    /// The lowest and the highest time of the samples, in nanoseconds.
    times: Option<(u64, u64)>,
}

impl ScriptText<'_> {
    /// Writes the samples as a perf.data with the command line `command`.
    ///
    /// # Errors
    /// [`Error`] if a line cannot be used, the text has no samples, or writing fails.
    pub fn write<O: Output>(&self, out: O, command: &[String]) -> Result<ImportedText, Error> {
        let mut survey = self.survey()?;
        if survey.events.samples() == 0 {
            return Err(Error::NoSamples);
        }
        let events = survey.events.finish();
        survey.objects.finish();
        let kallsyms = survey.objects.kernel.kallsyms();
        let kernel = kallsyms.as_deref().map(str::as_bytes);
        let kernel = kernel.and_then(KernelSymbols::new);
        let mut symbols = symbol_files(&survey.objects, kernel.as_ref());
        let writer = Writer::with_endian(out, &events, ENDIAN)?;
        let mut text_writer = TextWriter::new(writer, &survey, &events);
        if let Some(kernel) = &kernel {
            text_writer.put_kernel(kernel, &survey.objects);
        }
        for item in self.items() {
            if let TextItem::Sample(sample) = item.map_err(|problem| self.error(problem))? {
                text_writer.put(&sample).map_err(|failure| match failure {
                    PutFailure::Write(error) => error,
                    PutFailure::Line(cause) => self.error(LineProblem {
                        line: sample.line,
                        cause,
                    }),
                })?;
            }
        }
        text_writer.flush()?;
        let features = survey.features(&events, &symbols, command);
        // A kernel with no function names needs no file. Its build-id, which is already in `features`, keeps readers from using
        // the running kernel's functions.
        if !survey.objects.kernel.has_names() {
            symbols.retain(|file| file.kind != SymbolFileKind::Kernel);
        }
        let (finished, _) = text_writer.out.finish(&features)?;
        Ok(ImportedText {
            samples: survey.events.samples(),
            bytes: finished.file_bytes,
            skipped_lines: survey.skipped,
            symbol_files: symbols,
        })
    }

    /// The first pass over the text.
    fn survey(&self) -> Result<Survey<'_>, Error> {
        let mut survey = Survey::default();
        for item in self.items() {
            match item.map_err(|problem| self.error(problem))? {
                TextItem::Other => survey.skipped += 1,
                TextItem::Header(name, value) => {
                    survey.headers.entry(name).or_insert(value);
                }
                TextItem::Sample(sample) => {
                    let added = survey.events.add(&sample);
                    let line = sample.line;
                    added.map_err(|cause| self.error(LineProblem { line, cause }))?;
                    survey.objects.add(&sample.frames);
                    let time = sample.head.time;
                    let (first, last) = survey.times.unwrap_or((time, time));
                    survey.times = Some((first.min(time), last.max(time)));
                }
            }
        }
        Ok(survey)
    }
}

/// The files with the functions of the kernel and of each object.
fn symbol_files(objects: &Objects<'_>, kernel: Option<&KernelSymbols<'_>>) -> Vec<SymbolFile> {
    let kernel = kernel.map(|kernel| SymbolFile {
        kind: SymbolFileKind::Kernel,
        name: kernel.build_id_entry().filename,
        build_id: kernel.build_id,
        bytes: kernel.text.to_vec(),
    });
    let user = objects.user.iter().filter_map(|object| {
        let functions = object.functions();
        if functions.is_empty() {
            return None;
        }
        let (bytes, build_id) = elf_file(&functions);
        Some(SymbolFile {
            kind: match object.is_vdso() {
                true => SymbolFileKind::Vdso,
                false => SymbolFileKind::Object,
            },
            name: object.recorded_name().to_owned(),
            build_id,
            bytes,
        })
    });
    kernel.into_iter().chain(user).collect()
}

impl Survey<'_> {
    fn features(
        &self,
        events: &[EventDesc],
        symbols: &[SymbolFile],
        command: &[String],
    ) -> FeatureSet {
        let mut features = FeatureSet::new(ENDIAN);
        let mut tracing_data = TracingDataBuilder::new(ENDIAN, LONG, PAGE);
        tracing_data.headers(HEADER_PAGE, b"");
        let mut has_tracepoints = false;
        for event in &self.events.list {
            if let Some(tracepoint) = &event.tracepoint {
                let (system, _) = event.name.split_once(':').unwrap_or((event.name, ""));
                tracing_data.event(system, tracepoint.format.as_bytes());
                has_tracepoints = true;
            }
        }
        if has_tracepoints {
            features.tracing_data(&tracing_data);
        }
        let entries = symbols.iter().map(|file| {
            let misc = match file.kind {
                SymbolFileKind::Kernel => Misc::KERNEL,
                _ => Misc::USER,
            };
            BuildIdEntry::of_host(misc, &file.build_id, file.name.clone())
        });
        features.build_ids(&entries.collect::<Vec<_>>());
        features.event_desc(events).cmdline(command);
        if let Some((first, last)) = self.times {
            features.sample_time(first, last);
        }
        let header = |name: &str| self.headers.get(name).filter(|value| !value.is_empty());
        if let Some(host) = header("hostname") {
            features.hostname(host);
        }
        if let Some(release) = header("os release") {
            features.os_release(release);
        }
        // Without an architecture, readers assume that of the machine that they run on.
        if let Some(arch) = header("arch") {
            features.arch(arch);
        }
        features
    }
}

/// Why a sample was not added.
enum PutFailure {
    Write(Error),
    /// The reason why the sample cannot be converted.
    Line(&'static str),
}

/// Encodes records.
struct TextWriter<'s, 't, O> {
    out: Writer<O>,
    events: &'s TextEvents<'t>,
    /// Layout and sample type of the samples, by the event's index.
    layouts: Vec<(SampleLayout, SampleType)>,
    /// Layout of the sample id at the end of records other than samples; the first event's.
    trailer: SampleIdLayout,
    mappings: Mappings<'s, 't>,
    /// The last comm of each thread.
    comms: HashMap<u32, &'t str>,
    /// Encoded records that are not written yet.
    records: Vec<u8>,
}

impl<'s, 't, O: Output> TextWriter<'s, 't, O> {
    fn new(out: Writer<O>, survey: &'s Survey<'t>, events: &[EventDesc]) -> Self {
        let first = events.first().map(|event| event.attr.sample_type);
        let layouts = events.iter().map(|event| {
            let sample_type = event.attr.sample_type;
            (SampleLayout::new(&event.attr), sample_type)
        });
        Self {
            out,
            events: &survey.events,
            layouts: layouts.collect(),
            trailer: SampleIdLayout::new(first.unwrap_or(SampleType::IDENTIFIER)),
            mappings: Mappings::new(&survey.objects),
            comms: HashMap::new(),
            records: Vec::new(),
        }
    }

    /// Adds the mappings of the kernel and its modules.
    fn put_kernel(&mut self, kernel: &KernelSymbols<'_>, objects: &Objects<'_>) {
        let mut body = Vec::new();
        kernel.encode_mapping(ENDIAN, &mut body);
        let trailer = self.trailer;
        let kind = rperf_wire::RecordKind::MMAP;
        RecordHeader::encode_record(kind, Misc::KERNEL, &mut self.records, ENDIAN, |to| {
            to.bytes(&body);
            trailer.encode(&SampleId::default(), to);
        });
        for (name, start, len) in objects.kernel.modules() {
            let module = Record::Mmap(Mmap {
                pid: -1,
                tid: 0,
                start,
                len,
                pgoff: 0,
                filename: name.as_bytes(),
            });
            put_record(
                &mut self.records,
                &module,
                Misc::KERNEL,
                trailer,
                &SampleId::default(),
            );
        }
    }

    /// Adds a sample, after the comm and the mappings that it needs.
    fn put(&mut self, sample: &TextSample<'t>) -> Result<(), PutFailure> {
        let head = &sample.head;
        let Some(event_index) = self.events.index_of(head.event) else {
            return Ok(());
        };
        let id = SampleId {
            pid_tid: Some((head.pid, head.tid)),
            time: Some(head.time),
            // The id of the first event, whose layout `trailer` has.
            id: Some(1),
            cpu: Some(head.cpu.unwrap_or_default()),
            ..SampleId::default()
        };
        let trailer = self.trailer;
        if self.comms.insert(head.tid, head.comm) != Some(head.comm) {
            let comm = Record::Comm(Comm {
                pid: head.pid,
                tid: head.tid,
                comm: head.comm.as_bytes(),
            });
            put_record(&mut self.records, &comm, Misc::USER, trailer, &id);
        }
        let records = &mut self.records;
        let addresses =
            self.mappings
                .addresses(head.pid, head.tid, &sample.frames, &mut |mapping| {
                    put_record(records, &Record::Mmap(*mapping), Misc::USER, trailer, &id);
                });
        self.put_sample(sample, event_index, &addresses)?;
        match self.records.len() >= BLOCK {
            true => self.flush().map_err(PutFailure::Write),
            false => Ok(()),
        }
    }

    fn put_sample(
        &mut self,
        sample: &TextSample<'t>,
        event_index: usize,
        addresses: &[u64],
    ) -> Result<(), PutFailure> {
        let (head, event) = (&sample.head, self.events.list.get(event_index));
        let Some((event, (layout, sample_type))) = event.zip(self.layouts.get(event_index)) else {
            return Ok(());
        };
        let tracepoint = event.tracepoint.as_ref().zip(head.fields);
        let raw = tracepoint.map(|(tracepoint, fields)| tracepoint.data(head.tid, fields));
        let ip = addresses.first().copied();
        // A tracepoint without frames is in the kernel.
        let mode = match ip.map_or(raw.is_some(), is_kernel) {
            true => Misc::KERNEL,
            false => Misc::USER,
        };
        let chain = callchain(addresses);
        let has_chain = sample_type.contains(SampleType::CALLCHAIN);
        let record = SampleRecord {
            // Ids of events begin at 1.
            id: Some(event_index as u64 + 1),
            ip: Some(ip.unwrap_or_default()),
            pid_tid: Some((head.pid, head.tid)),
            time: Some(head.time),
            cpu: head.cpu,
            period: Some(head.period.unwrap_or(1)),
            callchain: has_chain.then(|| U64s::new(&chain, ENDIAN)),
            raw: raw.as_deref(),
            ..SampleRecord::default()
        };
        let kind = rperf_wire::RecordKind::SAMPLE;
        let fits = RecordHeader::encode_record(kind, mode, &mut self.records, ENDIAN, |to| {
            layout.encode(&record, to);
        });
        match fits {
            true => Ok(()),
            false => Err(PutFailure::Line("the sample is too long: more than 64 KiB")),
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_data(&self.records)?;
        self.records.clear();
        Ok(())
    }
}

/// Encodes a callchain with its context markers (`PERF_CONTEXT_*`).
fn callchain(addresses: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut to = Encoder::new(&mut bytes, ENDIAN);
    let mut previous = None;
    for address in addresses {
        let context = match is_kernel(*address) {
            true => PERF_CONTEXT_KERNEL,
            false => PERF_CONTEXT_USER,
        };
        if previous != Some(context) {
            to.u64(context);
            previous = Some(context);
        }
        to.u64(*address);
    }
    bytes
}

/// Appends a record that is not a sample.
fn put_record(
    records: &mut Vec<u8>,
    record: &Record<'_>,
    mode: Misc,
    trailer: SampleIdLayout,
    id: &SampleId,
) {
    let (kind, misc) = record.kind_and_misc();
    let misc = Misc(misc.0 | mode.0);
    RecordHeader::encode_record(kind, misc, records, ENDIAN, |to| {
        record.encode_body(to);
        trailer.encode(id, to);
    });
}
