//! What is done when the recording is over: losses, build-ids, the cache, the header.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rperf_buildid_cache::{Cache, DEBUG_FILES, NewObject, SpecialObject, debug_file, hexadecimal};
use rperf_perfdata::WriteError;
use rperf_perfdata::feature::BuildIdEntry;
use rperf_sys::{Proc, kernel_file, kernel_notes, vdso_image};
use rperf_wire::name_path;

use crate::build_ids::FoundFile;
use crate::header::features;
use crate::hits::Hits;
use crate::losses::{lost_samples, throttled, unhit};
use crate::medium::Medium;
use crate::opened::Opened;
use crate::sink::{Sink, write_error};
use crate::synthesize::Records;
use crate::tally::{MappedName, Tally};
use crate::{BuildIds, Error, Request, Summary, build_ids};

/// Of the only form of directory that there is: the header in `data`, records of rings in `data.N`.
const DIRECTORY_VERSION: u64 = 1;

/// What closing a file needs to know.
pub(crate) struct Closing<'a> {
    pub(crate) request: &'a Request,
    pub(crate) ids: &'a dyn BuildIds,
    pub(crate) opened: &'a Opened,
    /// Nothing more can be written into the pipe.
    pub(crate) reader_gone: bool,
}

/// Writes the counts of lost samples and the header's features, and fills the build-id cache. After a
/// failed write the file is closed with what it has.
pub(crate) fn close(
    closing: &Closing<'_>,
    mut sink: Sink,
    mut records: Records,
) -> Result<Summary, Error> {
    let unhit = unhit(&closing.opened.events);
    let lost_samples = lost_samples(&closing.opened.events, &mut records);
    let written = match closing.reader_gone {
        true => Ok(()),
        false => sink.records(&mut records).map_err(write_error),
    };
    let summary = finish_file(closing, sink)?;
    written?;
    Ok(Summary {
        lost_samples,
        unhit,
        ..summary
    })
}

/// Completes one file with the header's features, and fills the build-id cache.
pub(crate) fn finish_file(closing: &Closing<'_>, sink: Sink) -> Result<Summary, Error> {
    let (build_ids, cache_failure) = closing.build_ids(&sink);
    let mut set = features(
        closing.request,
        &closing.opened.descriptions,
        &closing.opened.events,
    );
    let (first, last) = sink.tally.times.unwrap_or_default();
    set.sample_time(first, last);
    if let Some(tracing_data) = &closing.opened.tracing_data {
        set.tracing_data(tracing_data);
    }
    if !build_ids.is_empty() {
        set.build_ids(&build_ids);
    }
    if closing.request.threads.is_some() {
        set.dir_format(DIRECTORY_VERSION);
    }
    if closing.request.traces.is_some() {
        set.aux_index(&sink.traces);
    }
    if let Some(squeeze) = &sink.squeeze {
        set.compressed(squeeze.feature());
    }
    let compressed = sink.squeeze.as_ref();
    let compressed = compressed.map(|squeeze| (squeeze.original, squeeze.compressed));
    let mut summary = Summary {
        samples: sink.samples(),
        records: sink.tally.records,
        lost_chunks: sink.tally.lost_chunks,
        throttled: throttled(&closing.opened.events, &sink.tally.throttled),
        traces: sink.tally.traces,
        cut_maps: sink.tally.cut_maps,
        jit_dumps: jit_dumps(&sink.tally),
        code_makers: sink.tally.hits.makers(),
        bytes: sink.bytes(),
        compressed,
        cache_failure,
        ..Summary::default()
    };
    let features_lost = sink.medium.finish(&set).map_err(write_error)?;
    summary.features_lost = features_lost.map(|error| error.to_string());
    Ok(summary)
}

/// Where compilers that ran told of their code.
fn jit_dumps(tally: &Tally) -> BTreeSet<PathBuf> {
    let dumps = tally.mapped.keys().filter(|name| name.is_jit_dump());
    let path = |name: &MappedName| OsStr::from_bytes(&name.filename).into();
    dumps.map(path).collect()
}

impl Closing<'_> {
    /// A stream that begins with all that describes the recording.
    pub(crate) fn pipe(&self, stream: &Arc<File>) -> Result<Medium, WriteError> {
        let request = self.request;
        let mut set = features(request, &self.opened.descriptions, &self.opened.events);
        if let Some(tracing_data) = &self.opened.tracing_data {
            set.tracing_data(tracing_data);
        }
        if let Some((kernel, modules)) = self.kernel_build_ids(&Hits::default()) {
            let modules = modules.into_iter().map(|module| module.entry);
            set.build_ids(&std::iter::once(kernel).chain(modules).collect::<Vec<_>>());
        }
        Medium::pipe(stream.clone(), &self.opened.descriptions, &set)
    }

    /// The build-id of the kernel, and its modules; `None` where it is not seen, or none are wanted.
    fn kernel_build_ids(&self, hits: &Hits) -> Option<(BuildIdEntry, Vec<FoundFile>)> {
        let (request, kernel) = (self.request, &self.opened.kernel);
        kernel.text.as_ref().filter(|_| request.build_ids)?;
        let id = self.ids.of_notes(&kernel_notes(&request.sysfs).ok()?)?;
        let modules = build_ids::of_modules(&kernel.modules, hits, (&request.sysfs, self.ids));
        Some((build_ids::of_kernel(&id)?, modules))
    }

    /// The build-ids of all that was mapped, and what went wrong with the cache.
    fn build_ids(&self, sink: &Sink) -> (Vec<BuildIdEntry>, Option<String>) {
        if !self.request.build_ids {
            return (Vec::new(), None);
        }
        let proc = Proc::new(&self.request.proc);
        let (hits, mapped) = (&sink.tally.hits, &sink.tally.mapped);
        let (mut entries, mut files, mut failure) = (Vec::new(), Vec::new(), None);
        if let Some((kernel, modules)) = self.kernel_build_ids(hits) {
            let id = kernel.id().to_vec();
            entries.push(kernel);
            files = modules;
            let kallsyms = SpecialObject::kernel(&id);
            let read = || kernel_file(proc.path("kallsyms"));
            failure = self.keep(&kallsyms, read);
        }
        files.extend(build_ids::of_files(
            mapped,
            &hits.files(),
            (&proc, self.ids),
        ));
        for file in files {
            failure = failure.or_else(|| self.keep_file(&file));
            entries.push(file.entry);
        }
        if mapped.keys().any(|name| *name.filename == *b"[vdso]")
            && let Ok(image) = vdso_image()
            && let Some(id) = self.ids.of_image(&image)
        {
            entries.extend(build_ids::of_vdso(&id));
            let vdso = SpecialObject::vdso(&id);
            failure = failure.or(self.keep(&vdso, || Ok(image)));
        }
        (entries, failure)
    }

    /// Keeps a file that samples fell into, with its debugging information, as long as that works.
    fn keep_file(&self, file: &FoundFile) -> Option<String> {
        let cache = self.request.cache.as_ref().filter(|_| file.is_hit)?;
        let id = hexadecimal(file.entry.id());
        let debug = debug_file(Path::new(DEBUG_FILES), &id);
        let object = NewObject {
            path: &name_path(&file.entry.filename),
            file: &file.place,
            id: &id,
            debug: debug.as_deref(),
            probes: None,
        };
        let failed = Cache::new(cache).add(&object).err()?;
        Some(format!(
            "{} in {}: {failed}",
            file.entry.filename,
            cache.display()
        ))
    }

    fn keep(
        &self,
        special: &SpecialObject<'_>,
        content: impl FnOnce() -> std::io::Result<Vec<u8>>,
    ) -> Option<String> {
        let cache = self.request.cache.as_ref()?;
        let failed = Cache::new(cache).add_special(special, content).err()?;
        Some(format!(
            "{} in {}: {failed}",
            special.object(),
            cache.display()
        ))
    }
}
