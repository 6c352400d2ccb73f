//! `--to-parquet` in a build without the Cargo feature `parquet`.

use rperf_export::Profile;

use super::DataConversion;
use super::target::ConversionTarget;
use crate::cli::error::CliError;

/// Checks that this build can write Parquet files.
///
/// # Errors
///
/// Status 255: always, as this file is only compiled without Parquet.
pub(super) fn check_support() -> Result<(), CliError> {
    Err(
        CliError::message(255, "--to-parquet: this build has no Parquet output")
            .hint("use --to-ndjson, or build with the Cargo feature parquet"),
    )
}

impl DataConversion<'_> {
    /// Refuses as [`check_support`] does.
    pub(super) fn write_parquet(
        &self,
        _: &ConversionTarget<'_>,
        _: &Profile,
    ) -> Result<u64, CliError> {
        check_support().map(|()| 0)
    }
}
