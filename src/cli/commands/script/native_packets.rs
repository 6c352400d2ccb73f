//! The arguments of the script `netdev-times`.

use rperf_view::trace_scripts::PacketLayout;

use crate::cli::error::CliError;

/// Parses the arguments, which are those of perf's script: `tx`, `rx`, `dev=NAME`, `debug`.
///
/// # Errors
///
/// A usage error (exit status 129) for any other word.
pub(super) fn parse(words: &[String]) -> Result<PacketLayout, CliError> {
    let mut layout = PacketLayout::default();
    for word in words {
        match word.as_str() {
            "tx" => layout.sent = true,
            "rx" => layout.received = true,
            "debug" => layout.unfinished_counts = true,
            other => {
                let Some(device) = other.strip_prefix("dev=") else {
                    return Err(CliError::usage(format!(
                        "script netdev-times: unknown word '{other}'"
                    ))
                    .detail("usage: script report netdev-times [tx] [rx] [dev=] [debug]"));
                };
                device.clone_into(&mut layout.device);
            }
        }
    }
    if !layout.sent && !layout.received {
        (layout.sent, layout.received) = (true, true);
    }
    Ok(layout)
}
