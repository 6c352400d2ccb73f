//! `-B`, `-N`, `--buildid-mmap`, and the setting `record.build-id`: where build-ids are recorded, and whether the cache is
//! filled.

use clap::ArgMatches;

use crate::cli::context::Context;
use crate::cli::options::flag;

/// The setting; an option takes precedence.
const SETTING: &str = "record.build-id";

/// Whether build-ids are collected at the end of the recording.
pub(super) fn are_recorded(matches: &ArgMatches, context: &Context) -> bool {
    match flag(matches, "no-buildid") {
        Some(without) => !without,
        None => !is_set_to("skip", context),
    }
}

/// Whether objects are added to the build-id cache if their build-ids are collected.
pub(super) fn are_cached(matches: &ArgMatches, context: &Context) -> bool {
    match flag(matches, "no-buildid-cache") {
        Some(without) => !without,
        None => !is_set_to("no-cache", context),
    }
}

/// Whether the kernel puts build-ids into the records of mappings.
pub(super) fn are_in_mappings(matches: &ArgMatches, context: &Context) -> bool {
    flag(matches, "buildid-mmap").unwrap_or_else(|| is_set_to("mmap", context))
}

fn is_set_to(value: &str, context: &Context) -> bool {
    context.config.text(SETTING) == Some(value)
}
