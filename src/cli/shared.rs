//! Code shared by several commands, which do not use each other.

pub(crate) mod analysis;
pub(crate) mod annotation;
pub(crate) mod browser;
pub(crate) mod built_in_scripts;
pub(crate) mod columns;
pub(crate) mod event_listing;
pub(crate) mod event_pair;
pub(crate) mod features;
pub(crate) mod flame_output;
pub(crate) mod losses;
pub(crate) mod namespace;
pub(crate) mod numeric_field;
pub(crate) mod perfetto_trace;
pub(crate) mod probing;
pub(crate) mod recorded_fields;
pub(crate) mod recorded_objects;
pub(crate) mod recorded_stat;
pub(crate) mod recording_output;
pub(crate) mod report_options;
pub(crate) mod sampling;
pub(crate) mod stack_line;
pub(crate) mod subcommands;
pub(crate) mod system_recording;
pub(crate) mod temporary_folder;
pub(crate) mod tracepoints;
pub(crate) mod wrap;
