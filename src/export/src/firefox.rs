//! The processed format of the Firefox Profiler, version 48 (`docs-developer/CHANGELOG-formats.md` of
//! github.com/firefox-devtools/profiler): profiler.firefox.com and Perfetto's viewer open it.
//!
//! Samples of the first event that has some are the samples of their threads; those of the others are markers with stacks.

mod meta;
mod tables;
mod thread;

use std::io::{self, Write};

use serde::Serialize;

use crate::column::Column;
use crate::profile::{Event, Profile};

pub use self::meta::About;
use self::meta::{Lib, Meta};
use self::thread::Tracks;

/// Writes `profile` with what `about` says of its recording.
///
/// # Errors
///
/// What `out` says.
pub fn write(profile: &Profile, about: &About<'_>, mut out: impl Write) -> io::Result<()> {
    let (start, end) = profile.span();
    let shown = Shown {
        profile,
        main: profile.sampled().next().map(|(event, _)| event),
        start,
        end,
    };
    let file = File {
        meta: Meta::new(&shown, about),
        libs: Column(|| profile.objects.iter().map(|object| Lib::new(object, about))),
        pages: [],
        counters: [],
        profiler_overhead: [],
        threads: Column(|| {
            let threads = (0..).zip(&profile.threads);
            threads.map(|(number, thread)| Tracks::of(&shown, number).thread(thread))
        }),
    };
    serde_json::to_writer(&mut out, &file)?;
    out.flush()
}

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

/// A profile as it is shown.
struct Shown<'p> {
    profile: &'p Profile,
    /// The event whose samples are shown as samples.
    main: Option<u32>,
    /// The times of the first and the last sample.
    start: u64,
    end: u64,
}

impl Shown<'_> {
    /// Milliseconds since the first sample.
    fn milliseconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.start) as f64 / 1e6
    }

    fn event(&self, number: u32) -> Option<&Event> {
        self.profile.events.get(number as usize)
    }
}
