//! Filters of samples in the kernel: a program of an event decides whether each of its samples is written.

#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd};

use rperf_sys::{BpfMapKind, PerfEventProgram};
use rperf_wire::FilterField;

use crate::Operation::{ShiftLeft, ShiftRight};
use crate::Register::{R0, R1, R6};
use crate::Width::Double;
use crate::loaded::{LoadedPrograms, NamedShape};
// Counts samples instead of losses.
use crate::tasks::count_loss as count;
use crate::{Condition, Error, Helper, ProgramBuilder};

/// A comparison of a field of samples with a number.
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
pub struct SampleFilterCounts {
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

/// The indices of [`SampleFilterCounts::all`] and [`SampleFilterCounts::dropped`] in the map of losses.
const ALL: i32 = 0;
const DROPPED: i32 = 1;

impl SampleFilterProgram {
    /// Loads a filter: a sample is written if in each of `groups` at least one test holds.
    ///
    /// # Errors
    /// [`Error::Architecture`] if a test reads the period or the address on an architecture other than x86-64 and arm64: their
    /// place in the program's argument is unknown there. Other [`Error`]s if the filter cannot be loaded.
    pub fn load(groups: &[Vec<SampleTest>]) -> Result<Self, Error> {
        use BpfMapKind::{Array, PerCpuArray};
        let loaded = LoadedPrograms::new(&[
            // The functions used here find maps by their position in this list. The first is the map of tasks, which this program
            // does not need. The numbers are the sizes of a key and of a value, and the number of entries.
            NamedShape::new("unused", Array, [4, 8, 1]),
            // The second is the map of losses, which has counts of samples here.
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
    pub fn counts(&self) -> Result<SampleFilterCounts, Error> {
        let counts = self.loaded.losses()?;
        Ok(SampleFilterCounts {
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

/// Returns the program of a filter; the program returns 1 for samples to be written, otherwise 0. `registers` is the size of the
/// registers before the period.
fn filter(groups: &[Vec<SampleTest>], registers: Option<i16>) -> Result<ProgramBuilder, Error> {
    let mut b = ProgramBuilder::new();
    let unmatched = b.label();
    b.set(R6, R1);
    count(&mut b, ALL);
    for group in groups {
        let next_group = b.label();
        for test in group {
            load_field(&mut b, test.field, registers)?;
            b.set_wide(R1, test.value);
            b.jump_if(test.condition, R0, R1, next_group);
        }
        b.jump(unmatched);
        b.place(next_group);
    }
    b.exit_with(1);
    b.place(unmatched);
    count(&mut b, DROPPED);
    // The program returns 0 here.
    b.exit();
    Ok(b)
}

/// Leaves a field in `R0`. The program's argument is in `R6`.
fn load_field(
    b: &mut ProgramBuilder,
    field: FilterField,
    registers: Option<i16>,
) -> Result<(), Error> {
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
        // The group id, not a group of tests.
        FilterField::Group => high_half(b, Helper::GetCurrentUidGid),
        FilterField::Cpu => b.call(Helper::GetSmpProcessorId),
        FilterField::Period => b.load(Double, R0, R6, registers.ok_or(Error::Architecture)?),
        FilterField::Address => b.load(Double, R0, R6, registers.ok_or(Error::Architecture)? + 8),
    }
    Ok(())
}
