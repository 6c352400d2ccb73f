//! HTTP and https clients: connections with time limits, and uploads that are repeated while a server is busy.
//!
//! The crate reads no environment variables and prints nothing; certificate bundles are named by the caller.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod client;
mod tls;
mod upload;

pub use client::{AgentError, ClientLimits, agent, check_threads};
pub use upload::{Upload, UploadError};
