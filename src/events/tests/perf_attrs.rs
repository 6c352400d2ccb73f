//! The attrs that rperf would open, compared with those that `perf record` opened, as listed by `perf evlist -v`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;

use rperf_events::{
    CallGraph, Catalogue, CounterReads, EventSpec, PrivilegeLevel, RecordDetails, RecordOptions,
    SampleFields, Sampling, SamplingTarget, SideBand, StackSize, TaskScope, Tracepoints,
    USER_REGISTERS, default_event, fallback_to_cpu_clock, parse, record_events,
};
use rperf_testkit::{Run, Scratch, real_perf, skip};
use rperf_wire::{Attr, AttrText, BranchSampleType};

const EVENTS: &str = "/sys/kernel/tracing/events";

/// This machine's tracefs.
#[derive(Debug)]
struct Tracefs;

fn folders(path: &str) -> io::Result<Vec<String>> {
    let entries: Vec<_> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
    let folders = entries.into_iter().filter(|entry| entry.path().is_dir());
    let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.collect())
}

impl Tracepoints for Tracefs {
    fn folder(&self) -> &Path {
        Path::new(EVENTS)
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        folders(EVENTS)
    }

    fn names(&self, system: &str) -> io::Result<Vec<String>> {
        folders(&format!("{EVENTS}/{system}"))
    }

    fn id(&self, system: &str, name: &str) -> io::Result<u64> {
        let text = fs::read_to_string(format!("{EVENTS}/{system}/{name}/id"))?;
        Ok(text.trim().parse().unwrap())
    }
}

/// The events of this machine.
fn catalogue() -> Catalogue<'static> {
    Catalogue {
        tracepoints: &Tracefs,
        ..Catalogue::default()
    }
}

/// A test case: options of `perf record`, and what they mean to rperf.
struct Case {
    /// The value of `-e`; empty for the default event.
    events: &'static str,
    /// The other options; `SLEEPER` is replaced by the pid of a sleeping process.
    arguments: &'static str,
    options: RecordOptions,
}

/// Creates a test case; except for the target, its `options` are derived from `arguments`.
fn case(events: &'static str, arguments: &'static str, target: SamplingTarget) -> Case {
    let has = |word: &str| arguments.split(' ').any(|given| given == word);
    let number = |option: &str| {
        let mut given = arguments.split(' ').skip_while(|word| *word != option);
        given.nth(1).and_then(|text| text.parse().ok())
    };
    let sampling = match (number("-F"), number("-c")) {
        (Some(frequency), _) => Sampling::Frequency(frequency),
        (_, Some(period)) => Sampling::Period(period),
        _ => Sampling::Default(rperf_events::DEFAULT_FREQUENCY),
    };
    Case {
        events,
        arguments,
        options: RecordOptions {
            target,
            sampling,
            call_graph: call_graph(arguments),
            raw_samples: has("-R"),
            details: given_details(has),
        },
    }
}

/// The settings for the given switches; `has` returns whether a switch is given.
fn given_details(has: impl Fn(&str) -> bool) -> RecordDetails {
    let either = |on: &str, off: &str| has(on).then_some(true).or(has(off).then_some(false));
    RecordDetails {
        scope: TaskScope {
            level: [
                ("--all-user", PrivilegeLevel::User),
                ("--all-kernel", PrivilegeLevel::Kernel),
            ]
            .into_iter()
            .find_map(|(word, level)| has(word).then_some(level)),
            no_inherit: has("-i"),
            per_thread: has("--per-thread"),
            delayed: has("-D"),
        },
        samples: SampleFields {
            user_callchains: has("--user-callchains"),
            kernel_callchains: has("--kernel-callchains"),
            data: has("-d"),
            phys_data: has("--phys-data"),
            data_page_size: has("--data-page-size"),
            code_page_size: has("--code-page-size"),
            weight: has("-W"),
            cpu: has("--sample-cpu"),
            identifier: has("--sample-identifier"),
            period: either("-P", "--no-period"),
            time: either("-T", "--no-timestamp"),
            transaction: has("--transaction"),
            // Bit 0 is ax, bit 8 is ip (`enum perf_event_x86_regs`).
            user_regs: if has("--user-regs=ax,ip") { 0x101 } else { 0 },
            intr_regs: match has("-I") {
                true => USER_REGISTERS.unwrap(),
                false => 0,
            },
            branches: BranchSampleType::default(),
        },
        side_band: SideBand {
            switches: has("--switch-events"),
            namespaces: has("--namespaces"),
            cgroups: has("--all-cgroups"),
            build_ids: has("--buildid-mmap"),
            no_bpf: has("--no-bpf-event"),
        },
        reads: CounterReads {
            per_task: has("-s"),
            running_time: has("--running-time"),
        },
        no_samples: has("-n"),
        overwrite: has("--overwrite"),
        no_buffering: has("--no-buffering"),
        // CLOCK_MONOTONIC.
        clockid: has("monotonic").then_some(1),
    }
}

/// The mode of the last `--call-graph MODE`, or of `-g` if there is none.
fn call_graph(arguments: &str) -> CallGraph {
    let mut arguments = arguments.split(' ');
    let mut selected = CallGraph::None;
    while let Some(word) = arguments.next() {
        let mode = match word {
            "-g" if selected == CallGraph::None => "fp",
            "--call-graph" => arguments.next().unwrap(),
            _ => continue,
        };
        selected = match mode.split_once(',').unwrap_or((mode, "8192")) {
            ("dwarf", size) => CallGraph::Dwarf {
                stack_size: StackSize::new(size.parse().unwrap()).unwrap(),
                // With the mode given as an option (not by the configuration), perf records data addresses, too.
                with_data: true,
            },
            _ => CallGraph::FramePointers,
        };
    }
    selected
}

fn cases() -> Vec<Case> {
    use SamplingTarget::{Cpus, Processes, Threads, Workload};
    let mut cases = vec![
        case("", "", Workload),
        case("", "-g", Workload),
        case("", "-a", Cpus),
        case("", "-a -g -F 99", Cpus),
        case("", "-a -g -c 100000", Cpus),
        case("", "-c 100000 -g", Workload),
        case("", "-p SLEEPER", Processes),
        case("", "-C 0", Cpus),
        case("cpu-clock", "-t SLEEPER", Threads),
        case("cpu-clock", "-p SLEEPER -g", Processes),
        case("cpu-clock", "-C 0", Cpus),
        case("cpu-clock", "-a", Cpus),
        case("cpu-clock", "-a -F 99", Cpus),
        case("cpu-clock,cs", "", Workload),
        case("cpu-clock,cs", "-c 100000", Workload),
        case("cpu-clock,cs", "-a -g", Cpus),
        case("cpu-clock,cs", "-p SLEEPER -g", Processes),
        case("cpu-clock,cs", "-t SLEEPER -F 999", Threads),
        case("cs,page-faults,minor-faults,migrations", "-g", Workload),
        case("cs:S,page-faults", "", Workload),
        case("cs:S,page-faults:S", "", Workload),
        case("cs:S,page-faults", "-a", Cpus),
        case("dummy", "", Workload),
        case("dummy", "-a", Cpus),
        case("dummy,cpu-clock", "-a", Cpus),
        case("cpu-clock,dummy", "-a", Cpus),
        case("bpf-output", "", Workload),
        case("bpf-output", "-a", Cpus),
        case("cgroup-switches", "-g", Workload),
    ];
    // These events are in one recording, since each recording takes perf a second.
    cases.push(case(
        "cs:u,cs:k,cs:h,cs:uk,cs:uh,cs:kh,cs:G,cs:H,cs:HG,cs:uG,cs:Gu,cs:p,cs:pp,cs:ppp,cs:P,cs:up,cs:Pp,cs:pG,\
         cs:D,cs:I,cs:W,cs:e,cs:uHIe",
        "",
        Workload,
    ));
    cases.push(case(
        "cycles,cpu-cycles:u,cycles:k,cycles:h,cycles:uk,cycles:G,cycles:HG,cycles:uG,cycles:P,cycles:D,cycles:I",
        "",
        Workload,
    ));
    cases.push(case("cs:S", "", Workload));
    cases.extend(terms());
    cases.extend(stack_copies());
    cases.extend(details());
    cases.extend(groups());
    if cfg!(target_arch = "x86_64") {
        cases.extend(registers());
    }
    if Path::new(EVENTS).exists() {
        cases.extend(tracepoints());
    }
    cases
}

/// Events with terms (`cs/period=5/`), an event by its numbers (`1:3` is TYPE:CONFIG), and breakpoints.
fn terms() -> Vec<Case> {
    use SamplingTarget::{Cpus, Workload};
    vec![
        case(
            "cs/period=5/u,cs/freq=100,name=often/,cpu-clock/max-stack=2/,cs/time=0/,cs/no-inherit/,cs/inherit=0/,\
             cs/config1=5,config2=7/,cpu-clock/period=1000,freq=100/,1:3:u",
            "",
            Workload,
        ),
        case("cs/period=5/,cs/freq=7/,cs", "-F 99", Workload),
        case("cs/period=5/,cs/freq=7/,cs", "-c 99 -a", Cpus),
        case("cs/call-graph=fp/,cs", "", Workload),
        case("cs/call-graph=no/,cs,cs/max-stack=9/", "-g", Workload),
        case("cs/call-graph=dwarf,stack-size=4096/u", "", Workload),
        case("{cs/period=1/,cpu-clock}:S", "", Workload),
        // perf's name of a breakpoint includes the rest of the list, so each is recorded alone.
        case("mem:0x404000", "", Workload),
        case("mem:0x404000:rw:u", "-a", Cpus),
        case("mem:0x404000:x", "-F 99 -d", Workload),
    ]
}

/// Recordings with copies of the user stack.
fn stack_copies() -> Vec<Case> {
    use SamplingTarget::{Cpus, Processes, Threads, Workload};
    vec![
        case("", "--call-graph dwarf", Workload),
        case("", "-a --call-graph dwarf,4096", Cpus),
        case("cpu-clock", "-g --call-graph dwarf,100", Workload),
        case("cpu-clock", "--call-graph dwarf,65528 -g", Workload),
        case("cpu-clock,cs", "--call-graph dwarf -c 1000", Workload),
        case("cpu-clock:u,cs:k", "--call-graph dwarf", Workload),
        case("cs", "-p SLEEPER --call-graph dwarf", Processes),
        case("cs", "-t SLEEPER --call-graph dwarf", Threads),
        case("cs", "--user-callchains --call-graph dwarf", Workload),
        case("cs", "-C 0 -d --all-user --call-graph dwarf", Cpus),
    ]
}

/// Recordings with the options that [`given_details`] translates.
fn details() -> Vec<Case> {
    use SamplingTarget::{Cpus, Processes, Threads, Workload};
    vec![
        case("cs", "-g --user-callchains", Workload),
        case("cs", "-a -g --kernel-callchains --user-callchains", Cpus),
        case("cs", "--kernel-callchains", Workload),
        case("", "--all-user", Workload),
        case("", "--all-kernel", Workload),
        case("cpu-clock:u,cpu-clock:k,cs", "--all-user", Workload),
        case("cpu-clock:u,cpu-clock:k,cs", "-a --all-kernel", Cpus),
        case("cs", "-a --all-user", Cpus),
        case("cs,cpu-clock", "-i", Workload),
        case("cs", "-a -i", Cpus),
        case("cs", "-p SLEEPER -i", Processes),
        case("cs", "-t SLEEPER -i", Threads),
        case("cs,cpu-clock", "-n", Workload),
        case("cs", "-a -n -c 10", Cpus),
        case("cs,cpu-clock", "-d", Workload),
        case("cs", "-a -d", Cpus),
        case("cs", "-a --phys-data", Cpus),
        case("cs", "--data-page-size --code-page-size", Workload),
        case("cs", "-a -W", Cpus),
        case("cs", "--sample-cpu", Workload),
        case("cs,cpu-clock", "--sample-cpu --sample-identifier", Workload),
        case("cs", "--sample-identifier", Workload),
        case("cs", "-a --sample-identifier -T", Cpus),
        case("cs", "-T -P", Workload),
        case("cs", "-P -c 100", Workload),
        case("cs,cpu-clock", "--no-timestamp --no-period", Workload),
        case("cs", "-a --no-timestamp", Cpus),
        case("cs", "-p SLEEPER --no-period", Processes),
        case("cs", "-a -P -c 100", Cpus),
        case("cs", "-s", Workload),
        case("cs,cpu-clock", "-a --transaction -s", Cpus),
        case("cs", "--running-time", Workload),
        case("cs:S", "--running-time", Workload),
        case("cs,cpu-clock", "--per-thread", Workload),
        case("cs", "--per-thread -T", Workload),
        case("cs", "--per-thread -p SLEEPER -g", Processes),
        case("cs,cpu-clock", "-D 10", Workload),
        case("cs", "-a -D 10", Cpus),
        case("cs", "-D 10 -p SLEEPER", Processes),
        case("cs", "-k monotonic -a", Cpus),
        case("cs", "-a --no-buffering --no-bpf-event", Cpus),
        case("cs", "--no-bpf-event --switch-events", Workload),
        case("cs", "-a --switch-events", Cpus),
        case("cs,cpu-clock", "-a --namespaces", Cpus),
        case("cs", "--all-cgroups --buildid-mmap", Workload),
    ]
}

fn registers() -> Vec<Case> {
    use SamplingTarget::{Cpus, Workload};
    vec![
        case("cs", "--user-regs=ax,ip", Workload),
        case("cs", "-a --user-regs=ax,ip -I", Cpus),
        case("cs", "-a -I --call-graph dwarf", Cpus),
    ]
}

fn groups() -> Vec<Case> {
    use SamplingTarget::{Cpus, Processes, Workload};
    vec![
        case("{cs,page-faults}", "", Workload),
        case("{cs,page-faults},cpu-clock", "-a -g", Cpus),
        case("{cs:k,cpu-clock,page-faults:GH}:u", "", Workload),
        case("{cs,cpu-clock:H}:DI,{cs:G,page-faults}:k", "", Workload),
        case("{cs,page-faults}:S", "", Workload),
        case("{cs,page-faults:u}:Su,task-clock", "", Workload),
        case("{cpu-clock,cs}:S", "-a -c 1000", Cpus),
        case("{cpu-clock,cs}:S", "-p SLEEPER -g -d -W", Processes),
        case("{cs,page-faults}:S", "-D 10 --call-graph dwarf", Workload),
        case("{dummy,cs}:S", "", Workload),
        case("{cs}", "-a", Cpus),
    ]
}

fn tracepoints() -> Vec<Case> {
    use SamplingTarget::{Cpus, Processes, Threads, Workload};
    vec![
        case("sched:sched_switch", "", Workload),
        case("sched:sched_switch", "-g", Workload),
        case("sched:sched_switch", "-F 99", Workload),
        case("sched:sched_switch", "-p SLEEPER", Processes),
        case("sched:sched_switch", "-t SLEEPER", Threads),
        case("sched:sched_switch", "-a", Cpus),
        case("sched:sched_switch", "-a -g -c 10", Cpus),
        case("sched:sched_switch", "-C 0 -F 99", Cpus),
        case("sched:sched_process_*", "", Workload),
        case("cs,sched:sched_switch", "-a --call-graph dwarf", Cpus),
        case("{cs,sched:sched_switch}:S", "", Workload),
        case("{sched:sched_switch,cs}:S,cs", "-a", Cpus),
        case("sched:sched_switch", "--call-graph dwarf", Workload),
        case("sched:sched_switch", "-d -n --all-user", Workload),
        case("sched:sched_switch,cs", "", Workload),
        case("cs,sched:sched_switch", "-g -F 99", Workload),
        case("cpu-clock,sched:sched_switch,dummy", "-a", Cpus),
        case("cpu-clock,sched:sched_switch", "-c 1000", Workload),
        case("cs,sched:sched_switch", "-R", Workload),
        case("cpu-clock", "-a -R", Cpus),
        case(
            "sched:sched_switch:u,sched:sched_switch:k,sched:sched_switch:p,sched:sched_switch:G,\
             sched:sched_switch:HG,sched:sched_switch:D",
            "",
            Workload,
        ),
    ]
}

/// The name that perf shows, which for tracepoints has no modifiers.
fn shown_name(spec: &EventSpec) -> String {
    match &spec.tracepoint {
        Some(tracepoint) => format!("{}:{}", tracepoint.system, tracepoint.name),
        None => spec.name.clone(),
    }
}

/// The vendor of this machine's processor; empty if unknown.
fn processor_vendor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let vendor = cpuinfo.lines().find(|line| line.starts_with("vendor_id"));
    let vendor = vendor.and_then(|line| line.split(' ').next_back());
    vendor.unwrap_or_default().to_owned()
}

/// The events that rperf would open, in the format of `evlist -v`: `name: key: value, …`. Without a hardware PMU, a clock
/// replaces `cycles`.
fn opened_by_rperf(case: &Case, has_pmu: bool) -> Vec<String> {
    let mut specs: Vec<EventSpec> = if case.events.is_empty() {
        let may_profile_kernel = true;
        // `default_event` takes a cpuid, but uses only its first part, the vendor.
        vec![default_event(may_profile_kernel, &processor_vendor())]
    } else {
        parse(case.events, &catalogue()).unwrap()
    };
    if let Some(level) = case.options.details.scope.level {
        specs = specs
            .into_iter()
            .map(|spec| level.restrict_event(spec))
            .collect();
    }
    if !has_pmu {
        for spec in &mut specs {
            if let Some(clock) = fallback_to_cpu_clock(spec) {
                *spec = clock;
            }
        }
    }
    record_events(&specs, &case.options)
        .iter()
        .map(|event| {
            let text = AttrText {
                attr: &event.attr,
                size: u32::try_from(Attr::SIZE).unwrap(),
                key_value_separator: ": ",
            };
            format!("{}: {text}", shown_name(&event.spec))
        })
        .collect()
}

/// The events that perf recorded, as `perf evlist -v` lists them. `file` is overwritten.
fn opened_by_perf(case: &Case, sleeper_pid: u32, file: &Path) -> Vec<String> {
    let arguments = case.arguments.replace("SLEEPER", &sleeper_pid.to_string());
    let events = Some(case.events).filter(|events| !events.is_empty());
    let record = Run::new("perf")
        .args(["record", "-B", "-o"])
        .args([file])
        .args(events.iter().flat_map(|events| ["-e", *events]))
        .args(arguments.split(' ').filter(|word| !word.is_empty()))
        .args(["sleep", "0.01"]);
    let recorded = record.finish().unwrap();
    assert_eq!(recorded.status, 0, "{arguments}: {}", recorded.stderr);
    let listed = Run::new("perf")
        .args(["evlist", "-v", "-i"])
        .args([file])
        .finish()
        .unwrap();
    // Other lines are perf's tips, not events.
    let lines = listed
        .stdout
        .lines()
        .filter(|line| line.contains(", size: "));
    lines.map(str::to_owned).collect()
}

/// Returns why the comparison cannot run here; `None` if it can.
fn obstacle() -> Option<&'static str> {
    let Some(perf) = real_perf() else {
        return Some("no perf here");
    };
    let version = Run::new(perf).args(["--version"]).finish();
    if !version.is_ok_and(|outcome| outcome.stdout.starts_with("perf version 6.1.")) {
        return Some("attrs differ in other versions than perf 6.1");
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    (!root && paranoid.trim() != "-1").then_some("system-wide recording is not allowed")
}

#[test]
fn attrs_match_perf() {
    if let Some(reason) = obstacle() {
        return skip("attrs_match_perf", reason);
    }
    let scratch = Scratch::new();
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let cases = cases();
    // Several threads, because opening and closing events mostly waits for the kernel.
    let share = cases.len().div_ceil(WORKERS);
    let wrong: Vec<String> = thread::scope(|scope| {
        let compare = |(index, cases)| {
            let file = scratch.path().join(format!("{index}.data"));
            let sleeper_pid = sleeper.id();
            scope.spawn(move || differences(cases, sleeper_pid, &file))
        };
        let workers: Vec<_> = cases.chunks(share).enumerate().map(compare).collect();
        let wrong = workers.into_iter().map(|worker| worker.join().unwrap());
        wrong.flatten().collect()
    });
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const WORKERS: usize = 6;

/// Returns the recordings whose attrs differ between perf and rperf. `file` is overwritten.
fn differences(cases: &[Case], sleeper_pid: u32, file: &Path) -> Vec<String> {
    let has_pmu = Path::new("/sys/bus/event_source/devices/cpu").exists();
    let mut wrong = Vec::new();
    for case in cases {
        let expected = opened_by_perf(case, sleeper_pid, file);
        let opened = opened_by_rperf(case, has_pmu);
        if opened != expected {
            let line = format!("record -e '{}' {}", case.events, case.arguments);
            wrong.push(format!("{line}\n perf {expected:#?}\n rperf {opened:#?}"));
        }
    }
    wrong
}
