//! When threads run on a CPU, for how long, and the time between their runs.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{EventFields, ScriptSample};

/// A run of a thread on one CPU: it begins with the switch to the thread, and ends with the next switch away from it on that CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRun {
    /// Start in nanoseconds.
    pub start: u64,
    /// End in nanoseconds.
    pub end: u64,
    /// The CPU.
    pub cpu: u32,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The thread's name at the start, or its replacement in [`TaskRuns::names`].
    pub comm: String,
    /// Times between the thread's previous run and this one; `None` for its first run.
    pub gaps: Option<TaskGaps>,
}

/// Times between a run of a thread and its previous one, in nanoseconds. A run begins "in" and ends "out".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskGaps {
    /// From the end of the previous run to the start of this one.
    pub out_in: u64,
    /// From the end of the previous run to the end of this one.
    pub out_out: u64,
    /// From the start of the previous run to the start of this one.
    pub in_in: u64,
    /// From the start of the previous run to the end of this one.
    pub in_out: u64,
}

/// All runs of a thread.
#[derive(Debug, Default, Clone)]
pub struct TaskSummary {
    /// The process in the last run.
    pub pid: u32,
    /// The thread's name in the last run.
    pub comm: String,
    /// The length of each run in nanoseconds.
    pub runs: Vec<u64>,
    /// The start of the longest run in nanoseconds; if several are equally long, that of the first one.
    pub longest_at: u64,
    /// The maximum of each time between runs; `None` with a single run. The maxima can be of different runs.
    pub gaps: Option<TaskGaps>,
    /// The end of the longest [`TaskGaps::out_in`], which is the start of a run, in nanoseconds.
    pub longest_gap_end: u64,
    /// The length of the longest run.
    longest: u64,
    /// The start and the end of the last run.
    last: (u64, u64),
}

impl TaskSummary {
    /// The sum of all runs in nanoseconds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.runs
            .iter()
            .fold(0, |sum, run| sum.saturating_add(*run))
    }

    fn add(&mut self, run: &TaskRun) {
        let length = run.end.saturating_sub(run.start);
        if self.runs.is_empty() || length > self.longest {
            (self.longest, self.longest_at) = (length, run.start);
        }
        self.runs.push(length);
        self.pid = run.pid;
        self.comm.clone_from(&run.comm);
        self.last = (run.start, run.end);
        let Some(gaps) = run.gaps else {
            return;
        };
        let Some(maxima) = &mut self.gaps else {
            (self.gaps, self.longest_gap_end) = (Some(gaps), run.start);
            return;
        };
        if gaps.out_in > maxima.out_in {
            self.longest_gap_end = run.start;
        }
        *maxima = TaskGaps {
            out_in: maxima.out_in.max(gaps.out_in),
            out_out: maxima.out_out.max(gaps.out_out),
            in_in: maxima.in_in.max(gaps.in_in),
            in_out: maxima.in_out.max(gaps.in_out),
        };
    }
}

/// A range of times in nanoseconds, including both ends. Switches outside it are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// The first time.
    pub first: u64,
    /// The last time.
    pub last: u64,
}

impl Default for TimeWindow {
    fn default() -> Self {
        Self {
            first: 0,
            last: u64::MAX,
        }
    }
}

/// Threads that are selected by words: ids of processes or threads, or names of threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TaskWords {
    /// All threads.
    #[default]
    All,
    /// Only threads that match one of these words.
    Only(Vec<String>),
    /// Only threads that match none of these words.
    Except(Vec<String>),
}

impl TaskWords {
    /// Whether the thread of a run is selected.
    #[must_use]
    pub fn selects(&self, run: &TaskRun) -> bool {
        match self {
            Self::All => true,
            Self::Only(words) => words.iter().any(|word| run.has_word(word)),
            Self::Except(words) => !words.iter().any(|word| run.has_word(word)),
        }
    }
}

impl TaskRun {
    /// Whether `word` is the id of the process or the thread, or the thread's name.
    #[must_use]
    pub fn has_word(&self, word: &str) -> bool {
        let is_id = |id: u32| word.parse() == Ok(id);
        self.comm == word || is_id(self.tid) || is_id(self.pid)
    }
}

/// Collects the selected runs, and sums up the runs of all threads. Runs of idle tasks are skipped.
#[derive(Debug, Default)]
pub struct TaskRuns {
    /// The range of times whose switches are used.
    pub window: TimeWindow,
    /// Names by thread id, which replace those in the recording.
    pub names: FxHashMap<u32, String>,
    /// The threads whose runs are kept.
    pub shown: TaskWords,
    /// Whether no runs are kept, just the summaries.
    pub only_summary: bool,
    /// Current runs, by thread and CPU: start, and the thread's name.
    running: FxHashMap<(u32, u32), (u64, String)>,
    runs: Vec<TaskRun>,
    tasks: BTreeMap<u32, TaskSummary>,
}

impl TaskRuns {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = &[EventFields {
        tracepoint: "sched:sched_switch",
        numbers: &["prev_pid", "next_pid"],
        text: Some("next_comm"),
    }];

    /// Adds a switch.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if sample.time < self.window.first || sample.time > self.window.last {
            return;
        }
        // The indexes are those of `numbers` in `EVENTS`; `sample.text` is the `next_comm`.
        let [previous, next] = [0, 1].map(|index| u32::try_from(sample.number(index)).unwrap_or(0));
        if previous != 0 {
            self.end(previous, sample);
        }
        if next != 0 {
            let name = self.names.get(&next).cloned();
            let name = name.unwrap_or_else(|| sample.text.to_owned());
            self.running.insert((next, sample.cpu), (sample.time, name));
        }
    }

    /// Ends the run of a thread at the switch away from it. The thread itself triggers that event, so the process of the sample
    /// is the thread's.
    fn end(&mut self, tid: u32, sample: &ScriptSample<'_>) {
        let Some((start, comm)) = self.running.remove(&(tid, sample.cpu)) else {
            return;
        };
        let end = sample.time;
        let summary = self.tasks.entry(tid).or_default();
        let (last_start, last_end) = summary.last;
        let run = TaskRun {
            start,
            end,
            cpu: sample.cpu,
            pid: sample.process,
            tid,
            comm,
            gaps: (!summary.runs.is_empty()).then(|| TaskGaps {
                out_in: start.saturating_sub(last_end),
                out_out: end.saturating_sub(last_end),
                in_in: start.saturating_sub(last_start),
                in_out: end.saturating_sub(last_start),
            }),
        };
        summary.add(&run);
        if !self.only_summary && self.shown.selects(&run) {
            self.runs.push(run);
        }
    }

    /// The selected runs in the order of their ends; none with `only_summary`.
    #[must_use]
    pub fn runs(&self) -> &[TaskRun] {
        &self.runs
    }

    /// The ids and summaries of all threads with runs, in the order of ids.
    pub fn tasks(&self) -> impl Iterator<Item = (u32, &TaskSummary)> {
        self.tasks.iter().map(|(tid, task)| (*tid, task))
    }
}
