//! Lines that several benchmarks print.

use std::time::Duration;

use rperf_bench::Value;
use rperf_count::Spread;

/// Returns the line of a benchmark or a collection in a list.
pub(super) fn list_line(name: &str, summary: &str) -> String {
    format!("{name:>14}: {summary}\n")
}

/// Returns the line with the total time, with its newline.
pub(super) fn total_time(time: Duration) -> String {
    let millis = time.as_millis();
    format!(
        " {:>14}: {}.{:03} [sec]\n",
        "Total time",
        millis / 1000,
        millis % 1000
    )
}

/// Returns the microseconds that one of `operations` took on average.
pub(super) fn micros_each(time: Duration, operations: u64) -> f64 {
    time.as_secs_f64() * 1e6 / operations.max(1) as f64
}

/// Returns the lines with the time of an operation and the rate of operations.
pub(super) fn rates(time: Duration, operations: u64) -> String {
    let micros = micros_each(time, operations);
    let rate = (1e6 / micros.max(f64::MIN_POSITIVE)) as u64;
    format!(" {micros:>14.6} usecs/op\n {rate:>14} ops/sec\n")
}

/// Returns the time per operation as the benchmark's value, of which the mean over repetitions is taken.
pub(super) fn time_each(time: Duration, operations: u64) -> Value {
    Value::lower_is_better("usecs/op", micros_each(time, operations))
}

/// Returns mean and standard error of the threads' values.
pub(super) fn spread_of(values: impl Iterator<Item = f64>) -> Spread {
    let mut spread = Spread::default();
    values.for_each(|value| spread.add(value));
    spread
}

/// Returns the line with the mean rate of the threads.
pub(super) fn mean_rate_line(spread: &Spread, seconds: u64) -> String {
    format!(
        "Averaged {:.0} operations/sec (+- {:.2}%), total secs = {seconds}\n",
        spread.mean(),
        spread.error_percent()
    )
}
