//! Executed code between the branches of a sample, by instruction: `brstackinsn`.
//!
//! A branch stack has sources and targets; between two branches the code is executed sequentially. This code, from the target of
//! one branch to the source of the next, is a block.

use std::borrow::Cow;

use rperf_insn::{Isa, MAX_LEN, decode};
use rperf_replay::Sample;
use rperf_resolve::{AddressContext, Frame, Resolver};
use rperf_wire::{BranchEntry, CpuMode};

use crate::disassembly::Disassembler;
use crate::{LineBuilder, ResolvedAddress, SourceFileLine, SourceFiles};

/// Maximum distance from the start of a block to the instruction at its end, in bytes. With this instruction, a block has at most
/// 16 KiB, as in perf.
const MAX_CODE_RANGE: u64 = 16384 - MAX_LEN as u64;
/// Number of bytes after the target of the newest branch in which a missing branch is searched for, as in perf: if the sample is
/// before this target, a later branch was not recorded, and instructions are shown up to the first that may be this branch.
const MAX_SEARCHED_BYTES: u64 = 128;
/// Bit of [`BranchEntry::flags`]: the branch is the abort of a transaction.
const ABORTED: u64 = 1 << 3;

/// An element of the code flow.
#[derive(Debug)]
pub enum FlowStep<'s> {
    /// The function of the following instructions.
    Symbol(ResolvedAddress<'s>),
    /// An instruction.
    Insn(FlowInstruction<'s>),
    /// A taken branch.
    Branch(FlowInstruction<'s>, TakenBranch),
    /// The source line of the previous instruction.
    Source(SourceFileLine),
    /// The instructions of a block do not lead to its branch: the code is invalid or incomplete, or does not match the recorded
    /// branches.
    Mismatch,
    /// An instruction before the sample may be a branch: the code between it and the sample is unknown.
    NotReaching,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowInstruction<'s> {
    /// Its address in the process or in the kernel, as in the branch stack.
    pub ip: u64,
    /// Its bytes; `None` if there is no valid instruction.
    pub bytes: Option<&'s [u8]>,
    /// Its disassembly, with [`FlowOptions::disassemble`].
    pub text: Option<&'s str>,
}

/// The data of a taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenBranch {
    /// [`BranchEntry::flags`].
    pub flags: u64,
    /// Cycles since the previous branch.
    pub cycles: u64,
    /// Sum of `cycles` of the branches shown so far, from the oldest one to this one.
    pub total_cycles: u64,
    /// Instructions since the previous branch, including this one; 0 if unknown.
    pub instructions: u32,
}

/// Options of the code flow.
#[derive(Clone, Copy)]
pub struct FlowOptions<'a> {
    /// Maximum number of blocks per sample; `None` and 0 mean no limit.
    pub max_blocks: Option<usize>,
    /// Whether to disassemble instructions.
    pub disassemble: bool,
    /// Whether symbols have source locations.
    pub source_lines: bool,
    /// Provider of source text, if requested.
    pub sources: Option<&'a SourceFiles<'a>>,
}

/// Walks through the code between the branches of one sample.
pub struct BranchFlow<'a, 'r, 'w> {
    lines: &'a LineBuilder<'r, 'w>,
    options: FlowOptions<'a>,
    disassembler: Disassembler<'a, 'r, 'w>,
    /// Machine, process and time of the sample, for lookups of addresses.
    at: AddressContext,
    /// The mode of a block's start address, set by `read_block`.
    mode: CpuMode,
    /// Start and end of the function last passed to `step`, as addresses in its object. As in perf, the object itself is not
    /// compared.
    function: (u64, u64),
    total_cycles: u64,
}

/// The reason for which the code of a block is unavailable.
enum MissingCode {
    /// The block starts in the kernel and ends in user space, or vice versa.
    Crossing,
    /// The code or one of the addresses is unknown, or the block is too large.
    NoCode,
}

/// The code of a block up to the instruction at its end, and possibly some bytes after it. May end early.
struct BlockCode<'r> {
    start: u64,
    bytes: Cow<'r, [u8]>,
    isa: Isa,
}

impl BlockCode<'_> {
    /// The instruction at `offset`, and whether it may be a branch, as an invalid instruction may.
    fn at(&self, offset: usize) -> (FlowInstruction<'_>, bool) {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let insn = decode(self.isa, rest);
        // Here and in the functions that pass instructions, `code` is one instruction.
        let code = FlowInstruction {
            ip: self.start.wrapping_add(offset as u64),
            bytes: insn.and_then(|insn| rest.get(..insn.len)),
            text: None,
        };
        (code, insn.is_none_or(|insn| insn.is_branch))
    }
}

impl<'a, 'r, 'w> BranchFlow<'a, 'r, 'w> {
    /// Creates the walk for `sample`.
    #[must_use]
    pub fn new(
        lines: &'a LineBuilder<'r, 'w>,
        sample: &Sample<'_>,
        options: FlowOptions<'a>,
    ) -> Self {
        Self {
            lines,
            options,
            disassembler: Disassembler::new(lines, AddressContext::of(sample)),
            at: AddressContext::of(sample),
            mode: CpuMode::User,
            function: (0, 0),
            total_cycles: 0,
        }
    }

    /// Calls `step` for each element of the code flow of a sample at `ip`, in the order of execution. `entries` is its
    /// branch stack, newest branch first.
    pub fn walk(mut self, entries: &[BranchEntry], ip: u64, step: &mut dyn FnMut(FlowStep<'_>)) {
        // There is one block between two consecutive branches.
        let max_entries = self.options.max_blocks.filter(|max| *max > 0);
        let max_entries = max_entries.map_or(usize::MAX, |max| max.saturating_add(1));
        let entries = entries.get(..max_entries).unwrap_or(entries);
        let (Some(newest), Some(oldest)) = (entries.first(), entries.last()) else {
            return;
        };
        // The code before the oldest branch is unknown: only the branch instruction is shown.
        if let Ok(block) = self.read_block(oldest.from, oldest.from) {
            self.pass_function(oldest.from, step);
            let (branch, _) = block.at(0);
            let unknown = 0;
            self.pass_branch(block.isa, branch, oldest, unknown, step);
        }
        // From the oldest branch on: each block begins at the target of one branch and ends with the next newer branch.
        let mut index = entries.len() - 1;
        while index > 0 {
            let (Some(before), Some(mut taken)) = (entries.get(index), entries.get(index - 1))
            else {
                break;
            };
            index -= 1;
            let mut block = self.read_block(before.to, taken.from);
            if let Err(MissingCode::Crossing) = block
                && let Some(next) = index.checked_sub(1)
                && let Some(newer) = entries.get(next)
            {
                // Probably `taken` returns from the kernel, but the branch into the kernel was filtered out: the code before and
                // after the time in the kernel is one block, which ends at the next newer branch.
                (index, taken) = (next, newer);
                block = self.read_block(before.to, taken.from);
            }
            if let Ok(block) = block {
                self.pass_block(&block, taken, step);
            }
        }
        // If the sample is at the newest branch, the target of this branch has not been executed yet. As in perf, nothing is
        // shown after an abort either.
        let is_abort = newest.flags & ABORTED != 0;
        if newest.from != ip && !is_abort {
            self.pass_up_to_sample(newest.to, ip, step);
        }
    }

    /// Passes the instructions of a block to `step`, up to its branch.
    fn pass_block(
        &mut self,
        block: &BlockCode<'_>,
        taken: &BranchEntry,
        step: &mut dyn FnMut(FlowStep<'_>),
    ) {
        let branch_offset = taken.from.wrapping_sub(block.start);
        let mut offset = 0;
        let mut instructions = 0;
        while offset < block.bytes.len() {
            let (code, _) = block.at(offset);
            self.pass_function(code.ip, step);
            instructions += 1;
            if code.ip == taken.from {
                self.pass_branch(block.isa, code, taken, instructions, step);
                break;
            }
            step(FlowStep::Insn(self.with_text(block.isa, code)));
            let Some(bytes) = code.bytes else {
                break;
            };
            self.pass_source(code.ip, step);
            offset += bytes.len();
        }
        if offset as u64 != branch_offset {
            step(FlowStep::Mismatch);
        }
    }

    /// Passes the code from `start`, the target of the newest branch, to the sample at `ip`.
    ///
    /// The processor may have taken another branch that wasn't recorded: then the sample may be
    /// anywhere.
    fn pass_up_to_sample(&mut self, start: u64, ip: u64, step: &mut dyn FnMut(FlowStep<'_>)) {
        let end = if ip < start {
            start.saturating_add(MAX_SEARCHED_BYTES)
        } else {
            ip
        };
        let block = self.read_block(start, end);
        self.pass_function(start, step);
        let Ok(block) = block else {
            // As in perf, the sampled instruction is shown without its function, after the function at `start`.
            if let Ok(sampled) = self.read_block(ip, ip) {
                step(FlowStep::Insn(self.with_text(sampled.isa, sampled.at(0).0)));
                self.pass_source(ip, step);
            }
            return;
        };
        let mut offset = 0;
        while offset as u64 <= end - start {
            let (code, may_branch) = block.at(offset);
            step(FlowStep::Insn(self.with_text(block.isa, code)));
            let Some(bytes) = code.bytes else {
                break;
            };
            if may_branch && code.ip != ip {
                step(FlowStep::NotReaching);
                break;
            }
            self.pass_source(code.ip, step);
            offset += bytes.len();
        }
    }

    /// Passes the branch instruction `code` to `step`. `instructions` is [`TakenBranch::instructions`].
    fn pass_branch(
        &mut self,
        isa: Isa,
        code: FlowInstruction<'_>,
        entry: &BranchEntry,
        instructions: u32,
        step: &mut dyn FnMut(FlowStep<'_>),
    ) {
        let cycles = entry.cycles();
        self.total_cycles += cycles;
        let taken = TakenBranch {
            flags: entry.flags,
            cycles,
            total_cycles: self.total_cycles,
            instructions,
        };
        step(FlowStep::Branch(self.with_text(isa, code), taken));
        self.pass_source(code.ip, step);
    }

    /// Adds the disassembly, if requested.
    fn with_text<'s>(&'s mut self, isa: Isa, code: FlowInstruction<'s>) -> FlowInstruction<'s> {
        let bytes = code.bytes.filter(|_| self.options.disassemble);
        let text = bytes.map(|bytes| self.disassembler.text(isa, self.mode, code.ip, bytes));
        FlowInstruction { text, ..code }
    }

    /// Reads the code from `start` to the instruction at `end`, and sets the mode.
    fn read_block(&mut self, start: u64, end: u64) -> Result<BlockCode<'r>, MissingCode> {
        if start == 0 || end == 0 {
            return Err(MissingCode::NoCode);
        }
        self.mode = CpuMode::of_address(start);
        if self.mode != CpuMode::of_address(end) {
            return Err(MissingCode::Crossing);
        }
        let length = end.wrapping_sub(start);
        if length > MAX_CODE_RANGE {
            return Err(MissingCode::NoCode);
        }
        let max_bytes = usize::try_from(length).unwrap_or_default() + MAX_LEN;
        // `order`: the code as it was when the sample was taken.
        let code = self
            .resolver()
            .code(&self.frame(start), self.at.order, max_bytes);
        let code = code.filter(|code| !code.bytes.is_empty());
        let code = code.and_then(|code| Some((code.bytes, Isa::of_elf(code.file)?)));
        let (bytes, isa) = code.ok_or(MissingCode::NoCode)?;
        Ok(BlockCode { start, bytes, isa })
    }

    /// Passes the function at `ip` to `step`, unless it is the one passed last.
    fn pass_function(&mut self, ip: u64, step: &mut dyn FnMut(FlowStep<'_>)) {
        let frame = self.frame(ip);
        let (start, end) = self.function;
        if (start..end).contains(&frame.address) {
            return;
        }
        let Some(symbol) = frame.symbol else {
            return;
        };
        if let Some(range) = self.resolver().symbol(symbol) {
            self.function = (range.start, range.end);
        }
        step(FlowStep::Symbol(match self.options.source_lines {
            true => self.lines.resolved_with_line(&frame),
            false => self.lines.resolved(&frame),
        }));
    }

    /// Passes the source line at `ip` to `step`, if requested.
    fn pass_source(&self, ip: u64, step: &mut dyn FnMut(FlowStep<'_>)) {
        let Some(sources) = self.options.sources else {
            return;
        };
        let line = self.resolver().source_line(&self.frame(ip));
        if let Some(text) = line.and_then(|line| sources.line(line)) {
            step(FlowStep::Source(text));
        }
    }

    fn frame(&self, ip: u64) -> Frame {
        self.resolver().locate(self.at, self.mode, ip)
    }

    fn resolver(&self) -> &'r Resolver<'w> {
        self.lines.resolver()
    }
}
