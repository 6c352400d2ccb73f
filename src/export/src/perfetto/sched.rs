//! Traces in Perfetto's format: events of the scheduler, idle states and frequencies of CPUs, and system calls.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::PACKET;
use super::proto::{
    CpuState, DebugAnnotation, FtraceBundle, FtraceEvent, Packet, Process, ProcessTree,
    SLICE_BEGIN, SLICE_END, SchedSwitch, SchedWakeup, SystemInfo, Thread, ThreadDescriptor,
    TrackDescriptor, TrackEvent, Utsname,
};

/// The maximum number of events in a packet, for packets of some kilobytes.
const MAX_BUNDLE_EVENTS: usize = 256;

/// A thread of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedThread {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Its name.
    pub name: String,
}

/// The recorded system. Readers need the release of the kernel, since the state bits of tasks differ between releases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TracedSystem {
    /// As `uname -r`.
    pub release: String,
    /// As `uname -m`.
    pub machine: String,
}

/// The time, the CPU and the running thread of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedEventContext {
    /// The time in nanoseconds of the recording's clock.
    pub time: u64,
    /// The CPU.
    pub cpu: u32,
    /// The thread that was running; 0 if idle.
    pub tid: i32,
    /// `common_flags` of the tracepoint, if recorded: bits of the context, such as "in a hardware interrupt".
    pub flags: Option<u32>,
}

/// A task of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTask {
    /// Its name.
    pub comm: String,
    /// Thread id.
    pub tid: i32,
    /// Its priority, as in the kernel's events.
    pub priority: i32,
}

/// Writes a trace. Events other than system calls are grouped by CPU into packets.
pub struct SchedTraceWriter<W> {
    out: W,
    /// The events of each CPU that are not written yet.
    bundles: BTreeMap<u32, FtraceBundle>,
    /// Threads whose track descriptors are written.
    tracks: BTreeSet<i32>,
    buffer: Vec<u8>,
}

impl<W: Write> SchedTraceWriter<W> {
    /// Begins a trace, with the names of these threads.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(out: W, system: TracedSystem, threads: &[SchedThread]) -> io::Result<Self> {
        let mut writer = Self {
            out,
            bundles: BTreeMap::new(),
            tracks: BTreeSet::new(),
            buffer: Vec::new(),
        };
        let name = Utsname {
            sysname: "Linux".to_owned(),
            release: system.release,
            machine: system.machine,
        };
        writer.put(&Packet {
            system_info: Some(SystemInfo { name: Some(name) }),
            ..packet()
        })?;
        let leaders = threads.iter().filter(|thread| thread.tid == thread.pid);
        let processes = leaders.map(|thread| Process {
            pid: thread.pid,
            cmdline: vec![thread.name.clone()],
        });
        let threads = threads.iter().map(|thread| Thread {
            tid: thread.tid,
            name: thread.name.clone(),
            tgid: thread.pid,
        });
        writer.put(&Packet {
            process_tree: Some(ProcessTree {
                processes: processes.collect(),
                threads: threads.collect(),
            }),
            ..packet()
        })?;
        Ok(writer)
    }

    /// Adds a switch from `prev` to `next`. `state` has the kernel's state bits of `prev`.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn switch(
        &mut self,
        at: SchedEventContext,
        prev: EventTask,
        state: u64,
        next: EventTask,
    ) -> io::Result<()> {
        let switch = SchedSwitch {
            prev_comm: prev.comm,
            prev_pid: prev.tid,
            prev_prio: prev.priority,
            prev_state: state.cast_signed(),
            next_comm: next.comm,
            next_pid: next.tid,
            next_prio: next.priority,
        };
        let event = FtraceEvent {
            switch: Some(switch),
            ..event(at)
        };
        self.add(at.cpu, event)
    }

    /// Adds a wakeup of `woken`. `target` is the CPU on which the task will run, by default that of the event. `is_new` means
    /// that the task has never run.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn wake(
        &mut self,
        at: SchedEventContext,
        woken: EventTask,
        target: Option<i32>,
        is_new: bool,
    ) -> io::Result<()> {
        let wakeup = SchedWakeup {
            comm: woken.comm,
            pid: woken.tid,
            prio: woken.priority,
            success: 1,
            target_cpu: target.unwrap_or(at.cpu.cast_signed()),
        };
        let event = match is_new {
            true => FtraceEvent {
                wakeup_new: Some(wakeup),
                ..event(at)
            },
            // Written as `sched_waking` even if it is a `sched_wakeup`: Perfetto ignores the latter in the states of tasks.
            false => FtraceEvent {
                waking: Some(wakeup),
                ..event(at)
            },
        };
        self.add(at.cpu, event)
    }

    /// Adds a change of the idle state of `cpu`. `state` is the index of the state that the CPU enters, or `u32::MAX` when it
    /// leaves its state.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn idle(&mut self, at: SchedEventContext, cpu: u32, state: u32) -> io::Result<()> {
        let event = FtraceEvent {
            idle: Some(cpu_state(cpu, state)),
            ..event(at)
        };
        self.add(at.cpu, event)
    }

    /// Adds a change of the frequency of `cpu`, in kHz.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn frequency(&mut self, at: SchedEventContext, cpu: u32, khz: u32) -> io::Result<()> {
        let event = FtraceEvent {
            frequency: Some(cpu_state(cpu, khz)),
            ..event(at)
        };
        self.add(at.cpu, event)
    }

    /// Adds the start of a system call of thread `at.tid` of process `pid`.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn begin_call(&mut self, at: SchedEventContext, pid: i32, name: &str) -> io::Result<()> {
        if self.tracks.insert(at.tid) {
            let thread = ThreadDescriptor { pid, tid: at.tid };
            self.put(&Packet {
                track: Some(TrackDescriptor {
                    uuid: track(at.tid),
                    thread: Some(thread),
                }),
                ..packet()
            })?;
        }
        self.put_slice(
            at,
            TrackEvent {
                kind: SLICE_BEGIN,
                name: Some(name.to_owned()),
                ..TrackEvent::default()
            },
        )
    }

    /// Adds the end of the latest open call of thread `at.tid`, with its result if known.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn end_call(&mut self, at: SchedEventContext, result: Option<i64>) -> io::Result<()> {
        let annotations = result.into_iter().map(|result| DebugAnnotation {
            value: Some(result),
            name: "ret".to_owned(),
        });
        self.put_slice(
            at,
            TrackEvent {
                kind: SLICE_END,
                annotations: annotations.collect(),
                ..TrackEvent::default()
            },
        )
    }

    fn put_slice(&mut self, at: SchedEventContext, event: TrackEvent) -> io::Result<()> {
        self.put(&Packet {
            timestamp: Some(at.time),
            track_event: Some(TrackEvent {
                track: track(at.tid),
                ..event
            }),
            ..packet()
        })
    }

    /// Records that events of a CPU were lost between those added so far and the next one.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn lost(&mut self, cpu: u32) -> io::Result<()> {
        self.flush(cpu)?;
        self.bundle(cpu).lost_events = true;
        Ok(())
    }

    /// Writes the remaining events.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<()> {
        let cpus: Vec<u32> = self.bundles.keys().copied().collect();
        for cpu in cpus {
            self.flush(cpu)?;
        }
        self.out.flush()
    }

    fn add(&mut self, cpu: u32, event: FtraceEvent) -> io::Result<()> {
        let bundle = self.bundle(cpu);
        bundle.events.push(event);
        match bundle.events.len() >= MAX_BUNDLE_EVENTS {
            true => self.flush(cpu),
            false => Ok(()),
        }
    }

    fn bundle(&mut self, cpu: u32) -> &mut FtraceBundle {
        self.bundles.entry(cpu).or_insert_with(|| FtraceBundle {
            cpu: Some(cpu),
            ..FtraceBundle::default()
        })
    }

    fn flush(&mut self, cpu: u32) -> io::Result<()> {
        match self.bundles.remove(&cpu) {
            Some(bundle) => self.put(&Packet {
                ftrace: Some(bundle),
                ..packet()
            }),
            None => Ok(()),
        }
    }

    fn put(&mut self, packet: &Packet) -> io::Result<()> {
        self.buffer.clear();
        prost::encoding::message::encode(PACKET, packet, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }
}

/// Returns an empty packet; all packets have the same sequence.
fn packet() -> Packet {
    Packet {
        sequence: 1,
        ..Packet::default()
    }
}

/// Returns the id of a thread's track. Id 0 is Perfetto's default track.
fn track(tid: i32) -> u64 {
    u64::from(tid.cast_unsigned()) + 1
}

/// Returns the data of an idle or frequency event, which have the same fields; `value` is the idle state or the frequency in kHz.
fn cpu_state(cpu: u32, value: u32) -> CpuState {
    CpuState {
        state: Some(value),
        cpu: Some(cpu),
    }
}

fn event(at: SchedEventContext) -> FtraceEvent {
    FtraceEvent {
        timestamp: Some(at.time),
        pid: Some(at.tid.cast_unsigned()),
        common_flags: at.flags,
        ..FtraceEvent::default()
    }
}
