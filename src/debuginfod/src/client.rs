//! The [`Client`]: finds files by build-id.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rperf_http::{AgentError, ClientLimits};
use rperf_symbol::{BuildId, FilePart, FileRequest, Servers, build_id_of_elf};
use ureq::Agent;

use crate::cache::{Cache, CacheLookup, PartialFile};
use crate::error::Error;
use crate::observer::{DownloadObserver, Progress};
use crate::settings::{DownloadLimits, Server, Settings};
use crate::transfer::{DownloadTransfer, Received};

/// Finds files by build-id in the cache, otherwise on servers. Shared between threads, with one
/// download at a time.
pub struct Client {
    cache: Cache,
    limits: DownloadLimits,
    /// Certificate bundles (PEM) to verify https servers: the first readable one is used.
    authorities: Vec<PathBuf>,
    observer: Box<dyn DownloadObserver>,
    state: Mutex<ClientState>,
}

/// The part of a client that changes while it is used.
#[derive(Default)]
struct ClientState {
    /// Servers that are still queried: those that have not failed; none after the cache could not store a file.
    servers: Vec<Server>,
    /// Whether a server has failed. It may have files that the others do not have: no more misses are cached.
    has_failed_server: bool,
    /// Files that the servers were queried for, by build-id and part; no file is queried twice.
    queried: HashSet<(String, FilePart)>,
    /// The HTTP agent without https and the one with https, each created on first use.
    agents: [Option<Agent>; 2],
    /// Whether a cleanup of the cache was attempted.
    cleaned: bool,
}

/// A requested file, with its build-id and part as in URLs and in the cache.
struct Query<'a> {
    id: String,
    part: &'static str,
    wanted: &'a FileRequest<'a>,
}

impl Client {
    /// Creates a client; no requests are made.
    #[must_use]
    pub fn new(settings: Settings, observer: impl DownloadObserver + 'static) -> Self {
        Self {
            cache: Cache::new(settings.cache),
            limits: settings.limits,
            authorities: settings.authorities,
            observer: Box::new(observer),
            state: Mutex::new(ClientState {
                servers: settings.servers,
                ..ClientState::default()
            }),
        }
    }

    /// The path of the requested file in the cache, downloaded if necessary. `None` if a recent miss is cached, if no usable
    /// server has the file, or if an earlier call queried the servers for it in vain. Failures are reported to
    /// [`DownloadObserver::failed`].
    pub fn find(&self, wanted: &FileRequest<'_>) -> Option<PathBuf> {
        let query = Query {
            id: query_id(wanted.build_id),
            part: match wanted.part {
                FilePart::Debuginfo => "debuginfo",
                FilePart::Executable => "executable",
            },
            wanted,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.cleaned {
            state.cleaned = true;
            // A failed cleanup is ignored.
            let _ = self.cache.clean();
        }
        match self.cache.look_up(&query.id, query.part) {
            CacheLookup::Found(path) => return Some(path),
            CacheLookup::Miss => return None,
            CacheLookup::Unknown => {}
        }
        if !state.queried.insert((query.id.clone(), wanted.part)) {
            return None;
        }
        self.query_servers(&mut state, &query)
    }

    /// Queries the servers in turn, until one has the file. Caches a miss if no server has failed, and all answer that they do
    /// not have it.
    fn query_servers(&self, state: &mut ClientState, query: &Query<'_>) -> Option<PathBuf> {
        let mut is_absent = !state.servers.is_empty() && !state.has_failed_server;
        for server in state.servers.clone() {
            match self.query_server(state, &server, query) {
                Ok(Some(path)) => return Some(path),
                Ok(None) => {}
                Err(error) => {
                    self.observer.failed(&error);
                    is_absent = false;
                    match error {
                        // The server may have other files that can be used.
                        Error::OtherBuild { .. }
                        | Error::TooLarge { .. }
                        | Error::TooLong { .. } => {}
                        // The next file could not be stored either.
                        Error::Cache { .. } => {
                            state.servers.clear();
                            return None;
                        }
                        _ => {
                            state.servers.retain(|other| *other != server);
                            state.has_failed_server = true;
                        }
                    }
                }
            }
        }
        if is_absent {
            // If this fails, the next run queries the servers again.
            let _ = self.cache.store_miss(&query.id, query.part);
        }
        None
    }

    /// Downloads the file from `server` into the cache; `None` if the server does not have it.
    fn query_server(
        &self,
        state: &mut ClientState,
        server: &Server,
        query: &Query<'_>,
    ) -> Result<Option<PathBuf>, Error> {
        let url = server.url_of(&query.id, query.part);
        // With a time limit, ureq resolves host names in a thread, and panics if it cannot start one.
        rperf_http::check_thread_start().map_err(|error| explain(error, server))?;
        let agent = self.agent(state, server)?;
        let mut partial = self
            .cache
            .create_partial_file(&query.id, query.part)
            .map_err(|source| self.cache_error(query, source))?;
        let transfer = DownloadTransfer {
            agent,
            server,
            url: &url,
            limits: self.limits,
            temporary: &partial.path(),
        };
        let server_name = server.to_string();
        let mut has_progress = false;
        let result = transfer.run(&mut partial.file, &mut |received, total| {
            has_progress = true;
            self.observer.progress(&Progress {
                object: query.wanted.object,
                server: &server_name,
                received,
                total,
            });
        });
        if has_progress {
            self.observer.ended();
        }
        let stored = match result {
            Ok(Received::Complete(modified)) => self.store(&partial, query, &url, modified),
            Ok(Received::NotFound) => Ok(None),
            Err(error) => Err(error),
        };
        if !matches!(stored, Ok(Some(_))) {
            partial.discard();
            self.cache.remove_if_empty(&query.id);
        }
        stored
    }

    /// Checks the build-id of the download and moves the file to its final name in the cache. Never returns `Ok(None)`: the type
    /// is that of [`Client::query_server`].
    fn store(
        &self,
        partial: &PartialFile,
        query: &Query<'_>,
        url: &str,
        modified: Option<SystemTime>,
    ) -> Result<Option<PathBuf>, Error> {
        let bytes = rperf_sys::map_open_file(&partial.file)
            .map_err(|source| self.cache_error(query, source))?;
        let found = build_id_of_elf(&bytes);
        drop(bytes);
        if found.is_none_or(|found| !found.matches(query.wanted.build_id)) {
            let url = url.to_owned();
            return Err(Error::OtherBuild { url, found });
        }
        let stored = self.cache.store(partial, &query.id, query.part, modified);
        stored
            .map(Some)
            .map_err(|source| self.cache_error(query, source))
    }

    fn cache_error(&self, query: &Query<'_>, source: std::io::Error) -> Error {
        let path = self.cache.path(&query.id, query.part);
        Error::Cache { path, source }
    }

    /// The HTTP agent for `server`: with https only if its address needs it.
    fn agent<'s>(&self, state: &'s mut ClientState, server: &Server) -> Result<&'s Agent, Error> {
        let encrypted = server.is_encrypted();
        let [plain, secure] = &mut state.agents;
        let slot = if encrypted { secure } else { plain };
        match slot {
            Some(agent) => Ok(agent),
            None => {
                let authorities = encrypted.then_some(&self.authorities);
                let made = agent(self.limits, authorities, server)?;
                Ok(slot.insert(made))
            }
        }
    }
}

impl Servers for Client {
    fn fetch(&self, wanted: &FileRequest<'_>) -> Option<PathBuf> {
        self.find(wanted)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// Creates an agent, with https if `authorities` is given.
fn agent(
    limits: DownloadLimits,
    authorities: Option<&Vec<PathBuf>>,
    server: &Server,
) -> Result<Agent, Error> {
    let limits = ClientLimits {
        step: limits.stall,
        total: limits.total_time,
    };
    let made = rperf_http::agent(limits, authorities.map(Vec::as_slice));
    made.map_err(|error| explain(error, server))
}

fn explain(error: AgentError, server: &Server) -> Error {
    match error {
        AgentError::NoTls { reason } => Error::NoTls { reason },
        other => Error::Unreachable {
            server: server.to_string(),
            source: Box::new(other),
        },
    }
}

/// The build-id in hexadecimal. Recorded ids may be padded with zeros to twenty bytes. The padding
/// is removed from ids of 8 and 16 bytes, which some linkers use.
fn query_id(id: &BuildId) -> String {
    let mut hexadecimal = id.to_string();
    // The shortest padding is that of 16 bytes to twenty: 8 digits.
    let is_padded = |length: usize| {
        let rest = hexadecimal.get(2 * length..);
        rest.is_some_and(|rest| rest.len() >= 8 && rest.bytes().all(|digit| digit == b'0'))
    };
    if let Some(length) = [8, 16].into_iter().find(|length| is_padded(*length)) {
        hexadecimal.truncate(2 * length);
    }
    hexadecimal
}

#[cfg(test)]
mod tests;
