//! A function in a live view, whose samples are counted by address.

use rperf_replay::{DsoKind, EventIndex, Sample};
use rperf_resolve::{AddressContext, Frame, Resolver};
use rustc_hash::FxHashMap;

use crate::decaying::{Decay, decay_sum};
use crate::histogram::ColumnSum;

/// A function whose samples are counted by address.
#[derive(Debug, Clone)]
pub struct WatchedFunction {
    symbol: String,
    /// The object's short name or path; `None` for any object.
    dso: Option<String>,
    /// The last known frame in the function; `None` while the location of the function is unknown.
    frame: Option<Frame>,
    /// By event and [`Frame::address`].
    sums: FxHashMap<(EventIndex, u64), ColumnSum>,
}

impl WatchedFunction {
    /// Selects a function by its name and the name of its object, as shown in rows.
    #[must_use]
    pub fn named(symbol: &str, dso: Option<&str>) -> Self {
        Self {
            symbol: symbol.to_owned(),
            dso: dso.map(str::to_owned),
            frame: None,
            sums: FxHashMap::default(),
        }
    }

    /// Selects the function of a frame; `None` if it is unknown.
    #[must_use]
    pub fn at(resolver: &Resolver<'_>, frame: Frame) -> Option<Self> {
        let symbol = resolver.symbol_name(frame.symbol?);
        let dso = frame
            .dso
            .map(|dso| resolver.world().dso(dso).long_name.as_str());
        Some(Self {
            frame: Some(frame),
            ..Self::named(symbol, dso)
        })
    }

    /// The name of the function.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// The last known frame in the function, if any.
    #[must_use]
    pub fn frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    /// Returns each event and address ([`Frame::address`]) with the sum of its samples, unordered.
    pub fn sums(&self) -> impl Iterator<Item = (EventIndex, u64, ColumnSum)> {
        let sums = self.sums.iter();
        sums.map(|((event, address), sum)| (*event, *address, *sum))
    }

    /// Counts a sample if it is in the function.
    pub(crate) fn sample(&mut self, resolver: &Resolver<'_>, sample: &Sample<'_>) {
        let Some(ip) = sample.wire.ip else {
            return;
        };
        let at = AddressContext::of(sample);
        let frame = resolver.locate(at, sample.cpu_mode(), ip);
        if !self.contains(resolver, &frame) {
            return;
        }
        self.frame = Some(frame);
        let sum = self.sums.entry((sample.event, frame.address)).or_default();
        sum.add(ColumnSum {
            period: sample.period,
            samples: 1,
            // Not counted by address.
            latency: 0,
        });
    }

    fn contains(&self, resolver: &Resolver<'_>, frame: &Frame) -> bool {
        let Some(symbol) = frame.symbol else {
            return false;
        };
        let dso = resolver.world().dso(symbol.dso);
        // The ids of a perf map's functions may change when the map is read again: equal ids may be of different functions.
        let has_lasting_id = !matches!(dso.kind, DsoKind::PerfMap(_));
        if let Some(known) = &self.frame
            && has_lasting_id
            && known.symbol == frame.symbol
        {
            return true;
        }
        let in_dso = |wanted: &String| dso.has_name(wanted);
        resolver.symbol_name(symbol) == self.symbol && self.dso.as_ref().is_none_or(in_dso)
    }

    /// Decays the sums.
    pub(crate) fn decay(&mut self, decay: Decay) {
        match decay {
            Decay::Not => return,
            Decay::AtOnce => self.sums.clear(),
            Decay::Slowly => self.sums.values_mut().for_each(decay_sum),
        }
        self.sums.retain(|_, sum| sum.samples > 0 || sum.period > 0);
    }

    /// Discards the known frame, whose ids became invalid when objects were removed from the World (the processes and mappings at
    /// a time).
    pub(crate) fn discard_frame(&mut self) {
        self.frame = None;
    }
}
