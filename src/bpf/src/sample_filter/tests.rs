//! Runs programs of filters in an interpreter; tests/commands/record_filter.rs runs them in the kernel.

use proptest::prelude::*;

use super::*;
use crate::Condition::{Above, AtLeast, AtMost, Below, Equal, HasBits, NotEqual};

/// The assumed size in bytes of the registers at the start of the program's argument; the period and the address follow them.
const REGISTERS: i16 = 16;

// The results of the helpers: process 7, thread 9; group 5, user 3; CPU 2.
fn pid_tgid(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    7 << 32 | 9
}

fn uid_gid(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    5 << 32 | 3
}

fn cpu(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    2
}

/// A map lookup that finds no value, so the program counts no samples.
fn no_value(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    0
}

/// Returns whether a sample with this period and address passes.
fn passes(groups: &[Vec<SampleTest>], period: u64, address: u64) -> bool {
    let program = filter(groups, Some(REGISTERS)).unwrap();
    // Any descriptors of the two maps: they are not used, since `no_value` replaces the lookup.
    let maps = [3, 4];
    let program = program.encode(&maps).unwrap().concat();
    let mut machine = rbpf::EbpfVmRaw::new(None).unwrap();
    for (helper, function) in [
        (Helper::GetCurrentPidTgid, pid_tgid as rbpf::ebpf::Helper),
        (Helper::GetCurrentUidGid, uid_gid),
        (Helper::GetSmpProcessorId, cpu),
        (Helper::MapLookupElem, no_value),
    ] {
        let number = helper.number().unsigned_abs();
        machine.register_helper(number, function).unwrap();
    }
    machine.set_program(&program).unwrap();
    // The program's argument: registers, period, address.
    let mut context = [
        [0; 16].as_slice(),
        &period.to_ne_bytes(),
        &address.to_ne_bytes(),
    ]
    .concat();
    machine.execute_program(&mut context).unwrap() == 1
}

fn test(field: FilterField, condition: Condition, value: u64) -> SampleTest {
    SampleTest {
        field,
        condition,
        value,
    }
}

#[test]
fn each_field_is_compared_with_its_own_value() {
    for (field, value) in [
        (FilterField::Process, 7),
        (FilterField::Thread, 9),
        (FilterField::Cpu, 2),
        (FilterField::Period, 1000),
        (FilterField::Address, u64::MAX),
        (FilterField::User, 3),
        (FilterField::Group, 5),
    ] {
        for (condition, expected) in [(Equal, true), (NotEqual, false)] {
            let groups = [vec![test(field, condition, value)]];
            assert_eq!(passes(&groups, 1000, u64::MAX), expected, "{field:?}");
        }
    }
    // Without the size of the registers, the place of the period is unknown.
    let groups = [vec![test(FilterField::Period, Equal, 1)]];
    assert!(matches!(filter(&groups, None), Err(Error::Architecture)));
}

#[test]
fn samples_pass_if_a_test_of_each_group_holds() {
    let cpu = |number| test(FilterField::Cpu, Equal, number);
    let period = |most| test(FilterField::Period, AtMost, most);
    for (groups, expected) in [
        (vec![], true),
        (vec![vec![cpu(1), cpu(2)], vec![period(5)]], true),
        (vec![vec![cpu(1), cpu(2)], vec![period(4)]], false),
        (vec![vec![cpu(1)], vec![period(5)]], false),
    ] {
        assert_eq!(passes(&groups, 5, 0), expected, "{groups:?}");
    }
}

proptest! {
    #[test]
    fn comparisons_are_unsigned(period in any::<u64>(), near in -1..2_i64, other in any::<u64>()) {
        for value in [period.wrapping_add_signed(near), other] {
            for (condition, expected) in [
                (Equal, period == value),
                (NotEqual, period != value),
                (Above, period > value),
                (AtLeast, period >= value),
                (Below, period < value),
                (AtMost, period <= value),
                (HasBits, period & value != 0),
            ] {
                let groups = [vec![test(FilterField::Period, condition, value)]];
                prop_assert_eq!(passes(&groups, period, 0), expected, "{:?}", condition);
            }
        }
    }
}
