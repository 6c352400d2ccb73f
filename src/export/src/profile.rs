//! A recording as tables that refer to each other by number: what all formats of other tools have in common.

/// Samples with their stacks. Every number is an index into the table that its name says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The events, in the order of the recording; those without samples too.
    pub events: Vec<Event>,
    /// Files and what passes for files.
    pub objects: Vec<Object>,
    /// Paths of source files.
    pub files: Vec<String>,
    /// Functions, each once for each object.
    pub functions: Vec<Function>,
    /// Places in functions.
    pub frames: Vec<Frame>,
    /// Stacks as a tree: callers come before their callees.
    pub stacks: Vec<Stack>,
    /// Threads, by process and thread id; one that changed its name is there once for each name.
    pub threads: Vec<Thread>,
    /// The samples of each thread and event, in the order of threads and then events.
    pub tracks: Vec<Track>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// What its periods count.
    pub unit: Unit,
}

/// What periods count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds: the software clocks.
    Nanoseconds,
    /// How often something happened.
    Count,
}

/// Something that code is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The name that reports show.
    pub name: String,
    /// Where it lies, if it is a file.
    pub path: String,
    /// Its build-id, if the recording tells.
    pub build_id: Option<Vec<u8>>,
}

/// What code a function is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// User space, or not known.
    User,
    /// A kernel, the host's or a guest's.
    Kernel,
    /// Made at run time.
    Jit,
}

/// A function, or what stands for code without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name; where none is known, the object's short name in brackets, or `[unknown]`.
    pub name: String,
    /// The object that it is in.
    pub object: Option<u32>,
    /// What code it is.
    pub kind: Kind,
    /// Its first byte and its length, in the terms of the object; unknown for inlined functions.
    pub range: Option<(u64, u64)>,
}

/// A place in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: u32,
    /// Where it is in its object: an offset in the file; the address itself for kernels and for what is in no object.
    pub address: u64,
    /// How many functions are around it at this address: 0 for a function that was not inlined.
    pub inline_depth: u32,
    /// The place in the source.
    pub place: Option<Place>,
}

/// A place in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: u32,
    /// From 1; 0 where it is not known.
    pub line: u32,
}

/// A frame and its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The stack that called it.
    pub caller: Option<u32>,
    /// The frame.
    pub frame: u32,
}

/// One thread under one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    /// Process id; `u32::MAX` where none was recorded.
    pub pid: u32,
    /// Thread id; `u32::MAX` where none was recorded.
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
    pub rows: Vec<Row>,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Nanoseconds; 0 where no time was recorded.
    pub time: u64,
    /// Events that it stands for.
    pub period: u64,
    /// Its stack; `None` for a broken callchain.
    pub stack: Option<u32>,
    /// The processor; `u32::MAX` where none was recorded.
    pub cpu: u32,
}

impl Profile {
    /// Calls `frame` with the number of each frame of a stack, innermost first.
    pub fn walk(&self, stack: Option<u32>, mut frame: impl FnMut(u32)) {
        let mut next = stack;
        while let Some(stack) = next.and_then(|number| self.stacks.get(number as usize)) {
            frame(stack.frame);
            // Callers come first; anything else would go in circles.
            next = stack.caller.filter(|caller| Some(*caller) < next);
        }
    }

    /// The path of the frames of a stack, outermost first.
    pub(crate) fn path(&self, stack: Option<u32>, path: &mut Vec<u32>) {
        path.clear();
        self.walk(stack, |frame| path.push(frame));
        path.reverse();
    }

    /// The events that have samples, by number.
    pub(crate) fn sampled(&self) -> impl Iterator<Item = (u32, &Event)> {
        let has_samples = |event: u32| self.tracks.iter().any(|track| track.event == event);
        (0..)
            .zip(&self.events)
            .filter(move |(number, _)| has_samples(*number))
    }

    /// The time of the first sample, in nanoseconds of the recording's clock.
    #[must_use]
    pub fn first_time(&self) -> u64 {
        self.span().0
    }

    /// The times of the first and the last sample.
    pub(crate) fn span(&self) -> (u64, u64) {
        let rows = || self.tracks.iter();
        let first = rows()
            .filter_map(|track| track.rows.first())
            .map(|row| row.time);
        let last = rows()
            .filter_map(|track| track.rows.last())
            .map(|row| row.time);
        (
            first.min().unwrap_or_default(),
            last.max().unwrap_or_default(),
        )
    }
}
