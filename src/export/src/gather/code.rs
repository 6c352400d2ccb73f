//! The frames at addresses.

use rperf_replay::DsoId;
use rperf_resolve::{Call, Frame, Level, Place, Resolver, SymbolId};
use rperf_wire::CpuMode;
use rustc_hash::FxHashMap;

use crate::intern::Interner;

/// All that decides which frames an address stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub(super) epoch: u64,
    pub(super) guest: Option<u32>,
    /// A [`CpuMode`].
    pub(super) mode: u8,
    pub(super) inlines: bool,
    pub(super) ip: u64,
}

/// What a frame is, by ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameKey {
    pub(super) dso: Option<DsoId>,
    pub(super) symbol: Option<SymbolId>,
    pub(super) level: Level,
    pub(super) address: u64,
    /// Functions around it at the same address.
    pub(super) inline_depth: u32,
    /// File and line.
    pub(super) place: Option<(u32, u32)>,
}

/// Frames that were looked up, each once.
pub(super) struct Code<'r, 'w> {
    pub(super) resolver: &'r Resolver<'w>,
    /// The frames of a spot, outermost first.
    known: FxHashMap<Spot, Box<[u32]>>,
    pub(super) frames: Interner<FrameKey>,
    /// Paths of source files.
    pub(super) files: Interner<&'r str>,
}

impl<'r, 'w> Code<'r, 'w> {
    pub(super) fn new(resolver: &'r Resolver<'w>) -> Self {
        Self {
            resolver,
            known: FxHashMap::default(),
            frames: Interner::default(),
            files: Interner::default(),
        }
    }

    /// The frames at a spot, outermost first.
    #[inline]
    pub(super) fn frames(&mut self, spot: &Spot, mode: CpuMode, at: Place) -> &[u32] {
        if !self.known.contains_key(spot) {
            let frames = self.look_up(spot, mode, at);
            self.known.insert(*spot, frames);
        }
        self.known.get(spot).map_or(&[], |frames| frames)
    }

    #[cold]
    fn look_up(&mut self, spot: &Spot, mode: CpuMode, at: Place) -> Box<[u32]> {
        let frame = self.resolver.locate(at, mode, spot.ip);
        let mut calls = Vec::new();
        match spot.inlines {
            true => self.resolver.expand(&frame, &mut calls),
            false => calls.push(Call { frame, place: None }),
        }
        let outermost_first = (0..).zip(calls.iter().rev());
        outermost_first
            .map(|(depth, call)| self.number(call, depth))
            .collect()
    }

    fn number(&mut self, call: &Call<'r>, inline_depth: u32) -> u32 {
        let Frame {
            address,
            dso,
            symbol,
            level,
            ..
        } = call.frame;
        let place = call.place.filter(|place| place.line > 0);
        let place = place.map(|place| (self.files.number(place.path), place.line));
        self.frames.number(FrameKey {
            dso,
            symbol,
            level,
            address,
            inline_depth,
            place,
        })
    }

    /// Takes in what another worker looked up; the numbers that its frames have here.
    pub(super) fn merge(&mut self, later: Self) -> Vec<u32> {
        let files = self.files.merge(later.files.items(), |path| path);
        self.frames.merge(later.frames.items(), |frame| FrameKey {
            place: frame.place.map(|(file, line)| {
                let file = files.get(file as usize).copied();
                (file.unwrap_or_default(), line)
            }),
            ..*frame
        })
    }
}
