//! `lock record` and `lock script`.

use std::ffi::{OsStr, OsString};

use clap::{ArgMatches, Command};
use rperf_analysis::lock::{CONTENTION_EVENTS, FUTEX_EVENTS, LOCKDEP_EVENTS};
use rperf_events::Tracepoints as _;

use crate::cli::argv::take_switch;
use crate::cli::commands::{CommandTitle, find};
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{count, flag, is_given, switch};
use crate::cli::parsing::{Parsed, parse};
use crate::cli::record_dump;
use crate::cli::shared::system_recording::{known_events, refuse_reading_options};
use crate::cli::tracefs::MachineTracepoints;

/// The name of the command in messages.
const RECORDER: &str = "lock record";

const ABOUT: &str = "\
Records waits for locks of the kernel with their stacks; in kernels with lockdep, all events of locks instead. It takes all \
options of 'record'. 'lock contention' and 'lock report' show the recording.";

/// The options of `record` that are always passed, as in perf, before those of the user.
const OPTIONS: [&str; 5] = ["-R", "-m", "1024", "-c", "1"];

/// The options for `--holders`: what threads do, and when they wait for a CPU.
const HOLDER_OPTIONS: [&str; 7] = [
    "--switch-events",
    "-e",
    "sched:sched_switch",
    "-e",
    "sched:sched_wakeup",
    "-e",
    "cpu-clock/freq=997/",
];

/// Adds the switches of `lock record` to the options of `record`.
fn with_switches(record: Command) -> Command {
    record.long_about(ABOUT).args([
        switch("user").help("also record waits of user programs for their own locks (futexes)"),
        switch("holders").help(
            "also record what threads do: context switches, wakeups and samples of the CPU clock",
        ),
        switch("owners").help(
            "also record the owners and the names of locks of the kernel, with a BPF program",
        ),
    ])
}

/// Records with the options and the workload in `words`. `matches` are the options of `lock`, before the word `record`.
pub(super) fn run(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    refuse_reading_options(RECORDER, matches)?;
    refuse_output_options(matches)?;
    let record = find(context, "record")?;
    let command = with_switches((record.build)());
    let title = CommandTitle {
        name: RECORDER,
        summary: "Record waits for locks",
        usage: record.usage,
    };
    // Only for help and errors: `record` parses the words again.
    if let Parsed::Answered(exit) = parse(context, title, command.clone(), words)? {
        return Ok(exit);
    }
    let (words, with_user) = without_switch("user", words, &command);
    let (words, with_holders) = without_switch("holders", &words, &command);
    let (words, with_owners) = without_switch("owners", &words, &command);
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let known = known_events(RECORDER, &machine, "lock")?;
    let mut events = events(&known, with_owners);
    if events.is_empty() {
        return Err(no_lock_events(&machine, with_owners));
    }
    if with_user {
        require_futex_events(&machine)?;
        events.extend(FUTEX_EVENTS);
    }
    let mut arguments: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
    // Options of `record` that start BPF programs.
    if with_user {
        arguments.push("--futex-owners".into());
    }
    if with_owners {
        arguments.push("--lock-owners".into());
    }
    if events.iter().any(|event| !LOCKDEP_EVENTS.contains(event)) {
        // Lockdep's events contain the name of the lock. The others do not: their waits are grouped by caller, for which stacks
        // are needed.
        arguments.push("-g".into());
    }
    for event in events {
        arguments.extend(["-e".into(), event.into()]);
    }
    if with_holders {
        arguments.extend(HOLDER_OPTIONS.iter().map(OsString::from));
    }
    arguments.extend(words);
    dispatch(context, OsStr::new("record"), &arguments)
}

/// Fails if the kernel has no events of the system call futex(2).
fn require_futex_events(machine: &MachineTracepoints) -> Result<(), CliError> {
    let calls = known_events(RECORDER, machine, "syscalls")?;
    if calls.iter().any(|name| name == "sys_enter_futex") {
        return Ok(());
    }
    let folder = machine.folder().join("syscalls");
    let message = format!(
        "{RECORDER}: the kernel has no event sys_enter_futex in {}",
        folder.display()
    );
    Err(CliError::message(255, message)
        .hint("the kernel must be built with CONFIG_FTRACE_SYSCALLS"))
}

/// Refuses options of tables and dumps before the word `record`.
fn refuse_output_options(matches: &ArgMatches) -> Result<(), CliError> {
    let refused = [("dump-raw-trace", "-D"), ("output", "--output")];
    match refused.iter().find(|(id, _)| is_given(matches, id)) {
        Some((_, option)) => Err(CliError::usage(format!(
            "{RECORDER} writes a recording; {option} before 'record' applies to reading"
        ))
        .hint("-o FILE after 'record' names the output file")),
        None => Ok(()),
    }
}

/// Returns the error for a kernel without the events to record.
fn no_lock_events(machine: &MachineTracepoints, with_owners: bool) -> CliError {
    let folder = machine.folder().join("lock");
    let folder = folder.display();
    match with_owners {
        true => CliError::message(255, format!("{RECORDER} --owners: the kernel has no event contention_begin in {folder}"))
            .hint("Linux 5.19 and later have it"),
        false => CliError::message(255, format!("{RECORDER}: the kernel has neither lock_acquire nor contention_begin in {folder}"))
            .hint("Linux 5.19 and later have contention_begin; older kernels need CONFIG_LOCKDEP and CONFIG_LOCK_STAT"),
    }
}

/// Removes a switch of [`with_switches`] from the options before the workload, as `record` does not have it. Returns the other
/// words, and whether the switch was given.
fn without_switch(id: &str, words: &[OsString], command: &Command) -> (Vec<OsString>, bool) {
    let (words, state) = take_switch(command, words, id);
    (words, state == Some(true))
}

/// Returns lockdep's events if the kernel has all of them, as in perf, and owners are not requested; otherwise the
/// `contention_*` events that it has.
fn events(known: &[String], with_owners: bool) -> Vec<&'static str> {
    let has = |event: &&&str| {
        known
            .iter()
            .any(|name| event.strip_prefix("lock:") == Some(name))
    };
    let lockdep: Vec<&str> = LOCKDEP_EVENTS.iter().filter(has).copied().collect();
    match lockdep.len() == LOCKDEP_EVENTS.len() && !with_owners {
        true => lockdep,
        false => CONTENTION_EVENTS.iter().filter(has).copied().collect(),
    }
}

/// Runs `script` with `matches`, the options of `lock` before the word `script`, followed by `words`.
pub(super) fn script(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let refused = [("quiet", "-q"), ("output", "--output")];
    if let Some((_, option)) = refused.iter().find(|(id, _)| is_given(matches, id)) {
        let message = format!("lock: {option} has no effect on 'script'");
        return Err(CliError::usage(message));
    }
    let mut arguments = Vec::new();
    if flag(matches, "force") == Some(true) {
        arguments.push("--force".into());
    }
    if record_dump::is_wanted(matches) {
        arguments.push("-D".into());
    }
    for _ in 0..count(matches, "verbose") {
        arguments.push("-v".into());
    }
    for option in ["input", "vmlinux", "kallsyms", "symfs"] {
        if let Some(value) = matches.get_one::<String>(option) {
            arguments.extend([format!("--{option}").into(), OsString::from(value)]);
        }
    }
    arguments.extend_from_slice(words);
    dispatch(context, OsStr::new("script"), &arguments)
}

#[cfg(test)]
mod tests {
    use super::events;

    #[test]
    fn complete_lockdep_is_preferred_unless_owners_are_needed() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        // All events of lockdep.
        let all = [
            "lock_acquire",
            "lock_acquired",
            "lock_contended",
            "lock_release",
        ];
        let waits = ["contention_begin", "contention_end"];
        let both = names(&[&all[..], &waits[..]].concat());
        let (without_owners, with_owners) = (false, true);
        assert_eq!(events(&both, without_owners).len(), 4);
        let expected = ["lock:contention_begin", "lock:contention_end"];
        assert_eq!(events(&both, with_owners), expected);
        // CONFIG_LOCKDEP without CONFIG_LOCK_STAT.
        let incomplete = ["lock_acquire", "lock_release"];
        let chosen = events(
            &names(&[&incomplete[..], &waits[..]].concat()),
            without_owners,
        );
        assert_eq!(chosen, expected);
        assert!(events(&names(&incomplete), without_owners).is_empty());
        assert!(events(&names(&all), with_owners).is_empty());
    }
}
