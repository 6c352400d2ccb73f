//! The code that ran between the branches of a sample, instruction by instruction: `brstackinsn`.
//!
//! A branch stack says where the processor came from and went to; between two branches it can only have run straight on.

use std::borrow::Cow;

use rperf_insn::{Isa, MAX_LEN, decode};
use rperf_replay::Sample;
use rperf_resolve::{Frame, Place, Resolver};
use rperf_wire::{BranchEntry, CpuMode};

use crate::disassembly::Disassembler;
use crate::{Lines, SourceFiles, SourceText, Spot};

/// The longest stretch between two branches that is shown, in bytes.
const MAX_STRETCH: u64 = 16384 - MAX_LEN as u64;
/// Bytes that are searched for a branch where the last one is missing.
const SEARCHED: u64 = 128;
/// Addresses from here on are the kernel's.
const KERNEL_START: u64 = 1 << 63;

/// What is shown of the code between branches.
#[derive(Debug)]
pub enum Step<'s> {
    /// The function that the next instruction is in.
    Symbol(Spot<'s>),
    /// An instruction.
    Insn(Code<'s>),
    /// An instruction that branched.
    Branch(Code<'s>, Taken),
    /// The line of source of the instruction before.
    Source(SourceText),
    /// The stretch has no instruction at the address of the branch.
    Mismatch,
    /// There is a branch that was not recorded before the sample.
    NotReaching,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code<'s> {
    /// Its address as sampled.
    pub ip: u64,
    /// Its bytes; `None` where there is no instruction.
    pub bytes: Option<&'s [u8]>,
    /// What it reads as, where [`FlowOptions::texts`] asks for that.
    pub text: Option<&'s str>,
}

/// How a branch was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// [`BranchEntry::flags`].
    pub flags: u64,
    /// Cycles since the branch before.
    pub cycles: u64,
    /// Cycles since the first branch.
    pub total_cycles: u64,
    /// Instructions since the branch before, this one included; 0 where that is not known.
    pub instructions: u32,
}

/// What is wanted of the flow of code.
#[derive(Clone, Copy)]
pub struct FlowOptions<'a> {
    /// Stretches that are shown of each sample.
    pub max_blocks: Option<usize>,
    /// Whether instructions have their text.
    pub texts: bool,
    /// Whether symbols have the place in the source.
    pub places: bool,
    /// Where the text of source comes from, if it is wanted.
    pub sources: Option<&'a SourceFiles<'a>>,
}

/// The walk over the branches of one sample.
pub struct Flow<'a, 'r, 'w> {
    lines: &'a Lines<'r, 'w>,
    options: FlowOptions<'a>,
    disassembler: Disassembler<'a, 'r, 'w>,
    at: Place,
    mode: CpuMode,
    /// Start and end of the symbol that was named last.
    symbol: (u64, u64),
    total_cycles: u64,
}

/// Why the bytes of a stretch are not to be had.
enum Missing {
    /// It begins in the kernel and ends in user space, or the other way round.
    Crossing,
    /// It has no code, or too much.
    NoCode,
}

/// Code from the start of a stretch to an instruction behind its end.
struct Stretch<'r> {
    start: u64,
    bytes: Cow<'r, [u8]>,
    isa: Isa,
}

impl Stretch<'_> {
    /// The instruction at `offset`, and whether it may branch; what is no instruction may.
    fn at(&self, offset: usize) -> (Code<'_>, bool) {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let insn = decode(self.isa, rest);
        let code = Code {
            ip: self.start.wrapping_add(offset as u64),
            bytes: insn.and_then(|insn| rest.get(..insn.len)),
            text: None,
        };
        (code, insn.is_none_or(|insn| insn.is_branch))
    }
}

impl<'a, 'r, 'w> Flow<'a, 'r, 'w> {
    /// A walk over `sample`.
    #[must_use]
    pub fn new(lines: &'a Lines<'r, 'w>, sample: &Sample<'_>, options: FlowOptions<'a>) -> Self {
        Self {
            lines,
            options,
            disassembler: Disassembler::new(lines, Place::of(sample)),
            at: Place::of(sample),
            mode: CpuMode::User,
            symbol: (0, 0),
            total_cycles: 0,
        }
    }

    /// Calls `step` for all that is shown of the branches `entries`, newest first, of a sample at `ip`.
    pub fn walk(mut self, entries: &[BranchEntry], ip: u64, step: &mut dyn FnMut(Step<'_>)) {
        let shown = self.options.max_blocks.filter(|max| *max > 0);
        let shown = shown.map_or(usize::MAX, |max| max.saturating_add(1));
        let entries = entries.get(..shown).unwrap_or(entries);
        let (Some(newest), Some(oldest)) = (entries.first(), entries.last()) else {
            return;
        };
        // Where the oldest branch came from is all that is known of the code before it.
        if let Ok(stretch) = self.stretch(oldest.from, oldest.from) {
            self.name(oldest.from, step);
            self.branch(stretch.isa, stretch.at(0).0, oldest, 0, step);
        }
        let mut index = entries.len() - 1;
        while let Some(before) = entries.get(index).filter(|_| index > 0) {
            index -= 1;
            let Some(mut taken) = entries.get(index) else {
                break;
            };
            let mut stretch = self.stretch(before.to, taken.from);
            if let Err(Missing::Crossing) = stretch
                && let Some(next) = index.checked_sub(1)
                && let Some(newer) = entries.get(next)
            {
                // The branch into the kernel is filtered out, that out of it is not.
                (index, taken) = (next, newer);
                stretch = self.stretch(before.to, taken.from);
            }
            if let Ok(stretch) = stretch {
                self.between(&stretch, taken, step);
            }
        }
        let aborted = newest.flags >> 3 & 1 == 1;
        if newest.from != ip && !aborted {
            self.up_to_sample(newest.to, ip, step);
        }
    }

    /// The code of a stretch up to its branch.
    fn between(
        &mut self,
        stretch: &Stretch<'_>,
        taken: &BranchEntry,
        step: &mut dyn FnMut(Step<'_>),
    ) {
        let length = taken.from.wrapping_sub(stretch.start);
        let mut offset = 0;
        let mut instructions = 0;
        while offset < stretch.bytes.len() {
            let (code, _) = stretch.at(offset);
            self.name(code.ip, step);
            instructions += 1;
            if code.ip == taken.from {
                self.branch(stretch.isa, code, taken, instructions, step);
                break;
            }
            step(Step::Insn(self.with_text(stretch.isa, code)));
            let Some(bytes) = code.bytes else {
                break;
            };
            self.source(code.ip, step);
            offset += bytes.len();
        }
        if offset as u64 != length {
            step(Step::Mismatch);
        }
    }

    /// The code from the target of the newest branch to the sample at `ip`.
    ///
    /// The processor may have branched once more without a record of it: the sample then lies anywhere.
    fn up_to_sample(&mut self, start: u64, ip: u64, step: &mut dyn FnMut(Step<'_>)) {
        let end = if ip < start {
            start.saturating_add(SEARCHED)
        } else {
            ip
        };
        let stretch = self.stretch(start, end);
        self.name(start, step);
        let Ok(stretch) = stretch else {
            if let Ok(alone) = self.stretch(ip, ip) {
                step(Step::Insn(self.with_text(alone.isa, alone.at(0).0)));
                self.source(ip, step);
            }
            return;
        };
        let mut offset = 0;
        while offset as u64 <= end - start {
            let (code, may_branch) = stretch.at(offset);
            step(Step::Insn(self.with_text(stretch.isa, code)));
            let Some(bytes) = code.bytes else {
                break;
            };
            if may_branch && code.ip != ip {
                step(Step::NotReaching);
                break;
            }
            self.source(code.ip, step);
            offset += bytes.len();
        }
    }

    fn branch(
        &mut self,
        isa: Isa,
        code: Code<'_>,
        entry: &BranchEntry,
        instructions: u32,
        step: &mut dyn FnMut(Step<'_>),
    ) {
        let cycles = entry.cycles();
        self.total_cycles += cycles;
        let taken = Taken {
            flags: entry.flags,
            cycles,
            total_cycles: self.total_cycles,
            instructions,
        };
        step(Step::Branch(self.with_text(isa, code), taken));
        self.source(code.ip, step);
    }

    /// `code` with what it reads as, if that is wanted.
    fn with_text<'s>(&'s mut self, isa: Isa, code: Code<'s>) -> Code<'s> {
        let bytes = code.bytes.filter(|_| self.options.texts);
        let text = bytes.map(|bytes| self.disassembler.text(isa, self.mode, code.ip, bytes));
        Code { text, ..code }
    }

    /// Reads the code from `start` to an instruction behind `end`, and notes in which mode it ran.
    fn stretch(&mut self, start: u64, end: u64) -> Result<Stretch<'r>, Missing> {
        if start == 0 || end == 0 {
            return Err(Missing::NoCode);
        }
        let in_kernel = start >= KERNEL_START;
        self.mode = if in_kernel {
            CpuMode::Kernel
        } else {
            CpuMode::User
        };
        if in_kernel != (end >= KERNEL_START) {
            return Err(Missing::Crossing);
        }
        let length = end.wrapping_sub(start);
        if length > MAX_STRETCH {
            return Err(Missing::NoCode);
        }
        let longest = usize::try_from(length).unwrap_or_default() + MAX_LEN;
        let found = self
            .resolver()
            .code(&self.frame(start), self.at.order, longest);
        let found = found.filter(|found| !found.bytes.is_empty());
        let found = found.and_then(|found| Some((found.bytes, Isa::of_elf(found.file)?)));
        let (bytes, isa) = found.ok_or(Missing::NoCode)?;
        Ok(Stretch { start, bytes, isa })
    }

    /// Names the function at `ip`, unless it is the one that was named last.
    fn name(&mut self, ip: u64, step: &mut dyn FnMut(Step<'_>)) {
        let frame = self.frame(ip);
        let (start, end) = self.symbol;
        if (start..end).contains(&frame.address) {
            return;
        }
        let Some(symbol) = frame.symbol else {
            return;
        };
        if let Some(range) = self.resolver().symbol(symbol) {
            self.symbol = (range.start, range.end);
        }
        step(Step::Symbol(match self.options.places {
            true => self.lines.spot_in_source(&frame),
            false => self.lines.spot(&frame),
        }));
    }

    /// The text of the source at `ip`, if it is wanted.
    fn source(&self, ip: u64, step: &mut dyn FnMut(Step<'_>)) {
        let Some(sources) = self.options.sources else {
            return;
        };
        let place = self.resolver().source_line(&self.frame(ip));
        if let Some(text) = place.and_then(|place| sources.line(place)) {
            step(Step::Source(text));
        }
    }

    fn frame(&self, ip: u64) -> Frame {
        self.resolver().locate(self.at, self.mode, ip)
    }

    fn resolver(&self) -> &'r Resolver<'w> {
        self.lines.resolver()
    }
}
