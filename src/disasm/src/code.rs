//! A function's code without references to the tables it was read from, for interactive views.

use rperf_insn::InsnFlow;
use rperf_resolve::{Frame, Resolver, SymbolId};
use rustc_hash::FxHashMap;

use crate::listing::start_and_size;
use crate::{
    Arrow, HitCount, InstructionLine, Labels, LineSite, ListOptions, Listing, NoCode,
    SampledFunction,
};

/// A function's instructions and their samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCode {
    /// The function's name.
    pub name: String,
    /// The path of its object.
    pub object: String,
    /// Location of its first byte.
    pub start_location: CodeLocation,
    /// Start address in the object.
    pub start: u64,
    /// Its instructions, by ascending address.
    pub instructions: Vec<Instruction>,
    /// The source locations (sites) of instructions.
    pub sites: Vec<CodeSite>,
    /// The source files of these locations.
    pub files: Vec<String>,
    /// Samples of the whole function, by event.
    pub sums: Vec<HitCount>,
}

/// A location in code from which other locations in the same object can be found.
#[derive(Debug, Clone, Copy)]
pub struct CodeLocation(Frame);

/// Locations of the same code are equal, also in different processes, which may have mapped it at different addresses.
impl PartialEq for CodeLocation {
    fn eq(&self, other: &Self) -> bool {
        let place = |location: &Self| (location.0.dso, location.0.symbol, location.0.address);
        place(self) == place(other)
    }
}

impl Eq for CodeLocation {}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its address in the object.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Short disassembly.
    pub brief: String,
    /// Disassembly with addresses.
    pub full: String,
    /// Where control flow goes, unless only to the next instruction.
    pub arrow: Option<Arrow>,
    /// The target of a direct jump or call, if known.
    pub target: Option<BranchTarget>,
    /// Whether it is a call.
    pub is_call: bool,
    /// Number of jumps within the function to this instruction.
    pub jump_count: usize,
    /// Samples by event.
    pub hits: Vec<HitCount>,
    /// Index of its source location in [`FunctionCode::sites`].
    pub site: Option<usize>,
}

/// Target of a direct jump or call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchTarget {
    /// A jump to the instruction with this index in [`FunctionCode::instructions`].
    Within(usize),
    /// An address in the object: the target of a call, or of a jump that leads out of the function or into the middle of an
    /// instruction.
    To(u64),
}

/// A source location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSite {
    /// The innermost function in the source.
    pub function: String,
    /// Whether it is inlined into the listed function.
    pub is_inlined: bool,
    /// Index of the file in [`FunctionCode::files`], and the line from 1.
    pub line: Option<(usize, u32)>,
}

impl FunctionCode {
    /// Reads the code of `function`.
    ///
    /// # Errors
    ///
    /// The reason why the function can't be listed.
    pub fn new(
        resolver: &Resolver<'_>,
        function: &SampledFunction,
        options: ListOptions<'_>,
    ) -> Result<Self, NoCode> {
        let listing = Listing::new(resolver, function, options)?;
        let (start_frame, _) = start_and_size(resolver, function)?;
        let labels = Labels::new(&listing);
        let mut sites = SiteInterner::default();
        let instructions = listing.lines.iter().map(|line| Instruction {
            address: line.address,
            bytes: line.bytes.clone(),
            brief: labels.text(line).trim_end().to_owned(),
            full: line.full_text(),
            arrow: labels.arrow(line),
            target: branch_target(&listing, &labels, line),
            is_call: line.flow == InsnFlow::Call,
            jump_count: labels.jump_count(line),
            hits: line.hits.clone(),
            site: line.site.map(|site| sites.number(site)),
        });
        let instructions = instructions.collect();
        Ok(Self {
            name: resolver.symbol_name(function.symbol).to_owned(),
            object: resolver.world().dso(function.symbol.dso).long_name.clone(),
            start_location: CodeLocation::new(start_frame),
            start: listing.start,
            instructions,
            sites: sites.sites,
            files: sites.files,
            sums: function.sums.clone(),
        })
    }

    /// The address of an instruction in the process of the sample that `start_location` comes from.
    #[must_use]
    pub fn in_memory(&self, instruction: &Instruction) -> u64 {
        let offset = instruction.address.wrapping_sub(self.start);
        self.start_location.0.ip.wrapping_add(offset)
    }
}

impl CodeLocation {
    /// The location of a frame.
    #[must_use]
    pub const fn new(frame: Frame) -> Self {
        Self(frame)
    }

    /// The frame at an address of the same object, as in a listing; see [`Resolver::frame_in_object`].
    #[must_use]
    pub fn frame_at(&self, resolver: &Resolver<'_>, address: u64) -> Option<Frame> {
        resolver.frame_in_object(&self.0, address)
    }

    /// The function of the location.
    #[must_use]
    pub fn symbol(&self) -> Option<SymbolId> {
        self.0.symbol
    }
}

/// The target of a direct jump or call, if known.
fn branch_target(
    listing: &Listing<'_>,
    labels: &Labels<'_>,
    line: &InstructionLine<'_>,
) -> Option<BranchTarget> {
    let lines = &listing.lines;
    let find = |address| lines.binary_search_by_key(&address, |line| line.address);
    match labels.jump_within(line).map(find) {
        Some(Ok(index)) => Some(BranchTarget::Within(index)),
        _ if matches!(line.flow, InsnFlow::Jump | InsnFlow::Call) => {
            line.target.map(|target| BranchTarget::To(target.address))
        }
        _ => None,
    }
}

/// Numbers source locations and files, equal ones once.
#[derive(Default)]
struct SiteInterner<'r> {
    sites: Vec<CodeSite>,
    files: Vec<String>,
    site_numbers: FxHashMap<LineSite<'r>, usize>,
    file_numbers: FxHashMap<&'r str, usize>,
}

impl<'r> SiteInterner<'r> {
    fn number(&mut self, site: LineSite<'r>) -> usize {
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
