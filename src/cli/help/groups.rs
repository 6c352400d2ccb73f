//! The groups in which `-h` and `--help` list the options of a command, each with a heading.

use clap::{Arg, Command};

use crate::cli::options::{OptionShape, options};

/// Options that belong together. Those that a command lacks are ignored, so commands can share a group.
struct Group {
    heading: &'static str,
    /// Option ids.
    ids: &'static [&'static str],
}

/// Heading of the options of commands that have no groups, and of options in no group.
const OTHER: &str = "Options";

/// Names of commands, with the groups of each in the order of `-h`.
const GROUPS: &[(&[&str], &[Group])] = &[
    (&["record"], RECORD),
    (&["stat", "stat record", "stat report"], STAT),
    (&["top"], TOP),
    (&["report"], REPORT),
    (&["script"], SCRIPT),
    (&["annotate"], ANNOTATE),
    (&["flamegraph"], FLAME_GRAPH),
    (&["heatmap"], HEAT_MAP),
    (&["histogram"], HISTOGRAM),
    (&["timechart"], TIME_CHART),
    (&["trace"], TRACE),
    (&["diff"], DIFF),
    (&["probe"], PROBE),
    (&["data"], DATA),
    (&["inject"], INJECT),
    (&["test"], TEST),
];

#[rustfmt::skip]
const TEST: &[Group] = &[
    Group { heading: "Tests", ids: &["skip", "runs-per-test", "sequential", "dont-fork", "junit", "verbose"]},
    Group { heading: "Workloads", ids: &["workload", "list-workloads", "record-ctl"]},
];

#[rustfmt::skip]
const RECORD: &[Group] = &[
    Group { heading: "Events", ids: &[
        "event", "filter", "probe", "count", "freq", "strict-freq", "group", "all-kernel", "all-user", "exclude-perf",
        "off-cpu", "off-cpu-thresh", "futex-owners", "lock-owners",
    ]},
    Group { heading: "Targets", ids: &[
        "all-cpus", "cpu", "pid", "pid-ns", "tid", "uid", "cgroup", "no-inherit", "per-thread", "delay", "duration",
        "control",
    ]},
    Group { heading: "Callchains and branches", ids: &[
        "g", "call-graph", "unwind", "kernel-callchains", "user-callchains", "branch-any", "branch-filter",
    ]},
    Group { heading: "Sample fields", ids: &[
        "stat", "data", "phys-data", "data-page-size", "code-page-size", "sample-cpu", "sample-identifier", "timestamp",
        "period", "no-samples", "weight", "transaction", "intr-regs", "user-regs", "running-time", "clockid", "raw-samples",
        "all-cgroups",
    ]},
    Group { heading: "Other records", ids: &[
        "namespaces", "switch-events", "latency", "no-bpf-event", "buildid-all", "buildid-mmap", "no-buildid",
        "no-buildid-cache", "synth", "tail-synthesize", "num-thread-synthesize", "proc-map-timeout", "timestamp-boundary",
        "kcore",
    ]},
    Group { heading: "Output", ids: &[
        "output", "switch-output", "switch-output-event", "switch-max-files", "overwrite", "max-size", "timestamp-filename",
        "compression-level", "dry-run", "quiet", "verbose",
    ]},
    Group { heading: "Ring buffers and threads", ids: &[
        "mmap-pages", "mmap-flush", "no-buffering", "realtime", "threads", "affinity", "aio", "snapshot",
    ]},
];

#[rustfmt::skip]
const STAT: &[Group] = &[
    Group { heading: "Events and metrics", ids: &[
        "event", "filter", "hist", "probe", "group", "metrics", "metric-no-group", "metric-no-merge", "metric-no-threshold",
        "topdown", "td-level", "detailed", "all-kernel", "all-user", "pmu-filter", "bpf-counters",
    ]},
    Group { heading: "Targets", ids: &[
        "all-cpus", "cpu", "pid", "tid", "uid", "cgroup", "for-each-cgroup", "bpf-prog", "no-inherit", "delay", "timeout",
        "control",
    ]},
    Group { heading: "Runs of the command", ids: &["repeat", "table", "null", "sync", "pre", "post"]},
    Group { heading: "Intervals", ids: &["interval-print", "interval-count", "interval-clear", "summary", "no-csv-summary"]},
    Group { heading: "Aggregation", ids: &[
        "no-aggr", "per-socket", "per-die", "per-cluster", "per-cache", "per-core", "per-thread", "per-node", "no-merge",
    ]},
    Group { heading: "Input and output", ids: &[
        "input", "force", "output", "append", "log-fd", "field-separator", "json-output", "big-num", "metric-only", "scale",
        "quiet", "verbose",
    ]},
];

const SAMPLE_FILTER_IDS: &[&str] = &[
    "comms",
    "cpu",
    "dsos",
    "pid",
    "tid",
    "time",
    "symbols",
    "idle",
    "parallelism",
    "socket-filter",
    "switch-on",
    "switch-off",
    "show-on-off-events",
    "addr-range",
];

const SYMBOLS: Group = Group {
    heading: "Symbols",
    ids: &[
        "vmlinux",
        "modules",
        "ignore-vmlinux",
        "kallsyms",
        "symfs",
        "demangle",
        "demangle-kernel",
        "debuginfod",
        "inline",
        "mark-truncated",
    ],
};

const CODE: Group = Group {
    heading: "Annotated code",
    ids: &[
        "source",
        "asm-raw",
        "disassembler-style",
        "prefix",
        "prefix-strip",
        "objdump",
        "percent-type",
        "print-line",
        "full-paths",
        "hot",
        "sym-annotate",
    ],
};

const SAMPLE_FILTERS: Group = Group {
    heading: "Sample filters",
    ids: SAMPLE_FILTER_IDS,
};

#[rustfmt::skip]
const TOP: &[Group] = &[
    Group { heading: "Events", ids: &[
        "event", "filter", "probe", "count", "freq", "group", "all-kernel", "all-user", "exclude-perf", "g", "call-graph",
        "all-cgroups", "namespaces", "no-bpf-event",
    ]},
    Group { heading: "Targets", ids: &["all-cpus", "cpu", "pid", "tid", "uid", "cgroup", "no-inherit"]},
    Group { heading: "Table", ids: &[
        "sort", "fields", "children", "hierarchy", "show-nr-samples", "show-total-period", "column-widths", "entries",
        "count-filter", "percent-limit", "percentage", "group-sort-idx", "ignore-callees", "max-stack", "hide_kernel_symbols",
        "hide_user_symbols", "comms", "dsos", "symbols",
    ]},
    Group { heading: "Display", ids: &["delay", "intervals", "zero", "tui", "stdio", "roll", "json", "verbose", "force"]},
    CODE,
    SYMBOLS,
    Group { heading: "Ring buffers and threads", ids: &[
        "mmap-pages", "realtime", "num-thread-synthesize", "proc-map-timeout",
    ]},
];

#[rustfmt::skip]
const REPORT: &[Group] = &[
    Group { heading: "Input and output", ids: &[
        "input", "force", "tui", "stdio", "stdio-color", "json", "csv", "quiet", "verbose", "jobs", "hints", "samples",
    ]},
    Group { heading: "Instead of the report", ids: &[
        "stats", "tasks", "mmaps", "header-only", "dump-raw-trace", "disable-order",
    ]},
    Group { heading: "Rows and columns", ids: &[
        "sort", "fields", "hierarchy", "children", "latency", "show-nr-samples", "show-total-period", "show-cpu-utilization",
        "showcpuutilization", "column-widths", "field-separator", "percent-limit", "percentage", "group", "group-sort-idx",
        "skip-empty", "raw-trace", "full-source-path", "ns", "time-quantum", "header", "show-info", "threads", "pretty",
    ]},
    Group { heading: "Call graphs", ids: &[
        "call-graph", "inverted", "max-stack", "ignore-callees", "parent", "exclude-other", "show-ref-call-graph",
    ]},
    Group { heading: "Branches and memory accesses", ids: &[
        "branch-stack", "branch-history", "total-cycles", "mem-mode", "itrace",
    ]},
    Group { heading: "Sample filters", ids: &[
        "comms", "cpu", "dsos", "pid", "tid", "time", "symbols", "symbol-filter", "idle", "parallelism", "socket-filter",
        "hide-unresolved", "switch-on", "switch-off", "show-on-off-events",
    ]},
    SYMBOLS,
    CODE,
];

#[rustfmt::skip]
const SCRIPT: &[Group] = &[
    Group { heading: "Input and output", ids: &[
        "input", "force", "verbose", "jobs", "json", "csv", "template", "per-event-dump", "list", "all-cpus", "debug-mode",
    ]},
    Group { heading: "Fields", ids: &[
        "fields", "hide-call-graph", "max-stack", "stop-bt", "max-blocks", "ns", "reltime", "deltatime", "Latency",
        "full-source-path", "show-kernel-path", "itrace",
    ]},
    Group { heading: "Scripts", ids: &["script", "python", "gen-script"]},
    SAMPLE_FILTERS,
    Group { heading: "Header and other records", ids: &[
        "header", "header-only", "show-info", "show-task-events", "show-mmap-events", "show-switch-events",
        "show-namespace-events", "show-cgroup-events", "show-lost-events", "show-round-events", "show-bpf-events",
        "show-text-poke-events", "dump-raw-trace", "dump-unsorted-raw-trace",
    ]},
    SYMBOLS,
];

#[rustfmt::skip]
const ANNOTATE: &[Group] = &[
    Group { heading: "Input and output", ids: &[
        "input", "force", "output", "tui", "stdio", "stdio2", "stdio-color", "quiet", "verbose", "jobs", "dump-raw-trace",
    ]},
    Group { heading: "Functions and columns", ids: &[
        "symbol", "percent-limit", "show-nr-samples", "show-total-period", "group", "skip-empty", "skip-missing",
    ]},
    CODE,
    SAMPLE_FILTERS,
    SYMBOLS,
];

#[rustfmt::skip]
const FLAME_GRAPH: &[Group] = &[
    Group { heading: "Input and output", ids: &[
        "input", "force", "output", "folded", "format", "marks", "quiet", "verbose", "jobs",
    ]},
    Group { heading: "Recording", ids: &["all-cpus", "attach", "freq", "call-graph", "unwind", "off-cpu", "keep"]},
    Group { heading: "Drawing", ids: &[
        "title", "subtitle", "width", "min-width", "max-depth", "inverted", "reverse", "colors", "root",
    ]},
    Group { heading: "Comparing two recordings", ids: &["diff", "normalize", "widths"]},
    Group { heading: "Samples", ids: &[
        "event", "weight", "max-stack", "comms", "cpu", "dsos", "pid", "tid", "time", "symbols", "idle",
    ]},
    SYMBOLS,
];

#[rustfmt::skip]
const DIFF: &[Group] = &[
    Group { heading: "Comparison", ids: &["compute", "order", "baseline-only", "stream", "runs", "all", "fail-above", "cycles-hist"]},
    Group { heading: "Input and output", ids: &[
        "force", "period", "formula", "sort", "field-separator", "json", "dump-raw-trace", "quiet", "verbose", "jobs",
    ]},
    Group { heading: "Samples", ids: &["comms", "cpu", "dsos", "pid", "tid", "time", "symbols", "percentage"]},
    SYMBOLS,
];

#[rustfmt::skip]
const HEAT_MAP: &[Group] = &[
    Group { heading: "Input and output", ids: &["input", "force", "output", "format", "title", "rows", "scale", "edges", "quiet", "jobs"]},
    Group { heading: "Latencies", ids: &["from", "to", "latencies", "key", "max-latency", "columns"]},
    Group { heading: "Samples", ids: &["event", "comms", "cpu", "dsos", "pid", "tid", "time", "symbols", "idle"]},
    SYMBOLS,
];

#[rustfmt::skip]
const HISTOGRAM: &[Group] = &[
    Group { heading: "Input and output", ids: &["input", "force", "output", "json", "svg", "title", "quiet", "jobs"]},
    Group { heading: "Ranges", ids: &["edges", "power", "max"]},
    Group { heading: "Latencies", ids: &["from", "to", "key", "unit"]},
    Group { heading: "Samples", ids: &["comms", "cpu", "dsos", "pid", "tid", "time", "symbols"]},
    Group { heading: "Recording", ids: &["attach", "all-cpus"]},
    SYMBOLS,
];

#[rustfmt::skip]
const TIME_CHART: &[Group] = &[
    Group { heading: "Input and output", ids: &["input", "force", "output", "width", "quiet", "verbose", "jobs"]},
    Group { heading: "CPUs and tasks", ids: &["time", "process", "proc-num", "highlight", "tasks-only", "power-only", "topology"]},
    Group { heading: "System calls", ids: &["io-skip-eagain", "io-min-time", "io-merge-dist"]},
    Group { heading: "Symbols", ids: &["vmlinux", "kallsyms", "symfs"]},
];

#[rustfmt::skip]
const TRACE: &[Group] = &[
    Group { heading: "Targets", ids: &["all-cpus", "cpu", "cgroup", "pid", "tid", "uid", "no-inherit", "filter-pids", "delay"]},
    Group { heading: "Events", ids: &["event", "filter", "syscalls", "duration", "failure", "max-events", "pf", "switch-on", "switch-off", "show-on-off-events"]},
    Group { heading: "Stacks", ids: &["call-graph", "kernel-syscall-graph", "max-stack", "min-stack"]},
    Group { heading: "Input and output", ids: &["input", "force", "output", "verbose"]},
    Group { heading: "Lines and tables", ids: &["time", "comm", "summary", "with-summary", "errno-summary", "bpf-summary", "sched", "summary-mode", "string-size", "force-btf", "json", "exec-tree", "sort-events"]},
    Group { heading: "Ring buffers", ids: &["mmap-pages"]},
];

#[rustfmt::skip]
const PROBE: &[Group] = &[
    Group { heading: "Actions", ids: &["add", "del", "list", "line", "vars", "funcs", "definition"]},
    Group { heading: "Targets", ids: &["exec", "module", "vmlinux", "target-ns", "symfs", "source"]},
    Group { heading: "Adding and deleting", ids: &["force", "dry-run", "cache", "inlines", "max-probes", "bootconfig"]},
    Group { heading: "Listing", ids: &["externs", "range", "filter", "demangle", "demangle-kernel"]},
    Group { heading: "General", ids: &["quiet", "verbose", "jobs", "debuginfod"]},
];

#[rustfmt::skip]
const INJECT: &[Group] = &[
    Group { heading: "Build-ids", ids: &[
        "build-ids", "buildid-all", "mmap2-buildids", "mmap2-buildid-all", "known-build-ids", "vmlinux", "ignore-vmlinux",
    ]},
    Group { heading: "Code and samples", ids: &["jit", "sched-stat", "itrace", "strip"]},
    Group { heading: "Sharing", ids: &["convert-callchain", "aslr", "redact"]},
    Group { heading: "Input and output", ids: &["input", "force", "output", "verbose"]},
];

#[rustfmt::skip]
const DATA: &[Group] = &[
    Group { heading: "Formats", ids: &[
        "to-json", "to-ctf", "to-ndjson", "to-parquet", "to-folded", "to-firefox", "to-perfetto", "to-pprof", "to-speedscope",
        "to-otlp", "otlp", "to-perf",
    ]},
    Group { heading: "Input and output", ids: &["input", "force", "event", "quiet", "verbose", "jobs", "all", "tod"]},
    SYMBOLS,
];

/// Returns the options of a command that `is_requested` accepts, by heading; without those that are not supported, and
/// without empty groups.
pub(super) fn grouped<'c>(
    name: &str,
    command: &'c Command,
    is_requested: impl Fn(&Arg) -> bool,
) -> Vec<(&'static str, Vec<&'c Arg>)> {
    // `lock record` takes the options of `record`, and others, which are in no group.
    let name = match name {
        "lock record" => "record",
        name => name,
    };
    let groups = GROUPS.iter().find(|(names, _)| names.contains(&name));
    let groups = groups.map_or([].as_slice(), |(_, groups)| groups);
    let listed = |arg: &Arg| OptionShape::of(arg) != OptionShape::NotYet && is_requested(arg);
    let is_in = |group: &Group, arg: &Arg| group.ids.contains(&arg.get_id().as_str());
    let named = groups.iter().map(|group| {
        let args = options(command).filter(|arg| is_in(group, arg));
        (group.heading, args.filter(|arg| listed(arg)).collect())
    });
    let ungrouped = options(command).filter(|arg| !groups.iter().any(|group| is_in(group, arg)));
    let ungrouped = ungrouped.filter(|arg| listed(arg)).collect::<Vec<_>>();
    let all_groups = named.chain([(OTHER, ungrouped)]);
    all_groups.filter(|(_, args)| !args.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::commands::{COMMANDS, SUBCOMMANDS};

    #[test]
    fn every_option_of_a_command_with_groups_is_in_one() {
        let mut missing = Vec::new();
        for (names, groups) in GROUPS {
            let ids: Vec<&str> = groups
                .iter()
                .flat_map(|group| group.ids.iter().copied())
                .collect();
            let known: BTreeSet<&str> = ids.iter().copied().collect();
            assert_eq!(
                known.len(),
                ids.len(),
                "{names:?}: an option is in two groups"
            );
            for name in *names {
                let entry = COMMANDS
                    .iter()
                    .chain(SUBCOMMANDS)
                    .find(|entry| entry.name == *name);
                let command = (entry.expect("a command of that name").build)();
                for arg in
                    options(&command).filter(|arg| OptionShape::of(arg) != OptionShape::NotYet)
                {
                    let id = arg.get_id().as_str();
                    if !known.contains(id) {
                        missing.push(format!("{name}: {id}"));
                    }
                }
            }
        }
        assert!(
            missing.is_empty(),
            "in no group of src/cli/help/groups.rs: {missing:?}"
        );
    }
}
