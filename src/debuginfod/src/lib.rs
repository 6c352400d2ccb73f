//! Objects and their debug files from debuginfod servers, by build-id.
//!
//! A [`Client`] asks the servers of its [`Settings`] for `URL/buildid/ID/debuginfo` or `…/executable` (debuginfod(8)) and keeps
//! what they send in the cache of elfutils' own client, so that gdb, elfutils and rperf download each file once. What a server
//! sent is believed only if the build-id in it is the one that was asked for.
//!
//! **Invariants.** A file appears in the cache whole or not at all. A server that fails is named once, to [`Watch::failed`], and
//! not asked again by this client. The crate reads no environment and prints nothing.

mod cache;
mod client;
mod error;
mod settings;
mod tls;
mod transfer;
mod watch;

pub use client::Client;
pub use error::Error;
pub use settings::{Limits, Server, Settings};
pub use watch::{Progress, Watch};
