//! The example lines of commands, for `-h` and `--help`. Tests run them.

mod bench;
mod histogram;
mod kmem;
mod kwork;
mod lock;
mod sched;
mod timechart;

use self::bench::BENCH;
use self::histogram::HISTOGRAM;
use self::kmem::KMEM;
use self::kwork::KWORK;
use self::lock::LOCK;
use self::sched::SCHED;
use self::timechart::TIMECHART;

/// A command line and its purpose.
pub(crate) struct CommandLine {
    /// The line without the program's name.
    pub(crate) line: &'static str,
    /// The purpose of the command line, as a phrase.
    pub(crate) purpose: &'static str,
}

const fn example(line: &'static str, purpose: &'static str) -> CommandLine {
    CommandLine { line, purpose }
}

/// Returns the examples of a command or subcommand; of a subcommand without examples, those of its command.
pub(crate) fn of(command: &str) -> &'static [CommandLine] {
    let tables = [
        BY_COMMAND, BENCH, HISTOGRAM, KMEM, KWORK, LOCK, SCHED, TIMECHART,
    ];
    let mut commands = tables.into_iter().flatten();
    match commands.find(|(name, _)| *name == command) {
        Some((_, lines)) => lines,
        None => command.rsplit_once(' ').map_or(&[], |(name, _)| of(name)),
    }
}

/// Commands and subcommands without a module of their own, with their examples.
const BY_COMMAND: &[(&str, &[CommandLine])] = &[
    (
        "annotate",
        &[
            example(
                "annotate --stdio",
                "print the hottest functions with samples per instruction",
            ),
            example("annotate --stdio compute", "annotate one function"),
            example(
                "annotate --stdio -s compute --hot 5",
                "show only the five hottest instructions of a function",
            ),
            example(
                "annotate --stdio -l --percent-limit 10",
                "start with the hottest source lines",
            ),
            example(
                "annotate -M intel --asm-raw",
                "print Intel syntax, with the bytes of instructions",
            ),
        ],
    ),
    (
        "archive",
        &[
            example("archive", "pack the objects of perf.data"),
            example("archive --all", "pack the recording, too"),
            example(
                "archive --unpack perf.data.tar.bz2",
                "unpack objects into the build-id cache",
            ),
        ],
    ),
    (
        "buildid-cache",
        &[
            example("buildid-cache -a ./program", "add a program"),
            example("buildid-cache -l", "list the cache"),
            example(
                "buildid-cache -M perf.data",
                "list objects that the recording needs and the cache lacks",
            ),
            example(
                "buildid-cache -p ./program",
                "remove all builds of a program",
            ),
            example(
                "buildid-cache --max-size 2G",
                "remove the least recently used objects until the cache has at most 2 GB",
            ),
        ],
    ),
    (
        "buildid-list",
        &[
            example("buildid-list", "list build-ids of perf.data"),
            example("buildid-list -H", "list only objects with samples"),
            example(
                "buildid-list -i ./program",
                "show the build-id of a program",
            ),
            example("buildid-list -k", "show the build-id of the running kernel"),
        ],
    ),
    (
        "check",
        &[
            example("check feature dwarf", "show whether DWARF is supported"),
            example("check feature zstd,debuginfod", "check several features"),
            example("check -q feature dwarf", "set the exit status only"),
        ],
    ),
    (
        "completion",
        &[
            example("completion bash", "print the script for bash"),
            example("completion zsh", "print the script for zsh"),
        ],
    ),
    (
        "config",
        &[
            example("config", "list all settings"),
            example("config report.children", "show one setting"),
            example(
                "config report.children=false",
                "change a setting in ~/.perfconfig",
            ),
        ],
    ),
    (
        "data",
        &[
            example("data check", "check perf.data for damage"),
            example(
                "data convert --to-pprof profile.pb.gz",
                "convert for 'go tool pprof'",
            ),
            example(
                "data convert --to-firefox profile.json.gz",
                "convert for profiler.firefox.com",
            ),
            example(
                "data convert --to-parquet profiles",
                "add the recording to a folder of tables, for DuckDB or Spark",
            ),
            example("data convert --to-folded -", "print folded stacks"),
            example(
                "data convert --all --to-ctf trace",
                "convert for babeltrace",
            ),
        ],
    ),
    (
        "diff",
        &[
            example("diff", "compare perf.data with perf.data.old"),
            example(
                "diff -c ratio -p perf.data.old perf.data",
                "show the ratio of each function's new and old period",
            ),
            example(
                "diff -s dso -q perf.data.old perf.data",
                "compare the objects, rows only",
            ),
            example(
                "diff --fail-above 5% perf.data.old perf.data",
                "fail if the share of a function grew by more than 5 percentage points",
            ),
            example("diff --json perf.data.old perf.data", "print JSON"),
        ],
    ),
    (
        "evlist",
        &[
            example("evlist", "list event names"),
            example("evlist -F", "show sampling frequencies"),
            example("evlist -v", "show all attributes"),
            example("evlist --trace-fields", "show the fields of tracepoints"),
        ],
    ),
    (
        "flamegraph",
        &[
            example("flamegraph", "draw perf.data into flamegraph.svg"),
            example("flamegraph -- ./program", "record a command and draw it"),
            example(
                "flamegraph -a -F 99 -- sleep 10",
                "record the whole system for ten seconds and draw it",
            ),
            example("flamegraph --folded -o stacks.txt", "write folded stacks"),
            example(
                "flamegraph --diff perf.data.old",
                "color the differences from an earlier recording",
            ),
        ],
    ),
    (
        "heatmap",
        &[
            example("heatmap", "draw perf.data into heatmap.svg"),
            example(
                "heatmap --comms program -o program.svg",
                "draw the samples of one command",
            ),
            example(
                "heatmap --from sched:sched_switch --to sched:sched_switch",
                "draw the times between context switches of each thread",
            ),
        ],
    ),
    (
        "help",
        &[
            example("help record", "show the manual of a command"),
            example("help examples", "show example command lines"),
            example("help --man man/man1", "write manual pages"),
        ],
    ),
    (
        "inject",
        &[
            example(
                "inject -b -i perf.data -o with-ids.data",
                "add the build-ids of objects that samples hit",
            ),
            example(
                "inject --jit -v -o with-functions.data",
                "add JIT-compiled functions from jitdump files",
            ),
            example(
                "inject --redact -o shared.data",
                "replace names, paths and addresses, to share the recording",
            ),
        ],
    ),
    (
        "kallsyms",
        &[
            example("kallsyms schedule", "show module and address of a function"),
            example("kallsyms schedule,vfs_read", "look up two functions"),
            example("kallsyms -v schedule", "also print the number of symbols"),
        ],
    ),
    (
        "list",
        &[
            example("list", "list all events"),
            example("list sw", "list software events"),
            example("list 'sched:*'", "list the tracepoints of the scheduler"),
            example(
                "list -v sched:sched_switch",
                "show fields and print format of a tracepoint",
            ),
            example("list --json sw", "print JSON"),
        ],
    ),
    (
        "probe",
        &[
            example(
                "probe -x ./program compute",
                "add a probe at a function of a program",
            ),
            example(
                "probe -x ./program 'compute%return $retval'",
                "add a return probe with the return value",
            ),
            example(
                "probe -x ./program -V compute",
                "list the variables available at the function",
            ),
            example("probe -x ./program -F", "list functions of the program"),
            example("probe -l", "list probe events"),
            example("probe -d 'probe_program:*'", "delete probe events"),
        ],
    ),
    (
        "record",
        &[
            example(
                "record -g -- ./program",
                "run a command and sample it with callchains",
            ),
            example(
                "record -p 1234 -- sleep 10",
                "sample a running process for ten seconds",
            ),
            example(
                "record -a -F 99 -g -- sleep 10",
                "sample the whole system at 99 Hz",
            ),
            example(
                "record --call-graph dwarf --unwind live -- ./program",
                "record callchains of code without frame pointers",
            ),
            example(
                "record -e sched:sched_switch -a -- sleep 1",
                "record a tracepoint",
            ),
            example(
                "record --off-cpu -g -- ./program",
                "also record where the program waits",
            ),
        ],
    ),
    (
        "report",
        &[
            example(
                "report",
                "browse the report, or print it if stdout is not a terminal",
            ),
            example(
                "report --stdio --no-children",
                "print self overhead, with callers",
            ),
            example(
                "report --stdio -g none -s comm,dso",
                "print a flat profile by command and object",
            ),
            example(
                "report --stdio -n --percent-limit 1",
                "show sample counts, hide rows below 1%",
            ),
            example(
                "report --csv --no-children -F overhead,period,sym",
                "print rows for a spreadsheet",
            ),
            example(
                "report --header-only",
                "show machine and command line of the recording",
            ),
        ],
    ),
    (
        "script",
        &[
            example("script", "print every sample"),
            example(
                "script -F comm,tid,time,event,ip,sym",
                "print selected fields",
            ),
            example("script --time 10%-20%", "print a part of the recording"),
            example("script --json", "print JSON lines"),
            example("script report flamegraph", "draw a flame graph"),
            example("script -s own.py", "pass samples to a script's functions"),
        ],
    ),
    (
        "stat",
        &[
            example("stat -- ./program", "count default events of a command"),
            example(
                "stat -r 5 -- ./program",
                "print mean and deviation of five runs",
            ),
            example(
                "stat -e task-clock,page-faults -p 1234 -- sleep 5",
                "count two events of a process",
            ),
            example(
                "stat -a -I 1000 -- sleep 5",
                "count the whole system, every second",
            ),
            example("stat -j -- ./program", "print JSON"),
            example(
                "stat -e syscalls:sys_exit_read --hist ret -a -- sleep 1",
                "count reads by the number of bytes that they return",
            ),
        ],
    ),
    (
        "test",
        &[
            example("test", "check what can be recorded here"),
            example("test -v 1 hardware", "show the details of two tests"),
            example(
                "test list symbols",
                "list the tests that have 'symbols' in their names",
            ),
            example(
                "test --list-workloads -v",
                "list workloads with their arguments",
            ),
            example(
                "test -w noploop 0.1",
                "loop in one function for 0.1 seconds",
            ),
            example("test -w thloop 0.1 4", "loop in one function, on 4 threads"),
        ],
    ),
    (
        "top",
        &[
            example("top", "sample the whole system"),
            example("top -p 1234 -g", "sample a process with call graphs"),
            example(
                "top -s comm,dso -d 5",
                "show rows by command and object, every five seconds",
            ),
            example("top --roll --intervals 3", "print three intervals as text"),
            example("top --json --intervals 1", "print one interval as JSON"),
        ],
    ),
    (
        "trace",
        &[
            example("trace -- ./program", "print the system calls of a program"),
            example(
                "trace -s -- ./program",
                "count the calls, and show how long they took",
            ),
            example(
                "trace -e openat,sched:sched_process_exec -- ./program",
                "print only these system calls, and another event",
            ),
            example(
                "trace -a --failure -- sleep 1",
                "print failed system calls of all processes",
            ),
            example(
                "trace record -o t.data -- ./program",
                "record the calls, for 'trace -i t.data'",
            ),
        ],
    ),
    (
        "version",
        &[
            example("version", "print the version"),
            example("version --build-options", "also print what is built in"),
        ],
    ),
    (
        "stat record",
        &[
            example(
                "stat record -- ./program",
                "count a command and save the counts",
            ),
            example(
                "stat record -a -A -- sleep 10",
                "save the counts of each CPU",
            ),
            example(
                "stat record -a -I 1000 -o counts.data -- sleep 10",
                "save the counts of each second",
            ),
        ],
    ),
    (
        "stat report",
        &[
            example("stat report", "show the counts in perf.data"),
            example(
                "stat report --per-socket",
                "aggregate the counts per socket",
            ),
            example("stat report -i counts.data -j", "print JSON"),
        ],
    ),
];
