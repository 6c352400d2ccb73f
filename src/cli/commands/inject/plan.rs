//! The changes that the options request.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;

use clap::ArgMatches;
use rperf_names::first_names;
use rperf_perfdata::{EventDesc, Metadata, PerfData};
use rperf_replay::{EventIndex, Replay};
use rperf_resolve::StackSummary;
use rperf_rewrite::{
    AddressShifter, BuildIdInjector, FieldDropper, InjectedObjects, JitInjector, MappedBuildIds,
    Pipeline, Redactor, SchedStatMerger, StripSamples, has_record_times, used_objects,
};
use rperf_wire::SampleType;

use super::build_ids::{BuildIdLookup, KnownBuildIds};
use super::callchains::{CallchainConverter, has_stack_copies};
use super::jit::JitDumpFiles;
use super::output::InjectSummary;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::options::{flag, is_given};
use crate::cli::stack_folding::warn_of_truncated;
use crate::cli::symbols::is_monotonic;

/// The requested changes.
pub(super) struct InjectPlan<'c> {
    matches: &'c ArgMatches,
    pub(super) context: &'c Context,
    known: KnownBuildIds,
    build_ids: Option<BuildIdForm>,
    /// Statistics of converted callchains.
    stacks: Rc<RefCell<StackSummary>>,
}

/// Where build-ids are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuildIdForm {
    /// Into separate build-id records.
    Records(InjectedObjects),
    /// Into the mappings of objects that samples hit; the host's mappings of other objects are dropped, those of guests kept.
    UsedMappings,
    /// Into the mappings of all objects.
    Mappings,
}

impl<'c> InjectPlan<'c> {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Status 129: options contradict each other, an option is given without another one that it needs, or has an invalid value.
    /// Status 255: a list of build-ids cannot be read.
    pub(super) fn new(matches: &'c ArgMatches, context: &'c Context) -> Result<Self, CliError> {
        let build_ids = build_id_form(matches)?;
        let dependent_options = ["known-build-ids", "vmlinux", "ignore-vmlinux"];
        let dependent = dependent_options
            .into_iter()
            .find(|name| is_given(matches, name));
        if let (None, Some(option)) = (build_ids, dependent) {
            let message = format!("inject: --{option} has no effect without build-ids");
            return Err(CliError::usage(message).hint("add -b"));
        }
        if is_given(matches, "strip") && !is_given(matches, "itrace") {
            let message = "inject: --strip keeps only the samples of --itrace, which is not given";
            return Err(CliError::usage(message).hint("add --itrace"));
        }
        Ok(Self {
            matches,
            context,
            known: KnownBuildIds::new(matches)?,
            build_ids,
            stacks: Rc::default(),
        })
    }

    /// Whether the recording must be complete before it is copied, so that a stream is read to its end first.
    pub(super) fn needs_whole_input(&self) -> bool {
        self.build_ids == Some(BuildIdForm::UsedMappings)
            || is_given(self.matches, "itrace")
            // Jitdumps are complete only when the recording is.
            || self.has("jit")
    }

    /// Whether a switch is on.
    fn has(&self, option: &str) -> bool {
        flag(self.matches, option) == Some(true)
    }

    /// Refuses to strip a recording whose trace was not decoded.
    ///
    /// # Errors
    ///
    /// Status 255: all samples would be dropped.
    pub(super) fn check_decoded(&self, input: &Input, is_decoded: bool) -> Result<(), CliError> {
        if is_decoded || !is_given(self.matches, "strip") {
            return Ok(());
        }
        let message = format!(
            "inject --strip: {} has no hardware trace",
            input.path.display()
        );
        Err(CliError::message(255, message).hint("omit --strip: all samples would be dropped"))
    }

    /// Returns the transforms of a recording, and changes `events` to those of the copy. `data` is the complete recording; `None`
    /// for a stream that is copied while it is read.
    pub(super) fn pipeline(
        &self,
        metadata: Metadata<'_>,
        data: Option<&PerfData<'_>>,
        events: &mut [EventDesc],
    ) -> Result<Pipeline<'c>, CliError> {
        let mut pipeline = Pipeline::new();
        if is_given(self.matches, "strip") {
            // The samples that were decoded from the trace belong to the last event.
            let last = u32::try_from(events.len().saturating_sub(1)).unwrap_or_default();
            pipeline.add(StripSamples::new(metadata.endian, events, EventIndex(last)));
        }
        if self.has("jit") {
            self.add_jit(metadata, events, &mut pipeline)?;
        }
        if self.has("sched-stat") {
            let formats = metadata.formats()?;
            let merger = SchedStatMerger::new(metadata.endian, events, &formats);
            pipeline.add(merger.ok_or_else(no_sched_stat)?);
        }
        if let Some(form) = self.build_ids {
            self.add_build_ids(form, metadata, data, events, &mut pipeline)?;
        }
        self.add_content_changes(metadata, events, &mut pipeline)?;
        Ok(pipeline)
    }

    fn add_jit(
        &self,
        metadata: Metadata<'_>,
        events: &[EventDesc],
        pipeline: &mut Pipeline<'c>,
    ) -> Result<(), CliError> {
        if !has_record_times(events) {
            let message = "inject --jit: the recording has no times of mappings";
            return Err(CliError::message(255, message).hint("record with -k CLOCK_MONOTONIC"));
        }
        let dump_files = JitDumpFiles {
            context: self.context,
            is_verbose: self.context.verbosity(self.matches) > 0,
        };
        let is_monotonic = is_monotonic(events);
        let injector = JitInjector::new(metadata.endian, events, is_monotonic, dump_files);
        pipeline.add(injector);
        Ok(())
    }

    /// Adds the transforms of `--convert-callchain`, `--aslr` and `--redact`.
    fn add_content_changes(
        &self,
        metadata: Metadata<'_>,
        events: &mut [EventDesc],
        pipeline: &mut Pipeline<'c>,
    ) -> Result<(), CliError> {
        let endian = metadata.endian;
        let (converts, redacts) = (self.has("convert-callchain"), self.has("redact"));
        let moves = self.has("aslr") || redacts;
        let has_copies = has_stack_copies(events);
        if converts && !has_copies {
            let message = "inject --convert-callchain: the recording has no stack copies";
            return Err(CliError::message(255, message).hint("record with --call-graph dwarf"));
        }
        // Addresses and text in stack copies can't be replaced: the copies are converted to callchains, then dropped.
        if has_copies && (converts || moves) {
            let stacks = Rc::clone(&self.stacks);
            let converter = CallchainConverter::new(metadata, events, stacks, self.context);
            pipeline.add(converter);
        }
        // Drops the converted stack copies and user registers. If addresses are moved, `AddressShifter` drops them.
        if converts && !moves {
            let fields = SampleType::REGS_USER | SampleType::STACK_USER;
            pipeline.add(FieldDropper::new(endian, events, fields));
        }
        if moves {
            pipeline.add(AddressShifter::new(endian, events));
        }
        if redacts {
            let formats = metadata.formats()?;
            let redactor = Redactor::new(endian, events, &formats);
            let uncertain = redactor.uncertain_events();
            if !uncertain.is_empty() {
                self.context.note(format_args!(
                    "--redact keeps numbers below 0x500000000000 in the data of {}, which may be addresses of programs that are loaded at a fixed address",
                    first_names(&uncertain, 3)
                ));
            }
            pipeline.add(redactor);
        }
        Ok(())
    }

    fn add_build_ids(
        &self,
        form: BuildIdForm,
        metadata: Metadata<'_>,
        data: Option<&PerfData<'_>>,
        events: &[EventDesc],
        pipeline: &mut Pipeline<'c>,
    ) -> Result<(), CliError> {
        let release = metadata.features.os_release();
        let known = self.known.clone();
        let lookup = BuildIdLookup::new(self.matches, self.context, known, release);
        let endian = metadata.endian;
        let objects = match form {
            BuildIdForm::Records(objects) => objects,
            BuildIdForm::UsedMappings | BuildIdForm::Mappings => {
                // `None` keeps the mappings of all objects. For `UsedMappings`, `data` is given, see `needs_whole_input`.
                let used = match data.filter(|_| form == BuildIdForm::UsedMappings) {
                    Some(data) => Some(used_objects(&Replay::open(data)?, threads())),
                    None => None,
                };
                pipeline.add(MappedBuildIds::new(endian, events, used, lookup));
                return Ok(());
            }
        };
        let recorded = metadata.features.build_ids();
        pipeline.add(BuildIdInjector::new(
            endian, events, &recorded, objects, lookup,
        ));
        Ok(())
    }

    /// Reports incomplete stacks and, if verbose, the size and the path of the output file.
    pub(super) fn report(&self, written: &InjectSummary, context: &Context) {
        // The size is in the attrs, which are not kept. Without the size, there is no hint to copy more bytes of each stack.
        let stack_copy_size = None;
        warn_of_truncated(context, &self.stacks.borrow(), stack_copy_size);
        if let Some(path) = written
            .path
            .as_deref()
            .filter(|_| context.verbosity(self.matches) > 0)
        {
            context.note(format_args!(
                "wrote {} bytes to {}",
                written.bytes,
                path.display()
            ));
        }
    }
}

fn no_sched_stat() -> CliError {
    let message = "inject -s: the recording lacks sched_switch or sched_stat_* events";
    CliError::message(255, message)
        .hint("record with -e sched:sched_stat_sleep,sched:sched_switch,sched:sched_process_exit")
}

/// The form of the build-ids; `None` if none is requested.
fn build_id_form(matches: &ArgMatches) -> Result<Option<BuildIdForm>, CliError> {
    let forms = [
        ("mmap2-buildids", BuildIdForm::UsedMappings),
        ("mmap2-buildid-all", BuildIdForm::Mappings),
        ("buildid-all", BuildIdForm::Records(InjectedObjects::Mapped)),
        ("build-ids", BuildIdForm::Records(InjectedObjects::Hit)),
    ];
    let mut given = forms
        .into_iter()
        .filter(|(name, _)| flag(matches, name) == Some(true));
    let first = given.next();
    // -b, the last of `forms`, may be given with one of the other options, which then applies instead of -b.
    let second = given.find(|(name, _)| *name != "build-ids");
    match (first, second) {
        (Some((first, _)), Some((second, _))) => Err(CliError::usage(format!(
            "inject: --{first} and --{second} exclude each other"
        ))),
        (first, _) => Ok(first.map(|(_, form)| form)),
    }
}

/// The number of threads that analyse a recording.
fn threads() -> NonZeroUsize {
    NonZeroUsize::new(rperf_sys::parallelism()).unwrap_or(NonZeroUsize::MIN)
}
