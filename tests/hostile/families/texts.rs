//! Configuration, cached probes, folded stacks and results of benchmarks.

use crate::case::{Case, CaseInputs};
use crate::mutate;

/// A user's configuration file.
const SETTINGS: &str = "# comment
[report]
\tgroup = true
\tpercent-limit = 0.5
\tchildren = false
\tsort_order = \"comm, dso\" ; another
[call-graph]
\trecord-mode = fp
\torder = caller
[core]
\tpager = cat
[colors]
\ttop = red, default
[buildid]
\tdir = ./cache
[rperf]
\tjobs = 2
[annotate]
\tdemangle = true
\tobjdump = objdump
[section \"sub section\"]
\tname = value\\
 that goes on
";

/// Commands that read the configuration.
const SETTINGS_COMMANDS: &[&str] = &[
    "config",
    "config -l",
    "config --user -l",
    "config report.group",
    "config report.group=false core.x=y",
    "config a.b=\"1",
    "report --stdio -i perf.data",
    "annotate --stdio -i perf.data",
    "script -i perf.data",
    "evlist -i perf.data",
    "buildid-cache -l",
];

/// The file `probes` of an object in the build-id cache.
const PROBES: &str = "# sdt and others
p:probe_program/work /program:0x1000 it=%di:x64 name=+8(%di):string
p:probe_program/work_1 /program:0x1010 sum=-4(%bp):s32
#work it name
p:probe_program/walk__return /program:0x1100 ret=$retval
%sdt_demo:tick=tick
p:sdt_demo/tick /program:0x1020 arg1=-4(%bp):s32 arg2=%ax:u64
";

const PROBES_COMMANDS: &[&str] = &[
    "probe --cache --list",
    "probe --cache --list *:*",
    "probe --cache --del *work*",
    "probe --cache -d probe_program:*",
    "list sdt",
    "probe -n -x home/.debug/program %sdt_demo:tick",
    "buildid-cache -l",
];

const FOLDED: &str = "main;a;b 10\nmain;a;c 3\nmain;(deleted) 1\nother;[kernel]_[k];x y 7\n";

const FOLDED_COMMANDS: &[&str] = &[
    "flamegraph --diff earlier.folded -o out.svg -i perf.data",
    "flamegraph --diff earlier.folded -o out.svg -i perf.data --normalize --widths before",
];

/// An output of `bench --json`.
const RESULTS: &str = r#"{
  "format": 1,
  "program": "rperf 0.1.0",
  "kernel": "6.1.0",
  "machine": "x86_64",
  "cpus": 2,
  "benchmarks": [
    {
      "name": "syscall/getpgid",
      "options": ["--loop=9"],
      "results": [
        { "unit": "usecs/op", "better": "lower", "mean": 2.0, "deviation_percent": 7.5, "samples": [1.5, 2.0, 2.5] }
      ]
    },
    { "name": "breakpoint/thread", "options": [], "results": [], "error": "perf_event_open: no such device" }
  ]
}
"#;

const RESULTS_COMMANDS: &[&str] = &[
    "bench --baseline base.json -r 3 syscall getpgid -l 9",
    "bench syscall getpgid -l 9 --baseline base.json --precision 1000000",
    "bench syscall getpgid --loop=9 --baseline base.json --json -r 2",
];

fn mutated(valid: &str, inputs: &mut CaseInputs<'_>) -> Vec<u8> {
    let random = &mut *inputs.random;
    let mut text = valid.as_bytes().to_vec();
    for _ in 0..1 + random.below(4) {
        mutate::text(&mut text, valid.as_bytes(), random);
    }
    text
}

/// A mutated configuration, file of cached probes, file of folded stacks or result of a benchmark.
pub(crate) fn any(inputs: &mut CaseInputs<'_>) -> Case {
    let recording = inputs
        .seeds
        .recordings
        .iter()
        .find(|seed| seed.name == "cycles.data");
    if let Some(recording) = recording {
        inputs.sandbox.write("perf.data", &recording.bytes);
    }
    match inputs.random.below(5) {
        0 => {
            let mut case = Case::new("probes", inputs.random.pick::<&str>(PROBES_COMMANDS));
            let text = mutated(PROBES, inputs);
            let folder = "home/.debug/.build-id/12/34567890123456789012345678901234567890";
            inputs.sandbox.write(format!("{folder}/probes"), text);
            inputs.sandbox.write(
                format!("{folder}/elf"),
                inputs
                    .seeds
                    .object("plain")
                    .map_or(&b""[..], |seed| &seed.bytes),
            );
            case.may_be_silent = true;
            case.may_be_misused = true;
            case
        }
        1 => {
            let mut case = Case::new("folded stacks", inputs.random.pick::<&str>(FOLDED_COMMANDS));
            let text = mutated(FOLDED, inputs);
            inputs.sandbox.write("earlier.folded", text);
            case.outputs.push("out.svg".to_owned());
            case
        }
        2 => {
            let mut case = Case::new("results", inputs.random.pick::<&str>(RESULTS_COMMANDS));
            let mut text = mutated(RESULTS, inputs);
            case.may_be_silent = true;
            // Truncated results are certainly invalid. Those that `mutated` returns may be valid.
            if inputs.random.one_in(10) {
                text = RESULTS[..RESULTS.len() / 2].into();
                case.must_report_error = Some("results that end early");
            }
            inputs.sandbox.write("base.json", text);
            case
        }
        _ => {
            let command = *inputs.random.pick(SETTINGS_COMMANDS);
            let mut case = Case::new("settings", command);
            let mut text = mutated(SETTINGS, inputs);
            if inputs.random.one_in(10) {
                text = b"[report]\n\tgroup = true\n[broken\n".to_vec();
                case.must_report_error = Some("an invalid line");
            }
            inputs.sandbox.write("settings", text);
            case.env.push(("PERF_CONFIG", "settings".to_owned()));
            // `config` prints nothing when it sets a value, and `buildid-cache -l` nothing if the cache is empty.
            case.may_be_silent = command.contains("config") || command.contains("cache");
            case.may_be_misused = true;
            case
        }
    }
}
