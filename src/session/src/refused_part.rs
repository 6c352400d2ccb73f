//! Finds the part of an attr that the kernel refuses: a field, a flag, or a bit of a bit mask.
//!
//! The kernel usually reports only "invalid argument". So the event is opened for a [`trial_task`], disabled, without one
//! part at a time, until that succeeds.

use std::io;

use rperf_sys::ObservedTask;
use rperf_wire::{Attr, AttrFlags, ReadFormat, SampleType};

/// Returns the part without which the kernel accepts the event, such as `sample_type PHYS_ADDR`. `None` if no single part is
/// the cause, or if `cause` does not mean that the attr is invalid. `opens` returns whether the kernel accepts an attr for
/// [`trial_task`].
pub(crate) fn refused_part(
    attr: &Attr,
    cause: &io::Error,
    opens: &dyn Fn(&Attr) -> bool,
) -> Option<String> {
    match cause.raw_os_error() {
        Some(libc::EINVAL | libc::EOPNOTSUPP) => single_refused_part(attr, opens),
        _ => None,
    }
}

/// Returns the task for which attrs are tried: this thread on all CPUs, or all tasks on CPU 0 if CPUs are observed.
pub(crate) fn trial_task(on_cpus: bool) -> ObservedTask {
    match on_cpus {
        true => ObservedTask { pid: -1, cpu: 0 },
        false => ObservedTask { pid: 0, cpu: -1 },
    }
}

fn single_refused_part(attr: &Attr, opens: &dyn Fn(&Attr) -> bool) -> Option<String> {
    let attr = Attr {
        flags: attr.flags.with(AttrFlags::DISABLED, true),
        ..attr.clone()
    };
    // If the trial succeeds with the complete attr, the cause is something else, such as the group, the CPU or the cgroup.
    if opens(&attr) {
        return None;
    }
    precision(&attr, opens)
        .or_else(|| number(&attr, opens))
        .or_else(|| sampling(&attr, opens))
        .or_else(|| sample_field(&attr, opens))
        .or_else(|| flag(&attr, opens))
        .or_else(|| read_field(&attr, opens))
}

fn precision(attr: &Attr, opens: &dyn Fn(&Attr) -> bool) -> Option<String> {
    let level = attr.precise_ip();
    let works = (0..level).rev().find(|lower| {
        let mut attr = attr.clone();
        attr.set_precise_ip(*lower);
        opens(&attr)
    })?;
    Some(format!(
        "precise_ip {level} ({works} is the highest that works)"
    ))
}

/// A numeric field of the attr: its name, and a function that clears it (a period or frequency becomes 1, as with 0 the event
/// would only count) and returns its old value, 0 if there was nothing to clear.
type AttrField = (&'static str, fn(&mut Attr) -> u64);

const NUMBERS: [AttrField; 7] = [
    ("sample_period or sample_freq", |attr| {
        let before = std::mem::replace(&mut attr.sample_period, 1);
        if before > 1 { before } else { 0 }
    }),
    ("branch_sample_type", |attr| {
        attr.sample_type = attr.sample_type.with(SampleType::BRANCH_STACK, false);
        std::mem::take(&mut attr.branch_sample_type).0
    }),
    ("config3", |attr| std::mem::take(&mut attr.config3)),
    ("config2", |attr| std::mem::take(&mut attr.config2)),
    ("config1", |attr| std::mem::take(&mut attr.config1)),
    ("config", |attr| std::mem::take(&mut attr.config)),
    ("sample_max_stack", |attr| {
        u64::from(std::mem::take(&mut attr.sample_max_stack))
    }),
];

fn number(attr: &Attr, opens: &dyn Fn(&Attr) -> bool) -> Option<String> {
    NUMBERS.iter().find_map(|(name, clear)| {
        let mut without = attr.clone();
        let value = clear(&mut without);
        (value != 0 && opens(&without)).then(|| format!("{name} {value:#x}"))
    })
}

/// Returns a part if the kernel refuses to sample the event, but counts it: many uncore PMUs can only count.
fn sampling(attr: &Attr, opens: &dyn Fn(&Attr) -> bool) -> Option<String> {
    let without = Attr {
        sample_period: 0,
        flags: attr.flags.with(AttrFlags::FREQ, false),
        ..attr.clone()
    };
    let only_counts = attr.sample_period > 0 && opens(&without);
    only_counts.then(|| "sampling (it can only be counted, as stat does)".to_owned())
}

fn sample_field(attr: &Attr, opens: &dyn Fn(&Attr) -> bool) -> Option<String> {
    let set = SampleType::NAMED.iter();
    let mut set = set.filter(|(bit, _)| attr.sample_type.contains(*bit));
    set.find_map(|(bit, name)| {
        let mut without = Attr {
            sample_type: attr.sample_type.with(*bit, false),
            ..attr.clone()
        };
        match *bit {
            SampleType::REGS_USER => without.sample_regs_user = 0,
            SampleType::REGS_INTR => without.sample_regs_intr = 0,
            SampleType::STACK_USER => without.sample_stack_user = 0,
            _ => {}
        }
        opens(&without).then(|| format!("sample_type {name}"))
    })
}

fn flag(attr: &Attr, opens: &dyn Fn(&Attr) -> bool) -> Option<String> {
    let set = AttrFlags::NAMED.iter();
    let mut set = set.filter(|(bit, _)| attr.flags.contains(*bit) && *bit != AttrFlags::DISABLED);
    set.find_map(|(bit, name)| {
        let without = Attr {
            flags: attr.flags.with(*bit, false),
            ..attr.clone()
        };
        opens(&without).then(|| (*name).to_owned())
    })
}

fn read_field(attr: &Attr, opens: &dyn Fn(&Attr) -> bool) -> Option<String> {
    let set = ReadFormat::NAMED.iter();
    let mut set = set.filter(|(bit, _)| attr.read_format.contains(*bit));
    set.find_map(|(bit, name)| {
        let without = Attr {
            read_format: attr.read_format.with(*bit, false),
            ..attr.clone()
        };
        opens(&without).then(|| format!("read_format {name}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr() -> Attr {
        let mut attr = Attr {
            sample_period: 4000,
            config1: 7,
            sample_type: SampleType::IP | SampleType::PHYS_ADDR,
            read_format: ReadFormat::ID | ReadFormat::GROUP,
            flags: AttrFlags::INHERIT | AttrFlags::EXCLUSIVE,
            ..Attr::default()
        };
        attr.set_precise_ip(3);
        attr
    }

    #[test]
    fn the_one_part_that_is_refused_is_named() {
        let part = |opens: fn(&Attr) -> bool| single_refused_part(&attr(), &opens);
        let named = |opens| part(opens).unwrap_or_default();
        assert_eq!(
            named(|attr| attr.precise_ip() < 3),
            "precise_ip 3 (2 is the highest that works)"
        );
        assert_eq!(
            named(|attr| attr.sample_period < 1000),
            "sample_period or sample_freq 0xfa0"
        );
        assert_eq!(
            named(|attr| attr.sample_period == 0),
            "sampling (it can only be counted, as stat does)"
        );
        assert_eq!(named(|attr| attr.config1 == 0), "config1 0x7");
        assert_eq!(
            named(|attr| !attr.sample_type.contains(SampleType::PHYS_ADDR)),
            "sample_type PHYS_ADDR"
        );
        assert_eq!(
            named(|attr| !attr.flags.contains(AttrFlags::EXCLUSIVE)),
            "exclusive"
        );
        assert_eq!(
            named(|attr| !attr.read_format.contains(ReadFormat::GROUP)),
            "read_format GROUP"
        );
        assert_eq!(part(|_| true), None, "the event is accepted alone");
        assert_eq!(part(|_| false), None, "more than one part is refused");
    }

    #[test]
    fn the_refused_part_is_searched_for_invalid_attrs_only() {
        let denied = io::Error::from_raw_os_error(libc::EACCES);
        assert_eq!(refused_part(&attr(), &denied, &|_| false), None);
    }
}
