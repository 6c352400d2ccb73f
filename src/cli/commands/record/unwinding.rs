//! `--unwind live`: callchains in place of copies of stacks, found while recording.

use std::sync::{Arc, Mutex, PoisonError};

use clap::ArgMatches;
use rperf_events::CallGraph;
use rperf_perfdata::EventDesc;
use rperf_replay::Growing;
use rperf_resolve::{LiveOptions, LiveStacks, StackOptions, StackSummary};
use rperf_session::{Request, Rewriter, Rewriting};
use rperf_symbol::SearchPaths;
use rperf_sys::Sysctl;
use rperf_wire::{AttrFlags, Endian};

use super::mapped_files::MappedFiles;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;
use crate::cli::live::PROC;
use crate::cli::stacks::warn_of_cut;
use crate::cli::symbols::own_vdso;

/// Frames of the kernel, and again of user space, that are kept of each stack: as many as readers show unasked (`--max-stack`),
/// and where the kernel's own callchains may be deeper, as many as those.
const DEEPEST: usize = 127;
/// What a record has room for, with the kernel's part.
const MOST: usize = 2048;

fn deepest() -> usize {
    let allowed = Sysctl::new(PROC).perf_event_max_stack();
    let allowed = allowed.and_then(|frames| usize::try_from(frames).ok());
    allowed.unwrap_or(DEEPEST).clamp(DEEPEST, MOST)
}

/// Unwinds the stacks of recordings, and keeps what became of them.
#[derive(Debug)]
pub(super) struct Unwinding {
    paths: SearchPaths,
    found: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    stacks: StackSummary,
    /// Samples that were stored as they were, for want of time.
    stored: u64,
}

impl Unwinding {
    /// Who unwinds while `request` is recorded, if that is asked for.
    pub(super) fn wanted(
        matches: &ArgMatches,
        context: &Context,
        request: &Request,
    ) -> Result<Option<Arc<Self>>, CliError> {
        match matches.get_one::<String>("unwind").map(String::as_str) {
            None | Some("later") => return Ok(None),
            Some("live") => {}
            Some(word) => {
                let error = CliError::usage(format!("--unwind: '{word}' is no time to unwind at"));
                return Err(error.hint("choose from live and later"));
            }
        }
        if !matches!(request.call_graph, CallGraph::Dwarf { .. }) {
            let error = CliError::usage("--unwind live unwinds what --call-graph dwarf records");
            return Err(error.hint("add --call-graph dwarf"));
        }
        let others = [
            (request.details.overwrite, "--overwrite"),
            (request.tail_synthesize, "--tail-synthesize"),
            (request.threads.is_some(), "--threads"),
            (request.details.user_regs != 0, "--user-regs"),
        ];
        if let Some((_, other)) = others.iter().find(|(is_given, _)| *is_given) {
            let error = CliError::usage(format!("--unwind live does not go with {other}"));
            return Err(error.hint("leave --unwind live out: stacks are then unwound by readers"));
        }
        Ok(Some(Arc::new(Self {
            paths: SearchPaths::new(context.buildid_dir()),
            found: Arc::default(),
        })))
    }

    /// Says what became of the stacks; `copied` is how many bytes of each were.
    pub(super) fn tell(&self, context: &Context, copied: u32) {
        let found = self.found.lock();
        let found = found.unwrap_or_else(PoisonError::into_inner);
        if found.stored > 0 {
            context.note(format_args!(
                "{} samples were stored with copies of their stacks, for which unwinding had no time",
                found.stored
            ));
        }
        let stacks = StackSummary {
            // Marks are made by who reads copies.
            marked: true,
            ..found.stacks.clone()
        };
        warn_of_cut(context, &stacks, Some(copied));
        if stacks.deep > 0 {
            let deepest = deepest();
            context.warn(format_args!(
                "{} of {} user stacks have {deepest} frames or more, of which {deepest} were kept",
                stacks.deep, stacks.stacks
            ));
            let more = deepest.saturating_mul(4).min(MOST);
            if more > deepest {
                context.note(format_args!(
                    "hint: sysctl kernel.perf_event_max_stack={more} keeps more, and readers show them with --max-stack {more}"
                ));
            }
        }
    }
}

impl Rewriting for Unwinding {
    fn describe(&self, events: &mut [EventDesc]) {
        for event in events {
            let flags = event.attr.flags;
            event.attr.flags = flags.with(AttrFlags::EXCLUDE_CALLCHAIN_USER, false);
        }
    }

    fn begin(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        let mapped = MappedFiles::new(PROC);
        let mut paths = self.paths.clone();
        paths.servers = Some(mapped.open());
        let options = LiveOptions {
            files: &DiskFiles,
            paths,
            vdso: own_vdso(),
            stacks: StackOptions {
                machine: std::env::consts::ARCH.to_owned(),
                endian: Endian::NATIVE,
                limit: Some(deepest()),
                outermost: false,
                calls: false,
            },
            jobs: rperf_sys::parallelism().div_ceil(2),
        };
        Box::new(Recorded {
            stacks: LiveStacks::new(Growing::new(Endian::NATIVE, events), options),
            mapped,
            found: Arc::clone(&self.found),
        })
    }
}

/// The stacks of one recording.
struct Recorded {
    stacks: LiveStacks,
    mapped: MappedFiles,
    found: Arc<Mutex<Found>>,
}

impl Rewriter for Recorded {
    fn note(&mut self, records: &[u8]) {
        let stacks = &mut self.stacks;
        self.mapped.identify(records, |piece| stacks.note(piece));
    }

    fn note_end(&mut self) {
        self.stacks.note_end();
    }

    fn rewrite(&mut self, records: &[u8], haste: bool, to: &mut Vec<u8>) {
        match haste {
            true => self.stacks.store(records, to),
            false => self.stacks.rewrite(records, to),
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let found = Found {
            stacks: self.stacks.summary().clone(),
            stored: self.stacks.stored(),
        };
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}
