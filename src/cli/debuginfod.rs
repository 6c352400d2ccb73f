//! `--debuginfod`: which servers are asked for objects and debug files, how long, and what is shown of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches};
use rperf_debuginfod::{Client, Error, Limits, Progress, Server, Settings, Watch};
use rperf_safefs::Folder;
use rperf_view::terminal::one_line;

use super::context::Context;
use super::error::CliError;
use super::options::attached;
use super::output::Output;

/// What stands for the servers of `DEBUGINFOD_URLS`.
const SYSTEM: &str = "system";

/// Where systems keep the certificates of authorities: Debian, Fedora, SUSE, Alpine.
const CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// How often progress is shown anew.
const REFRESH: Duration = Duration::from_millis(100);

/// The option.
pub(crate) fn option() -> Arg {
    attached("debuginfod", "urls").help(
        "ask these debuginfod servers for what is not on this machine; without urls, those of DEBUGINFOD_URLS",
    )
}

/// A client, if the option of the command or else this setting asks for one.
///
/// # Errors
///
/// Words that are no addresses; the option without any server; no place for a cache.
pub(crate) fn client(
    matches: &ArgMatches,
    setting: &str,
    context: &Context,
) -> Result<Option<Client>, CliError> {
    let given = matches.try_get_one::<String>("debuginfod").ok().flatten();
    let configured = || context.config.text(setting);
    let Some(words) = given.map(String::as_str).or_else(configured) else {
        return Ok(None);
    };
    let list = match words.trim() {
        "" | SYSTEM => text(context, "DEBUGINFOD_URLS").unwrap_or_default(),
        list => list.to_owned(),
    };
    let servers = Server::list(&list).map_err(|error| CliError::failure(129, error))?;
    if servers.is_empty() {
        if given.is_none() {
            context.warn(format_args!("{setting}: DEBUGINFOD_URLS names no server"));
            return Ok(None);
        }
        return Err(CliError::usage("--debuginfod: no server is known")
            .hint("--debuginfod=URL names one, DEBUGINFOD_URLS those that are always asked"));
    }
    let settings = Settings {
        servers,
        cache: cache(context)?,
        limits: limits(context),
        authorities: authorities(context),
    };
    Ok(Some(Client::new(settings, Display::new(context))))
}

/// The folder that all clients on this machine share, as libdebuginfod looks for it.
fn cache(context: &Context) -> Result<PathBuf, CliError> {
    let home = context.home();
    let old = home
        .as_deref()
        .map(|home| home.join(".debuginfod_client_cache"));
    let named = context.var("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
    let found = named
        .or_else(|| old.filter(|old| Folder::open(old).is_ok()))
        .or_else(|| {
            let caches = context.var("XDG_CACHE_HOME").map(PathBuf::from);
            let caches = caches.or_else(|| home.map(|home| home.join(".cache")));
            caches.map(|caches| caches.join("debuginfod_client"))
        });
    found.ok_or_else(|| {
        CliError::message(255, "there is no place for what debuginfod servers send")
            .hint("DEBUGINFOD_CACHE_PATH names one; so does HOME")
    })
}

fn limits(context: &Context) -> Limits {
    let usual = Limits::default();
    let seconds = |name, usual| number(context, name).map_or(usual, |n| n.map(Duration::from_secs));
    Limits {
        stall: seconds("DEBUGINFOD_TIMEOUT", usual.stall),
        whole: seconds("DEBUGINFOD_MAXTIME", usual.whole),
        size: number(context, "DEBUGINFOD_MAXSIZE").unwrap_or(usual.size),
    }
}

/// A limit out of the environment: zero and less stand for none. What is no number is said and not used.
fn number(context: &Context, name: &str) -> Option<Option<u64>> {
    let word = text(context, name)?;
    match word.trim().parse::<i64>() {
        Ok(number) => Some(u64::try_from(number).ok().filter(|number| *number > 0)),
        Err(_) => {
            context.warn(format_args!("{name}={word}: not a number, not used"));
            None
        }
    }
}

fn text(context: &Context, name: &str) -> Option<String> {
    let value: Option<OsString> = context.var(name);
    value.map(|value| value.to_string_lossy().into_owned())
}

/// `SSL_CERT_FILE`, and no other, or what the system has.
fn authorities(context: &Context) -> Vec<PathBuf> {
    let named = context.var("SSL_CERT_FILE").map(|file| vec![file.into()]);
    named.unwrap_or_else(|| CERTIFICATES.map(PathBuf::from).to_vec())
}

/// Shows on stderr what goes on.
struct Display {
    quiet: bool,
    /// On a terminal: one line that is written over.
    live: bool,
    /// Set once stdout goes through a pager, which owns the terminal from then on.
    paged: Arc<AtomicBool>,
    refreshed: Mutex<Option<Instant>>,
}

impl Display {
    fn new(context: &Context) -> Self {
        let quiet = context.output.is_quiet();
        Self {
            quiet,
            live: !quiet && Output::shows_errors_on_terminal(),
            paged: context.output.redirected(),
            refreshed: Mutex::new(None),
        }
    }
}

impl Watch for Display {
    fn progress(&self, progress: &Progress<'_>) {
        if !self.live || self.paged.load(Ordering::Relaxed) {
            return;
        }
        let mut refreshed = self
            .refreshed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if refreshed.is_none_or(|last| last.elapsed() >= REFRESH) {
            *refreshed = Some(Instant::now());
            Output::status(&line(progress));
        }
    }

    fn ended(&self) {
        let mut refreshed = self
            .refreshed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if refreshed.take().is_some() {
            Output::status("");
        }
    }

    fn failed(&self, error: &Error) {
        if !self.quiet {
            let cause = std::error::Error::source(error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            let line = format!("Warning: {error}{cause}");
            Output::error(&format!("{}\n", one_line(&line)));
        }
    }
}

/// `debuginfod: libc.so.6 from https://server: 3.1 of 12.0 MB`.
fn line(progress: &Progress<'_>) -> String {
    let object = progress.object.file_name().map(Path::new);
    let object = object.unwrap_or(progress.object).display();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let received = megabytes(progress.received);
    let total = progress.total.map(megabytes);
    let total = total
        .map(|total| format!(" of {total:.1}"))
        .unwrap_or_default();
    let server = progress.server;
    format!("debuginfod: {object} from {server}: {received:.1}{total} MB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_one_short_line() {
        let mut progress = Progress {
            object: Path::new("/usr/lib/libc.so.6"),
            server: "https://one",
            received: 3_140_000,
            total: Some(12_000_000),
        };
        let expected = "debuginfod: libc.so.6 from https://one: 3.1 of 12.0 MB";
        assert_eq!(line(&progress), expected);
        progress.total = None;
        assert!(line(&progress).ends_with(": 3.1 MB"));
    }
}
