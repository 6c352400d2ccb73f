//! The scheduler's events in Perfetto's format: its viewer shows a track for each CPU and each thread, with states and wakeup arrows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::PACKET;
use super::proto::{
    FtraceBundle, FtraceEvent, Packet, Process, ProcessTree, SchedSwitch, SchedWakeup, SystemInfo,
    Thread, Utsname,
};

/// Events of a CPU per packet, for packets of some kilobytes.
const BUNDLE: usize = 256;

/// A thread of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedThread {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub name: String,
}

/// The recorded system. Readers need the release of the kernel to interpret states.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TracedSystem {
    /// As `uname -r`.
    pub release: String,
    /// As `uname -m`.
    pub machine: String,
}

/// Where and when an event happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedEventContext {
    /// Nanoseconds.
    pub time: u64,
    /// The CPU.
    pub cpu: u32,
    /// The thread that was running; 0 if idle.
    pub tid: i32,
    /// `common_flags` of the tracepoint, if recorded: whether it is in an interrupt.
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

/// Writes a trace: events in order of time, in packets of one CPU each.
pub struct SchedTraceWriter<W> {
    out: W,
    bundles: BTreeMap<u32, FtraceBundle>,
    buffer: Vec<u8>,
}

impl<W: Write> SchedTraceWriter<W> {
    /// Begins a trace of these threads.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(out: W, system: TracedSystem, threads: &[SchedThread]) -> io::Result<Self> {
        let mut writer = Self {
            out,
            bundles: BTreeMap::new(),
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

    /// Adds a switch from `prev`, whose state has these bits of the kernel, to `next`.
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

    /// Adds a wakeup of `woken` to run on a CPU; `is_new` if it has never run.
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
            false => FtraceEvent {
                waking: Some(wakeup),
                ..event(at)
            },
        };
        self.add(at.cpu, event)
    }

    /// Notes that events of a CPU were lost.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn lost(&mut self, cpu: u32) -> io::Result<()> {
        self.flush(cpu)?;
        self.bundle(cpu).lost_events = true;
        Ok(())
    }

    /// Writes what is left.
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
        match bundle.events.len() >= BUNDLE {
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

/// A packet of the only sequence.
fn packet() -> Packet {
    Packet {
        sequence: 1,
        ..Packet::default()
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
