//! Observing without a file: events are opened as for a recording, and whoever looks at the records gets them as they
//! come out of the rings.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use rperf_perfdata::EventDesc;
use rperf_ring::Walker;
use rperf_sys::{Counter, Proc, Signals, Sysfs, run_in_real_time};
use rperf_wire::SampleIdLayout;

use crate::drain::{Rings, watched};
use crate::layout::Near;
use crate::open::{Placed, for_each_counter};
use crate::opened::Opened;
use crate::start::Start;
use crate::synthesize::Records;
use crate::tasks::Places;
use crate::waiting::Waiting;
use crate::{Error, Request, Watch};

/// Events that are open, and their rings.
pub struct Observation {
    opened: Opened,
    rings: Rings,
    walker: Walker,
    signals: Signals,
    /// For each counter that tells of its ring whether its task has ended.
    ended: Vec<bool>,
}

/// Why [`Observation::wait`] came back, if not because time was up or a ring is worth emptying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Woken {
    /// SIGINT, SIGTERM or SIGHUP came.
    pub signal: Option<i32>,
    /// The other descriptor can be read, or is at its end.
    pub input: bool,
    /// All observed tasks have ended: nothing more will come.
    pub ended: bool,
}

impl Observation {
    /// Opens everything that `request` names; nothing is counted yet. What it says of files has no meaning here.
    ///
    /// SIGINT, SIGTERM and SIGHUP are held back until this is dropped.
    ///
    /// # Errors
    /// [`Error`], as for a recording.
    pub fn open(request: &Request, watch: &mut dyn Watch) -> Result<Self, Error> {
        let held = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
        let signals = Signals::hold(&held).map_err(Error::system("hold signals back"))?;
        let (proc, sysfs) = (Proc::new(&request.proc), Sysfs::new(&request.sysfs));
        let per_thread = request.details.per_thread;
        let places = Places::find(&request.target, None, (&proc, &sysfs), per_thread)?;
        let (opened, rings) = Opened::new(request, places, Near::default(), watch)?;
        if let Some(priority) = request.real_time {
            run_in_real_time(priority).map_err(|cause| Error::RealTime { priority, cause })?;
        }
        let ended = vec![false; watched(&opened.events).len()];
        Ok(Self {
            opened,
            rings,
            walker: Walker::default(),
            signals,
            ended,
        })
    }

    /// The events, as their samples come.
    #[must_use]
    pub fn events(&self) -> &[EventDesc] {
        &self.opened.descriptions
    }

    /// How many CPUs are observed; 0 where tasks have rings of their own.
    #[must_use]
    pub fn cpus(&self) -> usize {
        let cpus = &self.opened.places.cpus;
        cpus.iter().filter(|cpu| **cpu >= 0).count()
    }

    /// Lets events count, and tells `take` of all that runs already. What comes meanwhile is in the rings.
    ///
    /// # Errors
    /// [`Error::Control`].
    pub fn start(&self, request: &Request, take: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.switch(true)?;
        let trailer = SampleIdLayout::new(self.opened.sample_type()).size();
        let mut records = Records::new(trailer);
        let start = Start {
            request,
            opened: &self.opened,
        };
        start.synthesize(&mut records);
        take(&records.take());
        Ok(())
    }

    /// Starts or stops all events.
    ///
    /// # Errors
    /// [`Error::Control`].
    pub fn switch(&self, on: bool) -> Result<(), Error> {
        match on {
            true => for_each_counter(&self.opened.events, "enable", Counter::enable),
            false => for_each_counter(&self.opened.events, "disable", Counter::disable),
        }
    }

    /// Waits until a ring is worth emptying, `input` can be read, a signal comes or `timeout` is over.
    ///
    /// # Errors
    /// What poll(2) and reading signals report.
    pub fn wait(
        &mut self,
        timeout: Duration,
        input: Option<BorrowedFd<'_>>,
    ) -> Result<Woken, Error> {
        let counters = watched(&self.opened.events);
        let alive: Vec<(usize, &Placed)> = counters
            .into_iter()
            .enumerate()
            .filter(|(index, _)| self.ended.get(*index) == Some(&false))
            .collect();
        let mut waiting = Waiting::default();
        waiting.add([self.signals.as_fd()]);
        let input = waiting.add(input);
        let of_rings = waiting.add(alive.iter().map(|(_, placed)| placed.counter.as_fd()));
        // A part of a millisecond is waited for as a whole one: else the last one would be spent spinning.
        let timeout = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let states = waiting.wait(timeout)?;
        let numbers = alive.iter().map(|(index, _)| *index);
        for (index, state) in numbers.zip(states.of(&of_rings)) {
            if let Some(ended) = self.ended.get_mut(index) {
                *ended |= state.closed;
            }
        }
        Ok(Woken {
            signal: self.signals.next().map_err(Error::system("read signals"))?,
            input: states.is_readable(&input) || states.is_closed(&input),
            ended: !self.ended.is_empty() && self.ended.iter().all(|ended| *ended),
        })
    }

    /// Hands whole records, as many as there are, to `take`, ring by ring; whether there were any. That is a round, whose
    /// end nothing marks.
    pub fn drain(&mut self, take: &mut dyn FnMut(&[u8])) -> bool {
        self.rings.hand_over(&mut self.walker, take)
    }
}
