//! HTTP and https clients: connections with time limits, and uploads that are repeated while a server is busy or
//! unreachable.
//!
//! Certificate bundles are named by the caller; only proxies are taken from the environment. The crate prints nothing.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod client;
mod tls;
mod upload;

pub use client::{AgentError, ClientLimits, agent, check_thread_start};
pub use upload::{Upload, UploadError};
