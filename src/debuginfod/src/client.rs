//! The [`Client`]: from a build-id to a file in the cache.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::SystemTime;

use rperf_symbol::{BuildId, Part, Servers, Wanted, build_id_of_elf};
use ureq::Agent;

use crate::cache::{Cache, Known, Receiving};
use crate::error::Error;
use crate::settings::{Limits, Server, Settings};
use crate::tls::with_tls;
use crate::transfer::{Received, Transfer};
use crate::watch::{Progress, Watch};

/// Finds files by build-id: in the cache, else on the servers. Shared between threads, which wait for each other: one transfer
/// goes on at a time.
pub struct Client {
    cache: Cache,
    limits: Limits,
    authorities: Vec<PathBuf>,
    watch: Box<dyn Watch>,
    state: Mutex<State>,
}

/// What was learnt in this run.
#[derive(Default)]
struct State {
    /// Those that still are worth a question.
    servers: Vec<Server>,
    /// Files that were not to be had.
    absent: HashSet<(String, Part)>,
    /// Made at the first question, with or without https.
    agents: [Option<Agent>; 2],
    cleaned: bool,
}

/// A file with the name under which it is asked for.
struct Query<'a> {
    id: String,
    part: &'static str,
    wanted: &'a Wanted<'a>,
}

impl Client {
    /// A client that has asked for nothing yet.
    #[must_use]
    pub fn new(settings: Settings, watch: impl Watch + 'static) -> Self {
        Self {
            cache: Cache::new(settings.cache),
            limits: settings.limits,
            authorities: settings.authorities,
            watch: Box::new(watch),
            state: Mutex::new(State {
                servers: settings.servers,
                ..State::default()
            }),
        }
    }

    /// The file that is wanted, in the cache; fetched if it is not there yet. `None` where nobody has it; of servers that
    /// fail, [`Watch`] is told.
    pub fn find(&self, wanted: &Wanted<'_>) -> Option<PathBuf> {
        let query = Query {
            id: query_id(wanted.build_id),
            part: match wanted.part {
                Part::Debuginfo => "debuginfo",
                Part::Executable => "executable",
            },
            wanted,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.cleaned {
            state.cleaned = true;
            // A cache that grows is no reason to show less.
            let _ = self.cache.clean();
        }
        match self.cache.look(&query.id, query.part) {
            Known::Here(path) => return Some(path),
            Known::Nowhere => return None,
            Known::Nothing => {}
        }
        if !state.absent.insert((query.id.clone(), wanted.part)) {
            return None;
        }
        self.ask(&mut state, &query)
    }

    /// Asks one server after the other.
    fn ask(&self, state: &mut State, query: &Query<'_>) -> Option<PathBuf> {
        let mut denied = !state.servers.is_empty();
        for server in state.servers.clone() {
            match self.ask_one(state, &server, query) {
                Ok(Some(path)) => return Some(path),
                Ok(None) => {}
                Err(error) => {
                    self.watch.failed(&error);
                    denied = false;
                    match error {
                        Error::OtherBuild { .. }
                        | Error::TooLarge { .. }
                        | Error::TooLong { .. } => {}
                        // Nor would the next file find room.
                        Error::Cache { .. } => {
                            state.servers.clear();
                            return None;
                        }
                        _ => state.servers.retain(|other| *other != server),
                    }
                }
            }
        }
        if denied {
            // Without the note the question is asked once more, some other time.
            let _ = self.cache.note_absence(&query.id, query.part);
        }
        None
    }

    fn ask_one(
        &self,
        state: &mut State,
        server: &Server,
        query: &Query<'_>,
    ) -> Result<Option<PathBuf>, Error> {
        let url = server.place(&query.id, query.part);
        has_thread().map_err(|source| Error::Unreachable {
            server: server.to_string(),
            source: Box::new(source),
        })?;
        let agent = self.agent(state, server)?;
        let mut receiving = self
            .cache
            .start(&query.id, query.part)
            .map_err(|source| self.cache_error(query, source))?;
        let transfer = Transfer {
            agent,
            server,
            url: &url,
            limits: self.limits,
            temporary: &receiving.path(),
        };
        let shown = server.to_string();
        let mut shows = false;
        let received = transfer.run(&mut receiving.file, &mut |received, total| {
            shows = true;
            self.watch.progress(&Progress {
                object: query.wanted.object,
                server: &shown,
                received,
                total,
            });
        });
        if shows {
            self.watch.ended();
        }
        let placed = match received {
            Ok(Received::Whole(changed)) => self.place(&receiving, query, &url, changed),
            Ok(Received::Nothing) => Ok(None),
            Err(error) => Err(error),
        };
        if !matches!(placed, Ok(Some(_))) {
            receiving.discard();
            self.cache.forget_empty(&query.id);
        }
        placed
    }

    /// Looks at what came and puts it into the cache.
    fn place(
        &self,
        received: &Receiving,
        query: &Query<'_>,
        url: &str,
        changed: Option<SystemTime>,
    ) -> Result<Option<PathBuf>, Error> {
        let bytes =
            rperf_sys::map(&received.file).map_err(|source| self.cache_error(query, source))?;
        let found = build_id_of_elf(&bytes);
        drop(bytes);
        if found.is_none_or(|found| !found.matches(query.wanted.build_id)) {
            let url = url.to_owned();
            return Err(Error::OtherBuild { url, found });
        }
        let placed = self.cache.place(received, (&query.id, query.part), changed);
        placed
            .map(Some)
            .map_err(|source| self.cache_error(query, source))
    }

    fn cache_error(&self, query: &Query<'_>, source: std::io::Error) -> Error {
        let path = self.cache.path(&query.id, query.part);
        Error::Cache { path, source }
    }

    /// The keeper of connections to servers of this kind.
    fn agent<'s>(&self, state: &'s mut State, server: &Server) -> Result<&'s Agent, Error> {
        let encrypted = server.is_encrypted();
        let [plain, secure] = &mut state.agents;
        let place = if encrypted { secure } else { plain };
        match place {
            Some(agent) => Ok(agent),
            None => {
                let made = agent(self.limits, encrypted.then_some(&self.authorities))?;
                Ok(place.insert(made))
            }
        }
    }
}

impl Servers for Client {
    fn fetch(&self, wanted: &Wanted<'_>) -> Option<PathBuf> {
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

/// With https, if there are `authorities`.
fn agent(limits: Limits, authorities: Option<&Vec<PathBuf>>) -> Result<Agent, Error> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(concat!("rperf/", env!("CARGO_PKG_VERSION")))
        .timeout_global(limits.whole)
        .timeout_resolve(limits.stall)
        .timeout_connect(limits.stall)
        .timeout_recv_response(limits.stall)
        .timeout_per_read(limits.stall);
    let config = match authorities {
        Some(authorities) => with_tls(config, authorities)?,
        None => config,
    };
    Ok(config.build().into())
}

/// The build-id in hexadecimal. Recorded ids may be padded with zeros to twenty bytes; those of 8 and 16 bytes, which some
/// linkers make, are told by that.
fn query_id(id: &BuildId) -> String {
    let mut hexadecimal = id.to_string();
    let is_padded = |length: usize| {
        let rest = hexadecimal.get(2 * length..);
        rest.is_some_and(|rest| rest.len() >= 8 && rest.bytes().all(|digit| digit == b'0'))
    };
    if let Some(length) = [8, 16].into_iter().find(|length| is_padded(*length)) {
        hexadecimal.truncate(2 * length);
    }
    hexadecimal
}

/// Whether a thread can be started: ureq looks names of hosts up on one of its own, and panics without.
fn has_thread() -> io::Result<()> {
    let thread = thread::Builder::new().spawn(|| ())?;
    // It has nothing to do that could panic.
    let _ = thread.join();
    Ok(())
}

#[cfg(test)]
mod tests;
