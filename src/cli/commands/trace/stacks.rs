//! `--call-graph`, `--max-stack`, `--min-stack`, `--kernel-syscall-graph` and `-F`.

use clap::ArgMatches;
use rperf_events::{CallGraph, Catalogue, EventSpec, StackSize, USER_REGISTERS};
use rperf_wire::AttrFlags;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::events::parsed;
use crate::cli::options::{flag, given_value};
use crate::cli::shared::sampling::CallchainOptions;

/// The default of `--max-stack`, also the kernel's default of `kernel.perf_event_max_stack`.
const DEFAULT_MAX_STACK: usize = 127;

/// The stacks and page faults that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StackSettings {
    /// How stacks are recorded. `chains.max_stack` is N of `--call-graph fp,N`, or 0 for the kernel's limit.
    chains: CallchainOptions,
    /// The maximum number of frames of a stack that are shown.
    pub(super) max_stack: usize,
    /// The minimum number of frames of a sample that is shown.
    pub(super) min_stack: usize,
    /// Whether stacks of system calls include kernel frames.
    with_kernel: bool,
    /// The names of the events of the page faults that are shown; empty if none are.
    faults: &'static [&'static str],
}

impl StackSettings {
    /// Parses the options. In live traces, `--max-stack` without `--call-graph` implies stack copies, or frame pointers if the
    /// architecture has no unwinder.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let frames = |id| {
            let number = given_value::<u64>(matches, id).copied();
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let max_stack = frames("max-stack");
        let chains = match matches.contains_id("call-graph") {
            true => CallchainOptions::new(matches, context, "trace.call-graph")?,
            false => CallchainOptions {
                mode: match max_stack {
                    Some(_) if !matches.contains_id("input") => default_mode(),
                    _ => CallGraph::None,
                },
                // The kernel's limit: `--max-stack` limits only the frames that are shown, not those that are recorded.
                max_stack: 0,
            },
        };
        if chains.mode == CallGraph::Deferred {
            return Err(CliError::usage(
                "--call-graph fp,defer is for recordings: use --call-graph fp",
            ));
        }
        let with_kernel = flag(matches, "kernel-syscall-graph") == Some(true);
        let records_none = chains.mode == CallGraph::None && !matches.contains_id("input");
        let needs_stacks = with_kernel || frames("min-stack").is_some_and(|frames| frames > 0);
        if needs_stacks && records_none {
            return Err(CliError::usage(
                "--kernel-syscall-graph and --min-stack need stacks: add --call-graph fp",
            ));
        }
        Ok(Self {
            chains,
            max_stack: max_stack.unwrap_or(DEFAULT_MAX_STACK),
            min_stack: frames("min-stack").unwrap_or_default(),
            with_kernel,
            faults: faults(matches)?,
        })
    }

    /// Whether the stacks of samples are recorded.
    fn records_stacks(&self) -> bool {
        self.chains.mode != CallGraph::None
    }

    /// Whether page faults are shown.
    pub(super) fn shows_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Whether mappings of processes are needed to symbolize addresses.
    pub(super) fn needs_mappings(&self, events: &[EventSpec]) -> bool {
        let mut settings = events.iter().map(|event| &event.settings);
        let has_stacks = settings.any(|settings| {
            settings.max_stack.is_some()
                || !matches!(settings.call_graph, None | Some(CallGraph::None))
        });
        has_stacks || self.shows_faults()
    }

    /// Returns the events of page faults.
    pub(super) fn fault_events(
        &self,
        catalogue: &Catalogue<'_>,
    ) -> Result<Vec<EventSpec>, CliError> {
        let events = self.faults.iter().map(|name| parsed(name, catalogue));
        Ok(events.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Requests the stacks of all events except entries of system calls: the return of a call has the same stack.
    pub(super) fn apply(&self, events: &mut [EventSpec]) {
        if !self.records_stacks() {
            return;
        }
        let is_call = |event: &EventSpec, name| {
            let tracepoint = event.tracepoint.as_ref();
            tracepoint.is_some_and(|at| at.system == "raw_syscalls" && at.name == name)
        };
        for event in events {
            if is_call(event, "sys_enter") {
                continue;
            }
            if is_call(event, "sys_exit") && !self.with_kernel {
                event.attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_KERNEL;
            }
            let settings = &mut event.settings;
            settings.call_graph.get_or_insert(self.chains.mode);
            if self.chains.max_stack > 0 {
                settings.max_stack.get_or_insert(self.chains.max_stack);
            }
        }
    }
}

/// Returns the mode with stack copies if this architecture has an unwinder, otherwise the mode with frame pointers.
fn default_mode() -> CallGraph {
    match USER_REGISTERS {
        Some(_) => CallGraph::Dwarf {
            stack_size: StackSize::default(),
            // Samples also get data addresses, as with `--call-graph dwarf`.
            with_data: true,
        },
        None => CallGraph::FramePointers,
    }
}

/// Returns the names of the events that `-F` selects.
fn faults(matches: &ArgMatches) -> Result<&'static [&'static str], CliError> {
    match given_value::<String>(matches, "pf").map(String::as_str) {
        None => Ok(&[]),
        Some("all") => Ok(&["major-faults", "minor-faults"]),
        Some("maj") => Ok(&["major-faults"]),
        Some("min") => Ok(&["minor-faults"]),
        Some(word) => Err(
            CliError::usage(format!("-F: '{word}' is not a kind of page faults"))
                .hint("use all, maj or min"),
        ),
    }
}
