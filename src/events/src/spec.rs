//! An event as specified by the user, before a command decides how to open it.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::Arc;

use crate::vendor::UnitScale;
use crate::{EventSettings, GroupPosition, SampleFilter, Tool};
use rperf_wire::{Attr, AttrFlags, EventType, event_name};

/// `PERF_COUNT_HW_CPU_CYCLES`.
const CPU_CYCLES: u64 = 0;
/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_BPF_OUTPUT`.
pub(crate) const BPF_OUTPUT: u64 = 10;

/// `PERF_COUNT_SW_CONTEXT_SWITCHES`, `_CPU_MIGRATIONS` and `_CGROUP_SWITCHES`.
const SCHEDULER: [u64; 3] = [3, 4, 11];

/// One event of a `-e` list.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSpec {
    /// The name as typed, modifiers included, or the value of the term `name`; shown in files and tables.
    pub name: String,
    /// Settings from the selector (the text given to `-e`) only: type, the config words, `bp_type`, a default period, the
    /// `exclude_*` bits, `precise_ip`, `pinned` and `exclusive`. The other fields are 0: commands set them.
    pub attr: Attr,
    /// `:P` and the default event: the highest precision supported by the kernel, found by lowering
    /// `precise_ip` from 3 while the kernel refuses it.
    pub precise_max: bool,
    /// `:S`: each sample carries the counter's value.
    pub sample_read: bool,
    /// `:W`: the group may be split.
    pub weak: bool,
    /// Whether the modifier `G` or `H` is given.
    pub(crate) has_guest_or_host_modifier: bool,
    /// `:b`: BPF programs sum up its counts. Only for counting commands.
    pub bpf: bool,
    /// Position in a group.
    pub group: GroupPosition,
    /// Byte range in the selector's text; empty for events not typed by the user.
    pub position: Range<usize>,
    /// Name in tracefs, for tracepoints.
    pub tracepoint: Option<TracepointName>,
    /// The PMU of the event; `None` for events that no PMU defines, such as tracepoints and generic events (except on hybrid
    /// machines).
    pub pmu: Option<String>,
    /// Factor and unit of counts, if the PMU or a table specifies them.
    pub scale: Option<UnitScale>,
    /// Whether the event counts the whole package on any of its CPUs.
    pub per_package: bool,
    /// Settings from its terms.
    pub settings: EventSettings,
    /// The tool event; `None` for events of the kernel. Only counting commands support tool events.
    pub tool: Option<Tool>,
    /// `--filter` in the kernel's syntax, evaluated by the kernel.
    pub filter: Option<String>,
    /// `--filter` for events that the kernel cannot filter: evaluated by BPF programs or in user space.
    pub sample_filter: Option<SampleFilter>,
    /// Whether the event is open for all tasks of each CPU from the beginning, whatever is observed: true for the event that BPF
    /// programs write to.
    pub all_tasks: bool,
    /// The path that the attr of a `uprobe` event refers to by its address.
    pub(crate) uprobe_path: Option<Arc<CStr>>,
}

/// Name of a tracepoint in tracefs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointName {
    /// The system, `sched`.
    pub system: String,
    /// The event, `sched_switch`.
    pub name: String,
}

impl EventSpec {
    /// Creates an event with this name and attr, and no other settings.
    #[must_use]
    pub(crate) fn new(name: String, attr: Attr) -> Self {
        Self {
            name,
            attr,
            precise_max: false,
            sample_read: false,
            weak: false,
            has_guest_or_host_modifier: false,
            bpf: false,
            group: GroupPosition::None,
            position: 0..0,
            tracepoint: None,
            pmu: None,
            scale: None,
            per_package: false,
            settings: EventSettings::default(),
            tool: None,
            filter: None,
            sample_filter: None,
            all_tasks: false,
            uprobe_path: None,
        }
    }

    /// Returns the event that BPF programs write to on each CPU (`bpf_perf_event_output`), for all tasks.
    #[must_use]
    pub fn bpf_output() -> Self {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            config: BPF_OUTPUT,
            ..Attr::default()
        };
        Self {
            all_tasks: true,
            ..Self::new("bpf-output".to_owned(), attr)
        }
    }

    /// Returns an event without samples for sessions that need only side-band records: those of tasks, kernel text and modules.
    /// It is a `bpf-output` event, because a session whose only event is `dummy` has no records of kernel text and modules.
    /// Unlike [`Self::bpf_output`], it is opened for the target, so that the end of the target is noticed.
    #[must_use]
    pub fn side_band_only() -> Self {
        Self {
            all_tasks: false,
            ..Self::bpf_output()
        }
    }

    /// Creates a tool event, a time in nanoseconds. Its attr is that of an event that counts
    /// nothing.
    #[must_use]
    pub(crate) fn of_tool(name: &str, tool: Tool) -> Self {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            config: Attr::DUMMY,
            ..Attr::default()
        };
        Self {
            tool: Some(tool),
            scale: Some(UnitScale {
                factor: 1.0,
                unit: "ns".to_owned(),
            }),
            ..Self::new(name.to_owned(), attr)
        }
    }

    /// Whether this is the software event `dummy`, which counts nothing and generates side-band
    /// records.
    #[must_use]
    pub fn is_dummy(&self) -> bool {
        self.attr.is_dummy()
    }

    /// The type of hardware trace, by PMU; `None` for events that count or sample.
    #[must_use]
    pub fn trace_pmu(&self) -> Option<TracePmu> {
        let pmu = self.pmu.as_deref()?;
        let begins = |(name, _): &&(&str, TracePmu)| pmu.starts_with(name);
        TRACERS.iter().find(begins).map(|(_, tracer)| *tracer)
    }

    /// Whether this is the software event `bpf-output`.
    #[must_use]
    pub(crate) fn is_bpf_output(&self) -> bool {
        self.attr.kind == EventType::SOFTWARE && self.attr.config == BPF_OUTPUT
    }
}

/// PMUs that write traces in their own format into the AUX area, instead of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracePmu {
    /// Intel's branch trace store: every branch with its target, 24 bytes each.
    BranchTraceStore,
    /// Others: Intel PT, CoreSight, Arm SPE, HiSilicon PTT.
    Other,
}

/// Name prefixes of PMUs that write traces: sysfs doesn't distinguish them from other PMUs.
const TRACERS: [(&str, TracePmu); 5] = [
    ("intel_bts", TracePmu::BranchTraceStore),
    ("intel_pt", TracePmu::Other),
    ("cs_etm", TracePmu::Other),
    ("arm_spe", TracePmu::Other),
    ("hisi_ptt", TracePmu::Other),
];

/// The default event of a recording: cycles, with the highest precision. It excludes the
/// kernel for unprivileged users. `cpuid` is the processor in perf's format: AMD's precise
/// events also count guests, and are refused if guests are excluded.
#[must_use]
pub fn default_event(may_profile_kernel: bool, cpuid: &str) -> EventSpec {
    let without_guests = !cpuid.starts_with("AuthenticAMD");
    let flags = AttrFlags::default()
        .with(AttrFlags::EXCLUDE_KERNEL, !may_profile_kernel)
        .with(AttrFlags::EXCLUDE_GUEST, without_guests);
    let mut attr = Attr {
        kind: EventType::HARDWARE,
        config: CPU_CYCLES,
        flags,
        ..Attr::default()
    };
    attr.set_precise_ip(3);
    // The precision depends on the machine and is not part of the name.
    let name = if may_profile_kernel {
        "cycles"
    } else {
        "cycles:u"
    };
    EventSpec {
        precise_max: true,
        ..EventSpec::new(name.to_owned(), attr)
    }
}

/// The software clock that replaces cycles on a machine without a PMU; `None` for other events. The
/// name is derived from the attr: `cycles` becomes `cpu-clock`, `cycles:u` `cpu-clock:uH`.
#[must_use]
pub fn fallback_to_cpu_clock(event: &EventSpec) -> Option<EventSpec> {
    if event.attr.kind != EventType::HARDWARE || event.attr.config != CPU_CYCLES {
        return None;
    }
    let attr = Attr {
        kind: EventType::SOFTWARE,
        config: CPU_CLOCK,
        ..event.attr.clone()
    };
    Some(EventSpec {
        name: event_name(&attr),
        attr,
        ..event.clone()
    })
}

/// The event without the kernel, for unprivileged users (`perf_event_paranoid` 2): `cs`
/// becomes `cs:u`, `cs:D` becomes `cs:Du`. `None` if the kernel is already excluded, if user space
/// is excluded, so that nothing would remain, and for tracepoints, which are in the kernel.
#[must_use]
pub fn user_only(event: &EventSpec) -> Option<EventSpec> {
    let flags = event.attr.flags;
    let excludes_kernel_or_user =
        flags.contains(AttrFlags::EXCLUDE_KERNEL) || flags.contains(AttrFlags::EXCLUDE_USER);
    if excludes_kernel_or_user || event.tracepoint.is_some() {
        return None;
    }
    let separator = if event.name.contains([':', '/']) {
        ""
    } else {
        ":"
    };
    let attr = Attr {
        flags: flags | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..event.attr.clone()
    };
    Some(EventSpec {
        name: format!("{}{separator}u", event.name),
        attr,
        ..event.clone()
    })
}

/// Whether the kernel raises this event only from its own code, so that it never counts with
/// `exclude_kernel`: context switches, migrations and cgroup switches, which the scheduler counts
/// with kernel registers (`perf_sw_event_sched`).
#[must_use]
pub fn fires_only_in_kernel(attr: &Attr) -> bool {
    attr.kind == EventType::SOFTWARE && SCHEDULER.contains(&attr.config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, parse};

    fn named(text: &str) -> EventSpec {
        parse(text, &Catalogue::default()).unwrap().remove(0)
    }

    fn fallback_name(event: &EventSpec) -> Option<String> {
        let clock = fallback_to_cpu_clock(event)?;
        assert_eq!(clock.attr.kind, EventType::SOFTWARE);
        assert_eq!(clock.attr.flags, event.attr.flags, "modifiers are kept");
        Some(clock.name)
    }

    const AMD: &str = "AuthenticAMD,25,1,1";

    #[test]
    fn only_events_of_the_scheduler_fire_only_in_the_kernel() {
        for (text, expected) in [
            ("cs", true),
            ("cpu-migrations", true),
            ("cgroup-switches", true),
            ("page-faults", false),
            ("cpu-clock", false),
            ("branch-misses", false),
        ] {
            assert_eq!(fires_only_in_kernel(&named(text).attr), expected, "{text}");
        }
    }

    /// [`event_name`] expects `exclude_guest` to be set if there is no modifier of mode or precision, and otherwise not. It adds
    /// `H` if the flag is set unexpectedly, and `HG` if the flag is missing unexpectedly. The parser sets `exclude_guest` without
    /// modifiers, and for `u` and `p`.
    #[test]
    fn only_cycles_fall_back_to_the_clock() {
        let new_name = |text| fallback_name(&named(text));
        assert_eq!(new_name("cycles").as_deref(), Some("cpu-clock"));
        assert_eq!(new_name("cpu-cycles:u").as_deref(), Some("cpu-clock:uH"));
        assert_eq!(new_name("cycles:uk").as_deref(), Some("cpu-clock:kuH"));
        assert_eq!(new_name("cycles:P").as_deref(), Some("cpu-clock:ppp"));
        // With `D`, the parser does not set `exclude_guest`; as `D` is neither mode nor precision, the flag is expected.
        assert_eq!(new_name("cycles:D").as_deref(), Some("cpu-clock:HG"));
        // `exclude_guest` is not set for AMD. The name has `uh`, since only the kernel is excluded, not the hypervisor.
        for (may_profile_kernel, cpuid, name) in [
            (true, AMD, "cpu-clock:ppp"),
            (false, AMD, "cpu-clock:uhppp"),
            (true, "GenuineIntel,6,85,4", "cpu-clock:pppH"),
            (true, "", "cpu-clock:pppH"),
        ] {
            let event = default_event(may_profile_kernel, cpuid);
            assert_eq!(fallback_name(&event).as_deref(), Some(name), "{cpuid}");
        }
        assert_eq!(new_name("instructions"), None);
        assert_eq!(new_name("cpu-clock"), None);
    }

    #[test]
    fn user_only_events_have_a_modifier() {
        let new_name = |text| user_only(&named(text)).map(|event| event.name);
        assert_eq!(new_name("cs").as_deref(), Some("cs:u"));
        assert_eq!(new_name("cs:D").as_deref(), Some("cs:Du"));
        assert_eq!(new_name("cpu-clock:H").as_deref(), Some("cpu-clock:Hu"));
        assert_eq!(new_name("cs:u"), None);
        assert_eq!(new_name("cs:k"), None, "no privilege level would be left");
        let may_profile_kernel = false;
        let without_kernel = default_event(may_profile_kernel, AMD);
        assert_eq!(user_only(&without_kernel), None);
    }

    /// The sequence for `cycles` of an unprivileged user on a machine without a PMU: first the
    /// kernel is refused, then the event.
    #[test]
    fn both_fallbacks_follow_each_other() {
        let user = user_only(&named("cycles")).and_then(|event| fallback_to_cpu_clock(&event));
        assert_eq!(
            user.map(|event| event.name).as_deref(),
            Some("cpu-clock:uH")
        );
    }
}
