//! `--to-otlp` and `--otlp`: OpenTelemetry profiles, written to a file or sent to a collector.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use rperf_dataset::RecordingInfo;
use rperf_export::{Profile, otlp};
use rperf_http::{Upload, UploadError};

use super::target::ConversionTarget;
use super::{DataConversion, compressed, estimated_start, start};
use crate::cli::debuginfod::certificate_files;
use crate::cli::error::CliError;
use crate::cli::output_file::write_to;

impl DataConversion<'_> {
    /// `--to-otlp`: writes a file, compressed if its name ends in `.gz`.
    pub(super) fn write_otlp(
        &self,
        target: &ConversionTarget<'_>,
        profile: &Profile,
    ) -> Result<(), CliError> {
        let bytes = self.encoded_otlp(profile);
        write_to(
            Path::new(target.destination),
            self.analysis.context,
            |out| compressed(target.destination, out, |out| out.write_all(&bytes)),
        )
    }

    /// `--otlp`: sends the profile to a collector; returns the size of the request in bytes.
    pub(super) fn send_otlp(
        &self,
        target: &ConversionTarget<'_>,
        profile: &Profile,
    ) -> Result<u64, CliError> {
        let url = service_url(target.destination)?;
        let context = self.analysis.context;
        let mut body = GzEncoder::new(Vec::new(), Compression::fast());
        body.write_all(&self.encoded_otlp(profile))?;
        let body = body.finish()?;
        let upload = Upload {
            url: &url,
            headers: &[
                ("Content-Type", "application/x-protobuf"),
                ("Content-Encoding", "gzip"),
            ],
            body: &body,
            authorities: &certificate_files(context),
        };
        // The closure is called before each retry.
        let answer = upload.send(&mut |error, delay| {
            let seconds = delay.as_secs_f64();
            context.warn(format_args!("{error}; trying again in {seconds} s"));
        });
        let answer = answer.map_err(upload_error)?;
        if let Some(warning) = otlp::warning(&answer) {
            context.warn(format_args!("{url}: {warning}"));
        }
        match otlp::rejection(&answer) {
            None => Ok(body.len() as u64),
            Some(rejection) => Err(CliError::message(255, format!("{url}: {rejection}"))),
        }
    }

    /// Encodes the profile: the content of a file, or the uncompressed body of a request to a collector.
    fn encoded_otlp(&self, profile: &Profile) -> Vec<u8> {
        let recording = self.analysis.metadata();
        let features = recording.features;
        let host = features.hostname().unwrap_or_default();
        let data_bytes = self.analysis.data().header().data.size;
        let id = RecordingInfo::id_of(&host, profile.first_time(), data_bytes);
        let arch = features.arch().map(|arch| match arch.as_str() {
            "x86_64" => "amd64".to_owned(),
            "aarch64" => "arm64".to_owned(),
            _ => arch,
        });
        let resource = [
            ("host.name", Some(host).filter(|host| !host.is_empty())),
            ("host.arch", arch),
            ("host.cpu.model.name", features.cpudesc()),
            ("os.type", Some("linux".to_owned())),
            ("os.version", features.os_release()),
        ];
        let resource = resource.into_iter();
        let start = start(recording, profile);
        let program = self.analysis.context.program.to_string();
        otlp::encode(
            profile,
            &otlp::OtlpRecording {
                id: &id,
                start: start.unwrap_or_else(|| estimated_start(self.analysis.input, profile)),
                resource: resource
                    .filter_map(|(key, text)| Some((key, text?)))
                    .collect(),
                exporter: (&program, env!("CARGO_PKG_VERSION")),
            },
        )
    }
}

/// Returns the URL of the profiles service of the collector at `address`, which may also be the URL of the service itself.
///
/// # Errors
///
/// Status 129: not an http:// or https:// URL with a host.
pub(super) fn service_url(address: &str) -> Result<String, CliError> {
    let rest = ["http://", "https://"]
        .into_iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split('/').next());
    let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
    if !host.is_some_and(is_host) {
        let message = format!("--otlp: '{address}' is not an http:// or https:// address");
        return Err(
            CliError::usage(message).hint("a local collector is --otlp http://localhost:4318")
        );
    }
    let base = address.trim_end_matches('/');
    let base = base.strip_suffix(otlp::SERVICE_PATH).unwrap_or(base);
    Ok(format!("{base}{}", otlp::SERVICE_PATH))
}

fn upload_error(error: UploadError) -> CliError {
    let hint = match &error {
        UploadError::Refused { status: 404, .. } => {
            Some("the server has no profiles service: enable the profiles signal of the collector")
        }
        UploadError::Refused { status: 413, .. } => Some(
            "the recording is too large for the server: raise its limit, or record a shorter time",
        ),
        UploadError::Unreachable { .. } => Some("is a collector for OTLP over HTTP running there?"),
        _ => None,
    };
    let error = CliError::failure(255, error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collector_addresses_become_service_urls_or_are_refused() {
        for (address, expected) in [
            ("http://a:4318", "http://a:4318/v1development/profiles"),
            ("https://a/otlp/", "https://a/otlp/v1development/profiles"),
            (
                "http://a/v1development/profiles",
                "http://a/v1development/profiles",
            ),
        ] {
            assert_eq!(service_url(address).ok().as_deref(), Some(expected));
        }
        for address in [
            "localhost:4318",
            "ftp://a",
            "http://",
            "http:///x",
            "http://a b",
            "",
        ] {
            assert!(service_url(address).is_err(), "{address}");
        }
    }
}
