//! The programs that count, and the layout of their maps.
//!
//! The counters of a CPU count whatever runs there. To count tasks or cgroups, a program at each switch of tasks adds the counts
//! since the switch before to the sums, if the task that is switched out is observed. To count BPF programs, the counts between
//! their begin and end are added. A group is a set of tasks that has sums of its own: each cgroup is one, and so are all tasks or
//! all BPF programs together.

use crate::Condition::{Equal, NotEqual};
use crate::Operation::{Add, Sub};
use crate::Register::{R0, R1, R2, R3, R4, R6, R7, R8, R10};
use crate::Width::{Double, Word};
use crate::tasks::{INDEX, TASK, TASKS, current_task, find_slot, look_up, set_map_and_key, slot};
use crate::{Helper, Label, MapId, ProgramBuilder};

/// The events. The key is the index of an event times the number of possible CPUs, plus a CPU; the value is that event on that
/// CPU.
pub(super) const EVENTS: MapId = MapId(2);
/// Readings of a CPU: one value for each counted BPF program, or a single one for tasks and cgroups.
pub(super) const READINGS: MapId = MapId(3);
/// Sums of a CPU. The key is the index of a group: 0 unless cgroups are counted.
pub(super) const SUMS: MapId = MapId(4);
/// The counted cgroups. The key is the id of a cgroup, the value the index of its group in [`SUMS`].
pub(super) const GROUPS: MapId = MapId(5);

/// The offset on the stack of the reading of an event.
const VALUE: i16 = -32;
/// The offset on the stack of a cgroup's id.
const ID: i16 = -48;

/// The offsets in a value of [`READINGS`].
pub(super) mod reading {
    /// Not 0 while [`super::account`] changes the value, or, for a counted BPF program, while that runs.
    pub(in crate::counters) const BUSY: i16 = 0;
    /// The last reading of the first event: count, time enabled and time running.
    pub(in crate::counters) const LAST: i16 = 8;
    /// The difference between the last reading and the one before.
    pub(in crate::counters) const DELTA: i16 = 32;
    /// The distance to the fields of the next event, in bytes.
    pub(in crate::counters) const STRIDE: i16 = 48;
}

/// The size in bytes of an event's sum in [`SUMS`], and of a reading: count, time enabled, time running.
pub(super) const SUM_SIZE: i16 = 24;

/// Not 0 in the slot of a task that has ended. Programs that trace system calls store there when the task's current call began;
/// the programs here observe no calls, and use the field for this mark.
const ENDED: i16 = slot::START;

/// The numbers of events and CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Events {
    /// The number of events.
    pub(super) count: i16,
    /// The number of possible CPUs.
    pub(super) possible_cpus: i32,
}

/// The sets of tasks whose counts are summed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Groups {
    /// One: the tasks in the map of tasks.
    Tasks,
    /// The cgroups in [`GROUPS`], which are at these levels of the hierarchy.
    Cgroups(Vec<i32>),
}

impl Events {
    fn each(self) -> impl Iterator<Item = i16> {
        0..self.count
    }
}

/// Leaves the address of the value `index` of this CPU's [`READINGS`] in `R6`; jumps to `out` if there is none.
fn readings(b: &mut ProgramBuilder, index: i32, out: Label) {
    b.store(Word, R10, INDEX, index);
    look_up(b, READINGS, INDEX);
    b.jump_if(Equal, R0, 0, out);
    b.set(R6, R0);
}

/// Reads an event of the CPU in `R7` to the stack; jumps to `failed` if the event does not count there.
fn read_event(b: &mut ProgramBuilder, events: Events, index: i16, failed: Label) {
    b.map(R1, EVENTS);
    b.set(R2, R7);
    b.operate(Add, R2, i32::from(index) * events.possible_cpus);
    b.address(R3, R10, i32::from(VALUE));
    b.set(R4, i32::from(SUM_SIZE));
    b.call(Helper::PerfEventReadValue);
    b.jump_if(NotEqual, R0, 0, failed);
}

/// Stores the reading on the stack as the event's last one in the value of [`READINGS`] at `R6`, and also stores its difference
/// to the one before.
pub(super) fn advance(b: &mut ProgramBuilder, index: i16) {
    let at = index * reading::STRIDE;
    for word in [0, 8, 16] {
        b.load(Double, R1, R10, VALUE + word);
        b.load(Double, R2, R6, reading::LAST + at + word);
        b.store(Double, R6, reading::LAST + at + word, R1);
        b.operate(Sub, R1, R2);
        b.store(Double, R6, reading::DELTA + at + word, R1);
    }
}

/// Stores a reading on the stack.
#[cfg(test)]
pub(super) fn store_reading(b: &mut ProgramBuilder, values: [u64; 3]) {
    for (word, value) in [0, 8, 16].into_iter().zip(values) {
        b.set_wide(R1, value);
        b.store(Double, R10, VALUE + word, R1);
    }
}

/// Adds the differences at `R6` to the sums at `R0`.
pub(super) fn add_up(b: &mut ProgramBuilder, events: Events) {
    for index in events.each() {
        for word in [0, 8, 16] {
            b.load(
                Double,
                R1,
                R6,
                reading::DELTA + index * reading::STRIDE + word,
            );
            b.load(Double, R2, R0, index * SUM_SIZE + word);
            b.operate(Add, R2, R1);
            b.store(Double, R0, index * SUM_SIZE + word, R2);
        }
    }
}

/// Reads all events, and computes the differences; those of an event that does not count on this CPU are 0.
fn read_all(b: &mut ProgramBuilder, events: Events) {
    b.call(Helper::GetSmpProcessorId);
    b.set(R7, R0);
    for index in events.each() {
        let (failed, next) = (b.label(), b.label());
        read_event(b, events, index, failed);
        advance(b, index);
        b.jump(next);
        b.place(failed);
        for word in [0, 8, 16] {
            let at = reading::DELTA + index * reading::STRIDE + word;
            b.store(Double, R6, at, 0);
        }
        b.place(next);
    }
}

/// At `sched_switch`, at an exec from which on a task is counted, and on each CPU before sums are read: adds the counts since the
/// last run of this program on this CPU to the sums, if the current task is observed. Otherwise drops them: at an exec, the task
/// is not observed yet, so what it did before is not counted. Reads no arguments.
pub(super) fn account(events: Events, groups: &Groups) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (begin, end, out) = (b.label(), b.label(), b.label());
    readings(&mut b, 0, out);
    // If an interrupt in the middle of this program runs it again, that run does nothing.
    b.load(Double, R1, R6, reading::BUSY);
    b.jump_if(Equal, R1, 0, begin);
    // `out` is here, as a jump over the code of many events and levels would be too far.
    b.place(out);
    b.exit();
    b.place(begin);
    b.store(Double, R6, reading::BUSY, 1);
    read_all(&mut b, events);
    match groups {
        Groups::Tasks => of_task(&mut b, events, end),
        Groups::Cgroups(levels) => {
            for level in levels {
                of_cgroup(&mut b, events, *level);
            }
        }
    }
    b.place(end);
    b.store(Double, R6, reading::BUSY, 0);
    b.exit();
    b
}

/// Adds the differences to the sums if the current task is observed, otherwise goes to `end`. A task that has ended is removed
/// from the map.
fn of_task(b: &mut ProgramBuilder, events: Events, end: Label) {
    current_task(b);
    find_slot(b, end);
    b.set(R8, R0);
    b.store(Word, R10, INDEX, 0);
    look_up(b, SUMS, INDEX);
    b.jump_if(Equal, R0, 0, end);
    add_up(b, events);
    b.load(Double, R1, R8, ENDED);
    b.jump_if(Equal, R1, 0, end);
    set_map_and_key(b, TASKS, TASK);
    b.call(Helper::MapDeleteElem);
}

/// Adds the differences to the sums of the current task's cgroup at this level, if that cgroup is counted.
fn of_cgroup(b: &mut ProgramBuilder, events: Events, level: i32) {
    let next = b.label();
    b.set(R1, level);
    b.call(Helper::GetCurrentAncestorCgroupId);
    b.store(Double, R10, ID, R0);
    look_up(b, GROUPS, ID);
    b.jump_if(Equal, R0, 0, next);
    b.load(Word, R1, R0, 0);
    b.store(Word, R10, INDEX, R1);
    look_up(b, SUMS, INDEX);
    b.jump_if(Equal, R0, 0, next);
    add_up(b, events);
    b.place(next);
}

/// At `sched_process_exit`: marks the current task as ended. It is counted up to its last switch.
pub(super) fn mark_ended() -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    current_task(&mut b);
    // Not `find_slot`: the mark is also set if the task still waits for its exec.
    look_up(&mut b, TASKS, TASK);
    b.jump_if(Equal, R0, 0, out);
    b.store(Double, R0, ENDED, 1);
    b.place(out);
    b.exit();
    b
}

/// Before a counted program: stores the readings from which [`leave`] counts.
pub(super) fn enter(events: Events, program: i32) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    readings(&mut b, program, out);
    read_all(&mut b, events);
    b.store(Double, R6, reading::BUSY, 1);
    b.place(out);
    b.exit();
    b
}

/// After a counted program: adds the counts since its start to the sums, which are those of all counted programs. Without a
/// reading of its start on this CPU (it started before the counting, or slept and moved to this CPU), nothing is added.
pub(super) fn leave(events: Events, program: i32) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    readings(&mut b, program, out);
    b.load(Double, R1, R6, reading::BUSY);
    b.jump_if(Equal, R1, 0, out);
    b.store(Double, R6, reading::BUSY, 0);
    read_all(&mut b, events);
    b.store(Word, R10, INDEX, 0);
    look_up(&mut b, SUMS, INDEX);
    b.jump_if(Equal, R0, 0, out);
    add_up(&mut b, events);
    b.place(out);
    b.exit();
    b
}
