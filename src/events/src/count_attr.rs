//! The attrs of `stat`: counters that are read and don't sample.

use rperf_wire::{Attr, AttrFlags, ReadFormat, SampleType};

use crate::EventSpec;

/// Properties of a counter besides its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountOptions {
    /// Whether children of the observed tasks are counted, unless a term of the event says otherwise.
    pub inherit: bool,
    /// Whether the counter is enabled by the exec of the observed task; has no effect on members.
    pub on_exec: bool,
    /// Whether the counter is read as part of a group.
    pub in_group: bool,
    /// Whether the counter is a group member, enabled and disabled by its leader.
    pub member: bool,
}

/// Returns the attr of a counter, identical to the attr that perf 6.1 opens for `stat` with these options.
/// If `spec.precise_max` is set and the kernel refuses the attr, the caller must retry with a lower `precise_ip`.
#[must_use]
pub fn count_attr(spec: &EventSpec, options: CountOptions) -> Attr {
    let mut attr = spec.attr.clone();
    attr.sample_period = 0;
    attr.sample_type = SampleType::IDENTIFIER;
    attr.read_format = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    if options.in_group {
        attr.read_format |= ReadFormat::ID | ReadFormat::GROUP;
    }
    let inherit = spec.settings.inherit.unwrap_or(options.inherit);
    attr.flags = attr
        .flags
        .with(AttrFlags::DISABLED, !options.member)
        .with(AttrFlags::INHERIT, inherit)
        .with(
            AttrFlags::ENABLE_ON_EXEC,
            !options.member && options.on_exec,
        )
        .with(AttrFlags::FREQ, false);
    attr
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, parse};

    #[test]
    fn leaders_enable_the_group_and_events_do_not_sample() {
        let specs = parse("{cs/period=5/,faults:u}", &Catalogue::default()).unwrap();
        let attr = |index: usize| {
            let options = CountOptions {
                inherit: true,
                on_exec: true,
                in_group: true,
                member: index > 0,
            };
            count_attr(&specs[index], options)
        };
        let (leader, member) = (attr(0), attr(1));
        let starts = AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC;
        assert!(leader.flags.contains(starts | AttrFlags::INHERIT));
        assert!(!member.flags.contains(AttrFlags::DISABLED));
        assert!(!member.flags.contains(AttrFlags::ENABLE_ON_EXEC));
        assert!(member.flags.contains(AttrFlags::EXCLUDE_KERNEL));
        assert_eq!(leader.sample_period, 0);
        assert!(
            member
                .read_format
                .contains(ReadFormat::GROUP | ReadFormat::ID)
        );
    }
}
