//! Parts of the BPF program in an interpreter; tests/commands/off_cpu_programs.rs runs the whole program in the kernel.

use proptest::prelude::*;

use super::*;
use crate::interpreter::run;

proptest! {
    #[test]
    fn records_have_the_time_since_the_start_of_the_wait(
        start in any::<u32>(),
        nanos in any::<u32>(),
        [thread, process, kernel, user] in any::<[i32; 4]>(),
    ) {
        // A wait as the program stores it, with the layout of `programs::wait`; the 0 is padding. `switched_in` replaces it by
        // the record that the program would write.
        let mut memory = Vec::from(u64::from(start).to_ne_bytes());
        for word in [process, kernel, user, 0] {
            memory.extend(word.to_ne_bytes());
        }
        let now = u64::from(start) + u64::from(nanos);
        run(|b| programs::switched_in(b, thread, now), &mut memory);
        // Negative numbers are errors; the largest positive number does not count as a stack either (`programs::is_stack`).
        let stack = |number: i32| u32::try_from(number).ok().filter(|number| *number != u32::MAX >> 1);
        let place = WaitPlace {
            process: process.cast_unsigned(),
            thread: thread.cast_unsigned(),
            kernel_stack: stack(kernel),
            user_stack: stack(user),
        };
        prop_assert_eq!(OffCpuWait::decode(&memory), Some(OffCpuWait { place, nanos: nanos.into() }));
    }

    #[test]
    fn only_complete_records_are_decoded(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        // The size of a record; the kernel may append padding.
        prop_assert_eq!(OffCpuWait::decode(&bytes).is_some(), bytes.len() >= 24);
    }
}

#[test]
fn preempted_and_ended_tasks_do_not_wait() {
    // The arguments preempt and prev_state of `sched_switch`, whose bytes above those of a bool and an int are not defined, and
    // whether the task waits. States: 1 interruptible, 2 uninterruptible, 0x402 idle (with TASK_NOLOAD), 0 runnable
    // (sched_yield(2)), 0x80 dead.
    for (preempt, state, expected) in [
        (0, 1, true),
        (0xff00, 2, true),
        (0, 0x402, true),
        (1, 1, false),
        (0, 0, false),
        (0, 0x80, false),
        (0, 0xffff_0000_0000_0000, false),
    ] {
        // preempt, prev, next and prev_state; then the word in which the program stores 1 if the task waits.
        let words: [u64; 5] = [preempt, 0, 0, state, 0];
        let mut memory = words.map(u64::to_ne_bytes).concat();
        run(programs::is_waiting, &mut memory);
        assert_eq!(memory[32] == 1, expected, "{preempt:#x} {state:#x}");
    }
}
