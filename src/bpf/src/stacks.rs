//! Stacks that BPF programs store in maps of the kernel.
//!
//! A map of stacks keeps one stack in each bucket, and the hash of a stack determines its bucket: if the bucket already has
//! another stack, the kernel refuses the new one, even if other buckets are empty. Refused stacks are stored in a second map,
//! unless their bucket there has another stack, too.

use crate::Condition::{NotEqual, SignedLess};
use crate::Operation::Or;
use crate::Register::{R0, R1, R2, R3, R6};
use crate::loaded::LoadedPrograms;
use crate::{Error, Helper, MapId, ProgramBuilder};

/// The maximum number of frames of a stack: the default of the sysctl kernel.perf_event_max_stack, which limits maps of stacks.
pub(crate) const MAX_FRAMES: u32 = 127;
/// `BPF_F_USER_STACK`: the stack in user space instead of that in the kernel.
pub(crate) const USER_STACK: i32 = 1 << 8;
/// `BPF_F_FAST_STACK_CMP`: stacks are compared by their hash.
pub(crate) const FAST_COMPARISON: i32 = 1 << 9;
/// `EEXIST`: the bucket has another stack.
const BUCKET_TAKEN: i32 = -17;
/// This bit is set in the number of each stack of the second map. The kernel's numbers are smaller.
const IN_SECOND: u32 = 1 << 30;

/// The two maps that store stacks, of the same shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackMaps {
    pub(crate) first: MapId,
    /// Has the stacks whose bucket in the first map is taken.
    pub(crate) second: MapId,
}

impl StackMaps {
    /// Stores the stack of the current task and leaves its number in `R0`, or a negative error number if it cannot be stored.
    /// `R6` is the context of the BPF program, `flags` are those of `bpf_get_stackid`. Changes `R1` to `R5`.
    pub(crate) fn store(self, b: &mut ProgramBuilder, flags: i32) {
        let done = b.label();
        get_stackid(b, self.first, flags);
        b.jump_if(NotEqual, R0, BUCKET_TAKEN, done);
        get_stackid(b, self.second, flags);
        b.jump_if(SignedLess, R0, 0, done);
        b.operate(Or, R0, IN_SECOND.cast_signed());
        b.place(done);
    }

    /// Returns the addresses of a stack, innermost first; empty if the number is unknown or an error of [`Self::store`].
    ///
    /// # Errors
    /// [`Error::Map`].
    pub(crate) fn read(self, loaded: &LoadedPrograms, number: u32) -> Result<Vec<u64>, Error> {
        let map = match number & IN_SECOND {
            0 => self.first,
            _ => self.second,
        };
        let stack = loaded.get(map, &(number & !IN_SECOND).to_ne_bytes())?;
        let stack = stack.unwrap_or_default();
        let (frames, _) = stack.as_chunks();
        let frames = frames.iter().map(|frame| u64::from_ne_bytes(*frame));
        Ok(frames.take_while(|frame| *frame != 0).collect())
    }
}

fn get_stackid(b: &mut ProgramBuilder, map: MapId, flags: i32) {
    b.set(R1, R6);
    b.map(R2, map);
    b.set(R3, flags);
    b.call(Helper::GetStackid);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::loaded::NamedShape;
    use crate::tasks::{self, INDEX, LOST_TASKS, TASK};
    use crate::testing::{running, this_thread};
    use crate::{Condition, Register, Width};
    use rperf_sys::BpfMapKind::{Hash, PerCpuArray, StackTrace};

    const NUMBERS: MapId = MapId(4);
    const STACKS: StackMaps = StackMaps {
        first: MapId(2),
        second: MapId(3),
    };

    /// Runs a program that stores the number of each stack with which the current thread is switched out. Each map of stacks has
    /// one bucket.
    fn observe_this_thread() -> Result<LoadedPrograms, Error> {
        // The last argument of `shape`: size of keys and of values in bytes, maximum number of entries.
        let shape = NamedShape::new;
        let mut loaded = LoadedPrograms::new(&[
            shape("tasks", Hash, [4, tasks::slot::SIZE as u32, 8]),
            shape("losses", PerCpuArray, [4, 8, 1]),
            shape("stacks", StackTrace, [4, 8 * 16, 1]),
            shape("more stacks", StackTrace, [4, 8 * 16, 1]),
            shape("numbers", Hash, [4, 4, 64]),
        ])?;
        let from_exec = false;
        loaded.add_threads(&[this_thread()], from_exec)?;
        let mut b = ProgramBuilder::new();
        let out = b.label();
        b.set(R6, R1);
        tasks::current_task(&mut b);
        tasks::look_up(&mut b, tasks::TASKS, TASK);
        b.jump_if(Condition::Equal, R0, 0, out);
        STACKS.store(&mut b, FAST_COMPARISON);
        b.store(Width::Word, Register::R10, INDEX, R0);
        tasks::add(&mut b, NUMBERS, [INDEX, TASK], LOST_TASKS);
        b.place(out);
        b.exit();
        loaded.attach("switch", "sched_switch", &b)?;
        Ok(loaded)
    }

    #[test]
    fn stacks_whose_bucket_is_taken_are_in_the_second_map() {
        let Some(mut loaded) = running(observe_this_thread()) else {
            return;
        };
        // Three ways to wait, so at least three stacks.
        thread::sleep(Duration::from_millis(2));
        thread::spawn(|| thread::sleep(Duration::from_millis(5)))
            .join()
            .expect("the thread ends");
        std::process::Command::new("true")
            .status()
            .expect("true starts");
        loaded.detach();
        let numbers = loaded.entries(NUMBERS).expect("the map can be read");
        let numbers = numbers
            .iter()
            .map(|entry| crate::bytes::word(&entry.key, 0));
        let numbers: BTreeSet<u32> = numbers.collect();
        // The only bucket of each map, and the error of the third stack.
        let refused = BUCKET_TAKEN.cast_unsigned();
        assert_eq!(numbers, BTreeSet::from([0, IN_SECOND, refused]));
        let [first, second] = [0, IN_SECOND].map(|number| STACKS.read(&loaded, number).unwrap());
        assert!(!first.is_empty() && !second.is_empty());
        assert_ne!(first, second);
        // The maps keep 16 frames of a stack; addresses in the kernel have the highest bit.
        assert!(first.len() <= 16 && first[0] >= 1 << 63, "{first:x?}");
        assert_eq!(loaded.losses().unwrap().of(LOST_TASKS), 0);
    }
}
