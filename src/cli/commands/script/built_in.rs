//! The scripts of Linux perf that are built in: `script report NAME`, `script record NAME`, `script NAME`, `script -l`.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::process::Command;

use clap::ArgMatches;
use rperf_names::nearest;

use super::firefox;
use super::installed::{
    ScriptCall, input_of_recording_script, installed, run_both, split, take_input,
};
use super::native::NativeTable;
use super::sqlite_export;
use super::{native_memory, native_run};
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::shared::built_in_scripts::{BuiltInScript, SCRIPTS, ScriptKind};

/// Lists the scripts, as `perf script --list` does: the built-in ones, and the installed ones that have other names.
pub(super) fn list(context: &Context) -> Result<ExitStatus, CliError> {
    let mut out = context.stdout();
    writeln!(out, "List of available trace scripts:")?;
    for script in &SCRIPTS {
        let call = format!("{} {}", script.name, script.arguments);
        writeln!(out, "  {:<36} {}", call.trim_end(), script.description)?;
    }
    for script in installed(context) {
        if SCRIPTS.iter().any(|built_in| built_in.name == script.name) {
            continue;
        }
        let call = format!("{} {}", script.name, script.arguments);
        writeln!(out, "  {:<36} {}", call.trim_end(), script.description)?;
    }
    out.flush()?;
    Ok(ExitStatus::Ok)
}

/// Runs the installed script `name`; `None` if there is none. `verb` is that of [`ScriptCall`], `rest` the words after the name.
fn run_installed(
    matches: &ArgMatches,
    verb: &str,
    name: &OsStr,
    rest: &[&OsString],
    context: &Context,
) -> Result<Option<ExitStatus>, CliError> {
    let mut scripts = installed(context).into_iter();
    let Some(script) = scripts.find(|script| name == script.name.as_str()) else {
        return Ok(None);
    };
    let call = ScriptCall {
        verb,
        words: rest.iter().copied().cloned().collect(),
        input: matches.get_one::<String>("input").map(OsString::from),
        force: flag(matches, "force") == Some(true),
        all_cpus: flag(matches, "all-cpus") == Some(true),
    };
    script.run(call, context).map(Some)
}

/// Runs the script that the arguments name; `None` without arguments.
///
/// # Errors
///
/// Status 129: an unknown name, `-a` without a script to record, `-i` with a script that makes its own recording, no command to
/// record, or arguments that the script does not take.
/// Otherwise the errors of the script.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Option<ExitStatus>, CliError> {
    let words = matches.get_many::<OsString>("script-word");
    let words: Vec<&OsString> = words.unwrap_or_default().collect();
    let all_cpus = flag(matches, "all-cpus") == Some(true);
    let Some((first, rest)) = words.split_first() else {
        return match all_cpus {
            true => Err(not_recorded("no script to record is given")),
            false => Ok(None),
        };
    };
    // As in `ScriptCall`, the verb is empty if the script records and reports at once.
    let (verb, name, rest) = match (first.to_str(), rest) {
        (Some(verb @ ("record" | "report")), [name, rest @ ..]) => (verb, *name, rest),
        _ => ("", *first, rest),
    };
    let script = SCRIPTS.iter().find(|script| name == script.name);
    let Some(script) = script else {
        let exit = run_installed(matches, verb, name, rest, context)?;
        return exit
            .map(Some)
            .ok_or_else(|| unknown(&name.to_string_lossy()));
    };
    if verb == "record" {
        let words = record_options(script, context)?.into_iter();
        let words = words.chain(all_cpus.then(|| OsString::from("-a")));
        let words: Vec<OsString> = words.chain(rest.iter().copied().cloned()).collect();
        return dispatch(context, OsStr::new("record"), &words).map(Some);
    }
    let rest: Vec<OsString> = rest.iter().copied().cloned().collect();
    match (script.kind, verb) {
        (_, "report") if all_cpus => Err(not_recorded("'script report' reads a recording")),
        // Here, `words` are the options that are always given to `flamegraph`.
        (ScriptKind::Flamegraph { words, .. }, _) => {
            let call = words.iter().map(OsString::from).collect();
            flamegraph(script, call, verb, &rest, matches, context)
        }
        (ScriptKind::Firefox, "report") => firefox::report(&rest, matches, context),
        (_, "report") => report(script, rest, matches, context),
        (_, _) if matches.contains_id("input") => Err(input_of_recording_script(script.name)),
        (ScriptKind::Firefox, _) => firefox::live(script, rest, all_cpus),
        (_, _) => live(script, rest, all_cpus, context),
    }
    .map(Some)
}

/// Prints the table of a recording, or writes its database. [`run`] handles [`ScriptKind::Flamegraph`] and
/// [`ScriptKind::Firefox`] itself.
fn report(
    script: &BuiltInScript,
    mut words: Vec<OsString>,
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let Some(input) = take_input(&mut words)? else {
        words.retain(|word| word != "--");
        return match script.kind {
            ScriptKind::Native(native) => native_run::report(native, &words, matches, context),
            ScriptKind::PhysicalMemory => native_memory::report(&words, matches, context),
            // Only `ScriptKind::Database` is left.
            _ => sqlite_export::export(words, matches, context),
        };
    };
    // -i is given after the name of the script: the command line is parsed again with -i before `report`.
    let mut call: Vec<OsString> = vec!["-i".into(), input];
    if flag(matches, "force") == Some(true) {
        call.push("-f".into());
    }
    call.extend(["report".into(), script.name.into()]);
    call.extend(words);
    dispatch(context, OsStr::new("script"), &call)
}

/// Records to a pipe, and prints the table of the samples or writes their database. For the same kinds of scripts as [`report`].
/// `words` are for the report and the recording; [`split`] separates them.
fn live(
    script: &BuiltInScript,
    words: Vec<OsString>,
    all_cpus: bool,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let (report_words, mut record_words) = split(script.name, script.arguments, words)?;
    // Wrong arguments are refused before anything is recorded.
    match script.kind {
        ScriptKind::Native(native) => drop(NativeTable::new(native, &report_words)?),
        ScriptKind::PhysicalMemory => native_memory::check(&report_words)?,
        // Only `ScriptKind::Database` is left.
        _ => drop(sqlite_export::check(&report_words)?),
    }
    // Without a command to record, the whole system is recorded.
    if record_words.is_empty() || all_cpus {
        record_words.insert(0, "-a".into());
    }
    let program = std::env::current_exe()?;
    let mut recorder = Command::new(&program);
    recorder
        .arg("record")
        .args(record_options(script, context)?);
    recorder.args(["-q", "-o", "-"]).args(record_words);
    let mut reporter = Command::new(&program);
    reporter.args(["script", "-i", "-", "report", script.name]);
    reporter.args(report_words);
    run_both(recorder, reporter)
}

/// The options of `record` for the samples of a script.
fn record_options(script: &BuiltInScript, context: &Context) -> Result<Vec<OsString>, CliError> {
    let mut words: Vec<OsString> = script.record_options.iter().map(OsString::from).collect();
    if matches!(script.kind, ScriptKind::PhysicalMemory) {
        words.extend(native_memory::event_options(context)?);
    }
    Ok(words)
}

/// Runs a script that `flamegraph` implements. `call` has the options that are always given to `flamegraph`; `verb` and `rest`
/// are those of [`run_installed`], but `verb` is never "record": [`run`] handles it.
fn flamegraph(
    script: &BuiltInScript,
    mut call: Vec<OsString>,
    verb: &str,
    rest: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let all_cpus = flag(matches, "all-cpus") == Some(true);
    if let Some(input) = matches.get_one::<String>("input") {
        call.extend(["-i".into(), input.into()]);
    }
    if flag(matches, "force") == Some(true) {
        call.push("-f".into());
    }
    call.extend((all_cpus && verb.is_empty()).then(|| OsString::from("-a")));
    // For `report`, the words are options of the script, which become those of `flamegraph`; otherwise they are the command to
    // record.
    match (verb, rest) {
        ("report", _) => call.extend(rest.iter().flat_map(|word| script.kind.translated(word))),
        (_, []) if all_cpus => {}
        (_, []) => return Err(lacks_command(context, script)),
        (_, [first, ..]) => {
            call.extend((*first != "--").then(|| OsString::from("--")));
            call.extend(rest.iter().cloned());
        }
    }
    dispatch(context, OsStr::new("flamegraph"), &call)
}

/// The error for `-a` if nothing is recorded.
fn not_recorded(why: &str) -> CliError {
    CliError::usage(format!("-a: {why}"))
        .hint("'script -a record NAME' records the whole system for a script; without a script, use 'record -a' and then 'script'")
}

fn lacks_command(context: &Context, script: &BuiltInScript) -> CliError {
    let (program, name) = (context.program, script.name);
    CliError::usage(format!("{program} script {name}: no command to record")).hint(format!(
        "'{program} script report {name}' reads a recording"
    ))
}

fn unknown(word: &str) -> CliError {
    let error = CliError::usage(format!("Couldn't find script '{word}'"));
    // The most common fields of -F: `-f comm,pid` was probably meant as `-F comm,pid`.
    let common_fields = [
        "comm", "tid", "pid", "time", "cpu", "event", "trace", "ip", "sym", "dso", "period",
    ];
    if word.split(',').all(|part| common_fields.contains(&part)) {
        return error.hint(format!("-F {word} prints these fields; -f is --force"));
    }
    let near = nearest(word, SCRIPTS.iter().map(|script| script.name));
    error.hint(match near {
        Some(near) => format!("did you mean '{near}'? --list lists the scripts"),
        None => format!("-i {word} reads this recording; --list lists the scripts"),
    })
}
