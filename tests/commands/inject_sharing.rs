//! `rperf inject` options that prepare a recording for sharing: move addresses, replace stack copies by callchains, redact names.

use std::collections::HashSet;
use std::fs;

use memchr::memmem;

use super::inject::{WITHOUT_IDS, WORKLOAD, assert_success, printed, shell};
use crate::tools::{BOTH, Tool, Tools};

/// The percentages of the rows in `reader`'s report with these sort keys, largest first.
fn percentages(tools: &Tools, reader: Tool, file: &str, keys: &str) -> Vec<String> {
    let words = [
        "report",
        "--stdio",
        "-g",
        "none",
        "--no-children",
        "-s",
        keys,
        "-i",
        file,
    ];
    let rows = printed(tools, reader, &words);
    let shares = rows.lines().filter(|line| !line.starts_with('#'));
    let shares = shares.filter_map(|line| line.split_whitespace().next());
    shares.map(str::to_owned).collect()
}

#[test]
fn moved_addresses_lead_to_the_same_functions() {
    let Some(tools) = Tools::find_for("moved_addresses_lead_to_the_same_functions") else {
        return;
    };
    for graph in ["fp", "dwarf,4096"] {
        // With `-d`, mappings of data are recorded, too.
        let words = [&WITHOUT_IDS[..], &["--call-graph", graph, "-d"], &WORKLOAD].concat();
        let file = tools
            .record(Tool::Perf, &graph[..2], &words)
            .expect("perf records");
        let moved = tools.outcome(
            Tool::Rperf,
            &["inject", "--aslr", "-i", &file, "-o", "out.data"],
        );
        assert_eq!(moved.status, 0, "{moved:?}");
        for reader in BOTH {
            let words = |file| {
                [
                    "report",
                    "--stdio",
                    "-g",
                    "none",
                    "--no-children",
                    "-s",
                    "comm,dso,sym",
                    "-i",
                    file,
                ]
            };
            let [before, after] =
                [&*file, "out.data"].map(|file| printed(&tools, reader, &words(file)));
            assert_eq!(before, after, "{reader:?} {graph}");
        }
        // MMAP2 PID/TID: [0x5648e93db000(0x13000) @ ...
        let addresses = |file| {
            let words = ["script", "--show-mmap-events", "-i", file];
            let text = tools.outcome(Tool::Rperf, &words).stdout;
            let maps = text.lines().filter_map(|line| line.split_once(": [0x"));
            let starts = maps.filter_map(|(_, map)| map.split('(').next());
            starts.map(str::to_owned).collect::<HashSet<_>>()
        };
        let (before, after) = (addresses(&file), addresses("out.data"));
        assert!(before.len() > 4 && before.is_disjoint(&after), "{graph}");
        // Registers and stack copies, whose addresses cannot be moved, are dropped.
        let events = tools
            .outcome(Tool::Perf, &["evlist", "-v", "-i", "out.data"])
            .stdout;
        assert!(
            !events.contains("REGS_USER") && !events.contains("STACK_USER"),
            "{events}"
        );
        let checked = tools.outcome(Tool::Rperf, &["data", "check", "out.data"]);
        assert_eq!(checked.status, 0, "{checked:?}");
    }
}

#[test]
fn converted_callchains_are_those_of_stack_copies() {
    let Some(tools) = Tools::find_for("converted_callchains_are_those_of_stack_copies") else {
        return;
    };
    let words = [&WITHOUT_IDS[..], &["--call-graph", "dwarf,4096"], &WORKLOAD].concat();
    let file = tools
        .record(Tool::Perf, "copies", &words)
        .expect("perf records");
    let words = [
        "inject",
        "--convert-callchain",
        "-i",
        &file,
        "-o",
        "out.data",
    ];
    assert_eq!(tools.outcome(Tool::Rperf, &words).status, 0);
    let sizes = [&*file, "out.data"].map(|name| {
        fs::metadata(tools.path().join(name))
            .expect("a recording")
            .len()
    });
    assert!(sizes[1] * 4 < sizes[0], "{sizes:?}");
    let words = |file| {
        [
            "script",
            "--no-inline",
            "-F",
            "comm,tid,time,ip,sym,dso",
            "-i",
            file,
        ]
    };
    let [before, after] =
        [&*file, "out.data"].map(|file| printed(&tools, Tool::Rperf, &words(file)));
    assert_eq!(before, after);
    // perf reads the callchains as well, without stacks to unwind.
    let words = ["script", "-F", "ip,sym", "-i", "out.data"];
    let perf = tools.outcome(Tool::Perf, &words);
    assert!(perf.stdout.contains("_start"), "{}", perf.stderr);
    let words = [
        "inject",
        "--convert-callchain",
        "-i",
        "out.data",
        "-o",
        "again.data",
    ];
    let again = tools.outcome(Tool::Rperf, &words);
    assert_eq!(again.status, 255, "{again:?}");
    assert!(again.stderr.contains("no stack copies"), "{again:?}");
}

#[test]
fn a_redacted_recording_has_no_secrets_and_the_same_shares() {
    const TEST: &str = "a_redacted_recording_has_no_secrets_and_the_same_shares";
    let Some(tools) = Tools::find_for(TEST) else {
        return;
    };
    if !rperf_testkit::may_trace(TEST) {
        return;
    }
    let folder = tools.path().join("planted-folder");
    fs::create_dir(&folder).expect("a folder");
    rperf_testkit::copy_program("/usr/bin/ls", folder.join("planted-prog"));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the release");
    let script = "for i in 1 2 3 4; do planted-folder/planted-prog -R /usr/lib; done >/dev/null; : planted-argument";
    let events = "cpu-clock,sched:sched_process_exec,syscalls:sys_enter_openat,sched:sched_switch";
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("the host");
    // A shorter name may be a part of other words.
    let host = Some(host.trim()).filter(|host| host.len() > 5);
    let more_options = [
        "-z",
        "--namespaces",
        "--all-cgroups",
        "--switch-events",
        "--clockid",
        "mono",
    ];
    for (tool, call_graph, options) in [
        (Tool::Perf, "fp", &[][..]),
        (Tool::Rperf, "fp", &[]),
        (Tool::Rperf, "fp", &more_options),
        (Tool::Perf, "dwarf,4096", &[]),
    ] {
        let words = ["--call-graph", call_graph, "-e", events, "sh", "-c", script];
        let words = [options, &words].concat();
        let Some(file) = tools.record(tool, "planted", &words) else {
            continue;
        };
        let words = ["inject", "--redact", "-i", &file, "-o", "shared.data"];
        let redacted = tools.outcome(Tool::Rperf, &words);
        assert_eq!(redacted.status, 0, "{redacted:?}");
        assert_success(&shell(
            &tools,
            "rperf inject -i shared.data | cat >stream.data",
        ));
        let secrets = [
            release.trim(),
            "planted",
            "/usr/",
            "libc.so",
            tools.path().to_str().expect("a path"),
        ];
        for output in ["shared.data", "stream.data"] {
            let bytes = fs::read(tools.path().join(output)).expect("the copy");
            for secret in secrets.into_iter().chain(host) {
                let found = memmem::find(&bytes, secret.as_bytes());
                assert_eq!(found, None, "{secret} in {output}");
            }
        }
        for reader in BOTH {
            for keys in ["comm", "dso", "pid", "comm,dso"] {
                let [before, after] =
                    [&*file, "shared.data"].map(|file| percentages(&tools, reader, file, keys));
                assert!(before.len() > 1, "{before:?}");
                assert_eq!(before, after, "{reader:?} {keys} {call_graph}");
            }
        }
        let header = printed(
            &tools,
            Tool::Perf,
            &["report", "--header-only", "-i", "shared.data"],
        );
        assert!(
            header.contains("hostname : redacted\n# os release : redacted\n"),
            "{header}"
        );
        let checked = tools.outcome(Tool::Rperf, &["data", "check", "shared.data"]);
        assert_eq!(checked.status, 0, "{checked:?}");
    }
}
