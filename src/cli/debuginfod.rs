//! `--debuginfod`: the servers that are queried for objects and debug files, the cache, the limits of downloads, the
//! certificates, and the progress display.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches};
use rperf_debuginfod::{
    Client, DownloadLimits, DownloadObserver, Error, Progress, Server, Settings,
};
use rperf_safefs::Folder;
use rperf_view::terminal::one_line;

use super::context::Context;
use super::error::{CliError, without_error_numbers};
use super::options::{attached, given_value};
use super::output::OutputStreams;

/// The value that selects the servers of `DEBUGINFOD_URLS`, as an empty value does.
const SYSTEM: &str = "system";

/// CA certificate bundles: Debian, Fedora, SUSE, Alpine.
const CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The refresh interval of the progress line.
const REFRESH: Duration = Duration::from_millis(100);

/// The `--debuginfod` option.
pub(crate) fn option() -> Arg {
    attached("debuginfod", "urls").help(
        "download missing objects and debug files from these debuginfod servers (default: DEBUGINFOD_URLS)",
    )
}

/// Returns a client for the servers that `--debuginfod` or, without the option, the setting named `setting` selects; `None` if
/// neither is given, or if the setting selects no server.
///
/// # Errors
///
/// Invalid URLs; the option is given, but selects no server; no directory for the cache.
pub(crate) fn client(
    matches: &ArgMatches,
    setting: &str,
    context: &Context,
) -> Result<Option<Client>, CliError> {
    let given = given_value::<String>(matches, "debuginfod");
    let configured = || context.config.text(setting);
    let Some(value) = given.map(String::as_str).or_else(configured) else {
        return Ok(None);
    };
    let list = match value.trim() {
        "" | SYSTEM => variable_text(context, "DEBUGINFOD_URLS").unwrap_or_default(),
        list => list.to_owned(),
    };
    let servers = Server::list(&list).map_err(|error| CliError::failure(129, error))?;
    if servers.is_empty() {
        if given.is_none() {
            context.warn(format_args!("{setting}: no server in DEBUGINFOD_URLS"));
            return Ok(None);
        }
        return Err(CliError::usage("--debuginfod: no server given")
            .hint("give one with --debuginfod=URL, or set DEBUGINFOD_URLS"));
    }
    let settings = Settings {
        servers,
        cache: cache(context)?,
        limits: limits(context),
        authorities: certificate_files(context),
    };
    Ok(Some(Client::new(settings, DownloadProgress::new(context))))
}

/// Returns the cache directory, located as libdebuginfod does.
fn cache(context: &Context) -> Result<PathBuf, CliError> {
    let home = context.home();
    // Where older versions of libdebuginfod have their cache; still used if it exists.
    let old = home
        .as_deref()
        .map(|home| home.join(".debuginfod_client_cache"));
    let configured = context.var("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
    let directory = configured
        .or_else(|| old.filter(|old| Folder::open(old).is_ok()))
        .or_else(|| {
            let caches = context.var("XDG_CACHE_HOME").map(PathBuf::from);
            let caches = caches.or_else(|| home.map(|home| home.join(".cache")));
            caches.map(|caches| caches.join("debuginfod_client"))
        });
    directory.ok_or_else(|| {
        CliError::message(255, "no directory for downloads from debuginfod servers")
            .hint("set DEBUGINFOD_CACHE_PATH or HOME")
    })
}

fn limits(context: &Context) -> DownloadLimits {
    let default = DownloadLimits::default();
    let seconds = |name, default_limit| {
        number(context, name).map_or(default_limit, |limit| limit.map(Duration::from_secs))
    };
    DownloadLimits {
        stall: seconds("DEBUGINFOD_TIMEOUT", default.stall),
        total_time: seconds("DEBUGINFOD_MAXTIME", default.total_time),
        size: number(context, "DEBUGINFOD_MAXSIZE").unwrap_or(default.size),
    }
}

/// Reads a limit from the environment: `Some(None)`, no limit, if it is zero or less. Returns `None` if the variable is unset; an
/// invalid number is reported and counts as unset.
fn number(context: &Context, name: &str) -> Option<Option<u64>> {
    let word = variable_text(context, name)?;
    match word.trim().parse::<i64>() {
        Ok(number) => Some(u64::try_from(number).ok().filter(|number| *number > 0)),
        Err(_) => {
            context.warn(format_args!("{name}={word}: not a number, ignored"));
            None
        }
    }
}

/// Returns an environment variable as text.
fn variable_text(context: &Context, name: &str) -> Option<String> {
    let value: Option<OsString> = context.var(name);
    value.map(|value| value.to_string_lossy().into_owned())
}

/// Returns the files with CA certificates: only `SSL_CERT_FILE` if it is set, otherwise the usual paths of the system's bundles.
pub(crate) fn certificate_files(context: &Context) -> Vec<PathBuf> {
    let configured = context.var("SSL_CERT_FILE").map(|file| vec![file.into()]);
    configured.unwrap_or_else(|| CERTIFICATES.map(PathBuf::from).to_vec())
}

/// Shows download progress and failures on stderr.
struct DownloadProgress {
    quiet: bool,
    /// Whether progress may be shown, as one line that is overwritten: stderr is a terminal, and not `quiet`.
    live: bool,
    /// Set while stdout is redirected (for example to a pager) or a browser uses the terminal: no progress line is written then.
    terminal_in_use: Arc<AtomicBool>,
    /// The time at which the progress line was last written; `None` if no line is shown.
    refreshed: Mutex<Option<Instant>>,
}

impl DownloadProgress {
    fn new(context: &Context) -> Self {
        let quiet = context.output.is_quiet();
        Self {
            quiet,
            live: !quiet && OutputStreams::shows_errors_on_terminal(),
            terminal_in_use: context.output.redirected(),
            refreshed: Mutex::new(None),
        }
    }
}

impl DownloadObserver for DownloadProgress {
    fn progress(&self, progress: &Progress<'_>) {
        if !self.live || self.terminal_in_use.load(Ordering::Relaxed) {
            return;
        }
        let mut refreshed = self
            .refreshed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if refreshed.is_none_or(|last| last.elapsed() >= REFRESH) {
            *refreshed = Some(Instant::now());
            OutputStreams::status(&line(progress));
        }
    }

    fn ended(&self) {
        let mut refreshed = self
            .refreshed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if refreshed.take().is_some() {
            // An empty line erases the progress line.
            OutputStreams::status("");
        }
    }

    fn failed(&self, error: &Error) {
        if !self.quiet {
            let cause = std::error::Error::source(error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            let line = format!("Warning: {error}{cause}");
            let line = without_error_numbers(&one_line(&line));
            OutputStreams::error_lines(&format!("{line}\n"));
        }
    }
}

/// Formats `debuginfod: libc.so.6 from https://server: 3.1 of 12.0 MB`.
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
