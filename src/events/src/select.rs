//! Selection of tracepoints by `system:event`, and suggestions if none matches.

use std::io;

use crate::{Catalogue, TracepointName};
use rperf_names::{is_pattern, matches_pattern, nearest};

/// Why no tracepoint was found.
#[derive(Debug)]
pub(crate) enum MissingTracepoint {
    /// tracefs has no tracepoint of that name.
    Unknown,
    /// tracefs can't be read.
    Unreadable(io::Error),
}

/// Returns the tracepoints that match `system:event`, with their ids, in tracefs order; at least one. `system` and `event` may be
/// patterns.
pub(crate) fn select(
    system: &str,
    event: &str,
    catalogue: &Catalogue<'_>,
) -> Result<Vec<(TracepointName, u64)>, MissingTracepoint> {
    let tracepoints = catalogue.tracepoints;
    let mut selected = Vec::new();
    for system in expand(system, || tracepoints.systems())? {
        let names = expand(event, || tracepoints.names(&system))?;
        for name in names {
            match tracepoints.id(&system, &name) {
                Ok(id) => {
                    let system = system.clone();
                    selected.push((TracepointName { system, name }, id));
                }
                // A plain name may not exist, and some listed folders are not events.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(MissingTracepoint::Unreadable(error)),
            }
        }
    }
    if !selected.is_empty() {
        return Ok(selected);
    }
    // Nothing is found if the names are unknown, but also if tracefs is missing: listing the systems tells the cases apart.
    match tracepoints.systems() {
        Ok(_) => Err(MissingTracepoint::Unknown),
        Err(error) => Err(MissingTracepoint::Unreadable(error)),
    }
}

/// Returns the names in `all` that match a pattern; none if `all` fails with `NotFound`. A plain name is returned without a
/// look-up in `all`.
fn expand(
    pattern: &str,
    all: impl Fn() -> io::Result<Vec<String>>,
) -> Result<Vec<String>, MissingTracepoint> {
    if !is_pattern(pattern) {
        return Ok(vec![pattern.to_owned()]);
    }
    let mut names = match all() {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(MissingTracepoint::Unreadable(error)),
    };
    names.retain(|name| matches_pattern(pattern, name));
    Ok(names)
}

impl MissingTracepoint {
    /// Describes the error in one line.
    pub(crate) fn reason(&self, system: &str, event: &str, catalogue: &Catalogue<'_>) -> String {
        let folder = catalogue.tracepoints.folder().display();
        match self {
            Self::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                format!("can't access trace events: no permission to read {folder}")
            }
            Self::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
                format!("can't access trace events: there is no {folder}")
            }
            Self::Unreadable(error) => format!("can't access trace events in {folder}: {error}"),
            Self::Unknown => unknown(system, event, catalogue),
        }
    }

    /// Returns the text of the `hint:` line, if the error can be fixed.
    pub(crate) fn hint(&self, catalogue: &Catalogue<'_>) -> Option<String> {
        let Self::Unreadable(error) = self else {
            return None;
        };
        let mount = catalogue.tracepoints.folder().parent()?.display();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Some(format!(
                "run as root, or let all users read tracefs: 'sudo mount -o remount,mode=755 {mount}'"
            )),
            io::ErrorKind::NotFound => Some(format!(
                "mount tracefs: 'sudo mount -t tracefs nodev {mount}'; a kernel without CONFIG_EVENT_TRACING has no trace events"
            )),
            _ => None,
        }
    }
}

/// Describes [`MissingTracepoint::Unknown`] in one line, with a suggestion if there is one.
fn unknown(system: &str, event: &str, catalogue: &Catalogue<'_>) -> String {
    let word = format!("{system}:{event}");
    if event.is_empty() {
        return format!(
            "unknown tracepoint `{word}', `{system}:*' selects all tracepoints of a system"
        );
    }
    let all = catalogue.all_tracepoints();
    // The event in another system.
    let same = |full: &&String| full.split_once(':').is_some_and(|(_, name)| name == event);
    if let Some(elsewhere) = all.iter().find(same) {
        return format!("unknown tracepoint `{word}', did you mean `{elsewhere}'?");
    }
    if is_pattern(&word) {
        return format!("unknown tracepoint `{word}': no tracepoint matches the pattern");
    }
    if system.starts_with("sdt_") {
        return format!(
            "unknown tracepoint `{word}': 'buildid-cache --add PROGRAM' adds the SDT markers of a program"
        );
    }
    let prefix = format!("{system}:");
    let in_system = all.iter().filter(|full| full.starts_with(&prefix));
    let near = nearest(&word, in_system.map(String::as_str))
        .or_else(|| nearest(&word, all.iter().map(String::as_str)));
    match near {
        Some(near) => format!("unknown tracepoint `{word}', did you mean `{near}'?"),
        None => format!("unknown tracepoint `{word}'"),
    }
}
