//! Completing a recording: losses, build-ids, build-id cache, header.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rperf_buildid_cache::{Cache, DEBUG_FILES, NewObject, SpecialObject, debug_file, hexadecimal};
use rperf_perfdata::WriteError;
use rperf_perfdata::feature::BuildIdEntry;
use rperf_sys::{Module, Proc, kernel_notes, read_pseudo_file, vdso_image};
use rperf_wire::name_path;

use crate::build_ids::BuildIdFile;
use crate::code_pages::CodePages;
use crate::counted_output::{CountedOutput, write_error};
use crate::header::features;
use crate::losses::{lost_samples, throttled, tracepoints_without_hits};
use crate::opened::OpenedEvents;
use crate::output_stream::OutputStream;
use crate::record_stats::{MappedName, RecordStats};
use crate::synthesize::RecordBuffer;
use crate::{BuildIds, Error, RecordRequest, Summary, build_ids};

/// The only version of the directory format: the header in `data`, records of rings in `data.N`.
const DIRECTORY_VERSION: u64 = 1;

/// Data required to complete a file.
pub(crate) struct FileCompletion<'a> {
    pub(crate) request: &'a RecordRequest,
    pub(crate) ids: &'a dyn BuildIds,
    pub(crate) opened: &'a OpenedEvents,
    /// Whether the output is a pipe whose reader has closed it.
    pub(crate) reader_gone: bool,
}

/// Writes LOST_SAMPLES records and header features, and updates the build-id cache. After a failed write, the file is
/// completed with the records it has, and the error is returned.
pub(crate) fn close(
    closing: &FileCompletion<'_>,
    mut sink: CountedOutput,
    mut records: RecordBuffer,
) -> Result<Summary, Error> {
    // Hits of tracepoints are their counts; elsewhere in this file, hits are code pages with samples.
    let tracepoints_without_hits = tracepoints_without_hits(&closing.opened.events);
    let lost_samples = lost_samples(&closing.opened.events, &mut records);
    let written = match closing.reader_gone {
        true => Ok(()),
        false => sink.write_records(&mut records).map_err(write_error),
    };
    let summary = finish_file(closing, sink)?;
    written?;
    Ok(Summary {
        lost_samples,
        tracepoints_without_hits,
        ..summary
    })
}

/// Completes one file with header features, and updates the build-id cache.
pub(crate) fn finish_file(
    closing: &FileCompletion<'_>,
    sink: CountedOutput,
) -> Result<Summary, Error> {
    let (build_ids, cache_failure) = closing.build_ids(&sink);
    let mut set = features(
        closing.request,
        &closing.opened.descriptions,
        &closing.opened.events,
    );
    let (first, last) = sink.stats.times.unwrap_or_default();
    set.sample_time(first, last);
    if let Some(tracing_data) = &closing.opened.tracing_data {
        set.tracing_data(tracing_data);
    }
    sink.stats.bpf_programs.add_features(&mut set);
    if !build_ids.is_empty() {
        set.build_ids(&build_ids);
    }
    // With `--threads`, the recording is a directory.
    if closing.request.rings.threads.is_some() {
        set.dir_format(DIRECTORY_VERSION);
    }
    // Traces are those of hardware, in AUX areas; `tracing_data` above has the formats of tracepoints.
    if closing.request.observe.traces.is_some() {
        set.aux_index(&sink.traces);
    }
    if let Some(compressor) = &sink.compressor {
        set.compressed(compressor.feature());
    }
    let compressed = sink.compressor.as_ref();
    let compressed = compressed.map(|compressor| (compressor.original, compressor.compressed));
    let mut summary = Summary {
        samples: sink.samples(),
        records: sink.stats.records,
        lost_chunks: sink.stats.lost_chunks,
        throttled: throttled(&closing.opened.events, &sink.stats.throttled),
        traces: sink.stats.traces,
        truncated_maps: sink.stats.truncated_maps,
        jit_dumps: jit_dumps(&sink.stats),
        jit_processes: sink.stats.sampled_pages.jit_processes(),
        bytes: sink.bytes(),
        compressed,
        cache_failure,
        ..Summary::default()
    };
    // The error if the features could not be written; the file is then complete without them.
    let features_lost = sink.output_sink.finish(&set).map_err(write_error)?;
    summary.features_lost = features_lost.map(|error| error.to_string());
    Ok(summary)
}

/// Returns the jitdump files of recorded processes.
fn jit_dumps(stats: &RecordStats) -> BTreeSet<PathBuf> {
    let dumps = stats.mapped.keys().filter(|name| name.is_jit_dump());
    let path = |name: &MappedName| OsStr::from_bytes(&name.filename).into();
    dumps.map(path).collect()
}

impl FileCompletion<'_> {
    /// Starts a stream with the metadata of the recording.
    pub(crate) fn begin_stream(&self, stream: &Arc<File>) -> Result<OutputStream, WriteError> {
        let request = self.request;
        let mut set = features(request, &self.opened.descriptions, &self.opened.events);
        if let Some(tracing_data) = &self.opened.tracing_data {
            set.tracing_data(tracing_data);
        }
        // Hits only decide which modules are added to the cache; here nothing is added.
        let no_hits = CodePages::default();
        if let Some((kernel, modules)) = self.kernel_build_ids(&no_hits) {
            let modules = modules.into_iter().map(|module| module.entry);
            set.build_ids(&std::iter::once(kernel).chain(modules).collect::<Vec<_>>());
        }
        OutputStream::pipe(stream.clone(), &self.opened.descriptions, &set)
    }

    /// Returns the entries of the kernel and of all its modules; `None` if the kernel's text or build-id is unknown, or
    /// build-ids are not requested. Marks the modules to add to the cache: those with code pages in `hits`, or all with
    /// `cache_all`.
    fn kernel_build_ids(&self, hits: &CodePages) -> Option<(BuildIdEntry, Vec<BuildIdFile>)> {
        let (request, kernel) = (self.request, &self.opened.kernel);
        if kernel.text.is_none() || !request.output.build_ids {
            return None;
        }
        let id = self
            .ids
            .of_notes(&kernel_notes(&request.roots.sysfs).ok()?)?;
        let is_wanted = |module: &Module| request.output.cache_all || hits.has_samples_in(module);
        let sysfs = &request.roots.sysfs;
        let modules = build_ids::of_modules(&kernel.modules, &is_wanted, sysfs, self.ids);
        Some((build_ids::of_kernel(&id), modules))
    }

    /// If build-ids are requested, returns those of the kernel, its modules, all mapped files and the vdso, and the message of
    /// the first failure to add one of these objects to the cache.
    fn build_ids(&self, sink: &CountedOutput) -> (Vec<BuildIdEntry>, Option<String>) {
        if !self.request.output.build_ids {
            return (Vec::new(), None);
        }
        let proc = Proc::new(&self.request.roots.proc);
        let (hits, mapped) = (&sink.stats.sampled_pages, &sink.stats.mapped);
        let (mut entries, mut files, mut failure) = (Vec::new(), Vec::new(), None);
        if let Some((kernel, modules)) = self.kernel_build_ids(hits) {
            let id = kernel.id().to_vec();
            entries.push(kernel);
            files = modules;
            let kallsyms = SpecialObject::kernel(&id);
            let read = || read_pseudo_file(proc.path("kallsyms"));
            failure = self.add_to_cache(&kallsyms, read);
        }
        let to_cache = match self.request.output.cache_all {
            true => mapped.keys().collect(),
            false => hits.files(),
        };
        files.extend(build_ids::of_files(&sink.stats, &to_cache, &proc, self.ids));
        for file in files {
            // The other files are added after a failure, too.
            let failed = self.cache_file(&file);
            failure = failure.or(failed);
            entries.push(file.entry);
        }
        if mapped.keys().any(|name| *name.filename == *b"[vdso]")
            && let Ok(image) = vdso_image()
            && let Some(id) = self.ids.of_image(&image)
        {
            entries.push(build_ids::of_vdso(&id));
            let vdso = SpecialObject::vdso(&id);
            failure = failure.or(self.add_to_cache(&vdso, || Ok(image)));
        }
        (entries, failure)
    }

    /// Adds a file and its debug file to the cache, if the file is to be kept there; returns the message of a failure.
    fn cache_file(&self, file: &BuildIdFile) -> Option<String> {
        let cache = self
            .request
            .output
            .cache
            .as_ref()
            .filter(|_| file.add_to_cache)?;
        let id = hexadecimal(file.entry.id());
        let debug = debug_file(Path::new(DEBUG_FILES), &id);
        let object = NewObject {
            path: &name_path(&file.entry.filename),
            file: &file.path,
            id: &id,
            debug: debug.as_deref(),
            // No list of probe events (USDT markers): recording does not look for them.
            probes: None,
        };
        let failed = Cache::new(cache).add(&object).err()?;
        Some(format!(
            "{} in {}: {failed}",
            file.entry.filename,
            cache.display()
        ))
    }

    /// Adds a kernel or vdso to the cache, if the request names a cache; returns the message of a failure. `content` returns what
    /// is stored: of a kernel, its kallsyms; of a vdso, the image.
    fn add_to_cache(
        &self,
        special: &SpecialObject<'_>,
        content: impl FnOnce() -> std::io::Result<Vec<u8>>,
    ) -> Option<String> {
        let cache = self.request.output.cache.as_ref()?;
        let failed = Cache::new(cache).add_special(special, content).err()?;
        Some(format!(
            "{} in {}: {failed}",
            special.name(),
            cache.display()
        ))
    }
}
