//! One event as it was asked for, before a command decides how to open it.

use std::ops::Range;

use crate::vendor::Scale;
use crate::{Group, Own, SampleFilter, Tool};
use rperf_wire::{Attr, AttrFlags, EventType, event_name};

/// `PERF_COUNT_HW_CPU_CYCLES`.
const CPU_CYCLES: u64 = 0;
/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_BPF_OUTPUT`.
pub(crate) const BPF_OUTPUT: u64 = 10;

/// One event of a `-e` list.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSpec {
    /// The name as typed, modifiers included; what files and tables show.
    pub name: String,
    /// What the words say and no more: kind, config, the `exclude_*` bits, `precise_ip`, `pinned`
    /// and `exclusive`. Everything that a command decides is still 0.
    pub attr: Attr,
    /// `:P` and the default event: the highest precision that the kernel takes, to be found by
    /// lowering `precise_ip` from 3 while it refuses.
    pub precise_max: bool,
    /// `:S`: each sample carries the counter's value.
    pub sample_read: bool,
    /// `:W`: the group may be broken up.
    pub weak: bool,
    /// Whether `G` or `H` said which machines are seen.
    pub(crate) machines: bool,
    /// Its place in a group.
    pub group: Group,
    /// Bytes of the selector's text where it stands; empty for events that nobody typed.
    pub position: Range<usize>,
    /// Its place in tracefs, for tracepoints.
    pub tracepoint: Option<TracepointName>,
    /// The PMU whose terms or names it is made of; `None` for events that every kernel knows.
    pub pmu: Option<String>,
    /// What its count is multiplied with, and the unit of that, where the PMU or a table says so.
    pub scale: Option<Scale>,
    /// Whether it counts the same whichever CPU of a package is asked.
    pub per_package: bool,
    /// What its terms set for it alone.
    pub own: Own,
    /// The time that it stands for, if it is none of the kernel's events: only commands that count can take it.
    pub tool: Option<Tool>,
    /// `--filter`, as the kernel takes it: samples are only taken where it holds.
    pub filter: Option<String>,
    /// `--filter` of an event whose fields the kernel does not compare: others of its samples are left out.
    pub sample_filter: Option<SampleFilter>,
}

/// Where tracefs has a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointName {
    /// The system, `sched`.
    pub system: String,
    /// The event, `sched_switch`.
    pub name: String,
}

impl EventSpec {
    /// An event with these settings and nothing else.
    #[must_use]
    pub(crate) fn new(name: String, attr: Attr) -> Self {
        Self {
            name,
            attr,
            precise_max: false,
            sample_read: false,
            weak: false,
            machines: false,
            group: Group::None,
            position: 0..0,
            tracepoint: None,
            pmu: None,
            scale: None,
            per_package: false,
            own: Own::default(),
            tool: None,
            filter: None,
            sample_filter: None,
        }
    }

    /// A time in nanoseconds. Its attr is that of an event that counts nothing.
    #[must_use]
    pub(crate) fn of_tool(name: &str, tool: Tool) -> Self {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            config: Attr::DUMMY,
            ..Attr::default()
        };
        Self {
            tool: Some(tool),
            scale: Some(Scale {
                factor: 1.0,
                unit: "ns".to_owned(),
            }),
            ..Self::new(name.to_owned(), attr)
        }
    }

    /// Whether it is the software event `dummy`, which counts nothing and carries side-band records.
    #[must_use]
    pub fn is_dummy(&self) -> bool {
        self.attr.is_dummy()
    }

    /// The kind of hardware trace that it is, by its unit; `None` for what counts and samples.
    #[must_use]
    pub fn tracer(&self) -> Option<Tracer> {
        let pmu = self.pmu.as_deref()?;
        let begins = |(name, _): &&(&str, Tracer)| pmu.starts_with(name);
        TRACERS.iter().find(begins).map(|(_, tracer)| *tracer)
    }

    /// Whether it is the software event `bpf-output`, whose samples only carry raw data.
    #[must_use]
    pub(crate) fn is_bpf_output(&self) -> bool {
        self.attr.kind == EventType::SOFTWARE && self.attr.config == BPF_OUTPUT
    }
}

/// Units that write no samples but a trace of their own form into an AUX area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracer {
    /// Intel's branch trace store: every branch with where it led, 24 bytes each.
    BranchTraceStore,
    /// Another: Intel PT, CoreSight, Arm SPE, HiSilicon PTT.
    Other,
}

/// What the names of such units begin with: sysfs doesn't tell them from others.
const TRACERS: [(&str, Tracer); 5] = [
    ("intel_bts", Tracer::BranchTraceStore),
    ("intel_pt", Tracer::Other),
    ("cs_etm", Tracer::Other),
    ("arm_spe", Tracer::Other),
    ("hisi_ptt", Tracer::Other),
];

/// The event of a recording without `-e`: cycles, as precise as the machine can. Who may not
/// profile the kernel starts with a user-only one. `cpuid` is the processor's, as perf writes it: the precise
/// events of AMD's count guests, too, and are refused where those are excluded.
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
    // The precision is what the machine can, not what was asked for: it is no part of the name.
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

/// The software clock that stands in for cycles on a machine without a PMU; `None` for any other
/// event. The name is derived from the attr: `cycles` becomes `cpu-clock`, `cycles:u` `cpu-clock:uH`.
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

/// The same event without the kernel, for users who may not profile it (`perf_event_paranoid` 2):
/// `cs` becomes `cs:u`, `cs:D` becomes `cs:Du`. `None` where the kernel is excluded already, or user
/// space is, so that nothing would be left; the same goes for tracepoints, which are in the kernel.
#[must_use]
pub fn user_only(event: &EventSpec) -> Option<EventSpec> {
    let flags = event.attr.flags;
    let is_settled =
        flags.contains(AttrFlags::EXCLUDE_KERNEL) || flags.contains(AttrFlags::EXCLUDE_USER);
    if is_settled || event.tracepoint.is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, parse};

    fn named(text: &str) -> EventSpec {
        parse(text, &Catalogue::default()).unwrap().remove(0)
    }

    fn fallback(event: &EventSpec) -> Option<String> {
        let clock = fallback_to_cpu_clock(event)?;
        assert_eq!(clock.attr.kind, EventType::SOFTWARE);
        assert_eq!(clock.attr.flags, event.attr.flags, "modifiers are kept");
        Some(clock.name)
    }

    const AMD: &str = "AuthenticAMD,25,1,1";

    #[test]
    fn only_cycles_fall_back_to_the_clock() {
        let names = |text| fallback(&named(text));
        assert_eq!(names("cycles").as_deref(), Some("cpu-clock"));
        assert_eq!(names("cpu-cycles:u").as_deref(), Some("cpu-clock:uH"));
        assert_eq!(names("cycles:uk").as_deref(), Some("cpu-clock:kuH"));
        assert_eq!(names("cycles:P").as_deref(), Some("cpu-clock:ppp"));
        assert_eq!(names("cycles:D").as_deref(), Some("cpu-clock:HG"));
        for (kernel, cpuid, name) in [
            (true, AMD, "cpu-clock:ppp"),
            (false, AMD, "cpu-clock:uhppp"),
            (true, "GenuineIntel,6,85,4", "cpu-clock:pppH"),
            (true, "", "cpu-clock:pppH"),
        ] {
            let event = default_event(kernel, cpuid);
            assert_eq!(fallback(&event).as_deref(), Some(name), "{cpuid}");
        }
        assert_eq!(names("instructions"), None);
        assert_eq!(names("cpu-clock"), None);
    }

    #[test]
    fn without_the_kernel_the_name_says_so() {
        let names = |text| user_only(&named(text)).map(|event| event.name);
        assert_eq!(names("cs").as_deref(), Some("cs:u"));
        assert_eq!(names("cs:D").as_deref(), Some("cs:Du"));
        assert_eq!(names("cpu-clock:H").as_deref(), Some("cpu-clock:Hu"));
        assert_eq!(names("cs:u"), None);
        assert_eq!(names("cs:k"), None, "nothing would be left");
        assert_eq!(user_only(&default_event(false, AMD)), None);
    }

    /// What an ordinary user gets for `cycles` on a machine without a PMU: the kernel refuses the
    /// kernel first, then the event.
    #[test]
    fn both_fallbacks_follow_each_other() {
        let user = user_only(&named("cycles")).and_then(|event| fallback_to_cpu_clock(&event));
        assert_eq!(
            user.map(|event| event.name).as_deref(),
            Some("cpu-clock:uH")
        );
    }
}
