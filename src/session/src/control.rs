//! Orders that come while a run goes on (`--control`): lines of text through a pipe, each acknowledged through another.

mod order;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use rperf_events::{EventSpec, Group};
use rperf_sys::{Counter, Ready};
use rperf_wire::Attr;

pub use self::order::Listing;
use self::order::Order;
use crate::{Error, Happened, Watch};

/// What says that an order is carried out. Linux perf sends the NUL too, and programs read five bytes as a C string.
const DONE: &[u8] = b"ack\n\0";
/// Bytes that are taken at once; an order without an end after so many is none.
const MOST: usize = 4096;

/// Where orders come from, and where it is said that they are carried out.
#[derive(Debug)]
pub struct Control {
    /// Nothing once nobody can write any more.
    orders: Option<File>,
    acknowledgements: Option<File>,
    /// The beginning of an order whose end has not come yet.
    begun: Vec<u8>,
}

/// An event that can be switched while it is open.
pub(crate) struct Steered<'a> {
    pub(crate) spec: &'a EventSpec,
    pub(crate) attr: &'a Attr,
    /// Whether it starts and stops by itself, not with a leader before it.
    pub(crate) leads: bool,
    pub(crate) counters: Vec<&'a Counter>,
}

/// What was ordered that the run itself has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Asked {
    /// To end.
    pub(crate) stop: bool,
    /// To keep what the rings hold now, in a file of its own, or the ends of hardware traces.
    pub(crate) snapshot: bool,
    /// Whether hardware traces go on, where that was switched.
    pub(crate) traces: Option<bool>,
}

impl Control {
    /// Orders out of a pipe or fifo; without a second one nothing is acknowledged.
    #[must_use]
    pub fn new(orders: File, acknowledgements: Option<File>) -> Self {
        Self {
            orders: Some(orders),
            acknowledgements,
            begun: Vec::new(),
        }
    }

    /// What becomes readable with the next order; nothing once none can come.
    pub(crate) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.orders.as_ref().map(File::as_fd)
    }

    /// Takes and carries out the orders that have come, as poll(2) tells of [`Control::as_fd`]. `events` are those that
    /// are open.
    pub(crate) fn obey<'e>(
        &mut self,
        ready: Ready,
        events: impl Fn() -> Vec<Steered<'e>>,
        watch: &mut dyn Watch,
    ) -> Result<Asked, Error> {
        let mut asked = Asked::default();
        if ready.readable {
            for text in self.lines() {
                self.carry_out(&text, &events(), &mut asked, watch)?;
            }
        } else if ready.closed {
            self.orders = None;
        }
        Ok(asked)
    }

    /// The orders that are whole. What one write brings is whole too, though it does not end in a newline.
    fn lines(&mut self) -> Vec<String> {
        let mut bytes = [0; MOST];
        let read = self.orders.as_mut().map(|orders| orders.read(&mut bytes));
        match read {
            Some(Ok(size)) if size > 0 => {
                self.begun.extend(bytes.get(..size).unwrap_or_default());
            }
            // Somebody else was quicker to read.
            Some(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => self.orders = None,
        }
        let is_end = |byte: &u8| matches!(byte, b'\n' | 0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let end = self.begun.iter().rposition(is_end);
        let rest = self.begun.split_off(end.map_or(0, |end| end + 1));
        let whole = std::mem::replace(&mut self.begun, rest);
        let mut lines: Vec<String> = whole.split(|byte| is_end(byte)).map(text).collect();
        let last = text(&self.begun);
        if Order::parse(&last).is_some() || self.begun.len() >= MOST {
            self.begun.clear();
            lines.push(last);
        }
        lines.retain(|line| !line.is_empty());
        lines
    }

    fn carry_out(
        &mut self,
        text: &str,
        events: &[Steered<'_>],
        asked: &mut Asked,
        watch: &mut dyn Watch,
    ) -> Result<(), Error> {
        let Some(order) = Order::parse(text) else {
            watch.tell(Happened::NotUnderstood { order: text });
            return Ok(());
        };
        match order {
            Order::Switch { on, event: None } => {
                let mut leading = events.iter().filter(|event| event.leads);
                leading.try_for_each(|event| event.switch(on))?;
                asked.traces = Some(on);
                watch.tell(Happened::Switched { on });
            }
            Order::Switch {
                on,
                event: Some(name),
            } => {
                let named = events.iter().find(|event| event.spec.name == name);
                watch.tell(match named {
                    Some(event) => {
                        event.switch(on)?;
                        if event.spec.tracer().is_some() {
                            asked.traces = Some(on);
                        }
                        Happened::EventSwitched { event: name, on }
                    }
                    None => Happened::NoSuchEvent { event: name },
                });
            }
            Order::List(listing) => list(events, listing, watch),
            Order::Snapshot => asked.snapshot = true,
            Order::Stop => asked.stop = true,
            Order::Ping => {}
        }
        self.acknowledge();
        Ok(())
    }

    /// Tells that an order was carried out, as long as somebody listens.
    fn acknowledge(&mut self) {
        let to = self.acknowledgements.as_mut();
        if to.is_some_and(|to| to.write_all(DONE).is_err()) {
            self.acknowledgements = None;
        }
    }
}

impl Steered<'_> {
    fn switch(&self, on: bool) -> Result<(), Error> {
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

/// Tells of every event, or of every group.
fn list(events: &[Steered<'_>], listing: Listing, watch: &mut dyn Watch) {
    let mut rest = events;
    while let Some((event, behind)) = rest.split_first() {
        rest = behind;
        let mut name = event.spec.name.clone();
        if let (Listing::Groups, Group::Leader { name: group }) = (listing, &event.spec.group) {
            let is_other = |event: &Steered<'_>| event.spec.group != Group::Member;
            let end = rest.iter().position(is_other).unwrap_or(rest.len());
            let (members, others) = rest.split_at(end);
            rest = others;
            let names = members.iter().map(|event| event.spec.name.as_str());
            let names: Vec<&str> = std::iter::once(name.as_str()).chain(names).collect();
            name = format!("{group}{{{}}}", names.join(","));
        }
        watch.tell(Happened::Listed {
            name: &name,
            attr: event.attr,
            listing,
        });
    }
}

#[cfg(test)]
mod tests;
