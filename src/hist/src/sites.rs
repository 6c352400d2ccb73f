//! Sites: the properties of a frame by which rows and call graphs distinguish frames.

use rperf_replay::Epoch;
use rperf_resolve::{AddressContext, CallFrame, Frame, Resolver, SourceLine};
use rperf_symbol::SymbolKind;
use rperf_wire::CpuMode;
use rustc_hash::FxHashMap;

use crate::keys::{CodeSite, LocationText};
use crate::marks::BranchMark;
use crate::options::HistogramOptions;
use crate::payloads::TextPool;
use crate::properties::{self, Properties, RawProperties, locate_anywhere};
use crate::select::{SampleTreatment, SelectSamples};
use crate::stacks::Interner;

/// Creates sites from frames.
pub(crate) struct SiteBuilder<'a, 'w> {
    resolver: &'a Resolver<'w>,
    /// The texts of source lines, for [`CodeSite::line`].
    lines: &'a TextPool,
    keys_show_lines: bool,
    keys_show_map_sizes: bool,
    full_paths: bool,
    /// Whether symbols are shown with an address; see [`HistogramOptions::addresses`].
    addresses: bool,
    keys_show_offsets: bool,
    /// Whether call graphs distinguish frames of a function by address.
    by_address: bool,
    /// Whether call graphs distinguish frames of a function by source line.
    by_line: bool,
    hide_unresolved: bool,
    select: Option<&'a dyn SelectSamples>,
    /// Buffer for the functions at a frame.
    calls: Vec<CallFrame<'a>>,
}

impl<'a, 'w> SiteBuilder<'a, 'w> {
    pub(crate) fn new(
        resolver: &'a Resolver<'w>,
        options: &HistogramOptions,
        lines: &'a TextPool,
    ) -> Self {
        Self {
            resolver,
            lines,
            keys_show_lines: options.keys_show_lines(),
            keys_show_map_sizes: options.keys_show_map_sizes(),
            full_paths: options.full_paths,
            addresses: options.addresses,
            keys_show_offsets: options.keys_show_offsets(),
            by_address: options.graph.is_some_and(|graph| graph.by_address),
            by_line: options.graph.is_some_and(|graph| graph.by_line),
            hide_unresolved: options.hide_unresolved,
            select: None,
            calls: Vec::new(),
        }
    }

    /// Lets `select` decide by the location of samples how they are treated.
    pub(crate) fn with_select(mut self, select: Option<&'a dyn SelectSamples>) -> Self {
        self.select = select;
        self
    }

    /// The address resolver.
    pub(crate) fn resolver(&self) -> &'a Resolver<'w> {
        self.resolver
    }

    /// The treatment of samples in this frame.
    fn treatment(&self, frame: &Frame) -> SampleTreatment {
        match self.select {
            _ if self.hides(frame) => SampleTreatment::Ignored,
            Some(select) => select.frame(self.resolver, frame),
            None => SampleTreatment::Counted,
        }
    }

    fn hides(&self, frame: &Frame) -> bool {
        self.hide_unresolved && frame.symbol.is_none()
    }

    /// The site of a sampled location, or of an address among the sample's properties. Without a function, it has the address in
    /// the object.
    pub(crate) fn leaf(&self, frame: &Frame) -> CodeSite {
        let source_line = match self.keys_show_lines {
            true => self.resolver.source_line(frame),
            false => None,
        };
        CodeSite {
            line: self.line(frame, source_line),
            ..self.site(frame, frame.address)
        }
    }

    /// Passes the sites of a callchain frame to `visit`: with `inlines`, the functions inlined there, innermost first, then the
    /// frame itself.
    fn chain(&mut self, frame: &Frame, inlines: bool, mut visit: impl FnMut(CodeSite)) {
        self.calls.clear();
        if inlines {
            self.resolver.expand(frame, &mut self.calls);
        } else {
            self.calls.push(CallFrame {
                frame: *frame,
                source_line: self.source_line(frame),
            });
        }
        for call in &self.calls {
            visit(self.chain_site(&call.frame, call.source_line));
        }
    }

    /// The source line of a frame of a callchain, if used.
    fn source_line(&self, frame: &Frame) -> Option<SourceLine<'a>> {
        let is_used = self.keys_show_lines || self.by_address || self.by_line;
        is_used.then(|| self.resolver.source_line(frame)).flatten()
    }

    /// The site of a frame of a callchain, or of an end of a branch. Without a function, it has the recorded address.
    fn chain_site(&self, frame: &Frame, source_line: Option<SourceLine<'_>>) -> CodeSite {
        let mut site = self.site(frame, frame.ip);
        if self.keys_show_lines || self.by_address || self.by_line {
            site.line = self.line(frame, source_line);
        }
        if self.by_address && frame.symbol.is_some() {
            site.address = frame.address;
        }
        site
    }

    /// The site of a frame without its source line: its function if known, otherwise `address`.
    fn site(&self, frame: &Frame, address: u64) -> CodeSite {
        let mapping = frame.mapping.filter(|_| self.keys_show_map_sizes);
        let mapping = mapping.map(|mapping| self.resolver.world().mapping(mapping));
        let is_data = || {
            let symbol = frame.symbol.and_then(|symbol| self.resolver.symbol(symbol));
            symbol.is_some_and(|symbol| symbol.kind == SymbolKind::Variable)
        };
        CodeSite {
            dso: frame.dso,
            symbol: frame.symbol,
            address: if frame.symbol.is_some() { 0 } else { address },
            shown_address: match self.addresses {
                // The offset in a function, if a key shows it, and that in a variable are computed from this address.
                _ if self.keys_show_offsets || is_data() => frame.address,
                true => address,
                false => 0,
            },
            line: LocationText::None,
            level: frame.mapping.map(|_| frame.level),
            map_size: mapping.map(|mapping| mapping.end.wrapping_sub(mapping.start)),
            mark: None,
        }
    }

    fn line(&self, frame: &Frame, source_line: Option<SourceLine<'_>>) -> LocationText {
        // The vdso has no file, even if a copy of it is known.
        let in_file = |dso| !self.resolver.world().dso(dso).is_vdso();
        if let Some(source_line) = source_line.filter(|_| frame.dso.is_none_or(in_file)) {
            let file = match self.full_paths {
                true => source_line.path,
                false => source_line.file_name(),
            };
            let text = format!("{file}:{}", source_line.line);
            return LocationText::Known(self.lines.intern(text.as_bytes()));
        }
        if !self.keys_show_lines {
            return LocationText::None;
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
            (None, None) => return LocationText::None,
        };
        LocationText::Address(self.lines.intern(text.as_bytes()))
    }
}

/// The inputs of an address lookup.
#[derive(PartialEq, Eq, Hash)]
struct AddressLookup {
    /// The epoch (a number for the state of the mappings) of the kernel or user part of the address space, depending on `mode`.
    epoch: u64,
    mode: CpuMode,
    ip: u64,
}

/// Cached sites.
#[derive(Default)]
pub(crate) struct KnownSites {
    /// Sampled locations. They are cached separately, since, as in perf, addresses without a function are shown relative to
    /// the object, but in callchains as recorded.
    leaves: FxHashMap<AddressLookup, (u32, SampleTreatment)>,
    /// Frames of callchains.
    chain_sites: FxHashMap<AddressLookup, SiteRange>,
    /// Site indices of frames with inlined functions. The range of a hidden frame is empty.
    inlined: Vec<u32>,
}

/// Maximum number of cached addresses of an event after a batch of stacks.
const MAX_CACHED: usize = 1 << 20;

impl KnownSites {
    /// Clears the cache if it is large: address spaces are short-lived, and most won't be seen
    /// again.
    pub(crate) fn trim(&mut self) {
        if self.leaves.len() + self.chain_sites.len() > MAX_CACHED {
            *self = Self::default();
        }
    }
}

/// Site indices: if `len` is 1, only the index `start`; otherwise a range in [`KnownSites::inlined`].
#[derive(Clone, Copy)]
struct SiteRange {
    start: u32,
    len: u32,
}

/// Finds the sites of the frames of one stack.
pub(crate) struct SiteFinder<'f, 'a, 'w> {
    pub(crate) builder: &'f mut SiteBuilder<'a, 'w>,
    pub(crate) known: &'f mut KnownSites,
    /// All sites of the event.
    pub(crate) sites: &'f mut Interner<CodeSite>,
    pub(crate) at: AddressContext,
    /// The state of the mappings: samples with equal epochs have the same site at an address.
    pub(crate) epoch: Epoch,
    /// Whether inlined functions are frames.
    pub(crate) inlines: bool,
}

impl SiteFinder<'_, '_, '_> {
    /// The index of the sampled site, and the treatment of the sample.
    pub(crate) fn leaf(&mut self, mode: CpuMode, ip: u64) -> (u32, SampleTreatment) {
        let lookup = self.lookup(mode, ip);
        let (builder, sites, at) = (&self.builder, &mut self.sites, self.at);
        *self.known.leaves.entry(lookup).or_insert_with(|| {
            let frame = builder.resolver.locate(at, mode, ip);
            let site = sites.intern(builder.leaf(&frame));
            (site, builder.treatment(&frame))
        })
    }

    /// Like [`SiteFinder::leaf`] for a branch target, which may be in kernel or user space.
    pub(crate) fn target(&mut self, ip: u64) -> (u32, SampleTreatment) {
        let frame = locate_anywhere(self.builder.resolver, self.at, ip);
        // Not `SiteBuilder::leaf`: perf shows targets without a function by their address in the process. Without a source line,
        // keys for source lines show function and offset.
        let no_source_line = None;
        let site = self.builder.chain_site(&frame, no_source_line);
        (self.sites.intern(site), self.builder.treatment(&frame))
    }

    /// The index of the site of a frame at which a branch starts or ends; `None` if it is hidden.
    pub(crate) fn branch_end(&mut self, ip: u64, mark: BranchMark) -> Option<u32> {
        let frame = locate_anywhere(self.builder.resolver, self.at, ip);
        if self.builder.hides(&frame) {
            return None;
        }
        let site = self
            .builder
            .chain_site(&frame, self.builder.source_line(&frame));
        let mark = Some(mark);
        Some(self.sites.intern(CodeSite { mark, ..site }))
    }

    /// Appends the indices of a frame's sites to `frames`; none if it is hidden.
    pub(crate) fn append(&mut self, mode: CpuMode, ip: u64, frames: &mut Vec<u32>) {
        let lookup = self.lookup(mode, ip);
        match self.known.chain_sites.get(&lookup) {
            Some(range) if range.len == 1 => return frames.push(range.start),
            Some(range) => {
                let start = range.start as usize;
                let known = &self.known.inlined[start..start + range.len as usize];
                return frames.extend_from_slice(known);
            }
            None => {}
        }
        let frame = self.builder.resolver.locate(self.at, mode, ip);
        let from = frames.len();
        let sites = &mut *self.sites;
        if !self.builder.hides(&frame) {
            self.builder.chain(&frame, self.inlines, |site| {
                frames.push(sites.intern(site));
            });
        }
        let range = match frames[from..] {
            [start] => SiteRange { start, len: 1 },
            ref none_or_several => {
                let start = self.known.inlined.len() as u32;
                self.known.inlined.extend_from_slice(none_or_several);
                let len = none_or_several.len() as u32;
                SiteRange { start, len }
            }
        };
        self.known.chain_sites.insert(lookup, range);
    }

    /// Resolves the addresses in the properties of a sample at `ip`.
    pub(crate) fn properties(&self, mode: CpuMode, raw: &RawProperties, ip: u64) -> Properties {
        let resolver = properties::PropertyResolver {
            builder: self.builder,
            resolver: self.builder.resolver,
            at: self.at,
            mode,
        };
        resolver.properties(raw, ip)
    }

    fn lookup(&self, mode: CpuMode, ip: u64) -> AddressLookup {
        AddressLookup {
            epoch: self.epoch.of_mode(mode),
            mode,
            ip,
        }
    }
}
