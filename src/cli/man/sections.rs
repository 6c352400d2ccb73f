//! The data of the sections of manual pages on exit statuses, environment variables, files and related pages.

use self::CommandSet::{Named, WithOption};

/// Commands that an entry of a section applies to.
pub(super) enum CommandSet {
    /// The commands of these names.
    Named(&'static [&'static str]),
    /// The commands whose page shows an option, with `also` and without `except`.
    WithOption {
        /// The option's id.
        option: &'static str,
        /// Commands without the option that belong to the set, too.
        also: &'static [&'static str],
        /// Commands with the option that do not belong to the set.
        except: &'static [&'static str],
    },
}

impl CommandSet {
    /// Whether `command`, whose page shows the options for which `has` is true, belongs to the set.
    fn contains(&self, command: &str, has: &impl Fn(&str) -> bool) -> bool {
        match self {
            Named(names) => names.contains(&command),
            WithOption {
                option,
                also,
                except,
            } => also.contains(&command) || (has(option) && !except.contains(&command)),
        }
    }
}

/// An entry of a section: a name, its meaning, and the sets of commands that it applies to ([`EVERY_COMMAND`]: all).
pub(super) struct SectionEntry {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) commands: &'static [CommandSet],
}

impl SectionEntry {
    const fn of(commands: &'static [CommandSet], name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            commands,
        }
    }

    /// Whether the entry applies to every command.
    pub(super) fn is_general(&self) -> bool {
        self.commands.is_empty()
    }

    /// Whether the entry applies to `command`, whose page shows the options for which `has` is true.
    pub(super) fn concerns(&self, command: &str, has: impl Fn(&str) -> bool) -> bool {
        self.is_general() || self.commands.iter().any(|set| set.contains(command, &has))
    }
}

/// No sets: the entry applies to every command.
const EVERY_COMMAND: &[CommandSet] = &[];
/// Commands that read the samples or counts of a recording, or the objects that these refer to.
const SAMPLE_READERS: CommandSet = Named(&[
    "annotate",
    "archive",
    "buildid-list",
    "data",
    "diff",
    "flamegraph",
    "heatmap",
    "histogram",
    "kmem",
    "kmem diff",
    "kmem fragmentation",
    "kmem leaks",
    "kmem stat",
    "kmem usage",
    "kwork",
    "kwork latency",
    "kwork report",
    "kwork timehist",
    "kwork top",
    "lock",
    "lock contention",
    "lock deadlock",
    "lock info",
    "lock report",
    "report",
    "sched",
    "sched diff",
    "sched latency",
    "sched map",
    "sched off-cpu",
    "sched perfetto",
    "sched replay",
    "sched timehist",
    "script",
    "stat report",
    "timechart",
    "trace",
]);
/// Commands that read other parts of a recording.
const OTHER_READERS: CommandSet = Named(&["evlist", "sched stats diff", "sched stats report"]);
/// Commands that name the code of samples: functions, objects, lines.
const RESOLVERS: CommandSet = WithOption {
    option: "symfs",
    // `trace` names functions, but has no options on symbols.
    also: &["trace"],
    // `probe` has the option, but reads no samples.
    except: &["probe"],
};
/// Commands that download debug files.
const DOWNLOADERS: CommandSet = WithOption {
    option: "debuginfod",
    also: &[],
    except: &[],
};
/// Commands that can run a command and sample its events, into a file or for their own output. `kmem`, `kwork`, `lock`, `sched`
/// and `script` are listed for their subcommand `record`, which has no page of its own. `top` runs no command: entries that
/// also apply to `top` add it by name.
const RECORDERS: CommandSet = Named(&[
    "flamegraph",
    "histogram",
    "kmem",
    "kwork",
    "lock",
    "record",
    "sched",
    "script",
    "timechart record",
    "trace",
]);
/// Commands that count events.
const COUNTERS: CommandSet = Named(&["stat", "stat record"]);
/// Commands that take names of events of this machine.
const EVENT_NAMES: CommandSet = Named(&[
    "flamegraph",
    "histogram",
    "list",
    "record",
    "stat",
    "stat record",
    "top",
    "trace",
]);

/// Exit statuses.
pub(super) const STATUSES: &[SectionEntry] = &[
    SectionEntry::of(EVERY_COMMAND, "0", "Success."),
    SectionEntry::of(
        &[
            RECORDERS,
            COUNTERS,
            // With -b and with --live they can run a command.
            Named(&["lock contention", "sched latency"]),
        ],
        "status of the command",
        "The command that was run ended with this status; 128 plus the number of the signal if a signal ended it.",
    ),
    SectionEntry::of(
        &[SAMPLE_READERS],
        "1",
        "Some records of the recording could not be decoded.",
    ),
    SectionEntry::of(
        &[Named(&["annotate"])],
        "1",
        "The function has no samples, or its code was not found.",
    ),
    SectionEntry::of(
        &[Named(&["archive"])],
        "1",
        "Some objects were not found, or were not unpacked.",
    ),
    SectionEntry::of(
        &[Named(&["bench"])],
        "1",
        "A benchmark failed, or a result is worse than that of --baseline.",
    ),
    SectionEntry::of(
        &[Named(&["bench"])],
        "2",
        "The benchmark cannot run on this machine.",
    ),
    SectionEntry::of(
        &[Named(&["buildid-cache"])],
        "1",
        "A file could not be added or removed.",
    ),
    SectionEntry::of(
        &[Named(&["check"])],
        "1",
        "A feature is not built in, or unknown.",
    ),
    SectionEntry::of(
        &[Named(&["data"])],
        "1",
        "Only a part of the checked recording can be read.",
    ),
    SectionEntry::of(
        &[Named(&["diff"])],
        "1",
        "A row grew by more than --fail-above allows.",
    ),
    SectionEntry::of(
        &[Named(&["kallsyms", "list"])],
        "1",
        "A name was not found.",
    ),
    SectionEntry::of(&[Named(&["test"])], "1", "A test failed."),
    SectionEntry::of(
        EVERY_COMMAND,
        "129",
        "The command line was not understood: an unknown or unsupported option, a bad value, an unknown event.",
    ),
    SectionEntry::of(
        &[RECORDERS, COUNTERS, Named(&["top"])],
        "234",
        "There is no such user or metric, or the sampling rate is not possible.",
    ),
    SectionEntry::of(
        &[Named(&[
            "annotate",
            "diff",
            "flamegraph",
            "heatmap",
            "histogram",
            "report",
            "sched timehist",
            "script",
            "timechart",
        ])],
        "234",
        "The value of --time is not a time range.",
    ),
    SectionEntry::of(
        &[Named(&["probe"])],
        "239",
        "An event of this name exists already.",
    ),
    SectionEntry::of(
        &[Named(&["probe"])],
        "243",
        "The user may not read or change the lists of probe events.",
    ),
    SectionEntry::of(
        &[RECORDERS, COUNTERS, Named(&["top"])],
        "244",
        "A process or thread to observe does not exist.",
    ),
    SectionEntry::of(
        &[Named(&["probe"])],
        "254",
        "The function, line, variable or event does not exist.",
    ),
    SectionEntry::of(
        EVERY_COMMAND,
        "255",
        "A file could not be opened, read or written, or the kernel refused an event.",
    ),
];

/// Environment variables.
pub(super) const VARIABLES: &[SectionEntry] = &[
    SectionEntry::of(
        EVERY_COMMAND,
        "PERF_CONFIG",
        "Configuration file to read instead of /etc/perfconfig and ~/.perfconfig.",
    ),
    SectionEntry::of(
        EVERY_COMMAND,
        "HOME",
        "Directory of .perfconfig and .debug.",
    ),
    SectionEntry::of(
        EVERY_COMMAND,
        "PERF_PAGER, PAGER",
        "Pager for text on a terminal, as a shell command; cat means no pager. If LESS is unset, the pager runs with LESS=FRSX.",
    ),
    SectionEntry::of(
        &[Named(&["annotate", "diff", "report", "top"])],
        "NO_COLOR",
        "If set, output has no colors unless an option or color.ui asks for them.",
    ),
    SectionEntry::of(
        &[Named(&["annotate", "diff", "report", "top"])],
        "TERM",
        "If unset or dumb, the terminal gets neither a browser nor colors.",
    ),
    SectionEntry::of(
        &[EVENT_NAMES],
        "RPERF_EVENTS",
        "Directory of event tables and metrics of processor vendors (default: /usr/share/rperf/events).",
    ),
    SectionEntry::of(
        &[EVENT_NAMES],
        "PERF_CPUID",
        "CPUID that selects the event tables (default: this machine's).",
    ),
    SectionEntry::of(
        &[DOWNLOADERS],
        "DEBUGINFOD_URLS",
        "Servers that --debuginfod asks if it names none, separated by blanks.",
    ),
    SectionEntry::of(
        &[DOWNLOADERS],
        "DEBUGINFOD_CACHE_PATH",
        "Directory for downloaded files (default: $XDG_CACHE_HOME/debuginfod_client or ~/.cache/debuginfod_client).",
    ),
    SectionEntry::of(
        &[DOWNLOADERS],
        "DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME, DEBUGINFOD_MAXSIZE",
        "Limits of a download: seconds without data, seconds in all, bytes.",
    ),
    SectionEntry::of(
        &[DOWNLOADERS],
        "SSL_CERT_FILE",
        "Certificates to trust instead of the system's.",
    ),
    SectionEntry::of(
        &[SAMPLE_READERS, OTHER_READERS, Named(&["inject"])],
        "TMPDIR",
        "Directory for temporary files (default: /tmp).",
    ),
    SectionEntry::of(
        &[Named(&["script"])],
        "PERF_EXEC_PATH",
        "Directory of external commands (perf-NAME) and of perf's scripts, unless --exec-path names one.",
    ),
    SectionEntry::of(
        &[Named(&["help"])],
        "SOURCE_DATE_EPOCH",
        "Date of the manual pages that --man writes, in seconds since 1970 (default: now).",
    ),
];

/// Files.
pub(super) const FILES: &[SectionEntry] = &[
    SectionEntry::of(
        &[
            SAMPLE_READERS,
            OTHER_READERS,
            Named(&[
                "inject",
                "record",
                "sched stats record",
                "stat record",
                "timechart record",
            ]),
        ],
        "perf.data",
        "Default name of a recording. A new recording renames an existing file of this name to perf.data.old.",
    ),
    SectionEntry::of(
        EVERY_COMMAND,
        "/etc/perfconfig, ~/.perfconfig",
        "Configuration of the system and of the user.",
    ),
    SectionEntry::of(
        &[
            RESOLVERS,
            RECORDERS,
            Named(&["archive", "buildid-cache", "buildid-list", "list", "probe"]),
        ],
        "~/.debug",
        "Build-id cache: objects by build-id. --buildid-dir and the setting buildid.dir name another directory.",
    ),
    SectionEntry::of(
        &[EVENT_NAMES],
        "/usr/share/rperf/events",
        "Event tables and metrics of processor vendors.",
    ),
    SectionEntry::of(
        &[EVENT_NAMES],
        "/sys/bus/event_source/devices",
        "Performance monitoring units of this machine, with their events.",
    ),
    SectionEntry::of(
        &[RECORDERS, COUNTERS, Named(&["list", "probe", "top"])],
        "/sys/kernel/tracing",
        "Tracepoints and probes (tracefs).",
    ),
    SectionEntry::of(
        &[RECORDERS, COUNTERS, Named(&["top"])],
        "/proc/sys/kernel/perf_event_paranoid",
        "Targets of unprivileged users: 2 their own processes in user space, 1 also in the kernel, 0 also whole CPUs, -1 also raw tracepoints.",
    ),
    SectionEntry::of(
        &[RECORDERS, Named(&["top"])],
        "/proc/sys/kernel/perf_event_max_sample_rate, /proc/sys/kernel/perf_event_mlock_kb",
        "Highest sampling rate; memory for ring buffers per CPU and unprivileged user.",
    ),
    SectionEntry::of(
        &[RESOLVERS, Named(&["buildid-cache", "probe"])],
        "/usr/lib/debug",
        "Debug files of installed programs.",
    ),
    SectionEntry::of(
        &[RESOLVERS],
        "/tmp/perf-PID.map, jit-PID.dump",
        "Symbols of code that a process generated at run time.",
    ),
    SectionEntry::of(
        &[RESOLVERS, Named(&["buildid-list", "kallsyms", "probe"])],
        "/proc/kallsyms",
        "Symbols of the running kernel; unprivileged users see addresses if /proc/sys/kernel/kptr_restrict is 0 and /proc/sys/kernel/perf_event_paranoid is 1 or less.",
    ),
];

/// Commands whose pages refer to each other.
const GROUPS: &[&[&str]] = &[
    &["record", "report", "script", "annotate", "top", "stat"],
    &["record", "flamegraph", "heatmap", "histogram"],
    &["record", "report", "diff", "flamegraph"],
    &["record", "evlist", "buildid-list", "archive", "data"],
    &["record", "list", "probe"],
    &["stat", "list"],
    &["stat", "stat record", "stat report"],
    &[
        "sched",
        "sched latency",
        "sched timehist",
        "sched map",
        "sched off-cpu",
        "sched diff",
        "sched perfetto",
        "sched replay",
        "sched stats",
        "record",
        "script",
    ],
    &[
        "sched stats",
        "sched stats record",
        "sched stats report",
        "sched stats diff",
        "sched",
    ],
    &[
        "timechart",
        "timechart record",
        "sched",
        "heatmap",
        "record",
    ],
    &["archive", "buildid-cache", "buildid-list", "inject"],
    &[
        "kwork",
        "kwork report",
        "kwork latency",
        "kwork timehist",
        "kwork top",
        "sched",
        "record",
    ],
    &[
        "kmem",
        "kmem diff",
        "kmem fragmentation",
        "kmem leaks",
        "kmem stat",
        "kmem usage",
        "record",
        "script",
    ],
    &[
        "lock",
        "lock contention",
        "lock deadlock",
        "lock info",
        "lock report",
        "sched",
        "record",
    ],
    &["kallsyms", "probe", "report"],
    &["trace", "record", "script", "list"],
    &["bench", "stat", "record"],
    &["config", "report"],
    &["help", "version", "check", "completion", "test"],
];

/// Returns the commands that a command's page refers to.
pub(super) fn related(command: &str) -> Vec<&'static str> {
    let mut commands = Vec::new();
    for group in GROUPS.iter().filter(|group| group.contains(&command)) {
        for other in *group {
            if *other != command && !commands.contains(other) {
                commands.push(*other);
            }
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::{COMMANDS, SUBCOMMANDS};
    use crate::cli::man::documented_options;

    /// Whether the page of `command` shows the option `id`.
    fn shows(command: &str, id: &str) -> bool {
        let mut entries = COMMANDS.iter().chain(SUBCOMMANDS);
        let entry = entries.find(|entry| entry.name == command).expect(command);
        documented_options(&(entry.build)()).any(|arg| arg.get_id() == id)
    }

    fn sets() -> impl Iterator<Item = &'static CommandSet> {
        let entries = [STATUSES, VARIABLES, FILES].into_iter().flatten();
        entries.flat_map(|entry| entry.commands)
    }

    /// The exceptions are `also` and `except`. Also checks which commands are [`RESOLVERS`].
    #[test]
    fn sets_by_option_have_no_stale_exceptions() {
        let mut sets_by_option = 0;
        for set in sets() {
            if let WithOption {
                option,
                also,
                except,
            } = set
            {
                sets_by_option += 1;
                assert!(
                    also.iter().all(|name| !shows(name, option)),
                    "{option}: {also:?}"
                );
                assert!(
                    except.iter().all(|name| shows(name, option)),
                    "{option}: {except:?}"
                );
            }
        }
        assert!(sets_by_option > 0);
        let resolves = |command: &str| RESOLVERS.contains(command, &|id| shows(command, id));
        assert!(
            ["report", "trace", "lock contention"]
                .into_iter()
                .all(resolves)
        );
        assert!(!["probe", "list"].into_iter().any(resolves));
    }

    /// Also checks that every command refers to another one.
    #[test]
    fn entries_and_groups_name_existing_commands() {
        let known: Vec<&str> = COMMANDS
            .iter()
            .chain(SUBCOMMANDS)
            .map(|entry| entry.name)
            .collect();
        let named = sets().flat_map(|set| match set {
            Named(names) => [*names, &[]],
            WithOption { also, except, .. } => [*also, *except],
        });
        let named = named.flatten().copied();
        let grouped = GROUPS.iter().flat_map(|group| group.iter().copied());
        for name in named.chain(grouped) {
            assert!(known.contains(&name), "{name}");
        }
        for name in known {
            assert!(!related(name).is_empty(), "{name} is in no group");
        }
    }
}
