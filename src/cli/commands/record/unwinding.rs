//! `--unwind live`: unwinds copied stacks while recording and stores callchains instead.

use std::sync::{Arc, Mutex, PoisonError};

use clap::ArgMatches;
use rperf_events::CallGraph;
use rperf_names::{counted, was_or_were};
use rperf_perfdata::{BuildRewriter, EventDesc, Rewriter};
use rperf_replay::LiveWorld;
use rperf_resolve::{StackOptions, StackSummary};
use rperf_rewrite::{LiveUnwinder, UnwindOptions};
use rperf_session::RecordRequest;
use rperf_symbol::SearchPaths;
use rperf_sys::Sysctl;
use rperf_wire::{AttrFlags, Endian};

use super::mapped_files::MappedFiles;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::PROC;
use crate::cli::stack_folding::warn_of_truncated;
use crate::cli::symbols::own_vdso;
use rperf_input::DiskFiles;

/// The default maximum number of frames stored of each kernel and each user stack: the default of `--max-stack` when reading.
/// `kernel.perf_event_max_stack` can raise it.
const DEFAULT_MAX_FRAMES: usize = 127;
/// The upper limit of the maximum: a kernel stack and a user stack of this size fit in one record.
const MAX_FRAMES_LIMIT: usize = 2048;

/// Returns the maximum number of frames stored of each stack.
fn max_stack_frames() -> usize {
    let allowed = Sysctl::new(PROC).perf_event_max_stack();
    let allowed = allowed.and_then(|frames| usize::try_from(frames).ok());
    allowed
        .unwrap_or(DEFAULT_MAX_FRAMES)
        .clamp(DEFAULT_MAX_FRAMES, MAX_FRAMES_LIMIT)
}

/// Unwinds the stacks of a recording, and keeps statistics of the results.
#[derive(Debug)]
pub(super) struct LiveUnwinding {
    paths: SearchPaths,
    results: Arc<Mutex<UnwindResults>>,
}

#[derive(Debug, Default)]
struct UnwindResults {
    stacks: StackSummary,
    /// Samples whose copied stacks were stored because unwinding fell behind.
    stored: u64,
}

impl LiveUnwinding {
    /// Returns the live unwinding for `request`, if `--unwind live` is given.
    pub(super) fn requested(
        matches: &ArgMatches,
        context: &Context,
        request: &RecordRequest,
    ) -> Result<Option<Arc<Self>>, CliError> {
        match matches.get_one::<String>("unwind").map(String::as_str) {
            None | Some("later") => return Ok(None),
            Some("live") => {}
            Some(word) => {
                let error = CliError::usage(format!("--unwind: unknown value '{word}'"));
                return Err(error.hint("choose from live and later"));
            }
        }
        if !matches!(request.observe.call_graph, CallGraph::Dwarf { .. }) {
            let error = CliError::usage("--unwind live needs --call-graph dwarf");
            return Err(error.hint("add --call-graph dwarf"));
        }
        let conflicts = [
            (request.observe.details.overwrite, "--overwrite"),
            (request.synthesis.at_end, "--tail-synthesize"),
            (request.rings.threads.is_some(), "--threads"),
            (
                request.observe.details.samples.user_regs != 0,
                "--user-regs",
            ),
        ];
        if let Some((_, other)) = conflicts.iter().find(|(is_given, _)| *is_given) {
            let error = CliError::usage(format!("--unwind live cannot be combined with {other}"));
            return Err(
                error.hint("omit --unwind live: stacks are unwound when the recording is read")
            );
        }
        Ok(Some(Arc::new(Self {
            paths: SearchPaths::new(context.buildid_dir()),
            results: Arc::default(),
        })))
    }

    /// Reports the results; `copied` is the number of bytes copied of each stack.
    pub(super) fn report(&self, context: &Context, copied: u32) {
        let results = self.results.lock();
        let results = results.unwrap_or_else(PoisonError::into_inner);
        if results.stored > 0 {
            context.note(format_args!(
                "{} {} stored with stack copies: unwinding did not keep up",
                counted(results.stored, "sample"),
                was_or_were(results.stored)
            ));
        }
        let stacks = StackSummary {
            // Suppresses the hint on --mark-truncated, which only applies when copied stacks are read.
            marked: true,
            ..results.stacks.clone()
        };
        // Stacks that could not be unwound to the end.
        warn_of_truncated(context, &stacks, Some(copied));
        // Stacks with more frames than are kept.
        if stacks.at_frame_limit > 0 {
            let limit = max_stack_frames();
            context.warn(format_args!(
                "{} of {} {} truncated to {limit} frames",
                stacks.at_frame_limit,
                counted(stacks.stacks, "user callchain"),
                was_or_were(stacks.at_frame_limit)
            ));
            let more = limit.saturating_mul(4).min(MAX_FRAMES_LIMIT);
            if more > limit {
                context.note(format_args!(
                    "hint: keep more with sysctl kernel.perf_event_max_stack={more}, show them with --max-stack {more}"
                ));
            }
        }
    }
}

impl BuildRewriter for LiveUnwinding {
    fn describe(&self, events: &mut [EventDesc]) {
        // Unwound samples have user callchains. The copies of registers and stacks remain fields of the samples, but are empty
        // if a sample was unwound.
        for event in events {
            let flags = event.attr.flags;
            event.attr.flags = flags.with(AttrFlags::EXCLUDE_CALLCHAIN_USER, false);
        }
    }

    fn build(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        let mapped = MappedFiles::new(PROC);
        let mut paths = self.paths.clone();
        // Symbol lookup asks the `servers` for files by build-id: here not debuginfod servers, but the files that `mapped`
        // keeps open.
        paths.servers = Some(mapped.open_files());
        let options = UnwindOptions {
            files: &DiskFiles,
            paths,
            vdso: own_vdso(),
            stacks: StackOptions {
                machine: std::env::consts::ARCH.to_owned(),
                endian: Endian::NATIVE,
                limit: Some(max_stack_frames()),
                // Both apply only when a recording is read: to call graphs that start with callers, and to recordings with
                // `--call-graph lbr`.
                keeps_outermost: false,
                has_lbr_call_stacks: false,
            },
            // Half of the CPUs; the others are left to the recorded programs.
            jobs: rperf_sys::parallelism().div_ceil(2),
        };
        Box::new(StackRewriter {
            // `LiveWorld` has the processes and mappings at each point in time.
            unwinder: LiveUnwinder::new(LiveWorld::new(Endian::NATIVE, events), options),
            mapped,
            results: Arc::clone(&self.results),
        })
    }
}

/// Unwinds the stacks of one recording. When dropped, it stores the statistics that [`LiveUnwinding::report`] prints.
struct StackRewriter {
    unwinder: LiveUnwinder,
    mapped: MappedFiles,
    results: Arc<Mutex<UnwindResults>>,
}

impl Rewriter for StackRewriter {
    /// Takes note of records, before they are rewritten; not [`Context::note`], which prints a note.
    fn note(&mut self, records: &[u8]) {
        let unwinder = &mut self.unwinder;
        // The unwinder finds files by the build-ids that the mappings get here.
        self.mapped
            .identify(records, |identified| unwinder.note(identified));
    }

    fn note_end(&mut self) {
        self.unwinder.note_end();
    }

    fn rewrite(&mut self, records: &[u8], is_behind: bool, to: &mut Vec<u8>) {
        self.unwinder.rewrite(records, is_behind, to);
    }
}

impl Drop for StackRewriter {
    fn drop(&mut self) {
        let results = UnwindResults {
            stacks: self.unwinder.summary().clone(),
            stored: self.unwinder.samples_not_unwound(),
        };
        *self.results.lock().unwrap_or_else(PoisonError::into_inner) = results;
    }
}
