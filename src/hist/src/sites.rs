//! From addresses to sites: what rows and call graphs tell apart of a frame.

use rperf_replay::Epoch;
use rperf_resolve::{Call, Frame, Place, Resolver, SourceLine};
use rperf_symbol::SymbolKind;
use rperf_wire::CpuMode;
use rustc_hash::FxHashMap;

use crate::facts::{self, Facts, RawFacts, locate_anywhere};
use crate::keys::{Line, Site};
use crate::marks::Mark;
use crate::options::Options;
use crate::payloads::Payloads;
use crate::select::{Choice, Select};
use crate::stacks::Interner;

/// Makes sites of frames.
pub(crate) struct Sites<'a, 'w> {
    resolver: &'a Resolver<'w>,
    lines: &'a Payloads,
    keys_show_lines: bool,
    keys_show_map_sizes: bool,
    full_paths: bool,
    places: bool,
    keys_show_offsets: bool,
    by_address: bool,
    by_line: bool,
    hide_unresolved: bool,
    select: Option<&'a dyn Select>,
    calls: Vec<Call<'a>>,
}

impl<'a, 'w> Sites<'a, 'w> {
    pub(crate) fn new(resolver: &'a Resolver<'w>, options: &Options, lines: &'a Payloads) -> Self {
        Self {
            resolver,
            lines,
            keys_show_lines: options.keys_show_lines(),
            keys_show_map_sizes: options.keys_show_map_sizes(),
            full_paths: options.full_paths,
            places: options.places,
            keys_show_offsets: options.keys_show_offsets(),
            by_address: options.graph.is_some_and(|graph| graph.by_address),
            by_line: options.graph.is_some_and(|graph| graph.by_line),
            hide_unresolved: options.hide_unresolved,
            select: None,
            calls: Vec::new(),
        }
    }

    /// The same for the samples that `select` chooses by their place.
    pub(crate) fn choosing(mut self, select: Option<&'a dyn Select>) -> Self {
        self.select = select;
        self
    }

    /// What looks them up.
    pub(crate) fn resolver(&self) -> &'a Resolver<'w> {
        self.resolver
    }

    /// Whether samples that fell there count.
    fn choice(&self, frame: &Frame) -> Choice {
        match self.select {
            _ if self.hides(frame) => Choice::Ignored,
            Some(select) => select.place(self.resolver, frame),
            None => Choice::Counted,
        }
    }

    fn hides(&self, frame: &Frame) -> bool {
        self.hide_unresolved && frame.symbol.is_none()
    }

    /// The site that a sample fell on.
    pub(crate) fn leaf(&self, frame: &Frame) -> Site {
        let place = match self.keys_show_lines {
            true => self.resolver.source_line(frame),
            false => None,
        };
        Site {
            line: self.line(frame, place),
            ..self.site(frame, frame.address)
        }
    }

    /// The sites of a frame of a callchain: that of the frame, after those of what is inlined there.
    fn chain(&mut self, frame: &Frame, inlines: bool, mut site: impl FnMut(Site)) {
        self.calls.clear();
        if inlines {
            self.resolver.expand(frame, &mut self.calls);
        } else {
            self.calls.push(Call {
                frame: *frame,
                place: self.place(frame),
            });
        }
        for call in &self.calls {
            site(self.caller(&call.frame, call.place));
        }
    }

    /// The line of a caller, if that is asked for.
    fn place(&self, frame: &Frame) -> Option<SourceLine<'a>> {
        let wanted = self.keys_show_lines || self.by_address || self.by_line;
        wanted.then(|| self.resolver.source_line(frame)).flatten()
    }

    fn caller(&self, frame: &Frame, place: Option<SourceLine<'_>>) -> Site {
        let mut site = self.site(frame, frame.ip);
        if self.keys_show_lines || self.by_address || self.by_line {
            site.line = self.line(frame, place);
        }
        if self.by_address && frame.symbol.is_some() {
            site.address = frame.address;
        }
        site
    }

    /// A function, or else `address`.
    fn site(&self, frame: &Frame, address: u64) -> Site {
        let mapping = frame.mapping.filter(|_| self.keys_show_map_sizes);
        let mapping = mapping.map(|mapping| self.resolver.world().mapping(mapping));
        let is_data = || {
            let symbol = frame.symbol.and_then(|symbol| self.resolver.symbol(symbol));
            symbol.is_some_and(|symbol| symbol.kind == SymbolKind::Variable)
        };
        Site {
            dso: frame.dso,
            symbol: frame.symbol,
            address: if frame.symbol.is_some() { 0 } else { address },
            place: match self.places {
                _ if self.keys_show_offsets || is_data() => frame.address,
                true => address,
                false => 0,
            },
            line: Line::None,
            level: frame.mapping.map(|_| frame.level),
            map_size: mapping.map(|mapping| mapping.end.wrapping_sub(mapping.start)),
            mark: None,
        }
    }

    fn line(&self, frame: &Frame, place: Option<SourceLine<'_>>) -> Line {
        // The vdso is in no file, even where a copy of it is known.
        let in_file = |dso| !self.resolver.world().dso(dso).is_vdso();
        if let Some(place) = place.filter(|_| frame.dso.is_none_or(in_file)) {
            let file = match self.full_paths {
                true => place.path,
                false => place.file_name(),
            };
            let text = format!("{file}:{}", place.line);
            return Line::Known(self.lines.number(text.as_bytes()));
        }
        if !self.keys_show_lines {
            return Line::None;
        }
        let symbol = frame
            .symbol
            .and_then(|id| Some((id, self.resolver.symbol(id)?)));
        let text = match (symbol, frame.dso) {
            (Some((id, symbol)), _) => {
                let offset = frame.address.wrapping_sub(symbol.start);
                format!("{}+{offset}", self.resolver.symbol_name(id))
            }
            (None, Some(dso)) => {
                let dso = self.resolver.world().dso(dso);
                format!("{}[{:x}]", dso.short_name, frame.address)
            }
            (None, None) => return Line::None,
        };
        Line::Address(self.lines.number(text.as_bytes()))
    }
}

/// All that the sites of an address depend on.
#[derive(PartialEq, Eq, Hash)]
struct Lookup {
    /// The epoch of the side of the border that the mode looks at.
    epoch: u64,
    mode: CpuMode,
    ip: u64,
}

/// Sites that were looked up before.
#[derive(Default)]
pub(crate) struct KnownSites {
    /// Of what samples fell on: addresses are shown in terms of the object there, as in perf.
    leaves: FxHashMap<Lookup, (u32, Choice)>,
    found: FxHashMap<Lookup, Found>,
    /// What is too long for [`Found`]: numbers of sites.
    inlined: Vec<u32>,
}

/// Addresses of an event that are known at most when a batch of stacks has its names.
const MOST_KNOWN: usize = 1 << 20;

impl KnownSites {
    /// Forgets them if they are many: address spaces come and go, and most won't be seen again.
    pub(crate) fn trim(&mut self) {
        if self.leaves.len() + self.found.len() > MOST_KNOWN {
            *self = Self::default();
        }
    }
}

/// Numbers of sites: the one, or that many from there on in [`KnownSites::inlined`].
#[derive(Clone, Copy)]
struct Found {
    start: u32,
    len: u32,
}

/// Finds the sites of one sample.
pub(crate) struct Finder<'f, 'a, 'w> {
    pub(crate) sites: &'f mut Sites<'a, 'w>,
    pub(crate) known: &'f mut KnownSites,
    /// All sites of the event.
    pub(crate) numbers: &'f mut Interner<Site>,
    pub(crate) at: Place,
    pub(crate) epoch: Epoch,
    /// Whether inlined functions are frames.
    pub(crate) inlines: bool,
}

impl Finder<'_, '_, '_> {
    /// The number of the site that the sample fell on, and whether the sample counts.
    pub(crate) fn leaf(&mut self, mode: CpuMode, ip: u64) -> (u32, Choice) {
        let lookup = self.lookup(mode, ip);
        let (sites, numbers, at) = (&self.sites, &mut self.numbers, self.at);
        *self.known.leaves.entry(lookup).or_insert_with(|| {
            let frame = sites.resolver.locate(at, mode, ip);
            (numbers.number(sites.leaf(&frame)), sites.choice(&frame))
        })
    }

    /// The same for the target of a branch, which may be on any side of the border between kernel and user space.
    pub(crate) fn target(&mut self, ip: u64) -> (u32, Choice) {
        let frame = locate_anywhere(self.sites.resolver, self.at, ip);
        // perf shows targets without a function by the address in the process.
        let site = self.sites.caller(&frame, None);
        (self.numbers.number(site), self.sites.choice(&frame))
    }

    /// The number of the site of one end of a branch; none where it is hidden.
    pub(crate) fn end(&mut self, ip: u64, mark: Mark) -> Option<u32> {
        let frame = locate_anywhere(self.sites.resolver, self.at, ip);
        if self.sites.hides(&frame) {
            return None;
        }
        let site = self.sites.caller(&frame, self.sites.place(&frame));
        let mark = Some(mark);
        Some(self.numbers.number(Site { mark, ..site }))
    }

    /// Appends the numbers of the sites of a frame to `frames`.
    pub(crate) fn append(&mut self, mode: CpuMode, ip: u64, frames: &mut Vec<u32>) {
        let lookup = self.lookup(mode, ip);
        match self.known.found.get(&lookup) {
            Some(found) if found.len == 1 => return frames.push(found.start),
            Some(found) => {
                let start = found.start as usize;
                let sites = &self.known.inlined[start..start + found.len as usize];
                return frames.extend_from_slice(sites);
            }
            None => {}
        }
        let frame = self.sites.resolver.locate(self.at, mode, ip);
        let from = frames.len();
        let numbers = &mut *self.numbers;
        if !self.sites.hides(&frame) {
            self.sites.chain(&frame, self.inlines, |site| {
                frames.push(numbers.number(site));
            });
        }
        let found = match frames[from..] {
            [start] => Found { start, len: 1 },
            ref more => {
                let start = self.known.inlined.len() as u32;
                self.known.inlined.extend_from_slice(more);
                let len = more.len() as u32;
                Found { start, len }
            }
        };
        self.known.found.insert(lookup, found);
    }

    /// What keys read besides of the sample at `ip`.
    pub(crate) fn facts(&self, mode: CpuMode, raw: &RawFacts, ip: u64) -> Facts {
        let finder = facts::Finder {
            sites: self.sites,
            resolver: self.sites.resolver,
            at: self.at,
            mode,
        };
        finder.facts(raw, ip)
    }

    fn lookup(&self, mode: CpuMode, ip: u64) -> Lookup {
        Lookup {
            epoch: self.epoch.side(mode),
            mode,
            ip,
        }
    }
}
