//! One function while it runs: its samples by instruction.

use rperf_replay::{EventIndex, Sample};
use rperf_resolve::{Frame, Place, Resolver};
use rustc_hash::FxHashMap;

use crate::fading::{Fade, fade_sum};
use crate::histogram::Sum;

/// A function whose samples are counted by address.
#[derive(Debug, Clone)]
pub struct Watched {
    symbol: String,
    /// The object's name, if only that one's function is meant.
    dso: Option<String>,
    /// Where a sample fell last; nothing is known of its place before.
    frame: Option<Frame>,
    sums: FxHashMap<(EventIndex, u64), Sum>,
}

impl Watched {
    /// A function by its name and that of its object, as rows show them.
    #[must_use]
    pub fn named(symbol: &str, dso: Option<&str>) -> Self {
        Self {
            symbol: symbol.to_owned(),
            dso: dso.map(str::to_owned),
            frame: None,
            sums: FxHashMap::default(),
        }
    }

    /// The function at a place; none where no symbol is known.
    #[must_use]
    pub fn at(resolver: &Resolver<'_>, frame: Frame) -> Option<Self> {
        let symbol = resolver.symbol_name(frame.symbol?);
        let dso = frame
            .dso
            .map(|dso| resolver.world().dso(dso).long_name.as_str());
        let named = Self::named(symbol, dso);
        let frame = Some(frame);
        Some(Self { frame, ..named })
    }

    /// Its name.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// Where it is, as soon as that is known.
    #[must_use]
    pub fn frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    /// What fell on its addresses, in terms of [`Frame::address`], by event.
    pub fn sums(&self) -> impl Iterator<Item = (EventIndex, u64, Sum)> {
        let sums = self.sums.iter();
        sums.map(|((event, address), sum)| (*event, *address, *sum))
    }

    /// Counts a sample, if it fell on the function.
    pub(crate) fn sample(&mut self, resolver: &Resolver<'_>, sample: &Sample<'_>) {
        let Some(ip) = sample.wire.ip else {
            return;
        };
        let place = Place::of(sample);
        let frame = resolver.locate(place, sample.cpu_mode(), ip);
        if !self.is_it(resolver, &frame) {
            return;
        }
        self.frame = Some(frame);
        let sum = self.sums.entry((sample.event, frame.address)).or_default();
        sum.add(Sum {
            period: sample.period,
            samples: 1,
            latency: 0,
        });
    }

    fn is_it(&self, resolver: &Resolver<'_>, frame: &Frame) -> bool {
        let Some(symbol) = frame.symbol else {
            return false;
        };
        if let Some(known) = &self.frame
            && known.symbol == frame.symbol
        {
            return true;
        }
        let dso = resolver.world().dso(symbol.dso);
        let in_dso = |wanted: &String| dso.is_called(wanted);
        resolver.symbol_name(symbol) == self.symbol && self.dso.as_ref().is_none_or(in_dso)
    }

    /// Lets older samples fade.
    pub(crate) fn fade(&mut self, fade: Fade) {
        match fade {
            Fade::Not => return,
            Fade::AtOnce => self.sums.clear(),
            Fade::Slowly => self.sums.values_mut().for_each(fade_sum),
        }
        self.sums.retain(|_, sum| sum.samples > 0 || sum.period > 0);
    }

    /// Mappings are no longer those that the place speaks of.
    pub(crate) fn forget_place(&mut self) {
        self.frame = None;
    }
}
