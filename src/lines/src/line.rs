//! A sample as plain data. `SampleLine` and `LineBuilder` are about the lines that `script` prints, `source` and "line
//! information" about lines of source code.

use rperf_replay::{CommId, DsoKind, Sample};
use rperf_resolve::{Frame, Resolver, SourceLine};
use rperf_wire::Misc;

use crate::BranchFlags;

/// The values at the start of a line. Missing fields have perf's default values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLine<'a> {
    /// The thread's name at the time.
    pub comm: &'a str,
    /// Process id; `u32::MAX` (-1) if not recorded.
    pub pid: u32,
    /// Thread id; `u32::MAX` (-1) if not recorded.
    pub tid: u32,
    /// CPU; `u32::MAX` (-1) if not recorded.
    pub cpu: u32,
    /// Nanoseconds; `u64::MAX` if not recorded.
    pub time: u64,
    /// Events since the previous sample.
    pub period: u64,
    /// The flags of the record header.
    pub misc: Misc,
    /// The flags of the branch, if it is decoded from a hardware trace and the flags are shown; otherwise 0.
    pub branch_flags: BranchFlags,
}

/// A resolved address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedAddress<'a> {
    /// The sampled address.
    pub ip: u64,
    /// The address shown in stacks: [`Frame::address`] for user objects, the sampled address for the
    /// kernel and without an object.
    pub shown_address: u64,
    /// The symbol, if known.
    pub symbol: Option<SymbolOffset<'a>>,
    /// The object's name, if known.
    pub object: Option<&'a str>,
    /// Whether [`Self::shown_address`] is an offset in [`Self::object`].
    pub is_object_offset: bool,
    /// Whether the symbol is an inlined function.
    pub inlined: bool,
    /// The source location, if requested.
    pub source: SourceLocation<'a>,
}

/// A source location or its substitute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLocation<'a> {
    /// No location.
    None,
    /// A source line; [`SourceLine::UNKNOWN`] for code without line information.
    Line(SourceLine<'a>),
    /// The address instead of a line: for the vdso, PLT entries, and objects whose file is not available.
    Address {
        /// The object's short name.
        object: &'a str,
        /// The address in the object.
        address: u64,
    },
}

impl ResolvedAddress<'_> {
    /// An unresolved address.
    #[must_use]
    pub const fn unknown(ip: u64) -> Self {
        Self {
            ip,
            shown_address: ip,
            symbol: None,
            object: None,
            is_object_offset: false,
            inlined: false,
            source: SourceLocation::None,
        }
    }
}

/// A symbol with an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolOffset<'a> {
    /// Its displayed name.
    pub name: &'a str,
    /// Offset from its start in bytes.
    pub offset: u64,
}

/// Converts samples to [`SampleLine`]s and frames to [`ResolvedAddress`]s.
pub struct LineBuilder<'r, 'w> {
    resolver: &'r Resolver<'w>,
    kernel_paths: bool,
}

impl<'r, 'w> LineBuilder<'r, 'w> {
    /// Creates the conversion with names from `resolver`.
    #[must_use]
    pub fn new(resolver: &'r Resolver<'w>) -> Self {
        Self {
            resolver,
            kernel_paths: false,
        }
    }

    /// Shows kernel objects by the path of their file, if `on`.
    #[must_use]
    pub fn with_kernel_paths(mut self, on: bool) -> Self {
        self.kernel_paths = on;
        self
    }

    pub(crate) fn resolver(&self) -> &'r Resolver<'w> {
        self.resolver
    }

    /// The values at the start of the line of `sample`, whose thread has the name `comm`.
    #[must_use]
    pub fn line(&self, sample: &Sample<'_>, comm: CommId) -> SampleLine<'w> {
        SampleLine {
            comm: self.resolver.world().comm(comm),
            pid: sample.pid,
            tid: sample.tid,
            cpu: sample.cpu,
            time: sample.wire.time.unwrap_or(u64::MAX),
            period: sample.period,
            misc: sample.misc,
            // The caller sets the flags if it shows them.
            branch_flags: BranchFlags::default(),
        }
    }

    /// Resolves the names of `frame`.
    #[must_use]
    pub fn resolved(&self, frame: &Frame) -> ResolvedAddress<'r> {
        let world = self.resolver.world();
        let dso = frame.dso.map(|dso| world.dso(dso));
        let shows_ip = dso.is_none_or(|dso| dso.is_kernel());
        let symbol = frame.symbol.and_then(|id| {
            let symbol = self.resolver.symbol(id)?;
            Some(SymbolOffset {
                name: self.resolver.symbol_name(id),
                offset: frame.address.wrapping_sub(symbol.start),
            })
        });
        ResolvedAddress {
            ip: frame.ip,
            shown_address: if shows_ip { frame.ip } else { frame.address },
            symbol,
            object: dso.map(|dso| match self.kernel_paths {
                true => dso.long_name.as_str(),
                false => dso.name.as_str(),
            }),
            // The addresses of a perf map (`/tmp/perf-PID.map`) are absolute.
            is_object_offset: dso
                .is_some_and(|dso| !shows_ip && !matches!(dso.kind, DsoKind::PerfMap(_))),
            inlined: frame
                .symbol
                .is_some_and(|symbol| self.resolver.is_inlined(symbol)),
            source: SourceLocation::None,
        }
    }

    /// Resolves the names and the source location of `frame`. For code without line information, the source location is
    /// [`SourceLocation::None`].
    #[must_use]
    pub fn resolved_with_line(&self, frame: &Frame) -> ResolvedAddress<'r> {
        let resolved = self.resolved_at(frame, self.resolver.source_line(frame));
        match resolved.source {
            SourceLocation::Line(SourceLine::UNKNOWN) => ResolvedAddress {
                source: SourceLocation::None,
                ..resolved
            },
            _ => resolved,
        }
    }

    /// Calls `write` for a callchain frame: the functions inlined there, innermost first, and the frame itself, each with its
    /// source location. For code without line information, that is [`SourceLine::UNKNOWN`] if the frame has a symbol, otherwise
    /// [`SourceLocation::None`].
    pub fn expand(&self, frame: &Frame, mut write: impl FnMut(ResolvedAddress<'r>)) {
        if frame.symbol.is_none() {
            return write(self.resolved_with_line(frame));
        }
        let mut calls = Vec::new();
        self.resolver.expand(frame, &mut calls);
        for call in calls {
            write(self.resolved_at(&call.frame, call.source_line));
        }
    }

    /// Resolves the names of `frame`. `line` is its source line; `None` for code that has neither an object file nor an entry in
    /// a JIT dump, and for PLT entries.
    fn resolved_at(&self, frame: &Frame, line: Option<SourceLine<'r>>) -> ResolvedAddress<'r> {
        let dso = frame.dso.map(|dso| self.resolver.world().dso(dso));
        let source = match (line, dso) {
            // The vdso counts as an object without a file, even if `line` was found in a copy of it.
            (Some(line), dso) if dso.is_none_or(|dso| !dso.is_vdso()) => SourceLocation::Line(line),
            (_, Some(dso)) => SourceLocation::Address {
                object: &dso.short_name,
                address: frame.address,
            },
            (_, None) => SourceLocation::None,
        };
        ResolvedAddress {
            source,
            ..self.resolved(frame)
        }
    }
}
