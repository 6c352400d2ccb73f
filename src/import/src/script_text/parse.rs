//! Parses the output of `perf script` into samples.

use super::frame::TextFrame;

/// The start of a data source, which is printed before the code address.
const DATA_SOURCE: &str = " |OP ";

/// Why a line cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineProblem {
    /// Number of the line, from 1.
    pub(super) line: u64,
    pub(super) cause: &'static str,
}

/// Task, time and event of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextHead<'t> {
    pub(super) comm: &'t str,
    /// The process; the thread's id if only one id is printed.
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) cpu: Option<u32>,
    /// Nanoseconds.
    pub(super) time: u64,
    /// `None` if not printed.
    pub(super) period: Option<u64>,
    /// Name of the event, with its modifiers.
    pub(super) event: &'t str,
    /// The text of a tracepoint; `None` for other events.
    pub(super) fields: Option<&'t str>,
}

/// A sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextSample<'t> {
    /// Number of its first line.
    pub(super) line: u64,
    pub(super) head: TextHead<'t>,
    /// Innermost first.
    pub(super) frames: Vec<TextFrame<'t>>,
    /// Whether the frames are a callchain, on lines of their own.
    pub(super) is_chain: bool,
}

/// An item of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextItem<'t> {
    Sample(TextSample<'t>),
    /// A line that begins with `#`, as in `perf script --header`: name and value. The value is empty if the line has no colon.
    Header(&'t str, &'t str),
    /// A record that is not a sample, such as PERF_RECORD_MMAP2.
    Other,
}

/// The items of a text.
#[derive(Debug, Clone)]
pub(super) struct Items<'t> {
    lines: std::iter::Peekable<std::str::Lines<'t>>,
    /// Number of the last line that was read.
    line: u64,
}

impl<'t> Items<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            lines: text.lines().peekable(),
            line: 0,
        }
    }

    /// Reads the callchain after a sample's line.
    fn frames(&mut self) -> Result<Vec<TextFrame<'t>>, LineProblem> {
        let mut frames = Vec::new();
        while let Some(text) = self.lines.peek().copied() {
            // Frames begin with a tab, which may have become blanks when the text was copied. Lines of samples can begin with
            // blanks, too.
            let is_frame = text.starts_with('\t')
                || (text.starts_with(' ') && parse_head(text).is_none() && !text.trim().is_empty());
            if !is_frame {
                break;
            }
            self.lines.next();
            self.line += 1;
            let frame = TextFrame::parse(text).ok_or(LineProblem {
                line: self.line,
                cause: "not a frame, which is an address, a function and an object in parentheses",
            })?;
            frames.push(frame);
        }
        Ok(frames)
    }

    /// Parses the item that begins with the line `text`; reads the lines of its callchain.
    fn item(&mut self, text: &'t str) -> Result<TextItem<'t>, LineProblem> {
        let line = self.line;
        let problem = |cause| LineProblem { line, cause };
        if let Some(comment) = text.strip_prefix('#') {
            let (name, value) = comment.split_once(':').unwrap_or((comment, ""));
            return Ok(TextItem::Header(name.trim(), value.trim()));
        }
        if text.starts_with('\t') {
            return Err(problem("a frame without a sample above"));
        }
        let (head, after_time) = parse_head(text).ok_or(problem(
            "not a sample, which is a command name, a thread id, a time with a colon, and an event",
        ))?;
        if after_time.starts_with("PERF_RECORD_") {
            return Ok(TextItem::Other);
        }
        let (head, after_event) = head.with_event(after_time).ok_or(problem(
            "no event after the time; its name ends with a colon",
        ))?;
        if head.fields.is_none() && after_event.contains(DATA_SOURCE) {
            return Err(problem(
                "memory accesses with a data source are not converted",
            ));
        }
        let mut frames = Vec::new();
        if head.fields.is_none() && !after_event.is_empty() {
            let frame = sampled_frame(after_event).ok_or(problem(
                "no code address with a function and an object in parentheses",
            ))?;
            frames.push(frame);
        }
        let chain = self.frames()?;
        let is_chain = !chain.is_empty();
        if is_chain {
            frames = chain;
        }
        Ok(TextItem::Sample(TextSample {
            line,
            head,
            frames,
            is_chain,
        }))
    }
}

impl<'t> Iterator for Items<'t> {
    type Item = Result<TextItem<'t>, LineProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let text = self.lines.next()?;
            self.line += 1;
            if !text.trim().is_empty() {
                return Some(self.item(text));
            }
        }
    }
}

/// Parses the frame on a sample's line. A data address before the frame is skipped.
fn sampled_frame(text: &str) -> Option<TextFrame<'_>> {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let second = rest.split(' ').next().unwrap_or_default();
    let is_address = |word: &str| super::frame::hexadecimal(word).is_some();
    let has_data_address = is_address(first) && is_address(second) && rest.contains('(');
    let code = if has_data_address { rest } else { text };
    TextFrame::parse(code)
}

/// Parses the part of a sample's line up to its time; returns it, still without an event, and the rest of the line.
fn parse_head(line: &str) -> Option<(TextHead<'_>, &str)> {
    // A comm can contain colons, too: the first colon after a valid time counts.
    let mut colons = line.match_indices(':').map(|(at, _)| at);
    colons.find_map(|at| {
        let (before, after) = (line.get(..at)?, line.get(at + 1..)?);
        if !after.starts_with([' ', '\t']) {
            return None;
        }
        let (task, time) = before.rsplit_once([' ', '\t'])?;
        let time = nanoseconds(time)?;
        let task = task.trim_end();
        let (task, cpu) = match task
            .strip_suffix(']')
            .and_then(|task| task.rsplit_once('['))
        {
            Some((task, cpu)) => (task.trim_end(), Some(cpu.parse().ok()?)),
            None => (task, None),
        };
        let (comm, ids) = task.rsplit_once([' ', '\t'])?;
        let (pid, tid) = ids.split_once('/').unwrap_or((ids, ids));
        let head = TextHead {
            comm: comm.trim(),
            pid: id(pid)?,
            tid: id(tid)?,
            cpu,
            time,
            period: None,
            event: "",
            fields: None,
        };
        Some((head, after.trim()))
    })
}

/// Parses a process or thread id; -1 (unknown) is `u32::MAX`.
fn id(text: &str) -> Option<u32> {
    match text {
        "-1" => Some(u32::MAX),
        _ => text.parse().ok(),
    }
}

/// Parses seconds with six or nine decimals into nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let unit = match decimals.len() {
        6 => 1000,
        9 => 1,
        _ => return None,
    };
    let decimals: u64 = decimals.parse().ok()?;
    let seconds = seconds.checked_mul(1_000_000_000)?;
    seconds.checked_add(decimals.checked_mul(unit)?)
}

impl<'t> TextHead<'t> {
    /// Adds period, event and fields from the text after the time; returns also the text after the event.
    fn with_event(self, text: &'t str) -> Option<(Self, &'t str)> {
        let (first, after_first) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        let (period, name, after_event) = match first.ends_with(':') {
            true => (None, first, after_first),
            false => {
                let period: u64 = first.parse().ok()?;
                let after_period = after_first.trim_start();
                let (name, after_event) = after_period
                    .split_once([' ', '\t'])
                    .unwrap_or((after_period, ""));
                (Some(period), name, after_event)
            }
        };
        let event = name.strip_suffix(':').filter(|name| !name.is_empty())?;
        let after_event = after_event.trim();
        // Samples of tracepoints are printed without their period: after a period, the text is not the fields of a tracepoint.
        let fields = (period.is_none() && is_tracepoint(event, after_event)).then_some(after_event);
        let head = Self {
            period,
            event,
            fields,
            ..self
        };
        Some((head, after_event))
    }
}

/// Whether the event is a tracepoint (`sched:sched_switch`), not an event with modifiers (`cycles:u`). If the part after the
/// colon could be either, the event is a tracepoint unless the text after the event is empty or a frame.
fn is_tracepoint(event: &str, after_event: &str) -> bool {
    const MODIFIERS: &str = "ukhIGHpPSDWebXR";
    let Some((system, name)) = event.split_once(':') else {
        return false;
    };
    let is_word = |text: &str| {
        let mut bytes = text.bytes();
        !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let is_modifier = name.chars().all(|letter| MODIFIERS.contains(letter));
    let has_fields = !after_event.is_empty() && sampled_frame(after_event).is_none();
    is_word(system) && !name.is_empty() && (!is_modifier || has_fields)
}
