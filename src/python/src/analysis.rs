//! A recording opened for one pass over its samples.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use rperf_input::DiskFiles;
use rperf_names::{counted, was_or_were};
use rperf_perfdata::{EventDesc, PerfData};
use rperf_replay::{Diagnostics, Replay};
use rperf_resolve::{
    Resolver, StackOptions, UserStacks, completes_callchains, has_lbr_call_stacks,
};
use rperf_symbol::{FileBytes, SearchPaths};
use rperf_tracepoint::Formats;
use rperf_wire::{AttrFlags, RecordKind, SampleType};

use crate::error::{or_value_error, value_error};
use crate::recording::RecordingFile;

/// perf's maximum number of frames of a callchain (`PERF_MAX_STACK_DEPTH`).
const MAX_STACK: usize = 127;

/// Options of reading a recording: the number of threads, the sources of symbols, and the use of hardware traces.
#[derive(Debug, Clone)]
pub(crate) struct AnalysisOptions {
    /// Number of threads.
    pub(crate) jobs: NonZeroUsize,
    /// The build-id cache; with `symfs`, the folder `.debug` below it is used instead.
    pub(crate) cache: PathBuf,
    pub(crate) vmlinux: Option<PathBuf>,
    pub(crate) kallsyms: Option<PathBuf>,
    /// Prefix of the paths of objects.
    pub(crate) symfs: Option<PathBuf>,
    /// Whether the branches of a hardware trace are samples.
    pub(crate) branches: bool,
}

/// A recording after pass 1 of the replay, which builds the World (the processes and mappings at a time), ready for a pass over
/// its samples.
pub(crate) struct RecordingPass<'a> {
    pub(crate) replay: &'a Replay<'a>,
    pub(crate) resolver: &'a Resolver<'a>,
    pub(crate) formats: Arc<Formats>,
    pub(crate) jobs: NonZeroUsize,
}

impl AnalysisOptions {
    /// Reads `recording`, runs pass 1, and passes the result to `work`.
    ///
    /// # Errors
    /// Errors of `work`, of `with_data` and of `replay`; the formats of tracepoints cannot be parsed.
    pub(crate) fn run<R>(
        &self,
        recording: &RecordingFile,
        work: impl FnOnce(&RecordingPass<'_>) -> PyResult<R>,
    ) -> PyResult<R> {
        self.with_data(recording, |data| {
            let replay = self.replay(data)?;
            let files = DiskFiles;
            // With `symfs`, the files are of another machine, which has another vdso.
            let vdso = match self.symfs {
                Some(_) => None,
                None => rperf_sys::vdso_image().ok().map(FileBytes::from),
            };
            let resolver =
                Resolver::new(replay.world(), &files, self.search_paths(data)).with_vdso(vdso);
            work(&RecordingPass {
                replay: &replay,
                resolver: &resolver,
                formats: or_value_error(data.metadata().formats())?,
                jobs: self.jobs,
            })
        })
    }

    /// Reads `recording`, with samples for the branches of its hardware trace if `branches` is set, and passes it to
    /// `work`.
    ///
    /// # Errors
    /// Errors of `work`; the recording cannot be read; `branches` is set and the recording has a hardware trace that cannot be
    /// decoded.
    pub(crate) fn with_data<R>(
        &self,
        recording: &RecordingFile,
        work: impl FnOnce(&PerfData<'_>) -> PyResult<R>,
    ) -> PyResult<R> {
        let data = recording.read(self.jobs)?;
        if !self.branches {
            return work(&data);
        }
        if let Some(decoded) = or_value_error(data.with_branches())? {
            return work(&or_value_error(PerfData::parse(&decoded))?);
        }
        let mut records = data.records().filter_map(Result::ok);
        if records.any(|record| record.raw.kind == RecordKind::AUXTRACE_INFO) {
            let path = recording.path.display();
            return Err(value_error(format!(
                "itrace: {path}: only the hardware trace intel_bts can be decoded"
            )));
        }
        work(&data)
    }

    /// Runs pass 1 and adds the functions of JIT compilers.
    pub(crate) fn replay<'a>(&self, data: &'a PerfData<'a>) -> PyResult<Replay<'a>> {
        let mut replay = or_value_error(Replay::open_on(data, self.jobs))?;
        let is_monotonic = data.events().iter().all(|event| {
            event.attr.flags.contains(AttrFlags::USE_CLOCKID)
                && event.attr.clockid == libc::CLOCK_MONOTONIC
        });
        // Most JIT dumps have times of `CLOCK_MONOTONIC`; if the recording has another clock, they are converted approximately.
        rperf_resolve::add_jit_functions(replay.world_mut(), &DiskFiles, is_monotonic);
        Ok(replay)
    }

    fn search_paths(&self, data: &PerfData<'_>) -> SearchPaths {
        let cache = match &self.symfs {
            Some(root) => root.join(".debug"),
            None => self.cache.clone(),
        };
        let paths = SearchPaths::new(Some(cache));
        let paths = match data.features().os_release() {
            Some(release) => paths.with_kernel_release(&release),
            None => paths,
        };
        SearchPaths {
            vmlinux: self.vmlinux.clone(),
            kallsyms_override: self.kallsyms.clone(),
            symfs: self.symfs.clone(),
            ..paths
        }
    }
}

impl<'a> RecordingPass<'a> {
    /// The events of the recording.
    pub(crate) fn events(&self) -> &'a [EventDesc] {
        self.replay.data().events()
    }

    /// Returns what completes callchains, for example with frames unwound from copied user stacks, and the maximum number of
    /// frames that are read from a callchain.
    pub(crate) fn stacks(&self) -> (UserStacks<'a, 'a>, usize) {
        let data = self.replay.data();
        let mut attrs = data.events().iter().map(|event| &event.attr);
        let completes = attrs.clone().any(completes_callchains);
        let machine = data.features().arch();
        let options = StackOptions {
            machine: machine
                .unwrap_or_else(|| std::env::consts::ARCH.into())
                .to_string(),
            endian: data.endian(),
            limit: completes.then_some(MAX_STACK),
            // Of more kernel frames than the limit, the innermost are kept.
            keeps_outermost: false,
            has_lbr_call_stacks: attrs.any(has_lbr_call_stacks),
        };
        // If `options.limit` is set, it is the only limit: with a stack copy, it applies to kernel and user frames separately;
        // without one, to all recorded frames together.
        let max_stack = match completes {
            true => usize::MAX,
            false => MAX_STACK,
        };
        (UserStacks::new(self.resolver, options), max_stack)
    }

    /// Returns for each event whether inlined functions are frames of its callchains: they are if user stacks were copied.
    pub(crate) fn inlines(&self) -> Vec<bool> {
        let copies = [SampleType::STACK_USER, SampleType::REGS_USER];
        let unwound = |event: &EventDesc| {
            let sample_type = event.attr.sample_type;
            copies.iter().all(|bit| sample_type.contains(*bit))
        };
        self.events().iter().map(unwound).collect()
    }
}

/// Warns of losses, of damaged files of a directory recording and of samples of unknown events, and reports other damage, as
/// `script` does at its end. In `diagnostics`, lost chunks are LOST records, each with a number of lost records; `end` is the
/// damage at which reading stopped.
///
/// # Errors
/// `ValueError`: records could not be decoded, or reading stopped before the end of the recording. Exceptions of Python's
/// warning filters.
pub(crate) fn conclude(
    py: Python<'_>,
    recording: &RecordingFile,
    diagnostics: &Diagnostics,
) -> PyResult<()> {
    let path = recording.path.display();
    let mut warnings: Vec<String> = recording
        .part_damage()
        .map(str::to_owned)
        .into_iter()
        .collect();
    if diagnostics.lost_chunks > 0 {
        warnings.push(format!(
            "{path}: {} {} lost while recording",
            counted(diagnostics.lost_records, "record"),
            was_or_were(diagnostics.lost_records)
        ));
    }
    if diagnostics.lost_samples > 0 {
        warnings.push(format!(
            "{path}: {} {} lost while recording",
            counted(diagnostics.lost_samples, "sample"),
            was_or_were(diagnostics.lost_samples)
        ));
    }
    if diagnostics.unknown_ids > 0 {
        warnings.push(format!(
            "{path}: {} of events that the header does not describe {} skipped",
            counted(diagnostics.unknown_ids, "sample"),
            was_or_were(diagnostics.unknown_ids)
        ));
    }
    let module = py.import("warnings")?;
    let category = py.get_type::<PyRuntimeWarning>();
    for text in warnings {
        module.call_method1("warn", (text, &category))?;
    }
    if let Some(end) = &diagnostics.end {
        return Err(value_error(format!(
            "{path}: {end}\nhint: only the records before it were read"
        )));
    }
    for (bad, what) in [
        (&diagnostics.bad_records, "record"),
        (&diagnostics.bad_samples, "sample"),
    ] {
        if let Some(first) = &bad.first {
            return Err(value_error(format!(
                "{path}: {} cannot be decoded; the first, {} ({}) at offset {:#x}: {}\nhint: all others were read; 'rperf data check' lists all damage",
                counted(bad.count, what),
                first.kind,
                first.kind.0,
                first.offset,
                first.error
            )));
        }
    }
    Ok(())
}
