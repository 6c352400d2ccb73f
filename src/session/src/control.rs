//! Control commands during a run (`--control`): lines of text from a pipe. Executed commands are
//! acknowledged through another pipe.

mod command;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use rperf_events::{EventSpec, GroupPosition};
use rperf_sys::{Counter, Ready};
use rperf_wire::Attr;

use self::command::ControlCommand;
pub use self::command::ListedDetail;
use crate::{Error, SessionNotice, SessionObserver};

/// The acknowledgement. Like Linux perf, includes the NUL: programs read five bytes as a C string.
const ACKNOWLEDGEMENT: &[u8] = b"ack\n\0";
/// Maximum size of a command in bytes.
const MAX_COMMAND_BYTES: usize = 4096;

/// The descriptors of control commands and acknowledgements.
#[derive(Debug)]
pub struct Control {
    /// `None` after the other end was closed or reading failed.
    commands: Option<File>,
    acknowledgements: Option<File>,
    /// An incomplete command.
    begun: Vec<u8>,
}

/// The counters of an open event, which commands enable and disable together.
pub(crate) struct ControlledCounters<'a> {
    pub(crate) spec: &'a EventSpec,
    pub(crate) attr: &'a Attr,
    /// Whether `enable` and `disable` without a name switch this event: if it is a group leader or in no group, but not if it is
    /// the side-band event of a recording, which stays enabled. Group members follow their leader.
    pub(crate) is_switched_with_all: bool,
    pub(crate) counters: Vec<&'a Counter>,
}

/// Commands to be executed by the run itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ControlRequests {
    /// Stop.
    pub(crate) stop: bool,
    /// Write a snapshot: the content of the rings to a new file, or the latest part of hardware traces.
    pub(crate) snapshot: bool,
    /// Whether hardware traces are enabled from now on; `None` if unchanged.
    pub(crate) traces_run: Option<bool>,
}

impl Control {
    /// Commands from a pipe or FIFO; without `acknowledgements` nothing is acknowledged.
    #[must_use]
    pub fn new(commands: File, acknowledgements: Option<File>) -> Self {
        Self {
            commands: Some(commands),
            acknowledgements,
            begun: Vec::new(),
        }
    }

    /// The descriptor that becomes readable with the next command; `None` after the other end was closed or reading failed.
    pub(crate) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.commands.as_ref().map(File::as_fd)
    }

    /// Reads and executes the available commands. `ready` is what poll(2) reports for [`Control::as_fd`]; `events` returns the
    /// open events.
    pub(crate) fn handle_commands<'e>(
        &mut self,
        ready: Ready,
        events: impl Fn() -> Vec<ControlledCounters<'e>>,
        observer: &mut dyn SessionObserver,
    ) -> Result<ControlRequests, Error> {
        let mut requests = ControlRequests::default();
        if ready.readable {
            for text in self.lines() {
                self.execute(&text, &events(), &mut requests, observer)?;
            }
        } else if ready.closed {
            self.commands = None;
        }
        Ok(requests)
    }

    /// Reads once and returns the complete commands. They end with a newline or NUL, but some programs write a command
    /// without one: the last text is also complete if it is a known command, or too long to become one.
    fn lines(&mut self) -> Vec<String> {
        let mut bytes = [0; MAX_COMMAND_BYTES];
        let read = self
            .commands
            .as_mut()
            .map(|commands| commands.read(&mut bytes));
        match read {
            Some(Ok(size)) if size > 0 => {
                self.begun.extend(bytes.get(..size).unwrap_or_default());
            }
            // Another process has read the command.
            Some(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => self.commands = None,
        }
        let is_end = |byte: &u8| matches!(byte, b'\n' | 0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let end = self.begun.iter().rposition(is_end);
        let rest = self.begun.split_off(end.map_or(0, |end| end + 1));
        let complete = std::mem::replace(&mut self.begun, rest);
        let mut lines: Vec<String> = complete.split(|byte| is_end(byte)).map(text).collect();
        let last = text(&self.begun);
        if ControlCommand::parse(&last).is_some() || self.begun.len() >= MAX_COMMAND_BYTES {
            self.begun.clear();
            lines.push(last);
        }
        lines.retain(|line| !line.is_empty());
        lines
    }

    /// Executes a command and acknowledges it. An unknown one is only reported.
    fn execute(
        &mut self,
        text: &str,
        events: &[ControlledCounters<'_>],
        requests: &mut ControlRequests,
        observer: &mut dyn SessionObserver,
    ) -> Result<(), Error> {
        let Some(command) = ControlCommand::parse(text) else {
            observer.on_event(SessionNotice::UnknownCommand { command: text });
            return Ok(());
        };
        match command {
            ControlCommand::Switch { on, event: None } => {
                let mut switched = events.iter().filter(|event| event.is_switched_with_all);
                switched.try_for_each(|event| event.switch(on))?;
                requests.traces_run = Some(on);
                observer.on_event(SessionNotice::Switched { on });
            }
            ControlCommand::Switch {
                on,
                event: Some(name),
            } => {
                let named = events.iter().find(|event| event.spec.name == name);
                observer.on_event(match named {
                    Some(event) => {
                        event.switch(on)?;
                        if event.spec.trace_pmu().is_some() {
                            requests.traces_run = Some(on);
                        }
                        SessionNotice::EventSwitched { event: name, on }
                    }
                    None => SessionNotice::NoSuchEvent { event: name },
                });
            }
            ControlCommand::List(listing) => list(events, listing, observer),
            ControlCommand::Snapshot => requests.snapshot = true,
            ControlCommand::Stop => requests.stop = true,
            ControlCommand::Ping => {}
        }
        self.acknowledge();
        Ok(())
    }

    /// Acknowledges a command, as long as the other end is open.
    fn acknowledge(&mut self) {
        let to = self.acknowledgements.as_mut();
        if to.is_some_and(|to| to.write_all(ACKNOWLEDGEMENT).is_err()) {
            self.acknowledgements = None;
        }
    }
}

impl ControlledCounters<'_> {
    /// Enables or disables all counters of the event.
    pub(crate) fn switch(&self, on: bool) -> Result<(), Error> {
        let (what, act): (_, fn(&Counter) -> _) = match on {
            true => ("enable", Counter::enable),
            false => ("disable", Counter::disable),
        };
        for counter in &self.counters {
            act(counter).map_err(|cause| Error::Control {
                what,
                event: self.spec.name.clone(),
                cause,
            })?;
        }
        Ok(())
    }
}

/// Lists all events; with [`ListedDetail::Groups`], a group is one entry.
fn list(
    events: &[ControlledCounters<'_>],
    listing: ListedDetail,
    observer: &mut dyn SessionObserver,
) {
    let mut rest = events;
    while let Some((event, after)) = rest.split_first() {
        rest = after;
        let mut name = event.spec.name.clone();
        if let (ListedDetail::Groups, GroupPosition::Leader { name: group }) =
            (listing, &event.spec.group)
        {
            let is_outside =
                |event: &ControlledCounters<'_>| event.spec.group != GroupPosition::Member;
            let end = rest.iter().position(is_outside).unwrap_or(rest.len());
            let (members, others) = rest.split_at(end);
            rest = others;
            let names = members.iter().map(|event| event.spec.name.as_str());
            let names: Vec<&str> = std::iter::once(name.as_str()).chain(names).collect();
            name = format!("{group}{{{}}}", names.join(","));
        }
        observer.on_event(SessionNotice::Listed {
            name: &name,
            attr: event.attr,
            listing,
        });
    }
}

#[cfg(test)]
mod tests;
