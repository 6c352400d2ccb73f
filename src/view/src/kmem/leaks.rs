//! The tables of `kmem leaks`.

use std::io::{self, Write};

use rperf_analysis::kmem::{Allocator, LeakReport, RequestCount, StackMemory};
use rperf_names::counted;

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const LEAKS_JSON_VERSION: u32 = 1;

/// Functions of the kernel that free objects of the slab allocator without an event.
const UNREPORTED_FREES: [&str; 2] = ["kfree_rcu", "kmem_cache_free_bulk"];

/// The length of the longest bar of the curve, in characters.
const BAR: u64 = 40;
/// The number of characters before the frames and processes below the first line of a stack: the width of the numbers, and an
/// indentation.
const INDENT: usize = 82;
/// The maximum number of processes shown below a stack.
const PROCESSES: usize = 3;
/// The percentile that is the median, in thousandths.
const MEDIAN: u32 = 500;

/// A stack with the names of its functions and processes.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedStack {
    /// The stack's addresses and its allocations.
    pub memory: StackMemory,
    /// Its frames, innermost first.
    pub frames: Vec<String>,
    /// Id, name and number of live allocations of each process, most allocations first.
    pub processes: Vec<(u32, String, u64)>,
}

/// How much of the stacks the text shows, and how many stacks it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackLimits {
    /// Number of stacks that are not shown because of a limit.
    pub hidden: usize,
    /// Maximum number of frames of a stack.
    pub frames: usize,
}

/// Writes the sums of all stacks, the curve of live bytes, and `stacks`. The bars of the curve show the bytes of pages, which
/// include those of slab objects; if no pages were ever live, they show the bytes of slab objects.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    report: &LeakReport,
    stacks: &[NamedStack],
    limits: StackLimits,
) -> io::Result<()> {
    write_sums(out, report)?;
    write_curve(out, report)?;
    writeln!(
        out,
        "\n  {:>12} {:>9} {:>7} {:>10} {:>10} {:>14} {:>7}  Caller",
        "Live bytes", "Count", "Kept", "Oldest", "Median", "Growth/s", "Rising"
    )?;
    for stack in stacks {
        write_stack(out, report, stack, limits.frames)?;
    }
    if limits.hidden > 0 {
        writeln!(
            out,
            "  ... {}; -l shows more",
            counted(limits.hidden as u64, "more stack")
        )?;
    }
    match stacks
        .iter()
        .any(|stack| stack.memory.allocator == Allocator::Slab)
    {
        true => writeln!(
            out,
            "\nNote: the kernel has no events for objects that {} free: they look like leaks.",
            UNREPORTED_FREES.join("() and ") + "()"
        ),
        false => Ok(()),
    }
}

fn write_sums(out: &mut dyn Write, report: &LeakReport) -> io::Result<()> {
    let seconds = seconds(report.end.saturating_sub(report.begin));
    writeln!(
        out,
        "Memory that was allocated and not freed within {seconds} s:"
    )?;
    for (allocator, name) in [
        (Allocator::Slab, "objects (slab)"),
        (Allocator::Page, "requests (pages)"),
    ] {
        let stacks = report.stacks.iter();
        let stacks = stacks.filter(|stack| stack.allocator == allocator);
        let sum = stacks.fold(RequestCount::default(), |sum, stack| RequestCount {
            requests: sum.requests + stack.live.requests,
            bytes: sum.bytes.saturating_add(stack.live.bytes),
        });
        writeln!(
            out,
            "  {:>14} bytes in {:>8} {name}",
            sum.bytes, sum.requests
        )?;
    }
    writeln!(
        out,
        "  {:>14} frees of memory that was allocated earlier\n",
        report.unmatched_frees
    )
}

fn write_curve(out: &mut dyn Write, report: &LeakReport) -> io::Result<()> {
    writeln!(
        out,
        "{:>12} {:>14} {:>14}",
        "Seconds", "Slab bytes", "Page bytes"
    )?;
    // A row for each interval of the recording, by its end.
    let rows = report
        .ends
        .iter()
        .zip(report.slab_bytes.iter().zip(&report.page_bytes));
    // Objects of the slab allocator are in pages: the sum of both would count them twice.
    let drawn = match report.page_bytes.iter().any(|bytes| *bytes > 0) {
        true => &report.page_bytes,
        false => &report.slab_bytes,
    };
    let most = u128::from(drawn.iter().copied().max().unwrap_or_default()).max(1);
    for ((end, (slab, pages)), drawn_bytes) in rows.zip(drawn) {
        let length = u128::from(*drawn_bytes) * u128::from(BAR) / most;
        let bar = "#".repeat(usize::try_from(length).unwrap_or_default());
        // The last interval may end after the recording.
        let time = seconds((*end).min(report.end).saturating_sub(report.begin));
        let line = format!("{time:>12} {slab:>14} {pages:>14}  {bar}");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn write_stack(
    out: &mut dyn Write,
    report: &LeakReport,
    stack: &NamedStack,
    max_frames: usize,
) -> io::Result<()> {
    let NamedStack {
        memory,
        frames,
        processes,
    } = stack;
    // The mark of a stack that may leak.
    let mark = if memory.is_suspect() { '*' } else { ' ' };
    let ages = &memory.ages;
    let median_age = ages.percentile(MEDIAN);
    let caller = frames.first().map_or("unknown", String::as_str);
    let allocator = match memory.allocator {
        Allocator::Slab => "slab",
        Allocator::Page => "pages",
    };
    writeln!(
        out,
        "{mark} {:>12} {:>9} {:>5.1} % {:>10} {:>10} {:>14.0} {:>7}  {caller} ({allocator})",
        memory.live.bytes,
        memory.live.requests,
        100.0 * memory.live_share(),
        seconds(ages.max().unwrap_or_default()),
        seconds(median_age.unwrap_or_default()),
        report.growth(memory),
        format!("{}/{}", memory.rising_intervals(), memory.curve.len()),
    )?;
    for frame in frames.iter().skip(1).take(max_frames.saturating_sub(1)) {
        writeln!(out, "{:INDENT$}{frame}", "")?;
    }
    let shown = processes.iter().take(PROCESSES);
    let shown = shown.map(|(pid, name, count)| format!("{name} ({pid}): {count}"));
    let rest = processes.len().saturating_sub(PROCESSES);
    let mut shown: Vec<String> = shown.collect();
    if rest > 0 {
        shown.push(format!("{rest} more"));
    }
    writeln!(out, "{:INDENT$}by {}", "", shown.join(", "))
}

/// Returns nanoseconds as seconds with six decimals.
fn seconds(nanoseconds: u64) -> String {
    let microseconds = nanoseconds / 1000;
    format!(
        "{}.{:06}",
        microseconds / 1_000_000,
        microseconds % 1_000_000
    )
}

/// Writes the curve and the stacks as JSON; times in nanoseconds, sizes in bytes. `lost` is the number of records lost
/// while recording.
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(
    out: &mut dyn Write,
    report: &LeakReport,
    stacks: &[NamedStack],
    lost: u64,
) -> io::Result<()> {
    let rows = stacks.iter().map(|stack| {
        let memory = &stack.memory;
        let processes = stack
            .processes
            .iter()
            .map(|(pid, comm, count)| serde_json::json!({"pid": pid, "comm": comm, "live": count}));
        serde_json::json!({
            "allocator": match memory.allocator {
                Allocator::Slab => "slab",
                Allocator::Page => "page",
            },
            "is_suspect": memory.is_suspect(),
            "live_bytes": memory.live.bytes,
            "live": memory.live.requests,
            "allocated_bytes": memory.allocated.bytes,
            "allocated": memory.allocated.requests,
            "oldest_ns": memory.ages.max(),
            "median_age_ns": memory.ages.percentile(MEDIAN),
            "growth_bytes_per_second": report.growth(memory),
            "rising_intervals": memory.rising_intervals(),
            "curve_bytes": memory.curve,
            "stack": stack.frames,
            "processes": processes.collect::<Vec<_>>(),
        })
    });
    let object = serde_json::json!({
        "version": LEAKS_JSON_VERSION,
        "lost_records": lost,
        "begin_ns": report.begin,
        "end_ns": report.end,
        "unmatched_frees": report.unmatched_frees,
        "unreported_frees": UNREPORTED_FREES,
        "interval_ends_ns": report.ends,
        "slab_bytes": report.slab_bytes,
        "page_bytes": report.page_bytes,
        "stacks": rows.collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}
