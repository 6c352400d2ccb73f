//! Resolves addresses to frames.

use rperf_replay::DsoId;
use rperf_resolve::{AddressContext, CallFrame, Frame, Level, Resolver, SymbolId};
use rperf_wire::CpuMode;
use rustc_hash::FxHashMap;

use crate::intern::Interner;

/// The inputs of resolving an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CodeAddress {
    /// The part of the [`rperf_replay::Epoch`] (the state of the mappings) that applies to `mode`.
    pub(super) epoch: u64,
    /// Process id of the guest; `None` for the host.
    pub(super) guest: Option<u32>,
    /// A [`CpuMode`].
    pub(super) mode: u8,
    /// Whether inlined functions have frames.
    pub(super) inlines: bool,
    pub(super) ip: u64,
}

/// Identity of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameKey {
    pub(super) dso: Option<DsoId>,
    pub(super) symbol: Option<SymbolId>,
    /// Privilege level, and whether the code is of the host or a guest.
    pub(super) level: Level,
    pub(super) address: u64,
    /// Number of enclosing functions at the same address.
    pub(super) inline_depth: u32,
    /// Index in [`CodeTables::files`], and line.
    pub(super) location: Option<(u32, u32)>,
}

/// The distinct frames at the resolved addresses.
pub(super) struct CodeTables<'r, 'w> {
    pub(super) resolver: &'r Resolver<'w>,
    /// Indices in `frames` of the frames at each resolved address, outermost first.
    known: FxHashMap<CodeAddress, Box<[u32]>>,
    pub(super) frames: Interner<FrameKey>,
    /// Paths of source files.
    pub(super) files: Interner<&'r str>,
}

impl<'r, 'w> CodeTables<'r, 'w> {
    pub(super) fn new(resolver: &'r Resolver<'w>) -> Self {
        Self {
            resolver,
            known: FxHashMap::default(),
            frames: Interner::default(),
            files: Interner::default(),
        }
    }

    /// Returns the indices of the frames at an address, outermost first. `mode` must be the mode in `address`, and `at` a process
    /// and a time to which the epoch in `address` applies.
    #[inline]
    pub(super) fn frames(
        &mut self,
        address: &CodeAddress,
        mode: CpuMode,
        at: AddressContext,
    ) -> &[u32] {
        if !self.known.contains_key(address) {
            let frames = self.look_up(address, mode, at);
            self.known.insert(*address, frames);
        }
        self.known.get(address).map_or(&[], |frames| frames)
    }

    /// Resolves an address, and returns the indices of its frames, outermost first.
    #[cold]
    fn look_up(&mut self, address: &CodeAddress, mode: CpuMode, at: AddressContext) -> Box<[u32]> {
        let frame = self.resolver.locate(at, mode, address.ip);
        let mut calls = Vec::new();
        match address.inlines {
            true => self.resolver.expand(&frame, &mut calls),
            false => calls.push(CallFrame {
                frame,
                source_line: None,
            }),
        }
        let outermost_first = (0..).zip(calls.iter().rev());
        outermost_first
            .map(|(depth, call)| self.number(call, depth))
            .collect()
    }

    /// Returns the index of a frame; adds the frame if it is new.
    fn number(&mut self, call: &CallFrame<'r>, inline_depth: u32) -> u32 {
        let Frame {
            address,
            dso,
            symbol,
            level,
            ..
        } = call.frame;
        let location = call.source_line.filter(|location| location.line > 0);
        let location = location.map(|location| (self.files.number(location.path), location.line));
        self.frames.number(FrameKey {
            dso,
            symbol,
            level,
            address,
            inline_depth,
            location,
        })
    }

    /// Adds the frames of the worker that read a `later` part of the recording. Returns the new index of each.
    pub(super) fn merge(&mut self, later: Self) -> Vec<u32> {
        // Paths contain no indices to renumber.
        let files = self.files.merge(later.files.items(), |path| path);
        self.frames.merge(later.frames.items(), |frame| FrameKey {
            location: frame.location.map(|(file, line)| {
                let file = files.get(file as usize).copied();
                (file.unwrap_or_default(), line)
            }),
            ..*frame
        })
    }
}
