//! One sample as plain data.

use rperf_replay::{CommId, DsoKind, Sample};
use rperf_resolve::{Frame, Resolver, SourceLine};
use rperf_wire::Misc;

/// What the start of a line shows. Fields that the sample lacks have the values that perf shows for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The thread's name at the time.
    pub comm: &'a str,
    /// Process id; `u32::MAX` (-1) where there is none.
    pub pid: u32,
    /// Thread id; `u32::MAX` (-1) where there is none.
    pub tid: u32,
    /// CPU; `u32::MAX` (-1) where there is none.
    pub cpu: u32,
    /// Nanoseconds; `u64::MAX` where there is none.
    pub time: u64,
    /// Events since the sample before.
    pub period: u64,
    /// The bits of the record's header.
    pub misc: Misc,
}

/// An address and its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot<'a> {
    /// The address as sampled.
    pub ip: u64,
    /// The address as stacks show it: inside the object for user space, as sampled for the kernel.
    pub in_stack: u64,
    /// The symbol, if there is one.
    pub symbol: Option<Named<'a>>,
    /// The object's name, if there is an object.
    pub object: Option<&'a str>,
    /// Whether [`Self::in_stack`] is an offset in that object.
    pub in_object: bool,
    /// Whether the symbol is a function inlined into the one around it.
    pub inlined: bool,
    /// The place in the source, where that was asked for.
    pub source: Source<'a>,
}

/// A place in the source, or what stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// Nothing to show.
    None,
    /// A line.
    Line(SourceLine<'a>),
    /// Code that is in no file.
    Address {
        /// The object's short name.
        object: &'a str,
        /// The address in terms of the object.
        address: u64,
    },
}

impl Spot<'_> {
    /// An address of which nothing is known.
    #[must_use]
    pub const fn unknown(ip: u64) -> Self {
        Self {
            ip,
            in_stack: ip,
            symbol: None,
            object: None,
            in_object: false,
            inlined: false,
            source: Source::None,
        }
    }
}

/// A symbol with an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a> {
    /// Its name as shown.
    pub name: &'a str,
    /// Bytes from its start.
    pub offset: u64,
}

/// Makes [`Line`]s and [`Spot`]s of samples and frames.
pub struct Lines<'r, 'w> {
    resolver: &'r Resolver<'w>,
    kernel_paths: bool,
}

impl<'r, 'w> Lines<'r, 'w> {
    /// Lines with the names that `resolver` finds.
    #[must_use]
    pub fn new(resolver: &'r Resolver<'w>) -> Self {
        Self {
            resolver,
            kernel_paths: false,
        }
    }

    /// Objects of the kernel are called by the path of their file, where `on`.
    #[must_use]
    pub fn with_kernel_paths(mut self, on: bool) -> Self {
        self.kernel_paths = on;
        self
    }

    pub(crate) fn resolver(&self) -> &'r Resolver<'w> {
        self.resolver
    }

    /// The start of the line of `sample`, whose thread is called `comm`.
    #[must_use]
    pub fn line(&self, sample: &Sample<'_>, comm: CommId) -> Line<'w> {
        Line {
            comm: self.resolver.world().comm(comm),
            pid: sample.pid,
            tid: sample.tid,
            cpu: sample.cpu,
            time: sample.wire.time.unwrap_or(u64::MAX),
            period: sample.period,
            misc: sample.misc,
        }
    }

    /// The names of `frame`.
    #[must_use]
    pub fn spot(&self, frame: &Frame) -> Spot<'r> {
        let world = self.resolver.world();
        let dso = frame.dso.map(|dso| world.dso(dso));
        let in_kernel = dso.is_none_or(|dso| dso.is_kernel());
        let symbol = frame.symbol.and_then(|id| {
            let symbol = self.resolver.symbol(id)?;
            Some(Named {
                name: self.resolver.symbol_name(id),
                offset: frame.address.wrapping_sub(symbol.start),
            })
        });
        Spot {
            ip: frame.ip,
            in_stack: if in_kernel { frame.ip } else { frame.address },
            symbol,
            object: dso.map(|dso| match self.kernel_paths {
                true => dso.long_name.as_str(),
                false => dso.name.as_str(),
            }),
            in_object: dso
                .is_some_and(|dso| !in_kernel && !matches!(dso.kind, DsoKind::PerfMap(_))),
            inlined: frame
                .symbol
                .is_some_and(|symbol| self.resolver.is_inlined(symbol)),
            source: Source::None,
        }
    }

    /// The same with the place in the source, if it is known.
    #[must_use]
    pub fn spot_in_source(&self, frame: &Frame) -> Spot<'r> {
        let spot = self.placed(frame, self.resolver.source_line(frame));
        match spot.source {
            Source::Line(SourceLine::UNKNOWN) => Spot {
                source: Source::None,
                ..spot
            },
            _ => spot,
        }
    }

    /// Calls `spot` for what is shown of a frame of a callchain: the functions inlined there, innermost first, and the
    /// frame itself, each with its place in the source, even if that is unknown.
    pub fn expand(&self, frame: &Frame, mut spot: impl FnMut(Spot<'r>)) {
        if frame.symbol.is_none() {
            return spot(self.spot_in_source(frame));
        }
        let mut calls = Vec::new();
        self.resolver.expand(frame, &mut calls);
        for call in calls {
            spot(self.placed(&call.frame, call.place));
        }
    }

    fn placed(&self, frame: &Frame, place: Option<SourceLine<'r>>) -> Spot<'r> {
        let dso = frame.dso.map(|dso| self.resolver.world().dso(dso));
        let source = match (place, dso) {
            // The vdso is in no file, even where a copy of it is known.
            (Some(line), dso) if dso.is_none_or(|dso| !dso.is_vdso()) => Source::Line(line),
            (_, Some(dso)) => Source::Address {
                object: &dso.short_name,
                address: frame.address,
            },
            (_, None) => Source::None,
        };
        Spot {
            source,
            ..self.spot(frame)
        }
    }
}
