//! The samples of a recording as tables that refer to each other by index: the common input of the writers of profiles.

use std::cmp::Reverse;

/// Samples with their stacks. References are indices in the corresponding table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The events, in the order of the recording, including those without samples.
    pub events: Vec<ProfileEvent>,
    /// Files and pseudo-files.
    pub objects: Vec<ProfileObject>,
    /// Paths of source files.
    pub files: Vec<String>,
    /// Functions, once per object.
    pub functions: Vec<ProfileFunction>,
    /// Code locations.
    pub frames: Vec<ProfileFrame>,
    /// Stacks as a tree: callers precede their callees.
    pub stacks: Vec<ProfileStack>,
    /// The processes of the threads, sorted by id.
    pub processes: Vec<Process>,
    /// Threads, by process and thread id; a thread that changed its name is included once for each
    /// name.
    pub threads: Vec<Thread>,
    /// The samples of each thread and event, ordered by thread and then event.
    pub tracks: Vec<Track>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileEvent {
    /// Its name.
    pub name: String,
    /// Unit of its periods.
    pub unit: PeriodUnit,
}

/// Unit of periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodUnit {
    /// Nanoseconds: the software clocks, and off-CPU time.
    Nanoseconds,
    /// Cycles of a CPU.
    Cycles,
    /// Number of events.
    Count,
}

/// A file or pseudo-file with code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileObject {
    /// The short name shown in reports.
    pub name: String,
    /// Its path; the long name of a pseudo-file, such as `[kernel.kallsyms]`.
    pub path: String,
    /// Its build-id, if recorded.
    pub build_id: Option<Vec<u8>>,
}

/// Type of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// User space, or unknown.
    User,
    /// A kernel, the host's or a guest's.
    Kernel,
    /// JIT-compiled: code in memory without a file, whose symbols are in `/tmp/perf-PID.map`.
    Jit,
}

/// A function, or a placeholder for code without a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFunction {
    /// Its name; if unknown, the object's short name in brackets, or `[unknown]`.
    pub name: String,
    /// Its object; `None` if unknown.
    pub object: Option<u32>,
    /// Type of its code.
    pub kind: CodeKind,
    /// Its start and size in the object. `None` for placeholders, and if the function is inlined in the first frame that refers
    /// to it: the symbol of that frame has the range of the enclosing function.
    pub range: Option<(u64, u64)>,
}

/// A code location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFrame {
    /// The function.
    pub function: u32,
    /// Its address in the object, as in [`rperf_resolve::Frame::address`]:
    /// - for user objects, a file offset;
    /// - for JIT-compiled functions with mappings of their own, the address in their symbol table;
    /// - for kernels, for code from a perf map, and without an object, the sampled address;
    /// - for kernel modules, the sampled address, but the offset from the module's start if no symbol covers it;
    /// - for BPF programs, the offset from the start.
    pub address: u64,
    /// Number of enclosing functions at this address: 0 for a function that is not inlined.
    pub inline_depth: u32,
    /// The source location; `None` if unknown.
    pub place: Option<ProfileLocation>,
}

/// A source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileLocation {
    /// The file.
    pub file: u32,
    /// From 1.
    pub line: u32,
}

/// A frame and its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProfileStack {
    /// The caller's stack; `None` for the outermost frame.
    pub caller: Option<u32>,
    /// The frame.
    pub frame: u32,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id; `u32::MAX` if not recorded.
    pub pid: u32,
    /// The last name of its main thread.
    pub name: String,
}

/// A thread with one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    /// Process id; `u32::MAX` if not recorded.
    pub pid: u32,
    /// Thread id; `u32::MAX` if not recorded.
    pub tid: u32,
    /// Its name.
    pub name: String,
}

/// Samples of one event in one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Track {
    /// The thread.
    pub thread: u32,
    /// The event.
    pub event: u32,
    /// The samples, by time.
    pub samples: Vec<ProfileSample>,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSample {
    /// Nanoseconds; 0 if not recorded.
    pub time: u64,
    /// Its period.
    pub period: u64,
    /// Its stack; `None` for a callchain that is corrupted or has no frames.
    pub stack: Option<u32>,
    /// The CPU; `u32::MAX` if not recorded.
    pub cpu: u32,
}

impl Profile {
    /// Calls `frame` with the index of each frame of a stack, innermost first.
    pub fn walk(&self, stack: Option<u32>, mut frame: impl FnMut(u32)) {
        let mut next = stack;
        while let Some(stack) = next.and_then(|index| self.stacks.get(index as usize)) {
            frame(stack.frame);
            // Callers have lower indices than their callees; other references are ignored, since they could be cyclic.
            next = stack.caller.filter(|caller| Some(*caller) < next);
        }
    }

    /// Replaces `frames` with the frames of a stack, outermost first.
    pub(crate) fn frames_outermost_first(&self, stack: Option<u32>, frames: &mut Vec<u32>) {
        frames.clear();
        self.walk(stack, |frame| frames.push(frame));
        frames.reverse();
    }

    /// The name of a process; empty if it is unknown.
    pub(crate) fn process_name(&self, pid: u32) -> &str {
        let found = self.processes.binary_search_by_key(&pid, |known| known.pid);
        let process = found.ok().and_then(|index| self.processes.get(index));
        process.map_or("", |process| &process.name)
    }

    /// The events that have samples, with their indices.
    pub(crate) fn sampled_events(&self) -> impl Iterator<Item = (u32, &ProfileEvent)> {
        let has_samples = |event: u32| self.tracks.iter().any(|track| track.event == event);
        (0..)
            .zip(&self.events)
            .filter(move |(index, _)| has_samples(*index))
    }

    /// The source file of each function: that of its first frame with a source location.
    pub(crate) fn function_files(&self) -> Vec<Option<&str>> {
        let mut files = vec![None; self.functions.len()];
        for frame in &self.frames {
            if let Some(file) = files.get_mut(frame.function as usize)
                && let Some(place) = frame.place
                && let Some(path) = self.files.get(place.file as usize)
            {
                file.get_or_insert(path.as_str());
            }
        }
        files
    }

    /// The mean period of an event's samples; 0 without samples.
    pub(crate) fn mean_period(&self, event: u32) -> i64 {
        let tracks = self.tracks.iter().filter(|track| track.event == event);
        let samples = || tracks.clone().flat_map(|track| &track.samples);
        let sum: u128 = samples().map(|sample| u128::from(sample.period)).sum();
        let mean = sum.checked_div(samples().count() as u128);
        mean.map_or(0, |mean| i64::try_from(mean).unwrap_or(i64::MAX))
    }

    /// The index of the event with most samples, the first of those with equally many; `None` without samples.
    pub(crate) fn main_event(&self) -> Option<u32> {
        let samples = |event: u32| -> usize {
            let tracks = self.tracks.iter().filter(|track| track.event == event);
            tracks.map(|track| track.samples.len()).sum()
        };
        self.sampled_events()
            .map(|(event, _)| event)
            .max_by_key(|event| (samples(*event), Reverse(*event)))
    }

    /// The time of the first sample, in nanoseconds of the recording's clock; 0 without samples.
    #[must_use]
    pub fn first_time(&self) -> u64 {
        self.span().0
    }

    /// The times of the first and the last sample, in nanoseconds of the recording's clock; both 0 without samples.
    #[must_use]
    pub fn span(&self) -> (u64, u64) {
        let tracks = || self.tracks.iter();
        let first = tracks()
            .filter_map(|track| track.samples.first())
            .map(|sample| sample.time);
        let last = tracks()
            .filter_map(|track| track.samples.last())
            .map(|sample| sample.time);
        (
            first.min().unwrap_or_default(),
            last.max().unwrap_or_default(),
        )
    }
}
