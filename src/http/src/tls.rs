//! https: cryptography and trusted certificates.

use std::path::PathBuf;

use ureq::config::ConfigBuilder;
use ureq::typestate::AgentScope;

use crate::client::AgentError;

/// Adds https to `config`. Servers are verified with the first readable certificate bundle of `authorities`.
///
/// # Errors
///
/// [`AgentError::NoTls`] if the processor lacks instructions that the cryptography needs, no bundle of `authorities` is
/// readable, or the first readable one has no certificates.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn with_tls(
    config: ConfigBuilder<AgentScope>,
    authorities: &[PathBuf],
) -> Result<ConfigBuilder<AgentScope>, AgentError> {
    use std::sync::Arc;

    use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

    /// Maximum size of a certificate bundle in bytes.
    const MAX_BUNDLE: u64 = 16 << 20;
    /// The instruction sets that the cryptography needs.
    const INSTRUCTIONS: &str = match cfg!(target_arch = "x86_64") {
        true => "AES, PCLMULQDQ, BMI1, ADX and AVX2",
        false => "AES, PMULL, SHA2 and NEON",
    };

    let no_tls = |reason: String| AgentError::NoTls { reason };
    if !graviola::util::is_cpu_supported() {
        let reason = format!("this processor lacks one of the instruction sets {INSTRUCTIONS}");
        return Err(no_tls(reason));
    }
    let read = |path: &PathBuf| rperf_safefs::read(path, MAX_BUNDLE).ok();
    let bundle = authorities.iter().find_map(read).unwrap_or_default();
    let certificates: Vec<_> = parse_pem(&bundle)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        let paths: Vec<_> = authorities
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let reason = format!("no CA certificates in {}", paths.join(", "));
        return Err(no_tls(reason));
    }
    let provider = Arc::new(rustls_graviola::default_provider());
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(provider)
        .root_certs(RootCerts::new_with_certs(&certificates))
        .build();
    Ok(config.tls_config(tls))
}

/// Fails: the cryptography is not available on this architecture.
///
/// # Errors
///
/// Always [`AgentError::NoTls`].
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn with_tls(
    _config: ConfigBuilder<AgentScope>,
    _authorities: &[PathBuf],
) -> Result<ConfigBuilder<AgentScope>, AgentError> {
    let reason = "it is only supported on x86-64 and arm64".to_owned();
    Err(AgentError::NoTls { reason })
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
