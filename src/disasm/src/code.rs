//! A function's code on its own, apart from the tables that it was read from: what browsers keep.

use rperf_insn::Flow;
use rperf_resolve::{Frame, Resolver, SymbolId};
use rustc_hash::FxHashMap;

use crate::listing::first;
use crate::{Arrow, Function, Hit, Labels, Line, ListOptions, Listing, NoCode, Site};

/// A function's instructions, and what fell on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The function's name.
    pub name: String,
    /// The path of its object.
    pub object: String,
    /// Its first byte.
    pub begin: Landmark,
    /// The address of that in the object.
    pub start: u64,
    /// All of its instructions, by rising address.
    pub instructions: Vec<Instruction>,
    /// The places in the source that instructions name.
    pub sites: Vec<CodeSite>,
    /// The paths of source files that places name.
    pub files: Vec<String>,
    /// What fell on all of it, by event.
    pub sums: Vec<Hit>,
}

/// A place in some code, from which other places of the same object are found. It is the same in every process that has the
/// object mapped.
#[derive(Debug, Clone, Copy)]
pub struct Landmark(Frame);

impl PartialEq for Landmark {
    fn eq(&self, other: &Self) -> bool {
        let place = |landmark: &Self| (landmark.0.dso, landmark.0.symbol, landmark.0.address);
        place(self) == place(other)
    }
}

impl Eq for Landmark {}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its address in the object.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it reads as in few words.
    pub brief: String,
    /// What it reads as, with addresses.
    pub full: String,
    /// Where control goes behind it, if not just to the next one.
    pub arrow: Option<Arrow>,
    /// Where that is, if it is told.
    pub goes: Option<Goes>,
    /// Whether it calls.
    pub is_call: bool,
    /// How many jumps within the function lead to it.
    pub sources: usize,
    /// What fell on it, by event.
    pub hits: Vec<Hit>,
    /// The number of its place among [`Code::sites`].
    pub site: Option<usize>,
}

/// Where an instruction leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    /// To the instruction of this number.
    Within(usize),
    /// Out of the function, to an address in the object.
    To(u64),
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSite {
    /// The innermost function, as the source has it.
    pub function: String,
    /// Whether it was inlined into the one that is listed.
    pub is_inlined: bool,
    /// The number of the file among [`Code::files`], and the line from 1.
    pub line: Option<(usize, u32)>,
}

impl Code {
    /// Reads the code of `function`.
    ///
    /// # Errors
    ///
    /// Why nothing can be listed.
    pub fn new(
        resolver: &Resolver<'_>,
        function: &Function,
        options: ListOptions<'_>,
    ) -> Result<Self, NoCode> {
        let listing = Listing::new(resolver, function, options)?;
        let (begin, _) = first(resolver, function)?;
        let labels = Labels::new(&listing);
        let mut sites = Sites::default();
        let instructions = listing.lines.iter().map(|line| Instruction {
            address: line.address,
            bytes: line.bytes.clone(),
            brief: labels.text(line).trim_end().to_owned(),
            full: line.full_text(),
            arrow: labels.arrow(line),
            goes: goes(&listing, &labels, line),
            is_call: line.flow == Flow::Call,
            sources: labels.sources(line),
            hits: line.hits.clone(),
            site: line.site.map(|site| sites.number(site)),
        });
        let instructions = instructions.collect();
        Ok(Self {
            name: resolver.symbol_name(function.symbol).to_owned(),
            object: resolver.world().dso(function.symbol.dso).long_name.clone(),
            begin: Landmark::new(begin),
            start: listing.start,
            instructions,
            sites: sites.sites,
            files: sites.files,
            sums: function.sums.clone(),
        })
    }

    /// The address of an instruction in the memory of a process that ran it.
    #[must_use]
    pub fn in_memory(&self, instruction: &Instruction) -> u64 {
        let bytes = instruction.address.wrapping_sub(self.start);
        self.begin.0.ip.wrapping_add(bytes)
    }
}

impl Landmark {
    /// The place of a frame.
    #[must_use]
    pub const fn new(frame: Frame) -> Self {
        Self(frame)
    }

    /// What lies at an address of the same object.
    #[must_use]
    pub fn beside(&self, resolver: &Resolver<'_>, address: u64) -> Option<Frame> {
        resolver.beside(&self.0, address)
    }

    /// The function that it is in.
    #[must_use]
    pub fn symbol(&self) -> Option<SymbolId> {
        self.0.symbol
    }
}

/// Where an instruction leads, as far as its words tell.
fn goes(listing: &Listing<'_>, labels: &Labels<'_>, line: &Line<'_>) -> Option<Goes> {
    let lines = &listing.lines;
    let number = |address| lines.binary_search_by_key(&address, |line| line.address);
    match labels.jump_within(line).map(number) {
        Some(Ok(number)) => Some(Goes::Within(number)),
        _ if matches!(line.flow, Flow::Jump | Flow::Call) => {
            line.target.map(|target| Goes::To(target.address))
        }
        _ => None,
    }
}

/// Places and files, each once.
#[derive(Default)]
struct Sites<'r> {
    sites: Vec<CodeSite>,
    files: Vec<String>,
    site_numbers: FxHashMap<Site<'r>, usize>,
    file_numbers: FxHashMap<&'r str, usize>,
}

impl<'r> Sites<'r> {
    fn number(&mut self, site: Site<'r>) -> usize {
        if let Some(number) = self.site_numbers.get(&site) {
            return *number;
        }
        let number = self.sites.len();
        self.site_numbers.insert(site, number);
        let line = site.line.map(|(path, line)| (self.file(path), line));
        self.sites.push(CodeSite {
            function: site.function.to_owned(),
            is_inlined: site.is_inlined,
            line,
        });
        number
    }

    fn file(&mut self, path: &'r str) -> usize {
        let next = self.files.len();
        let number = *self.file_numbers.entry(path).or_insert(next);
        if number == next {
            self.files.push(path.to_owned());
        }
        number
    }
}
