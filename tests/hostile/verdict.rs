//! The faults of an outcome.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use crate::case::Case;
use crate::execute::{KEPT_OUTPUT, MAX_FILE_BYTES, Outcome};
use crate::sandbox::Sandbox;
use crate::xml;

/// The faults of a run, one line each; none if the input was read or refused correctly.
pub(crate) fn faults(case: &Case, outcome: &Outcome, sandbox: &mut Sandbox) -> Vec<String> {
    let mut faults = Vec::new();
    let folder = sandbox.working_directory();
    faults.extend(panics(&outcome.stderr).or_else(|| ending(case, outcome)));
    faults.extend(output_fault(case, outcome, &folder));
    let changes = sandbox.changes();
    if !changes.is_empty() {
        let changes = changes.join(", ");
        faults.push(format!("outside of the working directory: {changes}"));
    }
    faults.extend(unfinished(&folder));
    faults
}

/// A crash, an exceeded limit or an invalid exit status.
fn ending(case: &Case, outcome: &Outcome) -> Option<String> {
    let Some(status) = outcome.status else {
        return Some("hangs".to_owned());
    };
    // A fault, since the limit of the address space is far above what input of this size may need.
    let marks = ["out of memory", "Cannot allocate memory"];
    if marks.iter().any(|mark| outcome.stderr.contains(mark)) {
        return Some("takes too much memory".to_owned());
    }
    const SIGXCPU: i32 = 24;
    const SIGKILL: i32 = 9;
    if let Some(signal) = status.signal() {
        let last = outcome.stderr.lines().last().unwrap_or_default();
        return Some(match signal {
            // The soft and the hard limit of CPU time.
            SIGXCPU | SIGKILL => "takes too long".to_owned(),
            _ => format!("signal {signal}: {last}"),
        });
    }
    match status.code() {
        // As in perf: success, failure, and negated errno values, in 8 bits (errno 56 to 1).
        Some(0 | 1 | 200..=255) => None,
        // A usage error.
        Some(129) if case.may_be_misused => None,
        status => Some(format!("status {status:?}")),
    }
}

/// A panic, with its source location.
fn panics(stderr: &str) -> Option<String> {
    let at = stderr.find("panicked at")?;
    let place = stderr[at..].lines().next()?;
    Some(place.trim_end_matches(':').to_owned())
}

/// A failure without a message, success without output or without a message about damage, or malformed output.
fn output_fault(case: &Case, outcome: &Outcome, folder: &Path) -> Option<String> {
    let status = outcome.status?.code()?;
    let is_blank = |text: &str| text.trim().is_empty();
    let is_stderr_blank = is_blank(&outcome.stderr);
    if status != 0 {
        let is_silent = is_stderr_blank && is_blank(&outcome.stdout);
        return is_silent.then(|| format!("status {status} without a reason"));
    }
    // `must_report_error` says what is damaged, if stderr must mention damage.
    if let Some(damage) = case.must_report_error.filter(|_| is_stderr_blank) {
        return Some(format!("status 0 without a word about {damage}"));
    }
    let has_content = |name: &String| {
        folder
            .join(name)
            .metadata()
            .is_ok_and(|file| file.len() > 0)
    };
    if let Some(output) = case.outputs.iter().find(|name| !has_content(name)) {
        return Some(format!("status 0 without {output}"));
    }
    if let Some(fault) = case
        .outputs
        .iter()
        .find_map(|name| malformed(&folder.join(name)))
    {
        return Some(fault);
    }
    if let Some(fault) = not_json(case, &outcome.stdout) {
        return Some(fault);
    }
    let is_silent = is_stderr_blank && is_blank(&outcome.stdout) && case.outputs.is_empty();
    (is_silent && !case.may_be_silent).then(|| "status 0 without any output".to_owned())
}

/// Why the output of a command with `--json` is invalid: it must be one document, or for `script` one per line.
fn not_json(case: &Case, stdout: &str) -> Option<String> {
    if !case.words.iter().any(|word| word == "--json") {
        return None;
    }
    let mut documents: Vec<&str> = match case.words.first().map(String::as_str) {
        Some("script") => stdout.lines().collect(),
        _ => vec![stdout],
    };
    // The last document is incomplete if the kept output was truncated.
    if stdout.len() >= KEPT_OUTPUT {
        documents.pop();
    }
    let parse_error = |text: &&str| serde_json::from_str::<serde_json::Value>(text).err();
    let error = documents.iter().find_map(parse_error)?;
    Some(format!("stdout is no JSON: {error}"))
}

/// Why an output file is invalid in its format; `None` for formats that are not checked.
fn malformed(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let text = fs::read(path).ok()?;
    // The JSON of flamegraph, which begins with {"n", is not checked: it is nested as deeply as stacks, deeper than the parser
    // permits.
    if ["out.json", "out.firefox", "out.speedscope"].contains(&name) && !text.starts_with(b"{\"n\"")
    {
        let parsed = serde_json::from_slice::<serde_json::Value>(&text);
        return parsed
            .err()
            .map(|error| format!("{name} is no JSON: {error}"));
    }
    if name.ends_with(".svg") {
        let Ok(text) = String::from_utf8(text) else {
            return Some(format!("{name} is no UTF-8"));
        };
        return xml::fault(&text).map(|fault| format!("{name} is no XML: {fault}"));
    }
    None
}

/// Leftover temporary files, and files that reached the limit of their size.
fn unfinished(folder: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(file) = entry.metadata() else { continue };
            if file.is_dir() {
                folders.push(path);
            } else if file.len() >= MAX_FILE_BYTES {
                faults.push(format!("a file without end: {}", path.display()));
            } else if path.extension().is_some_and(|end| end == "tmp") {
                faults.push(format!("an unfinished file is left: {}", path.display()));
            }
        }
    }
    faults
}
