//! Counts of `stat record` as `script` prints them: a row for each counter at the end of each interval.

use std::io::{self, Write};
use std::time::Duration;

use rperf_count::CounterReading;

/// Writes the titles of the columns.
///
/// # Errors
/// Those of `out`.
pub fn write_count_titles(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<3} {:>8} {:>15} {:>15} {:>15} {:>15} EVENT",
        "CPU", "THREAD", "VAL", "ENA", "RUN", "TIME"
    )
}

/// Writes the row of a counter; `at` is the time since the start of counting. -1 is printed for the CPU if the counter counts on
/// any CPU, and for the thread if it counts any thread.
///
/// # Errors
/// Those of `out`.
pub fn write_count(
    out: &mut impl Write,
    reading: &CounterReading,
    at: Duration,
    event: &str,
) -> io::Result<()> {
    let number = |number: Option<u32>| number.map_or(-1, i64::from);
    let (cpu, thread, counts) = (number(reading.cpu), number(reading.thread), &reading.counts);
    writeln!(
        out,
        "{cpu:>3} {thread:>8} {:>15} {:>15} {:>15} {:>15} {event}",
        counts.value,
        counts.enabled,
        counts.running,
        at.as_nanos()
    )
}

#[cfg(test)]
mod tests {
    use rperf_count::CounterCounts;

    use super::*;

    /// Rows of perf 6.1.
    #[test]
    fn rows_equal_those_of_perf() {
        let mut out = Vec::new();
        write_count_titles(&mut out).unwrap();
        let reading = |cpu, thread| CounterReading {
            cpu,
            thread,
            counts: CounterCounts {
                value: 661_817,
                enabled: 50,
                running: 7,
            },
        };
        let at = Duration::from_nanos(21_521_609);
        write_count(&mut out, &reading(None, Some(20203)), at, "task-clock").unwrap();
        write_count(&mut out, &reading(Some(1), None), at, "cs").unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\
CPU   THREAD             VAL             ENA             RUN            TIME EVENT
 -1    20203          661817              50               7        21521609 task-clock
  1       -1          661817              50               7        21521609 cs
"
        );
    }
}
