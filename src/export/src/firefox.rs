//! The processed format of the Firefox Profiler, version 48 (`docs-developer/CHANGELOG-formats.md` of
//! github.com/firefox-devtools/profiler): profiler.firefox.com and Perfetto's viewer open it.
//!
//! Samples of the main event, the one with most samples, become the samples of the profile's threads. Samples of other events
//! become markers with stacks.
//!
//! If the periods of the main event are nanoseconds (clocks and off-CPU time), the weight of a sample is its period in
//! milliseconds (`tracing-ms`), otherwise each sample counts as one. Periods of clocks and of CPU cycles are also the CPU time
//! of the thread, which the profiler's graphs show.

mod meta;
mod tables;
mod thread;

use std::io::{self, Write};

use serde::Serialize;

use crate::gather::OFF_CPU;
use crate::lazy_seq::LazySeq;
use crate::profile::{PeriodUnit, Profile, ProfileEvent};

pub use self::meta::MetaInputs;
use self::meta::{Lib, Meta};
use self::thread::Tracks;

/// Writes `profile` with the metadata `about`.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(profile: &Profile, about: &MetaInputs<'_>, mut out: impl Write) -> io::Result<()> {
    let (start, end) = profile.span();
    let view = ProfileView {
        profile,
        main: profile.main_event(),
        start,
        end,
    };
    let file = File {
        meta: Meta::new(&view, about),
        libs: LazySeq(|| profile.objects.iter().map(|object| Lib::new(object, about))),
        pages: [],
        counters: [],
        profiler_overhead: [],
        threads: LazySeq(|| {
            let threads = (0..).zip(&profile.threads);
            // The tracks of a thread are its samples by event. Together they become one thread of the file.
            threads.map(|(number, thread)| Tracks::of(&view, number).thread(thread))
        }),
    };
    serde_json::to_writer(&mut out, &file)?;
    out.flush()
}

/// The root object of the file. The format requires the arrays that are always empty.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'p, L, T> {
    meta: Meta<'p>,
    libs: L,
    pages: [(); 0],
    counters: [(); 0],
    profiler_overhead: [(); 0],
    threads: T,
}

/// The profile, its main event and the span of its samples.
struct ProfileView<'p> {
    profile: &'p Profile,
    /// The index of the event whose samples are the threads' samples; `None` without samples.
    main: Option<u32>,
    /// The time of the first sample, in nanoseconds.
    start: u64,
    /// The time of the last sample, in nanoseconds.
    end: u64,
}

impl ProfileView<'_> {
    /// Milliseconds from the first sample to `time`.
    fn milliseconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.start) as f64 / 1e6
    }

    /// Whether the main event counts off-CPU time.
    fn is_off_cpu(&self) -> bool {
        let main = self.main.and_then(|main| self.event(main));
        main.is_some_and(|event| event.name == OFF_CPU)
    }

    /// The unit of the main event's periods; [`PeriodUnit::Count`] without samples.
    fn unit(&self) -> PeriodUnit {
        let main = self.main.and_then(|main| self.event(main));
        main.map_or(PeriodUnit::Count, |event| event.unit)
    }

    fn event(&self, number: u32) -> Option<&ProfileEvent> {
        self.profile.events.get(number as usize)
    }
}
