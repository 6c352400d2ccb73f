//! The sections of manual pages besides the options: exit statuses, variables, files, and which pages are related.

/// A line of a section: a name, what it means, and which commands it concerns (all of them if none is listed).
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) commands: &'static [&'static str],
}

impl Fact {
    const fn of(commands: &'static [&'static str], name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            commands,
        }
    }

    /// Whether it concerns every command.
    pub(super) fn is_general(&self) -> bool {
        self.commands.is_empty()
    }

    /// Whether it concerns this command.
    pub(super) fn concerns(&self, command: &str) -> bool {
        self.is_general() || self.commands.contains(&command)
    }
}

/// Commands that read a recording.
const READERS: &[&str] = &[
    "annotate",
    "archive",
    "buildid-list",
    "data",
    "evlist",
    "flamegraph",
    "heatmap",
    "report",
    "script",
    "stat report",
];
/// Commands that look up symbols.
const RESOLVERS: &[&str] = &[
    "annotate",
    "buildid-cache",
    "data",
    "flamegraph",
    "probe",
    "report",
    "script",
    "top",
];
/// Commands that run a program.
const RUNNERS: &[&str] = &["flamegraph", "record", "stat", "stat record"];
/// Commands that open events.
const OBSERVERS: &[&str] = &["record", "stat", "stat record", "top"];
/// Commands that know events by name.
const EVENT_NAMES: &[&str] = &["list", "record", "stat", "stat record", "top"];
/// Commands that use the build-id cache.
const CACHES: &[&str] = &[
    "annotate",
    "archive",
    "buildid-cache",
    "data",
    "flamegraph",
    "list",
    "probe",
    "record",
    "report",
    "script",
    "top",
];

/// Exit statuses.
pub(super) const STATUSES: &[Fact] = &[
    Fact::of(&[], "0", "Success."),
    Fact::of(
        RUNNERS,
        "status of the command",
        "The command that was run ended with this status; 128 plus the number of the signal if a signal ended it.",
    ),
    Fact::of(
        &["annotate"],
        "1",
        "No sample fell on the function, or its code was not found.",
    ),
    Fact::of(
        &["archive"],
        "1",
        "Some objects were not found, or were not unpacked.",
    ),
    Fact::of(
        &["buildid-cache"],
        "1",
        "A file could not be added or removed.",
    ),
    Fact::of(
        &["data"],
        "1",
        "Only a part of the checked recording can be read.",
    ),
    Fact::of(&["kallsyms", "list"], "1", "A name was not found."),
    Fact::of(
        &[],
        "129",
        "The command line was not understood: an unknown or unsupported option, a bad value, an unknown event.",
    ),
    Fact::of(
        OBSERVERS,
        "244",
        "A process, thread, CPU or user to observe does not exist.",
    ),
    Fact::of(
        &["probe"],
        "254",
        "The function, line, variable or event does not exist.",
    ),
    Fact::of(
        &[],
        "255",
        "A file could not be opened, read or written, or the kernel refused an event.",
    ),
];

/// Environment variables.
pub(super) const VARIABLES: &[Fact] = &[
    Fact::of(
        &[],
        "PERF_CONFIG",
        "Configuration file to read instead of /etc/perfconfig and ~/.perfconfig.",
    ),
    Fact::of(&[], "HOME", "Directory of .perfconfig and .debug."),
    Fact::of(
        &[],
        "PERF_PAGER, PAGER",
        "Pager for text on a terminal, a shell command; cat means none. LESS is set to FRSX for it if it is unset.",
    ),
    Fact::of(
        &["annotate", "report", "top"],
        "NO_COLOR",
        "If set, output has no colours unless an option or color.ui asks for them.",
    ),
    Fact::of(
        &["annotate", "report", "top"],
        "TERM",
        "If unset or dumb, there is neither a browser nor colour.",
    ),
    Fact::of(
        EVENT_NAMES,
        "RPERF_EVENTS",
        "Directory of event tables and metrics of processor vendors (default: /usr/share/rperf/events).",
    ),
    Fact::of(
        EVENT_NAMES,
        "PERF_CPUID",
        "Processor whose event tables are used, instead of this machine's.",
    ),
    Fact::of(
        RESOLVERS,
        "DEBUGINFOD_URLS",
        "Servers that --debuginfod asks if it names none, separated by blanks.",
    ),
    Fact::of(
        RESOLVERS,
        "DEBUGINFOD_CACHE_PATH",
        "Directory for downloaded files (default: $XDG_CACHE_HOME/debuginfod_client or ~/.cache/debuginfod_client).",
    ),
    Fact::of(
        RESOLVERS,
        "DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME, DEBUGINFOD_MAXSIZE",
        "Limits of a download: seconds without data, seconds in all, bytes.",
    ),
    Fact::of(
        RESOLVERS,
        "SSL_CERT_FILE",
        "Certificates to trust instead of the system's.",
    ),
    Fact::of(
        READERS,
        "TMPDIR",
        "Directory for temporary files (default: /tmp).",
    ),
    Fact::of(
        &["help"],
        "SOURCE_DATE_EPOCH",
        "Date of the manual pages that --man writes, in seconds since 1970 (default: now).",
    ),
];

/// Files.
pub(super) const FILES: &[Fact] = &[
    Fact::of(
        &[
            "annotate",
            "archive",
            "buildid-list",
            "data",
            "evlist",
            "flamegraph",
            "heatmap",
            "record",
            "report",
            "script",
            "stat record",
            "stat report",
        ],
        "perf.data",
        "Default name of a recording. The file that it replaces becomes perf.data.old.",
    ),
    Fact::of(
        &[],
        "/etc/perfconfig, ~/.perfconfig",
        "Configuration of the system and of the user.",
    ),
    Fact::of(
        CACHES,
        "~/.debug",
        "Build-id cache: objects by build-id. --buildid-dir and the setting buildid.dir name another directory.",
    ),
    Fact::of(
        EVENT_NAMES,
        "/usr/share/rperf/events",
        "Event tables and metrics of processor vendors.",
    ),
    Fact::of(
        EVENT_NAMES,
        "/sys/bus/event_source/devices",
        "Performance monitoring units of this machine, with their events.",
    ),
    Fact::of(
        &["list", "probe", "record", "stat", "stat record", "top"],
        "/sys/kernel/tracing",
        "Tracepoints and probes (tracefs).",
    ),
    Fact::of(
        OBSERVERS,
        "/proc/sys/kernel/perf_event_paranoid",
        "What unprivileged users may observe: 2 their own processes in user space, 1 also in the kernel, 0 also whole CPUs, -1 also raw tracepoints.",
    ),
    Fact::of(
        &["record", "stat record", "top"],
        "/proc/sys/kernel/perf_event_max_sample_rate, /proc/sys/kernel/perf_event_mlock_kb",
        "Highest sampling rate; memory for rings per CPU and unprivileged user.",
    ),
    Fact::of(
        RESOLVERS,
        "/usr/lib/debug",
        "Debug files of installed programs.",
    ),
    Fact::of(
        RESOLVERS,
        "/tmp/perf-PID.map, jit-PID.dump",
        "Symbols of code that a process generated at run time.",
    ),
    Fact::of(
        &["kallsyms", "probe", "report", "script", "top"],
        "/proc/kallsyms",
        "Symbols of the running kernel; addresses are hidden from unprivileged users if /proc/sys/kernel/kptr_restrict is not 0.",
    ),
];

/// Commands that refer to each other.
const GROUPS: &[&[&str]] = &[
    &["record", "report", "script", "annotate", "top", "stat"],
    &["record", "flamegraph", "heatmap"],
    &["record", "evlist", "buildid-list", "archive", "data"],
    &["record", "list", "probe"],
    &["stat", "list"],
    &["stat", "stat record", "stat report"],
    &["archive", "buildid-cache", "buildid-list"],
    &["kallsyms", "probe", "report"],
    &["config", "report"],
    &["help", "version", "completion"],
];

/// The commands that a command's page refers to.
pub(super) fn related(command: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for group in GROUPS.iter().filter(|group| group.contains(&command)) {
        for other in *group {
            if *other != command && !found.contains(other) {
                found.push(*other);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::{COMMANDS, PARTS};

    #[test]
    fn facts_and_groups_name_commands_that_exist() {
        let known: Vec<&str> = COMMANDS
            .iter()
            .chain(PARTS)
            .map(|entry| entry.name)
            .collect();
        let facts = [STATUSES, VARIABLES, FILES].into_iter().flatten();
        let named = facts.flat_map(|fact| fact.commands.iter().copied());
        let grouped = GROUPS.iter().flat_map(|group| group.iter().copied());
        for name in named.chain(grouped) {
            assert!(known.contains(&name), "{name}");
        }
        for name in known {
            assert!(!related(name).is_empty(), "{name} is in no group");
        }
    }
}
