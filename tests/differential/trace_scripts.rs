//! The scripts that perf 6.1 is installed with, and scripts for counts: perf runs them with its own interpreters, rperf beside it.
//!
//! For names of system calls perf's scripts need a module `audit`. The test provides one, with rperf's names.

use std::path::PathBuf;
use std::process::Command;

use rperf_testkit::{may_trace, skip};

use super::{Tool, Tools, assert_alike};

/// Events and command of each recording.
const RECORDINGS: &[(&str, &[&str], &str)] = &[
    (
        "calls",
        &[
            "-e",
            "raw_syscalls:sys_enter",
            "-e",
            "raw_syscalls:sys_exit",
        ],
        COMMAND,
    ),
    (
        "io",
        &[
            "-e",
            "syscalls:sys_enter_read,syscalls:sys_exit_read,syscalls:sys_enter_write,syscalls:sys_exit_write",
        ],
        COMMAND,
    ),
    (
        "futex",
        &["-e", "syscalls:sys_enter_futex,syscalls:sys_exit_futex"],
        "perf bench futex hash -t 2 -r 1 -f 64 > out; perf bench sched pipe -T -l 50 > out",
    ),
    ("stacks", &["-g", "-e", "cpu-clock,page-faults"], COMMAND),
    ("irqs", &["-a", "-e", "irq:softirq_entry"], "sleep 0.1"),
    (
        "compaction",
        &[
            "-a",
            "-e",
            "compaction:mm_compaction_begin,compaction:mm_compaction_end,compaction:mm_compaction_migratepages,\
             compaction:mm_compaction_isolate_migratepages,compaction:mm_compaction_isolate_freepages",
        ],
        "echo 1 > /proc/sys/vm/compact_memory",
    ),
];

/// Reads, writes, failing calls, several processes.
const COMMAND: &str = "for i in 1 2 3; do cat /etc/passwd > out; cat /nosuch 2> out; done; \
     head -c 100000 /dev/zero | cat > out; cat . 2> out; echo x > /dev/full; ls / | wc -l";

/// Recording, script below `scripts/`, its arguments.
const SCRIPTS: &[(&str, &str, &[&str])] = &[
    ("calls", "python/syscall-counts.py", &[]),
    ("calls", "python/syscall-counts.py", &["cat"]),
    ("calls", "python/syscall-counts.py", &["a", "b"]),
    ("calls", "python/syscall-counts-by-pid.py", &[]),
    ("calls", "python/syscall-counts-by-pid.py", &["cat"]),
    ("calls", "python/failed-syscalls-by-pid.py", &[]),
    ("calls", "python/failed-syscalls-by-pid.py", &["cat"]),
    ("calls", "perl/failed-syscalls.pl", &[]),
    ("calls", "perl/failed-syscalls.pl", &["cat"]),
    ("calls", "perl/check-perf-trace.pl", &[]),
    ("io", "perl/rw-by-pid.pl", &[]),
    ("io", "perl/rw-by-file.pl", &["cat"]),
    ("io", "perl/check-perf-trace.pl", &[]),
    ("calls", "perl/wakeup-latency.pl", &[]),
    ("futex", "python/futex-contention.py", &[]),
    ("stacks", "python/stackcollapse.py", &[]),
    (
        "stacks",
        "python/stackcollapse.py",
        &["--", "--include-tid", "--kernel"],
    ),
    (
        "stacks",
        "python/flamegraph.py",
        &["--", "-f", "json", "-o", "-"],
    ),
    ("stacks", "python/mem-phys-addr.py", &[]),
    ("stacks", "python/intel-pt-events.py", &[]),
    ("stacks", "python/powerpc-hcalls.py", &[]),
    ("irqs", "python/check-perf-trace.py", &[]),
    ("irqs", "perl/check-perf-trace.pl", &[]),
    ("compaction", "python/compaction-times.py", &[]),
    (
        "compaction",
        "python/compaction-times.py",
        &["--", "-p", "-t"],
    ),
    (
        "compaction",
        "python/compaction-times.py",
        &["--", "-pv", "-u", "-m", "-fs", "-ms"],
    ),
];

/// Prints the name of every system call, as a dict.
const NAMES: &str = "
from Util import *
def trace_begin():
    print({i: syscall_name(i) for i in range(600)})
";

fn scripts() -> Option<PathBuf> {
    let folders = [
        "/usr/libexec/perf-core/scripts",
        "/usr/lib/perf-core/scripts",
    ];
    folders
        .iter()
        .map(PathBuf::from)
        .find(|folder| folder.is_dir())
}

fn has_interpreters() -> bool {
    let runs = |program: &str| Command::new(program).arg("--version").output();
    ["python3", "perl"]
        .iter()
        .all(|program| runs(program).is_ok_and(|output| output.status.success()))
}

/// Both tools, in a folder with a module `audit`; `None` if something is missing.
fn tools(test: &str) -> Option<(Tools, PathBuf)> {
    let tools = Tools::find_for(test)?;
    let (Some(scripts), true, true) = (scripts(), has_interpreters(), may_trace(test)) else {
        skip(
            test,
            "there are no scripts of perf, no interpreters or no tracepoints",
        );
        return None;
    };
    Some((tools, scripts))
}

fn write_audit(tools: &Tools, recording: &str) {
    let write = |name: &str, text: &str| {
        std::fs::write(tools.path().join(name), text).expect("a file can be written");
    };
    write("names.py", NAMES);
    let words = ["script", "-i", recording, "-s", "names.py"];
    let names = tools.outcome(Tool::Rperf, &words);
    assert_eq!(names.status, 0, "{}", names.stderr);
    write(
        "audit.py",
        &format!(
            "names = {}\ndef __getattr__(name):\n    if name == 'audit_syscall_to_name':\n        \
             return lambda number, machine: names.get(number)\n    return 0\n",
            names.stdout.trim()
        ),
    );
}

#[test]
fn installed_scripts_print_the_same() {
    let Some((tools, scripts)) = tools("installed_scripts_print_the_same") else {
        return;
    };
    for (name, events, command) in RECORDINGS {
        let file = format!("{name}.data");
        let own = [&["record", "-q", "-o", &file][..], events].concat();
        let recorded = tools.outcome(Tool::Perf, &[&own[..], &["sh", "-c", command]].concat());
        assert_eq!(recorded.status, 0, "{name}: {}", recorded.stderr);
    }
    write_audit(&tools, "calls.data");
    let mut differences = Vec::new();
    for (recording, script, arguments) in SCRIPTS {
        let (file, script) = (format!("{recording}.data"), scripts.join(script));
        let script = script.to_string_lossy();
        let words = ["script", "-i", &file, "-s", &*script];
        let words = [&words[..], arguments].concat();
        let [perf, rperf] = [Tool::Perf, Tool::Rperf].map(|tool| {
            let run = tools.run(tool, &words);
            // The order of equal rows is that of Perl's hashes.
            let run = run
                .env("PYTHONPATH", tools.path())
                .env("PERL_HASH_SEED", "0");
            run.finish().expect("the tool starts")
        });
        if (rperf.status, &rperf.stdout) != (perf.status, &perf.stdout) {
            let (of_perf, of_rperf) = (perf.stdout, rperf.stdout + &rperf.stderr);
            differences.push(format!("{words:?}:\n{of_perf}\n--- rperf\n{of_rperf}"));
        }
    }
    assert_alike(&differences);
}

/// Prints the counts that a script gets.
const COUNTS: &str = "
def call(name):
    return lambda *values: print(name, values)
for name in ('page-faults_u', 'context-switches', 'cycles_k', 'cycles'):
    globals()['stat__' + name] = call(name)
def stat__interval(time): print('interval', time)
def trace_begin(): print('begin')
def trace_end(): print('end')
";

#[test]
fn counts_reach_the_functions_of_scripts() {
    let Some((tools, scripts)) = tools("counts_reach_the_functions_of_scripts") else {
        return;
    };
    std::fs::write(tools.path().join("counts.py"), COUNTS).expect("a file can be written");
    let cpi = scripts.join("python/stat-cpi.py");
    let mut differences = Vec::new();
    let events = "page-faults:u,context-switches,software/config=0,name=cycles/,software/config=0,name=cycles/k,\
                  software/config=1,name=instructions/k";
    for options in [
        &["-a"][..],
        &["-a", "-A", "-I", "100"],
        &["-a", "-I", "100"],
        &["-a", "--per-socket"],
        &["-I", "100"],
        &["--per-thread", "-p", "1", "-I", "100"],
    ] {
        let own = ["stat", "record", "-o", "stat.data", "-e", events];
        let recorded = tools.outcome(
            Tool::Perf,
            &[&own[..], options, &["sleep", "0.25"]].concat(),
        );
        assert_eq!(recorded.status, 0, "{options:?}: {}", recorded.stderr);
        let calls: [&[&str]; 3] = [
            &["script", "-i", "stat.data", "-s", "counts.py"],
            &["script", "-i", "stat.data", "-s", &cpi.to_string_lossy()],
            &["script", "-i", "stat.data"],
        ];
        for words in calls {
            let [perf, rperf] = tools.outcomes(words, b"");
            assert!(!perf.stdout.is_empty(), "{perf:?}");
            if (rperf.status, &rperf.stdout) != (perf.status, &perf.stdout) {
                let (of_perf, of_rperf) = (perf.stdout, rperf.stdout + &rperf.stderr);
                differences.push(format!(
                    "{options:?} {words:?}:\n{of_perf}\n--- rperf\n{of_rperf}"
                ));
            }
        }
    }
    assert_alike(&differences);
}
