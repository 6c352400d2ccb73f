//! Tests of the lines that the observer writes.

use rperf_replay::Order;
use rperf_syscalls::{Abi, ArgumentOptions, ProcessMemory};
use rustc_hash::{FxHashMap, FxHashSet};

use super::*;
use crate::trace::TraceSwitch;

#[derive(Default)]
struct Lines(Vec<String>);

impl TraceSink for Lines {
    fn begin(&mut self, _: u64) {}

    fn line(&mut self, line: &TraceLine<'_>) -> bool {
        let text = match line.text {
            CallText::Call(call, result) => format!("{call}) = {}", result.unwrap_or("?")),
            CallText::Begun(call) => format!("{call}) ..."),
            CallText::Continued(call, result) => format!("... {call}) = {result}"),
            CallText::Event(text) => text.to_owned(),
            CallText::Lost(records) => format!("LOST {records}"),
        };
        self.0.push(format!("{} {text}", line.tid));
        // More lines can be printed.
        true
    }
}

fn options() -> TraceOptions {
    TraceOptions {
        abi: Abi::X86_64,
        selected_calls: None,
        hidden_process: None,
        excluded_threads: FxHashSet::default(),
        min_duration: 0,
        min_stack: 0,
        event_limits: FxHashMap::default(),
        ends_with_limits: false,
        failed_only: false,
        max_events: None,
        prints_lines: true,
        sums_up: false,
        with_details: false,
        switch: None,
        names_files: true,
        sums_run_times: false,
        shows_run_times: false,
        structures: None,
        arguments: ArgumentOptions::default(),
    }
}

struct Trace {
    observer: TraceObserver<Lines>,
    time: u64,
}

impl Trace {
    fn new(options: TraceOptions) -> Self {
        Self {
            observer: TraceObserver::new(options, Lines::default()),
            time: 0,
        }
    }

    fn at(&mut self, pid: u32, tid: u32) -> EventContext {
        self.time += 1;
        EventContext {
            order: Order {
                time: self.time,
                position: 0,
            },
            event: None,
            cpu: Some(0),
            task: TaskId { pid, tid },
        }
    }

    fn add(&mut self, tid: u32, record: TraceRecord) -> &mut Self {
        let at = self.at(tid, tid);
        let stack = None;
        self.observer.sample(&at, TracedSample { record, stack });
        self
    }

    fn enter(&mut self, tid: u32, name: &str, values: &[u64]) -> &mut Self {
        let mut arguments = [0; 6];
        arguments[..values.len()].copy_from_slice(values);
        let number = number(name);
        self.add(tid, TraceRecord::Enter { number, arguments })
    }

    fn exit(&mut self, tid: u32, name: &str, result: i64) -> &mut Self {
        let number = number(name);
        self.add(tid, TraceRecord::Exit { number, result })
    }

    fn lines(self) -> Vec<String> {
        let (Lines(lines), _) = self.observer.finish();
        lines
    }
}

fn number(name: &str) -> u32 {
    SyscallTable::of(Abi::X86_64).number(name).unwrap()
}

fn fault() -> TraceRecord {
    TraceRecord::Fault {
        is_major: false,
        text: "[0x1]".to_owned(),
    }
}

fn event(name: &str) -> TraceRecord {
    TraceRecord::Event {
        name: name.to_owned(),
        fields: Vec::new(),
    }
}

/// The return of the first call and the start of a second one may be among the lost records: then the next return belongs to the
/// second call.
#[test]
fn calls_are_not_joined_across_lost_records() {
    let mut trace = Trace::new(options());
    trace.enter(1, "dup", &[3]);
    // The lost records belong to no task.
    let at = trace.at(u32::MAX, u32::MAX);
    Observer::lost(&mut trace.observer, &at, Loss { records: 2 });
    trace
        .exit(1, "dup", 9)
        .enter(1, "dup", &[4])
        .exit(1, "dup", 5);
    let lost = format!("{} LOST 2", u32::MAX);
    let expected = [
        "1 dup(fildes: 3) ...",
        &lost,
        "1 ... dup() = 9",
        "1 dup(fildes: 4) = 5",
    ];
    assert_eq!(trace.lines(), expected);
}

#[test]
fn a_limit_of_no_lines_prints_none() {
    let mut trace = Trace::new(TraceOptions {
        max_events: Some(0),
        ..options()
    });
    trace.enter(1, "dup", &[3]).exit(1, "dup", 4);
    assert!(trace.observer.has_ended());
    assert!(trace.lines().is_empty());
}

#[test]
fn page_faults_of_excluded_threads_and_while_switched_off_are_not_shown() {
    let mut trace = Trace::new(TraceOptions {
        switch: Some(TraceSwitch {
            on: Some("on".to_owned()),
            off: Some("off".to_owned()),
            shows_events: false,
        }),
        excluded_threads: [2].into_iter().collect(),
        ..options()
    });
    trace.add(1, fault()).add(1, event("on")).add(1, fault());
    trace.add(2, fault()).add(1, event("off")).add(1, fault());
    assert_eq!(trace.lines(), ["1 minfault [0x1]"]);
}

/// A child that shares the descriptors of its parent may close them at any time.
#[test]
fn shared_descriptors_have_no_names() {
    const SIGCHLD: u64 = 17;
    const CLONE_FILES: u64 = 0x400;
    for (flags, expected) in [
        (SIGCHLD, "1 close(fd: 3<socket>) = 0"),
        (CLONE_FILES | SIGCHLD, "1 close(fd: 3) = 0"),
    ] {
        let mut trace = Trace::new(options());
        trace.enter(1, "socket", &[2, 1]).exit(1, "socket", 3);
        trace.enter(1, "clone", &[flags]);
        let at = trace.at(1, 1);
        let task = |id| TaskId { pid: id, tid: id };
        let (parent, child) = (task(1), task(2));
        trace.observer.task(&at, TaskChange::Fork { parent, child });
        trace
            .exit(1, "clone", 2)
            .enter(1, "close", &[3])
            .exit(1, "close", 0);
        let lines = trace.lines();
        assert_eq!(
            lines.last().map(String::as_str),
            Some(expected),
            "{flags:#x}"
        );
    }
}

/// Memory with the same text at every address.
#[derive(Debug)]
struct Text;

impl ProcessMemory for Text {
    fn read(&self, _: u32, _: u64, to: &mut [u8]) -> usize {
        let text = b"/etc/x\0";
        let size = text.len().min(to.len());
        to[..size].copy_from_slice(&text[..size]);
        size
    }
}

/// The memory may have changed since the call, so its text does not become the name of the file descriptor.
#[test]
fn memory_that_is_read_late_is_marked_and_gives_no_names_to_descriptors() {
    let mut trace = Trace::new(options());
    // No effect here: this size does not limit paths.
    let string_size = 32;
    trace.observer.read_memory_late(Box::new(Text), string_size);
    trace.enter(1, "open", &[16]).exit(1, "open", 3);
    trace.enter(1, "close", &[3]).exit(1, "close", 0);
    let opened = "1 open(filename: \"/etc/x\" (late)) = 3";
    assert_eq!(trace.lines(), [opened, "1 close(fd: 3) = 0"]);
}

/// Memory that could not be read at the start is captured again at the return, even if the call failed.
#[test]
fn unreadable_memory_of_the_start_may_follow_the_return() {
    let mut trace = Trace::new(options());
    let memory = |is_return, bytes: &[u8]| TraceRecord::Memory {
        number: number("openat"),
        is_return,
        memory: vec![CapturedArgument {
            argument: 1,
            bytes: bytes.to_vec(),
            is_unreadable: bytes.is_empty(),
            ..CapturedArgument::default()
        }],
    };
    trace
        .enter(1, "openat", &[3, 16])
        .add(1, memory(false, b""))
        .exit(1, "openat", -2)
        .add(1, memory(true, b"/etc/x"));
    // Shows no return twice: the record of the memory has already released the held return.
    trace.observer.release();
    let line = "1 openat(dfd: 3, filename: \"/etc/x\") = -1 ENOENT (No such file or directory)";
    assert_eq!(trace.lines(), [line]);
}
