//! HTTP agents, which send requests to servers.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ureq::Agent;

use crate::tls::with_tls;

/// Time limits of requests; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// For each step: resolving the host name, connecting (with the TLS handshake), the header of a response, and each read and
    /// write.
    pub step: Option<Duration>,
    /// For a complete request, from resolving the host name to the end of the response.
    pub total: Option<Duration>,
}

/// Why requests cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// https is not available.
    #[error("https is not available: {reason}")]
    NoTls {
        /// The cause, as text.
        reason: String,
    },
    /// No thread can be started; resolving a host name needs one.
    #[error("no thread can be started")]
    NoThread(#[source] io::Error),
}

/// Creates an agent. It supports https if `authorities` are given: certificate bundles (PEM), of which the first readable
/// one is used. Its requests return a response with an error status (4xx, 5xx) like any other response, not as an error.
///
/// # Errors
///
/// [`AgentError::NoTls`] if `authorities` are given, but https is not available, no bundle is readable, or the first readable
/// one has no certificates.
pub fn agent(limits: ClientLimits, authorities: Option<&[PathBuf]>) -> Result<Agent, AgentError> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(concat!("rperf/", env!("CARGO_PKG_VERSION")))
        .timeout_global(limits.total)
        .timeout_resolve(limits.step)
        .timeout_connect(limits.step)
        .timeout_recv_response(limits.step)
        .timeout_per_read(limits.step)
        .timeout_per_write(limits.step);
    let config = match authorities {
        Some(authorities) => with_tls(config, authorities)?,
        None => config,
    };
    Ok(config.build().into())
}

/// Checks that a thread can be started. Call it before each request: with a time limit, ureq resolves host names in a thread, and
/// panics if it cannot start one.
///
/// # Errors
///
/// [`AgentError::NoThread`].
pub fn check_thread_start() -> Result<(), AgentError> {
    let spawned = thread::Builder::new().spawn(|| ());
    let thread = spawned.map_err(AgentError::NoThread)?;
    // The thread does nothing, so it cannot panic.
    let _ = thread.join();
    Ok(())
}
