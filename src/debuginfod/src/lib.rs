//! Objects and their debug files from debuginfod servers, by build-id.
//!
//! A [`Client`] requests `URL/buildid/ID/debuginfo` or `…/executable` (debuginfod(8)) from the
//! servers in its [`Settings`] and stores files in the cache of elfutils' client, so that gdb,
//! elfutils and rperf download each file once. Files are only accepted if they have the requested
//! build-id.
//!
//! **Invariants.** Files are added to the cache atomically. A server that cannot be used is reported once to
//! [`DownloadObserver::failed`], and not queried again by this client. The crate prints nothing, and
//! reads no environment variables except those of proxies.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod cache;
mod client;
mod error;
mod observer;
mod settings;
mod transfer;

pub use client::Client;
pub use error::Error;
pub use observer::{DownloadObserver, Progress};
pub use settings::{DownloadLimits, Server, Settings};
