//! What is changed in the copy, by the options.

use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_perfdata::{EventDesc, Metadata, PerfData};
use rperf_replay::{EventIndex, Replay};
use rperf_rewrite::{
    BuildIdInjector, InjectedObjects, MappedBuildIds, Pipeline, StripSamples, used_objects,
};

use super::build_ids::{BuildIdLookup, KnownBuildIds};
use super::output::Written;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::options::{flag, is_given};

/// The changes.
pub(super) struct InjectPlan<'c> {
    matches: &'c ArgMatches,
    pub(super) context: &'c Context,
    known: KnownBuildIds,
    build_ids: Option<BuildIdForm>,
}

/// Where build-ids are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuildIdForm {
    /// Into records of their own.
    Records(InjectedObjects),
    /// Into the mappings of objects that were hit; others are dropped.
    UsedMappings,
    /// Into all mappings.
    Mappings,
}

impl<'c> InjectPlan<'c> {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Status 129: options that contradict each other or lack another one.
    pub(super) fn new(matches: &'c ArgMatches, context: &'c Context) -> Result<Self, CliError> {
        let build_ids = build_id_form(matches)?;
        let needs_build_ids = ["known-build-ids", "vmlinux", "ignore-vmlinux"];
        let lacking = needs_build_ids
            .into_iter()
            .find(|name| is_given(matches, name));
        if let (None, Some(option)) = (build_ids, lacking) {
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
        })
    }

    /// Whether the recording is read before it is copied.
    pub(super) fn reads_twice(&self) -> bool {
        self.build_ids == Some(BuildIdForm::UsedMappings) || is_given(self.matches, "itrace")
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

    /// The transforms of a recording. `events` are changed to those of the copy; `data` is the whole recording, unless it is
    /// streamed.
    pub(super) fn pipeline(
        &self,
        metadata: Metadata<'_>,
        data: Option<&PerfData<'_>>,
        events: &mut [EventDesc],
    ) -> Result<Pipeline<'c>, CliError> {
        let mut pipeline = Pipeline::new();
        if is_given(self.matches, "strip") {
            // The decoded trace is the last event.
            let last = u32::try_from(events.len().saturating_sub(1)).unwrap_or_default();
            pipeline.add(StripSamples::new(metadata.endian, events, EventIndex(last)));
        }
        if let Some(form) = self.build_ids {
            self.add_build_ids(form, metadata, data, events, &mut pipeline)?;
        }
        Ok(pipeline)
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

    /// Reports the result.
    pub(super) fn report(&self, written: &Written, context: &Context) {
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
    // -b with --buildid-all means all, as in perf.
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
