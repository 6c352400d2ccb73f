//! Lines and tables of `trace` in perf's layout, and lines as JSON.

use std::io::{self, Write};

use rperf_analysis::trace::{CallStatistics, CallSummary, CallText, TraceLine};
use rperf_syscalls::{SyscallTable, error_name, error_number, write_name};
use serde_json::{Map, Value, json};

/// The default column of `=`, counted from the start of the call's text.
pub const RESULT_COLUMN: usize = 70;

/// How lines are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLayout {
    /// Whether times are timestamps of the clock, instead of times since the first event.
    pub full_time: bool,
    /// Whether the name of the thread is printed before its id. Applies only with `shows_task`.
    pub shows_comm: bool,
    /// Whether the id of the thread is printed. Not needed if there can be only one thread.
    pub shows_task: bool,
    /// Whether times are printed.
    pub shows_time: bool,
    /// Whether durations are printed. Only system calls and page faults have one.
    pub shows_duration: bool,
    /// The column of `=`, like [`RESULT_COLUMN`].
    pub result_column: usize,
    /// Whether the caller writes lines with [`write_json`] instead of [`write_line`]; neither of them reads this field. The
    /// other fields do not apply to JSON.
    pub is_json: bool,
}

/// Writes one line as text, and a line for each frame of its stack. `base` is the time of the first event in nanoseconds.
///
/// # Errors
/// Errors of `to`.
pub fn write_line(
    to: &mut dyn Write,
    line: &TraceLine<'_>,
    base: u64,
    layout: TraceLayout,
) -> io::Result<()> {
    write_first_line(to, line, base, layout)?;
    for frame in line.stack {
        writeln!(to, "{:STACK_COLUMN$}{frame}", "")?;
    }
    Ok(())
}

/// The number of blanks before frames, as in perf.
const STACK_COLUMN: usize = 39;

fn write_first_line(
    to: &mut dyn Write,
    line: &TraceLine<'_>,
    base: u64,
    layout: TraceLayout,
) -> io::Result<()> {
    if let CallText::Lost(records) = line.text {
        return writeln!(to, "LOST {records} events!");
    }
    if layout.shows_time {
        write_time(to, line, base, layout.full_time)?;
    }
    match line.duration {
        _ if !layout.shows_duration => {}
        Some(nanos) => write!(to, "({:6.3} ms): ", nanos as f64 / 1e6)?,
        None => write!(to, "(         ): ")?,
    }
    if layout.shows_task {
        write_task(to, line, layout.shows_comm)?;
    }
    match line.text {
        CallText::Call(text, result) => {
            // A call without a result never returns.
            write_result(to, text, result.unwrap_or("?"), layout.result_column)
        }
        CallText::Continued(call, result) => {
            // With the parenthesis of `write_result` there are two, as in perf.
            let text = format!(" ... [continued]: {call})");
            write_result(to, &text, result, layout.result_column)
        }
        CallText::Begun(text) => {
            // The dots end before the column of `=`.
            let width = layout.result_column.saturating_sub(" ...".len());
            writeln!(to, "{} ...", padded(&format!("{text})"), width))
        }
        CallText::Event(text) => writeln!(to, "{text}"),
        // Written above.
        CallText::Lost(_) => Ok(()),
    }
}

fn write_task(to: &mut dyn Write, line: &TraceLine<'_>, shows_comm: bool) -> io::Result<()> {
    if shows_comm {
        // perf prints 14 bytes, one less than the longest name of a thread (TASK_COMM_LEN without its NUL).
        let comm = line.comm.get(..14).unwrap_or(line.comm);
        match comm.is_empty() {
            true => write!(to, ":{}/", line.tid)?,
            false => {
                write_name(to, comm)?;
                to.write_all(b"/")?;
            }
        }
    }
    write!(to, "{} ", line.tid)
}

fn write_time(
    to: &mut dyn Write,
    line: &TraceLine<'_>,
    base: u64,
    full_time: bool,
) -> io::Result<()> {
    match line.time {
        Some(time) => {
            let since = if full_time { 0 } else { base };
            let nanos = time.saturating_sub(since);
            write!(to, "{:10.3} ", nanos as f64 / 1e6)
        }
        None => write!(to, "{:>10} ", "?"),
    }
}

/// Writes `text` with a closing parenthesis, then `=` at `column` (after a blank) and the result.
fn write_result(to: &mut dyn Write, text: &str, result: &str, column: usize) -> io::Result<()> {
    let text = padded(&format!("{text})"), column.saturating_sub(1));
    writeln!(to, "{text} = {result}")
}

fn padded(text: &str, width: usize) -> String {
    format!("{text:width$}")
}

/// The version of the objects that [`write_json`] writes.
const JSON_VERSION: u32 = 1;

/// Writes a line with details, or a number of lost records, as a JSON object (docs/trace-json.md). Writes nothing for other
/// lines.
///
/// # Errors
/// Errors of `to`.
pub fn write_json(to: &mut dyn Write, line: &TraceLine<'_>) -> io::Result<()> {
    if let CallText::Lost(records) = line.text {
        let object = json!({"version": JSON_VERSION, "kind": "lost", "records": records});
        return writeln!(to, "{object}");
    }
    let Some(details) = line.details else {
        return Ok(());
    };
    let kind = match line.text {
        CallText::Event(_) => "event",
        _ => "call",
    };
    let arguments = details.arguments.iter();
    let arguments: Map<String, Value> = arguments
        .map(|argument| (argument.name.clone(), argument.text.clone().into()))
        .collect();
    let mut object = json!({
        "version": JSON_VERSION,
        "kind": kind,
        "time": line.time,
        "pid": details.process,
        "tid": line.tid,
        "comm": String::from_utf8_lossy(line.comm),
        "name": details.name,
        "arguments": arguments,
    });
    if let (Some(object), "call") = (object.as_object_mut(), kind) {
        object.insert("duration".to_owned(), line.duration.into());
        object.insert("values".to_owned(), details.registers.clone().into());
        object.insert("result".to_owned(), details.result.into());
        let error = details.result.and_then(error_number).and_then(error_name);
        if let Some(error) = error {
            object.insert("error".to_owned(), error.into());
        }
    }
    if let Some(object) = object.as_object_mut().filter(|_| !line.stack.is_empty()) {
        object.insert("stack".to_owned(), line.stack.into());
    }
    writeln!(to, "{object}")
}

/// How the summary is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SummaryOptions {
    /// Whether the failures of each call are printed by errno.
    pub by_error: bool,
    /// The scope of each table.
    pub mode: SummaryMode,
    /// Whether the title of a table has the time on CPUs.
    pub has_run_times: bool,
}

/// The scope of a table of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SummaryMode {
    /// A thread.
    #[default]
    Thread,
    /// All threads ([`CallSummary::total`]).
    Total,
    /// A cgroup. [`CallSummary::threads`] then has an entry for each cgroup, whose `comm` is its path.
    Cgroup,
}

/// Writes a table for each thread or cgroup that has events; `syscalls` has the names of the calls. For [`SummaryMode::Total`],
/// `summary` must be the result of [`CallSummary::total`], which has a single entry for all threads.
///
/// # Errors
/// Errors of `to`.
pub fn write_summary(
    to: &mut dyn Write,
    summary: &CallSummary,
    syscalls: &SyscallTable,
    options: SummaryOptions,
) -> io::Result<()> {
    write!(to, "\n Summary of events:\n\n")?;
    for (tid, thread) in &summary.threads {
        if thread.events == 0 {
            continue;
        }
        let percent = thread.events as f64 * 100.0 / summary.events.max(1) as f64;
        let (comm, events) = (&thread.comm, thread.events);
        match options.mode {
            SummaryMode::Total => write!(to, " total, {events} events")?,
            SummaryMode::Thread => {
                write!(to, " {comm} ({tid}), {events} events, {percent:.1}%")?;
            }
            SummaryMode::Cgroup => write!(to, " {comm}, {events} events, {percent:.1}%")?,
        }
        for (faults, kind) in [
            (thread.major_faults, "majfaults"),
            (thread.minor_faults, "minfaults"),
        ] {
            if faults > 0 {
                write!(to, ", {faults} {kind}")?;
            }
        }
        if options.has_run_times {
            write!(to, ", {:.3} msec", thread.run_time as f64 / 1e6)?;
        }
        write!(to, "\n\n")?;
        write_calls(to, &thread.calls, syscalls, options.by_error)?;
        write!(to, "\n\n")?;
    }
    Ok(())
}

/// perf's heading. The numbers below its `stddev` are standard errors of the mean, in percent of the mean.
const HEADING: &str = "   \
syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
";

fn write_calls(
    to: &mut dyn Write,
    calls: &std::collections::BTreeMap<u32, CallStatistics>,
    syscalls: &SyscallTable,
    by_error: bool,
) -> io::Result<()> {
    to.write_all(HEADING.as_bytes())?;
    let mut rows: Vec<(String, &CallStatistics)> = calls
        .iter()
        .map(|(number, statistics)| (call_name(*number, syscalls), statistics))
        .collect();
    rows.sort_by(|(name, one), (other_name, other)| {
        let by_time = other.total().total_cmp(&one.total());
        by_time.then_with(|| name.cmp(other_name))
    });
    for (name, statistics) in rows {
        let millis = |nanos: f64| nanos / 1e6;
        writeln!(
            to,
            "   {name:15} {:8} {:6} {:9.3} {:9.3} {:9.3} {:9.3} {:9.2}%",
            statistics.count,
            statistics.errors,
            millis(statistics.total()),
            millis(statistics.min as f64),
            millis(statistics.mean()),
            millis(statistics.max as f64),
            statistics.standard_error_percent(),
        )?;
        if !by_error {
            continue;
        }
        for (error, count) in &statistics.by_error {
            let name = error_name(*error).map_or_else(|| error.to_string(), str::to_owned);
            writeln!(to, "\t\t\t\t{name}: {count}")?;
        }
    }
    Ok(())
}

fn call_name(number: u32, syscalls: &SyscallTable) -> String {
    let known = syscalls.get(number).map(|call| call.name.to_owned());
    known.unwrap_or_else(|| format!("syscall_{number}"))
}

#[cfg(test)]
mod tests {
    use rperf_analysis::trace::{LineDetails, NamedText};

    use super::*;

    const LAYOUT: TraceLayout = TraceLayout {
        full_time: false,
        shows_time: true,
        result_column: RESULT_COLUMN,
        is_json: false,
        shows_comm: true,
        shows_task: true,
        shows_duration: true,
    };

    fn text(line: &TraceLine<'_>) -> String {
        let mut to = Vec::new();
        write_line(&mut to, line, 1_000_000, LAYOUT).unwrap();
        String::from_utf8(to).unwrap()
    }

    /// Lines that perf 6.1 printed.
    #[test]
    fn lines_as_perf_prints_them() {
        let line = TraceLine {
            time: Some(6_045_000),
            duration: Some(10_000),
            tid: 6264,
            comm: b"m",
            text: CallText::Call("brk(", Some("0x55e34d8e0000")),
            details: None,
            stack: &[],
        };
        let expected = "     5.045 ( 0.010 ms): m/6264 brk()                                                                 = 0x55e34d8e0000\n";
        assert_eq!(text(&line), expected);
        let begun = TraceLine {
            duration: None,
            text: CallText::Begun("clock_nanosleep(rqtp: 0x7fa96d44fe80"),
            ..line
        };
        let expected = "     5.045 (         ): m/6264 clock_nanosleep(rqtp: 0x7fa96d44fe80)                              ...\n";
        assert_eq!(text(&begun), expected);
        let continued = TraceLine {
            time: None,
            text: CallText::Continued("clone3(", "0"),
            ..begun
        };
        let expected = "         ? (         ): m/6264  ... [continued]: clone3())                                           = 0\n";
        assert_eq!(text(&continued), expected);
    }

    #[test]
    fn lines_as_json() {
        let details = LineDetails {
            process: 7,
            // Not in the JSON: `write_json` writes the line's `time` instead.
            moment: 6,
            directory: None,
            name: "openat".to_owned(),
            arguments: vec![NamedText {
                name: "filename".to_owned(),
                text: "\"a\"".to_owned(),
            }],
            registers: vec![1, u64::MAX],
            result: Some(-2),
            starts_thread: false,
        };
        let line = TraceLine {
            time: Some(5),
            duration: None,
            tid: 8,
            comm: b"c\xff",
            text: CallText::Call("openat(", Some("-1")),
            details: Some(&details),
            stack: &[],
        };
        let mut to = Vec::new();
        write_json(&mut to, &line).unwrap();
        let lost = TraceLine {
            text: CallText::Lost(3),
            ..line
        };
        write_json(&mut to, &lost).unwrap();
        let text = String::from_utf8(to).unwrap();
        let objects: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let expected = json!({
            "version": 1, "kind": "call", "time": 5, "duration": null, "pid": 7, "tid": 8, "comm": "c\u{fffd}", "name": "openat",
            "arguments": {"filename": "\"a\""}, "values": [1, u64::MAX], "result": -2, "error": "ENOENT",
        });
        assert_eq!(
            objects,
            [
                expected,
                json!({"version": 1, "kind": "lost", "records": 3})
            ]
        );
    }
}
