//! Counts events of this thread around a piece of work: opens, enables, disables and reads counters.
//!
//! `cargo run --example count_events`
#![expect(clippy::print_stdout, reason = "an example prints")]

use rperf_sys::{Counter, ObservedTask};
use rperf_wire::{Attr, AttrFlags, EventType, ReadFormat};

/// Events: name, type and config, as in `linux/perf_event.h`.
const EVENTS: &[(&str, EventType, u64)] = &[
    ("instructions", EventType::HARDWARE, 1),
    ("task-clock", EventType::SOFTWARE, 1),
    ("page-faults", EventType::SOFTWARE, 2),
];

fn main() {
    // If there are more hardware events than PMU counters, the kernel multiplexes them. The two times show for how long each
    // event was enabled and for how much of that time it was counted.
    let read_format = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    let mut counters = Vec::new();
    for &(name, kind, config) in EVENTS {
        let attr = Attr {
            kind,
            config,
            read_format,
            // Only user space, which needs no privileges if kernel.perf_event_paranoid is at most 2.
            flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..Attr::default()
        };
        // This thread on any CPU, in no group.
        match Counter::open(&attr, ObservedTask { pid: 0, cpu: -1 }, None) {
            Ok(counter) => counters.push((name, counter)),
            Err(error) => println!("{name}: {error}"),
        }
    }
    for (_, counter) in &counters {
        counter.enable().expect("an open event can be enabled");
    }
    // The work. The vector is there for its page faults.
    let sum: u64 = (0..4_000_000_u64).collect::<Vec<_>>().iter().sum();
    for (_, counter) in &counters {
        counter.disable().expect("an open event can be disabled");
    }

    println!("the sum is {sum}");
    for (name, counter) in &counters {
        let reading = counter
            .read(read_format)
            .expect("an open event can be read");
        let (enabled, running) = (reading.enabled.unwrap_or(0), reading.running.unwrap_or(0));
        println!(
            "{:>15} {name} (counted for {running} of {enabled} ns)",
            reading.value
        );
    }
}
