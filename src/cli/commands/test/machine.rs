//! Tests of the kernel's and the machine's features, and of the user's rights.

use std::io;
use std::path::Path;

use rperf_sys::{
    Counter, CpuState, KprobeProgram, ObservedTask, Proc, Sysctl, Sysfs, cpuid, effective_user,
    page_size, read_pseudo_file_text, uname,
};
use rperf_wire::{Attr, AttrFlags, BranchSampleType, EventType};

use super::environment::{TestEnding, TestResult, TestRun, skip};
use super::sysctl;
use crate::cli::live::explain::reason;
use crate::cli::tracefs::MachineTracepoints;

/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
/// The setting that restricts which events unprivileged users may open.
pub(super) const PARANOID: &str = "kernel/perf_event_paranoid";
/// Settings of the kernel that restrict or influence recording.
const SETTINGS: &[&str] = &[
    PARANOID,
    "kernel/perf_event_mlock_kb",
    "kernel/perf_event_max_sample_rate",
    "kernel/perf_event_max_stack",
    "kernel/perf_cpu_time_max_percent",
    "kernel/kptr_restrict",
    "kernel/yama/ptrace_scope",
    "kernel/nmi_watchdog",
    "kernel/unprivileged_bpf_disabled",
    "net/core/bpf_jit_enable",
];
/// The kernel's default of perf_event_mlock_kb for pages of 4 KiB: a ring of 512 KiB and its header page.
const DEFAULT_MLOCK_KB: u64 = 516;
/// The highest perf_event_paranoid that permits events of own threads in user space. Some distributions add higher levels.
const OWN_USER_LEVEL: i64 = 2;
/// The highest perf_event_paranoid that permits events of own threads in the kernel.
pub(super) const OWN_KERNEL_LEVEL: i64 = 1;
/// The highest perf_event_paranoid that permits events of all threads of a CPU.
const CPU_LEVEL: i64 = 0;
/// The highest perf_event_paranoid that permits raw data of tracepoints.
pub(super) const RAW_TRACEPOINT_LEVEL: i64 = -1;
/// The reason if perf_event_open(2) fails with ENOSYS.
const NOT_AVAILABLE: &str = "perf_event_open(2) is not available: the kernel lacks CONFIG_PERF_EVENTS, or a seccomp filter blocks the call";
/// The calling thread on any CPU.
const OWN: ObservedTask = ObservedTask { pid: 0, cpu: -1 };
/// The group leader of an event that is opened alone.
const NO_LEADER: Option<&Counter> = None;

/// Logs the versions of this program and the kernel, the processor, the CPUs and the page size.
pub(super) fn kernel(run: &mut TestRun<'_>) -> TestResult {
    let name = uname()?;
    run.log(format_args!(
        "rperf {} for {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    ));
    run.log(format_args!("kernel {} {}", name.release, name.machine));
    let version = read_pseudo_file_text("/proc/version").unwrap_or_default();
    run.log(version.trim_end());
    let sysfs = Sysfs::new("/sys");
    if let Some(id) = cpuid(sysfs.root()) {
        run.log(format_args!("processor {id}"));
    }
    if let Ok(model) = Proc::new("/proc").cpu_description(&["model name", "Processor"]) {
        run.log(model);
    }
    if let Ok(cpus) = sysfs.cpus(CpuState::Online) {
        run.log(format_args!("CPUs online {cpus}"));
    }
    run.log(format_args!("page size {}", page_size()));
    Ok(())
}

/// Logs the effective user and capabilities, kernel settings and resource limits.
pub(super) fn settings(run: &mut TestRun<'_>) -> TestResult {
    run.log(format_args!("effective user {}", effective_user()));
    let status = read_pseudo_file_text("/proc/self/status")?;
    let granted = status.lines().filter(|line| line.starts_with("CapEff"));
    granted.for_each(|line| run.log(line));
    for name in SETTINGS {
        run.log(format_args!("{name} {}", sysctl::value(name)));
    }
    let limits = read_pseudo_file_text("/proc/self/limits")?;
    let is_relevant = |line: &&str| line.contains("locked memory") || line.contains("open files");
    let limits = limits.lines().filter(is_relevant);
    limits.for_each(|line| run.log(line.trim_end()));
    Ok(())
}

/// Checks that a user's rings may have the default size.
pub(super) fn ring_memory(run: &mut TestRun<'_>) -> TestResult {
    let Some(kilobytes) = Sysctl::new("/proc").perf_event_mlock_kb() else {
        return skip("no perf_event_mlock_kb");
    };
    run.log(format_args!("perf_event_mlock_kb {kilobytes}"));
    if kilobytes < DEFAULT_MLOCK_KB && effective_user() != 0 {
        return skip(format!(
            "perf_event_mlock_kb is {kilobytes}: use a smaller -m"
        ));
    }
    Ok(())
}

/// Opens an event and logs the result; every error skips the test. If the user may open events of own threads in user space, but
/// not this one, the reason is that of `refused`.
fn open(
    run: &mut TestRun<'_>,
    attr: &Attr,
    observed: ObservedTask,
    refused: impl FnOnce() -> String,
) -> TestResult {
    match Counter::open(attr, observed, NO_LEADER) {
        Ok(_) => {
            run.log("perf_event_open(2): opened");
            Ok(())
        }
        Err(error) => {
            let reason = reason(&error);
            run.log(format_args!("perf_event_open(2): {reason}"));
            skip(match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => refusal_of_own_user().unwrap_or_else(refused),
                Some(libc::ENOSYS) => NOT_AVAILABLE.to_owned(),
                Some(libc::ENOENT) if attr.kind == EventType::HARDWARE => {
                    "the kernel has no PMU for this processor, as in many virtual machines"
                        .to_owned()
                }
                Some(libc::ENOENT | libc::EOPNOTSUPP) => "not supported by this machine".to_owned(),
                _ => reason,
            })
        }
    }
}

/// Returns why an event is refused that the kernel permits only if perf_event_paranoid is at most `level`.
pub(super) fn why_refused(level: i64) -> String {
    let paranoid = Sysctl::new("/proc").perf_event_paranoid();
    match paranoid.filter(|set| *set > level) {
        Some(set) => {
            format!("perf_event_paranoid is {set}: needs {level} or less, or CAP_PERFMON")
        }
        None => refusal_despite_paranoid(),
    }
}

/// Returns why perf_event_open(2) is refused although perf_event_paranoid permits the event.
fn refusal_despite_paranoid() -> String {
    let pid = std::process::id();
    let status = Proc::new("/proc").status(pid, pid);
    match status.is_ok_and(|status| status.has_seccomp_filter) {
        true => "a seccomp filter forbids perf_event_open(2): start the container with --cap-add PERFMON or \
                 --security-opt seccomp=unconfined",
        false => "perf_event_open(2) is forbidden, possibly by a security module",
    }
    .to_owned()
}

/// Returns why the user may not even observe own threads in user space; `None` if the event opens or fails for another reason.
fn refusal_of_own_user() -> Option<String> {
    let error = Counter::open(&clock(AttrFlags::EXCLUDE_KERNEL), OWN, NO_LEADER).err()?;
    let is_refusal = matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM));
    is_refusal.then(|| why_refused(OWN_USER_LEVEL))
}

/// Opens an event that the kernel permits if perf_event_paranoid is at most `level`.
fn open_up_to(
    run: &mut TestRun<'_>,
    attr: &Attr,
    observed: ObservedTask,
    level: i64,
) -> TestResult {
    open(run, attr, observed, || why_refused(level))
}

fn clock(flags: AttrFlags) -> Attr {
    Attr {
        kind: EventType::SOFTWARE,
        config: CPU_CLOCK,
        flags: flags | AttrFlags::DISABLED | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    }
}

/// Opens an event for own threads in user space, which every recording needs.
pub(super) fn own_user(run: &mut TestRun<'_>) -> TestResult {
    open_up_to(run, &clock(AttrFlags::EXCLUDE_KERNEL), OWN, OWN_USER_LEVEL)
}

/// Opens an event for own threads in the kernel.
pub(super) fn own_kernel(run: &mut TestRun<'_>) -> TestResult {
    open_up_to(run, &clock(AttrFlags::default()), OWN, OWN_KERNEL_LEVEL)
}

/// Opens an event for all threads of a CPU, as with `-a`.
pub(super) fn system_wide(run: &mut TestRun<'_>) -> TestResult {
    let cpu = ObservedTask { pid: -1, cpu: 0 };
    open_up_to(run, &clock(AttrFlags::default()), cpu, CPU_LEVEL)
}

/// Opens an event for process 1, which usually belongs to another user, as with `-p`.
pub(super) fn other_processes(run: &mut TestRun<'_>) -> TestResult {
    let scope = sysctl::described("kernel/yama/ptrace_scope");
    run.log(format_args!("{scope}; observes process 1"));
    let observed = ObservedTask { pid: 1, cpu: -1 };
    open(run, &clock(AttrFlags::EXCLUDE_KERNEL), observed, || {
        "needs CAP_PERFMON or CAP_SYS_PTRACE".to_owned()
    })
}

/// Opens an event of the processor's counters; logs all PMUs.
pub(super) fn hardware(run: &mut TestRun<'_>) -> TestResult {
    for unit in Sysfs::new("/sys").pmu_types().unwrap_or_default() {
        let (name, number) = unit;
        run.log(format_args!("PMU {name}, type {number}"));
    }
    open_up_to(run, &cycles(), OWN, OWN_USER_LEVEL)
}

fn cycles() -> Attr {
    Attr {
        // `config` is 0: PERF_COUNT_HW_CPU_CYCLES.
        kind: EventType::HARDWARE,
        flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    }
}

/// Opens an event with branch records.
pub(super) fn branches(run: &mut TestRun<'_>) -> TestResult {
    let attr = Attr {
        sample_period: 100_000,
        sample_type: rperf_wire::SampleType::BRANCH_STACK,
        branch_sample_type: BranchSampleType::ANY | BranchSampleType::USER,
        ..cycles()
    };
    open_up_to(run, &attr, OWN, OWN_USER_LEVEL)
}

/// Opens a breakpoint.
pub(super) fn breakpoints(run: &mut TestRun<'_>) -> TestResult {
    static WATCHED: u32 = 0;
    let attr = Attr {
        kind: EventType::BREAKPOINT,
        // HW_BREAKPOINT_W of linux/hw_breakpoint.h.
        bp_type: 2,
        // `bp_addr` and `bp_len` of perf_event_open(2): unions with these fields.
        config1: (&raw const WATCHED).addr() as u64,
        config2: size_of_val(&WATCHED) as u64,
        flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    };
    open_up_to(run, &attr, OWN, OWN_USER_LEVEL)
}

/// Counts the tracepoints of tracefs.
pub(super) fn tracepoints(run: &mut TestRun<'_>) -> TestResult {
    let tracefs = MachineTracepoints::find(run.environment.debugfs.as_deref()).tracefs;
    run.log(format_args!("tracefs {}", tracefs.root().display()));
    let systems = tracefs.systems().map_err(|error| {
        run.log(reason(&error));
        let hint = "mount -t tracefs nodev /sys/kernel/tracing";
        TestEnding::Skip(match error.kind() {
            io::ErrorKind::NotFound => format!("not mounted: {hint}"),
            _ => unreadable(tracefs.root(), &error),
        })
    })?;
    let counts = systems
        .iter()
        .map(|system| tracefs.event_names(system).map_or(0, |names| names.len()));
    let count: usize = counts.sum();
    run.log(format_args!(
        "{count} tracepoints in {} systems",
        systems.len()
    ));
    match count {
        0 => skip("the kernel has no tracepoints"),
        _ => Ok(()),
    }
}

/// Checks that the tracefs file with the probe events of a kind (`kprobe` or `uprobe`) is readable; logs how many are defined,
/// and the PMU of that name (`unit` here), which opens probes without tracefs.
fn probes(run: &mut TestRun<'_>, kind: &str) -> TestResult {
    let tracefs = MachineTracepoints::find(run.environment.debugfs.as_deref()).tracefs;
    let units = Sysfs::new("/sys").pmu_types().unwrap_or_default();
    let unit = units.iter().find(|(name, _)| name == kind);
    if let Some((_, number)) = unit {
        run.log(format_args!("PMU {kind}, type {number}"));
    }
    let file = format!("{kind}_events");
    let path = tracefs.root().join(&file);
    match (tracefs.read(&file), unit) {
        (Ok(defined), _) => {
            let defined = String::from_utf8_lossy(&defined);
            run.log(format_args!(
                "{}: {} defined",
                path.display(),
                defined.lines().count()
            ));
            Ok(())
        }
        // A folder without the file `trace` is not a mounted tracefs. If that cannot be found out (no rights), the error of
        // reading is the reason, below. With --probe, probes of programs that record no arguments need only the uprobe PMU.
        (Err(_), _) if matches!(tracefs.root().join("trace").try_exists(), Ok(false)) => {
            skip(match unit {
                Some(_) if kind == "uprobe" => {
                    "tracefs is not mounted: only --probe without values works"
                }
                _ => "tracefs is not mounted",
            })
        }
        (Err(error), None) if error.kind() == io::ErrorKind::NotFound => {
            skip(format!("the kernel has no {kind}s"))
        }
        (Err(error), _) => skip(unreadable(&path, &error)),
    }
}

/// Returns why a file or folder of tracefs cannot be read, and which rights that needs.
fn unreadable(path: &Path, error: &io::Error) -> String {
    let needed = match error.kind() {
        io::ErrorKind::PermissionDenied => ", needs root",
        _ => "",
    };
    format!("{}: {}{needed}", path.display(), reason(error))
}

/// Whether the kernel has the uprobe PMU, which needs no tracefs.
pub(super) fn has_uprobe_pmu() -> bool {
    let units = Sysfs::new("/sys").pmu_types().unwrap_or_default();
    units.iter().any(|(name, _)| name == "uprobe")
}

/// Checks probes in the kernel.
pub(super) fn kprobes(run: &mut TestRun<'_>) -> TestResult {
    probes(run, "kprobe")
}

/// Checks probes in programs.
pub(super) fn uprobes(run: &mut TestRun<'_>) -> TestResult {
    probes(run, "uprobe")
}

/// Loads a BPF program, as for example `bench uprobe`, `trace -s` and `lock contention -b` do.
pub(super) fn bpf(run: &mut TestRun<'_>) -> TestResult {
    let setting = "kernel/unprivileged_bpf_disabled";
    run.log(sysctl::described(setting));
    match KprobeProgram::empty() {
        Ok(_) => {
            run.log("bpf(2): loaded an empty program");
            Ok(())
        }
        Err(error) => {
            let reason = reason(&error);
            run.log(format_args!("bpf(2): {reason}"));
            skip(match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => "needs CAP_BPF and CAP_PERFMON".to_owned(),
                Some(libc::ENOSYS) => "the kernel has no bpf(2)".to_owned(),
                _ => reason,
            })
        }
    }
}

/// Reads the descriptions of the kernel's types (BTF).
pub(super) fn btf(run: &mut TestRun<'_>) -> TestResult {
    let path = "/sys/kernel/btf/vmlinux";
    match rperf_sys::read_pseudo_file(path) {
        Ok(types) => {
            run.log(format_args!("{path}: {} bytes", types.len()));
            Ok(())
        }
        Err(error) => skip(format!("{path}: {}", reason(&error))),
    }
}

/// Logs the paths of programs that other commands start and of Linux perf, and the debuginfod servers.
pub(super) fn utilities(run: &mut TestRun<'_>) -> TestResult {
    let search = run.environment.search.clone().unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&search).collect();
    for (name, purpose) in [
        ("less", "pager"),
        ("objdump", "annotate --objdump"),
        ("python3", "script -s"),
        ("perf", "Linux perf"),
    ] {
        let mut paths = folders.iter().map(|folder| folder.join(name));
        let found = paths.find(|path| path.exists());
        let place = found.map_or("not found".to_owned(), |path| path.display().to_string());
        run.log(format_args!("{name} ({purpose}): {place}"));
    }
    let servers = run.environment.debuginfod.clone().unwrap_or_default();
    run.log(format_args!("DEBUGINFOD_URLS {}", servers.display()));
    Ok(())
}
