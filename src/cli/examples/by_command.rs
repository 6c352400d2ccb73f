//! The example lines of each command, for `-h` and `--help`. Tests run them.

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

/// Creates a command line.
const fn run(line: &'static str, purpose: &'static str) -> CommandLine {
    CommandLine { line, purpose }
}

/// Returns the examples of a command or subcommand. A subcommand without examples has those of its command.
pub(crate) fn of(command: &str) -> &'static [CommandLine] {
    let own = [
        BY_COMMAND, BENCH, HISTOGRAM, KMEM, KWORK, LOCK, SCHED, TIMECHART,
    ];
    let mut commands = own.into_iter().flatten();
    match commands.find(|(name, _)| *name == command) {
        Some((_, lines)) => lines,
        None => command.rsplit_once(' ').map_or(&[], |(name, _)| of(name)),
    }
}

/// Commands with their examples.
const BY_COMMAND: &[(&str, &[CommandLine])] = &[
    (
        "annotate",
        &[
            run(
                "annotate --stdio",
                "print the hottest functions with samples per instruction",
            ),
            run("annotate --stdio compute", "annotate one function"),
            run(
                "annotate --stdio -s compute --hot 5",
                "show only the five hottest instructions of a function",
            ),
            run(
                "annotate --stdio -l --percent-limit 10",
                "start with the hottest source lines",
            ),
            run(
                "annotate -M intel --asm-raw",
                "print Intel syntax, with the bytes of instructions",
            ),
        ],
    ),
    (
        "archive",
        &[
            run("archive", "pack the objects of perf.data"),
            run("archive --all", "pack the recording, too"),
            run(
                "archive --unpack perf.data.tar.bz2",
                "unpack objects into the build-id cache",
            ),
        ],
    ),
    (
        "buildid-cache",
        &[
            run("buildid-cache -a ./program", "add a program"),
            run("buildid-cache -l", "list the cache"),
            run(
                "buildid-cache -M perf.data",
                "list objects that the recording needs and the cache lacks",
            ),
            run(
                "buildid-cache -p ./program",
                "remove all builds of a program",
            ),
            run(
                "buildid-cache --max-size 2G",
                "remove the least recently used objects above 2 GB",
            ),
        ],
    ),
    (
        "buildid-list",
        &[
            run("buildid-list", "list build-ids of perf.data"),
            run("buildid-list -H", "list only objects with samples"),
            run(
                "buildid-list -i ./program",
                "show the build-id of a program",
            ),
            run("buildid-list -k", "show the build-id of the running kernel"),
        ],
    ),
    (
        "check",
        &[
            run("check feature dwarf", "show whether DWARF is supported"),
            run("check feature zstd,debuginfod", "check several features"),
            run("check -q feature dwarf", "set the exit status only"),
        ],
    ),
    (
        "completion",
        &[
            run("completion bash", "print the script for bash"),
            run("completion zsh", "print the script for zsh"),
        ],
    ),
    (
        "config",
        &[
            run("config", "list all settings"),
            run("config report.children", "show one setting"),
            run(
                "config report.children=false",
                "change a setting in ~/.perfconfig",
            ),
        ],
    ),
    (
        "data",
        &[
            run("data check", "check perf.data for damage"),
            run(
                "data convert --to-pprof profile.pb.gz",
                "convert for 'go tool pprof'",
            ),
            run(
                "data convert --to-firefox profile.json.gz",
                "convert for profiler.firefox.com",
            ),
            run(
                "data convert --to-parquet profiles",
                "add the recording to a folder of tables, for DuckDB or Spark",
            ),
            run("data convert --to-folded -", "print folded stacks"),
            run(
                "data convert --all --to-ctf trace",
                "convert for babeltrace",
            ),
        ],
    ),
    (
        "diff",
        &[
            run("diff", "compare perf.data with perf.data.old"),
            run(
                "diff -c ratio -p perf.data.old perf.data",
                "show the ratio of each function's new and old period",
            ),
            run(
                "diff -s dso -q perf.data.old perf.data",
                "compare the objects, rows only",
            ),
            run(
                "diff --fail-above 5% perf.data.old perf.data",
                "fail if the share of a function grew by more than 5 percentage points",
            ),
            run("diff --json perf.data.old perf.data", "print JSON"),
        ],
    ),
    (
        "evlist",
        &[
            run("evlist", "list event names"),
            run("evlist -F", "show sampling frequencies"),
            run("evlist -v", "show all attributes"),
            run("evlist --trace-fields", "show the fields of tracepoints"),
        ],
    ),
    (
        "flamegraph",
        &[
            run("flamegraph", "draw perf.data into flamegraph.svg"),
            run("flamegraph -- ./program", "record a command and draw it"),
            run(
                "flamegraph -a -F 99 -- sleep 10",
                "record the whole system for ten seconds and draw it",
            ),
            run("flamegraph --folded -o stacks.txt", "write folded stacks"),
            run(
                "flamegraph --diff perf.data.old",
                "color the differences from an earlier recording",
            ),
        ],
    ),
    (
        "heatmap",
        &[
            run("heatmap", "draw perf.data into heatmap.svg"),
            run(
                "heatmap --comms program -o program.svg",
                "draw the samples of one command",
            ),
            run(
                "heatmap --from sched:sched_switch --to sched:sched_switch",
                "draw the times between context switches of each thread",
            ),
        ],
    ),
    (
        "help",
        &[
            run("help record", "show the manual of a command"),
            run("help examples", "show example command lines"),
            run("help --man man/man1", "write manual pages"),
        ],
    ),
    (
        "inject",
        &[
            run(
                "inject -b -i perf.data -o with-ids.data",
                "add the build-ids of objects that samples hit",
            ),
            run(
                "inject --jit -v -o with-functions.data",
                "add JIT-compiled functions from jitdump files",
            ),
            run(
                "inject --redact -o shared.data",
                "replace names, paths and addresses, to share the recording",
            ),
        ],
    ),
    (
        "kallsyms",
        &[
            run("kallsyms schedule", "show module and address of a function"),
            run("kallsyms schedule,vfs_read", "look up two functions"),
            run("kallsyms -v schedule", "also print the number of symbols"),
        ],
    ),
    (
        "list",
        &[
            run("list", "list all events"),
            run("list sw", "list software events"),
            run("list 'sched:*'", "list the tracepoints of the scheduler"),
            run(
                "list -v sched:sched_switch",
                "show fields and print format of a tracepoint",
            ),
            run("list --json sw", "print JSON"),
        ],
    ),
    (
        "probe",
        &[
            run(
                "probe -x ./program compute",
                "add a probe at a function of a program",
            ),
            run(
                "probe -x ./program 'compute%return $retval'",
                "add a return probe with the return value",
            ),
            run(
                "probe -x ./program -V compute",
                "list the variables available at the function",
            ),
            run("probe -x ./program -F", "list functions of the program"),
            run("probe -l", "list probe events"),
            run("probe -d 'probe_program:*'", "delete probe events"),
        ],
    ),
    (
        "record",
        &[
            run(
                "record -g -- ./program",
                "run a command and sample it with callchains",
            ),
            run(
                "record -p 1234 -- sleep 10",
                "sample a running process for ten seconds",
            ),
            run(
                "record -a -F 99 -g -- sleep 10",
                "sample the whole system at 99 Hz",
            ),
            run(
                "record --call-graph dwarf --unwind live -- ./program",
                "record callchains of code without frame pointers",
            ),
            run(
                "record -e sched:sched_switch -a -- sleep 1",
                "record a tracepoint",
            ),
            run(
                "record --off-cpu -g -- ./program",
                "also record where the program waits",
            ),
        ],
    ),
    (
        "report",
        &[
            run(
                "report",
                "browse the report, or print it if stdout is not a terminal",
            ),
            run(
                "report --stdio --no-children",
                "print self overhead, with callers",
            ),
            run(
                "report --stdio -g none -s comm,dso",
                "print a flat profile by command and object",
            ),
            run(
                "report --stdio -n --percent-limit 1",
                "show sample counts, hide rows below 1%",
            ),
            run(
                "report --csv --no-children -F overhead,period,sym",
                "print rows for a spreadsheet",
            ),
            run(
                "report --header-only",
                "show machine and command line of the recording",
            ),
        ],
    ),
    (
        "script",
        &[
            run("script", "print every sample"),
            run(
                "script -F comm,tid,time,event,ip,sym",
                "print selected fields",
            ),
            run("script --time 10%-20%", "print a part of the recording"),
            run("script --json", "print JSON lines"),
            run("script report flamegraph", "draw a flame graph"),
            run("script -s own.py", "pass samples to a script's functions"),
        ],
    ),
    (
        "stat",
        &[
            run("stat -- ./program", "count default events of a command"),
            run(
                "stat -r 5 -- ./program",
                "print mean and deviation of five runs",
            ),
            run(
                "stat -e task-clock,page-faults -p 1234 -- sleep 5",
                "count two events of a process",
            ),
            run(
                "stat -a -I 1000 -- sleep 5",
                "count the whole system, every second",
            ),
            run("stat -j -- ./program", "print JSON"),
            run(
                "stat -e syscalls:sys_exit_read --hist ret -a -- sleep 1",
                "count reads by the number of bytes that they return",
            ),
        ],
    ),
    (
        "test",
        &[
            run("test", "check what can be recorded here"),
            run("test -v 1 hardware", "show the details of two tests"),
            run(
                "test list symbols",
                "list the tests that have 'symbols' in their names",
            ),
            run(
                "test --list-workloads -v",
                "list workloads with their arguments",
            ),
            run(
                "test -w noploop 0.1",
                "loop in one function for 0.1 seconds",
            ),
            run("test -w thloop 0.1 4", "loop in one function, on 4 threads"),
        ],
    ),
    (
        "top",
        &[
            run("top", "sample the whole system"),
            run("top -p 1234 -g", "sample a process with call graphs"),
            run(
                "top -s comm,dso -d 5",
                "show rows by command and object, every five seconds",
            ),
            run("top --roll --intervals 3", "print three intervals as text"),
            run("top --json --intervals 1", "print one interval as JSON"),
        ],
    ),
    (
        "trace",
        &[
            run("trace -- ./program", "print the system calls of a program"),
            run(
                "trace -s -- ./program",
                "count the calls, and show how long they took",
            ),
            run(
                "trace -e openat,sched:sched_process_exec -- ./program",
                "print only these system calls, and another event",
            ),
            run(
                "trace -a --failure -- sleep 1",
                "print failed system calls of all processes",
            ),
            run(
                "trace record -o t.data -- ./program",
                "record the calls, for 'trace -i t.data'",
            ),
        ],
    ),
    (
        "version",
        &[
            run("version", "print the version"),
            run("version --build-options", "also print what is built in"),
        ],
    ),
    (
        "stat record",
        &[
            run(
                "stat record -- ./program",
                "count a command and save the counts",
            ),
            run(
                "stat record -a -A -- sleep 10",
                "save the counts of each CPU",
            ),
            run(
                "stat record -a -I 1000 -o counts.data -- sleep 10",
                "save the counts of each second",
            ),
        ],
    ),
    (
        "stat report",
        &[
            run("stat report", "show the counts in perf.data"),
            run(
                "stat report --per-socket",
                "aggregate the counts per socket",
            ),
            run("stat report -i counts.data -j", "print JSON"),
        ],
    ),
];
