//! The text of `bench numa mem`. Its tasks are the threads of its processes.

use std::fmt::Write as _;

use rperf_bench::numa::{NumaMem, NumaResult};

use super::NumaMachine;

/// Number of bytes in a gigabyte (GB) of the results. A megabyte (MB) of the introduction has 2^20 bytes instead.
const GIGA: f64 = 1e9;

/// Speeds in gigabytes per second, over the run time of the slowest task.
pub(super) struct Speeds {
    /// Average of a thread.
    pub(super) thread: f64,
    /// Of all threads.
    pub(super) total: f64,
}

impl Speeds {
    pub(super) fn of(result: &NumaResult) -> Self {
        let seconds = result.slowest().max(f64::MIN_POSITIVE);
        let total = result.total_bytes() / GIGA / seconds;
        Self {
            thread: total / result.tasks.len().max(1) as f64,
            total,
        }
    }
}

/// Returns the lines that describe the tasks before they run.
pub(super) fn introduction(bench: &NumaMem, machine: &NumaMachine) -> String {
    let mut text = String::from("#\n");
    let tasks = bench.task_count();
    text += &bound("CPUs", "bound", &bench.cpus, tasks);
    text += &bound("NODEs", "mem-bound", &bench.nodes, tasks);
    if machine.nodes.len() == 1 {
        text.push_str("# NOTE: the machine has 1 node: speeds of remote memory cannot be shown\n");
    }
    text.push_str("#\n\n ###\n");
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        " # {tasks} task{} will execute (on {} nodes, {} CPUs):",
        if tasks == 1 { "" } else { "s" },
        machine.nodes.len(),
        machine.cpus.len()
    );
    let loops = match bench.loops {
        Some(loops) => loops.to_string(),
        // No limit, as perf prints it.
        None => "-1".to_owned(),
    };
    for (bytes, kind) in [
        (bench.sizes.global, "global  shared"),
        (bench.sizes.process, "process shared"),
        (bench.sizes.thread, "thread  local "),
    ] {
        let megabytes = bytes >> 20;
        let _ = writeln!(
            text,
            " #      {loops:>5}x {megabytes:>5}MB {kind} mem operations"
        );
    }
    text.push_str(" ###\n\n ###\n #\n");
    text
}

/// Returns the lines on the CPUs or nodes (`units`) that tasks are bound to; empty if no task is bound. `places` has a CPU or
/// node for each task, or for the first tasks. `state` is the word for a bound task.
fn bound(units: &str, state: &str, places: &[u32], tasks: usize) -> String {
    if places.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = places.iter().take(tasks).map(u32::to_string).collect();
    let mut text = format!("# binding tasks to {units}:\n#   {}\n", numbers.join(", "));
    let count = numbers.len();
    if count < tasks {
        let rest = tasks - count;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# NOTE: {count} tasks {state}, {rest} tasks unbound");
    }
    text
}

/// Returns the lines on the time until all threads were initialized.
pub(super) fn startup(result: &NumaResult) -> String {
    format!(
        " # Startup synchronization: ... threads initialized in {:.6} seconds.\n #\n\n ###\n\n",
        result.startup.as_secs_f64()
    )
}

/// A value of the results.
struct Row {
    value: f64,
    unit: &'static str,
    /// The name in [`table`].
    name: &'static str,
    /// The text after the value in [`summary`].
    summary_text: &'static str,
}

fn rows(result: &NumaResult) -> [Row; 9] {
    let (slowest, fastest) = (result.slowest(), result.fastest());
    let total = result.total_bytes() / GIGA;
    let each = total / result.tasks.len().max(1) as f64;
    let speeds = Speeds::of(result);
    // As in perf: half the difference between the longest and the shortest time, in percent of the longest. perf's text calls it
    // the difference from the average.
    let spread = 50.0 * (slowest - fastest) / slowest.max(f64::MIN_POSITIVE);
    // Seconds per gigabyte are nanoseconds per byte.
    let nanos = slowest / each.max(f64::MIN_POSITIVE);
    let average = result.average();
    let row = |value, unit, name, summary_text| Row {
        value,
        unit,
        name,
        summary_text,
    };
    [
        row(
            slowest,
            "secs",
            "runtime-max/thread",
            "secs slowest (max) thread-runtime",
        ),
        row(
            fastest,
            "secs",
            "runtime-min/thread",
            "secs fastest (min) thread-runtime",
        ),
        row(
            average,
            "secs",
            "runtime-avg/thread",
            "secs average thread-runtime",
        ),
        row(
            spread,
            "%",
            "spread-runtime/thread",
            "% difference between max/avg runtime",
        ),
        row(each, "GB", "data/thread", "GB data processed, per thread"),
        row(total, "GB", "data-total", "GB data processed, total"),
        row(
            nanos,
            "nsecs",
            "runtime/byte/thread",
            "nsecs/byte/thread runtime",
        ),
        row(
            speeds.thread,
            "GB/sec",
            "thread-speed",
            "GB/sec/thread speed",
        ),
        row(speeds.total, "GB/sec", "total-speed", "GB/sec total speed"),
    ]
}

/// Returns the table of the results; each line begins with the test's name.
pub(super) fn table(test: &str, result: &NumaResult) -> String {
    let line = |row: Row| {
        let (test, unit) = (format!("{test},"), format!("{},", row.unit));
        format!(" {test:<30} {:>15.3}, {unit:<15} {}\n", row.value, row.name)
    };
    rows(result).map(line).concat()
}

/// Returns the results as `-q` prints them.
pub(super) fn summary(result: &NumaResult) -> String {
    let line = |row: Row| format!("{:>15.3} {}\n", row.value, row.summary_text);
    rows(result).map(line).concat()
}
