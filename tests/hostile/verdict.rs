//! What is wrong with an outcome.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use crate::case::Case;
use crate::execute::{LARGEST, Outcome};
use crate::sandbox::Sandbox;

/// Everything that is wrong, one line each; nothing for input that was read or refused as it should be.
pub(crate) fn faults(case: &Case, outcome: &Outcome, sandbox: &mut Sandbox) -> Vec<String> {
    let mut faults = Vec::new();
    let folder = sandbox.run();
    faults.extend(panics(&outcome.stderr).or_else(|| ending(case, outcome)));
    faults.extend(silence(case, outcome, &folder));
    // A cache whose folders are links is written where these lead.
    let is_kept = |line: &String| {
        !case.follows_links || line.starts_with("gone") && line.contains("outside/")
    };
    let changes = sandbox.changes().into_iter().filter(is_kept);
    let changes: Vec<String> = changes.collect();
    if !changes.is_empty() {
        faults.push(format!("outside of the sandbox: {}", changes.join(", ")));
    }
    faults.extend(unfinished(&folder));
    faults
}

/// Crashes, limits and statuses that mean nothing.
fn ending(case: &Case, outcome: &Outcome) -> Option<String> {
    let Some(status) = outcome.status else {
        return Some("hangs".to_owned());
    };
    const SIGXCPU: i32 = 24;
    const SIGKILL: i32 = 9;
    if let Some(signal) = status.signal() {
        let first = outcome.stderr.lines().last().unwrap_or_default();
        return Some(match signal {
            SIGXCPU | SIGKILL => "takes too long".to_owned(),
            _ if first.starts_with("memory allocation") => "takes too much memory".to_owned(),
            _ => format!("signal {signal}: {first}"),
        });
    }
    match status.code() {
        // Those of perf: failures, and numbers of errors, negated.
        Some(0 | 1 | 200..=255) => None,
        Some(129) if case.may_be_misused => None,
        status => Some(format!("status {status:?}")),
    }
}

/// Panics, with the place in the source.
fn panics(stderr: &str) -> Option<String> {
    let at = stderr.find("panicked at")?;
    let place = stderr[at..].lines().next()?;
    Some(place.trim_end_matches(':').to_owned())
}

/// Failures without a reason, and success without a result.
fn silence(case: &Case, outcome: &Outcome, folder: &Path) -> Option<String> {
    let status = outcome.status?.code()?;
    let nothing = |text: &str| text.trim().is_empty();
    let says_nothing = nothing(&outcome.stderr);
    if status != 0 {
        let is_silent = says_nothing && nothing(&outcome.stdout);
        return is_silent.then(|| format!("status {status} without a reason"));
    }
    if let Some(damage) = case.must_complain.filter(|_| says_nothing) {
        return Some(format!("status 0 without a word about {damage}"));
    }
    let is_there = |name: &String| {
        folder
            .join(name)
            .metadata()
            .is_ok_and(|file| file.len() > 0)
    };
    if let Some(output) = case.outputs.iter().find(|name| !is_there(name)) {
        return Some(format!("status 0 without {output}"));
    }
    if case.outputs.iter().any(|name| name == "out.json") && case.words.contains(&"data".to_owned())
    {
        let json = fs::read(folder.join("out.json")).unwrap_or_default();
        if let Err(error) = serde_json::from_slice::<serde_json::Value>(&json) {
            return Some(format!("out.json is no JSON: {error}"));
        }
    }
    let is_silent = says_nothing && nothing(&outcome.stdout) && case.outputs.is_empty();
    (is_silent && !case.may_be_silent).then(|| "status 0 without any output".to_owned())
}

/// Files that are only there while they are written, and those that had no end.
fn unfinished(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(file) = entry.metadata() else { continue };
            if file.is_dir() {
                folders.push(path);
            } else if file.len() >= LARGEST {
                found.push(format!("a file without end: {}", path.display()));
            } else if path.extension().is_some_and(|end| end == "tmp") {
                found.push(format!("an unfinished file is left: {}", path.display()));
            }
        }
    }
    found
}
