//! Filters of samples in the kernel: a program at an event, which decides whether a sample is written.

#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd};

use rperf_sys::{BpfMapKind, PerfEventProgram};
use rperf_wire::FilterField;

use crate::Condition::Equal;
use crate::Operation::{Add, ShiftLeft, ShiftRight};
use crate::Register::{R0, R1, R6};
use crate::Width::Double;
use crate::loaded::{LoadedPrograms, NamedShape};
use crate::tasks::{INDEX, LOSSES, look_up};
use crate::{Condition, Error, Helper, MapId, ProgramBuilder, Register};

/// A comparison of a field, unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleTest {
    /// The field.
    pub field: FilterField,
    /// How it is compared.
    pub condition: Condition,
    /// The number that it is compared with.
    pub value: u64,
}

/// Numbers of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilteredSamples {
    /// All samples, written or dropped.
    pub all: u64,
    /// Samples that did not match.
    pub dropped: u64,
}

/// A loaded filter, and its counts of samples.
#[derive(Debug)]
pub struct SampleFilterProgram {
    loaded: LoadedPrograms,
    program: PerfEventProgram,
}

/// The map with numbers of samples: all, dropped.
const COUNTS: MapId = LOSSES;
const ALL: i32 = 0;
const DROPPED: i32 = 1;

impl SampleFilterProgram {
    /// Loads a filter: of each of `groups`, one test must hold.
    ///
    /// # Errors
    /// [`Error::Architecture`] if the place of the period or the address is unknown; other [`Error`]s if the filter cannot be
    /// loaded.
    pub fn load(groups: &[Vec<SampleTest>]) -> Result<Self, Error> {
        use BpfMapKind::{Array, PerCpuArray};
        let loaded = LoadedPrograms::new(&[
            // The place of the map of tasks, which this program does not need.
            NamedShape::new("unused", Array, [4, 8, 1]),
            NamedShape::new("samples", PerCpuArray, [4, 8, 2]),
        ])?;
        let code = loaded.encode(&filter(groups, registers_size())?)?;
        let program = PerfEventProgram::load("rperf_filter", &code);
        let program = program.map_err(|failure| Error::load("filter", failure))?;
        Ok(Self { loaded, program })
    }

    /// Returns the numbers of samples so far.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn counts(&self) -> Result<FilteredSamples, Error> {
        let counts = self.loaded.losses()?;
        Ok(FilteredSamples {
            all: counts.of(ALL),
            dropped: counts.of(DROPPED),
        })
    }
}

impl AsFd for SampleFilterProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// The size of the registers at the start of `struct bpf_perf_event_data`, in bytes; `None` on an unknown architecture.
fn registers_size() -> Option<i16> {
    if cfg!(target_arch = "x86_64") {
        Some(168)
    } else if cfg!(target_arch = "aarch64") {
        Some(272)
    } else {
        None
    }
}

/// Returns the program. It returns 1 for samples to be written, otherwise 0.
fn filter(groups: &[Vec<SampleTest>], registers: Option<i16>) -> Result<ProgramBuilder, Error> {
    let mut b = ProgramBuilder::new();
    let drop = b.label();
    b.set(R6, R1);
    count(&mut b, ALL);
    for group in groups {
        let fits = b.label();
        for test in group {
            load(&mut b, test.field, registers)?;
            b.set_wide(R1, test.value);
            b.jump_if(test.condition, R0, R1, fits);
        }
        b.jump(drop);
        b.place(fits);
    }
    b.exit_with(1);
    b.place(drop);
    count(&mut b, DROPPED);
    b.exit();
    Ok(b)
}

/// Leaves a field in `R0`. The program's argument is in `R6`.
fn load(b: &mut ProgramBuilder, field: FilterField, registers: Option<i16>) -> Result<(), Error> {
    let low_half = |b: &mut ProgramBuilder, helper| {
        b.call(helper);
        b.operate(ShiftLeft, R0, 32);
        b.operate(ShiftRight, R0, 32);
    };
    let high_half = |b: &mut ProgramBuilder, helper| {
        b.call(helper);
        b.operate(ShiftRight, R0, 32);
    };
    match field {
        FilterField::Thread => low_half(b, Helper::GetCurrentPidTgid),
        FilterField::Process => high_half(b, Helper::GetCurrentPidTgid),
        FilterField::User => low_half(b, Helper::GetCurrentUidGid),
        FilterField::Group => high_half(b, Helper::GetCurrentUidGid),
        FilterField::Cpu => b.call(Helper::GetSmpProcessorId),
        FilterField::Period => b.load(Double, R0, R6, registers.ok_or(Error::Architecture)?),
        FilterField::Address => b.load(Double, R0, R6, registers.ok_or(Error::Architecture)? + 8),
    }
    Ok(())
}

/// Adds 1 to a number of samples.
fn count(b: &mut ProgramBuilder, index: i32) {
    let end = b.label();
    b.store(crate::Width::Word, Register::R10, INDEX, index);
    look_up(b, COUNTS, INDEX);
    b.jump_if(Equal, R0, 0, end);
    b.load(Double, R1, R0, 0);
    b.operate(Add, R1, 1);
    b.store(Double, R0, 0, R1);
    b.place(end);
}
