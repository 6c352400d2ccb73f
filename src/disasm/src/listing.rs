//! The instructions of one function.

use std::ops::Range;

use rperf_insn::{InsnFlow, Isa, Printed, Printer, Syntax};
use rperf_replay::Order;
use rperf_resolve::{CallFrame, Frame, Resolver};

use crate::{HitCount, InstructionLine, LineSite, ObjdumpListing, OperandAddress, SampledFunction};

/// Maximum number of bytes listed of a function.
const MAX_FUNCTION_BYTES: u64 = 16 << 20;

/// The reason why a function can't be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCode {
    /// No available file, image of the kernel or JIT dump contains the code.
    Missing,
    /// The architecture is not supported, and objdump's output is not given.
    Foreign,
    /// The symbol is unknown or covers no bytes.
    Empty,
}

/// A function's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<'r> {
    /// Start address in the object.
    pub start: u64,
    /// End address of the function, exclusive, at most 16 MiB after `start`. The object may have fewer bytes.
    pub end: u64,
    /// Its instructions.
    pub lines: Vec<InstructionLine<'r>>,
}

/// Options of a listing.
#[derive(Clone, Copy, Default)]
pub struct ListOptions<'o> {
    /// Operand syntax.
    pub syntax: Syntax,
    /// Whether to look up source locations.
    pub sources: bool,
    /// objdump's output for the function, if used for disassembly.
    pub objdump: Option<&'o ObjdumpListing>,
}

impl<'r> Listing<'r> {
    /// Lists `function` with its samples.
    ///
    /// # Errors
    ///
    /// The function can't be listed.
    pub fn new(
        resolver: &'r Resolver<'_>,
        function: &SampledFunction,
        options: ListOptions<'_>,
    ) -> Result<Self, NoCode> {
        let (start_frame, size) = start_and_size(resolver, function)?;
        let length = usize::try_from(size).map_err(|_| NoCode::Empty)?;
        // The kernel may modify its code: the code at the end of the recording is listed.
        let at_end = Order::MAX;
        let code = resolver.code(&start_frame, at_end, length);
        let code = code.ok_or(NoCode::Missing)?;
        let isa = Isa::of_elf(code.file);
        if isa.is_none() && options.objdump.is_none() {
            return Err(NoCode::Foreign);
        }
        let start = resolver.object_address(&start_frame);
        let walk = Walk {
            resolver,
            start_frame,
            start,
            options,
        };
        let mut printer = isa.map(|isa| Printer::new(isa, options.syntax));
        let mut lines = Vec::new();
        for part in walk.parts(code.bytes.len()) {
            walk.list(&code.bytes, part, printer.as_mut(), &mut lines);
        }
        assign_hits(&mut lines, function, start_frame.address, start);
        let end = start.saturating_add(size);
        Ok(Self { start, end, lines })
    }

    /// The listed addresses of a function in its object.
    ///
    /// # Errors
    ///
    /// [`NoCode::Empty`] if there are none.
    pub fn address_range(
        resolver: &Resolver<'_>,
        function: &SampledFunction,
    ) -> Result<Range<u64>, NoCode> {
        let (start_frame, size) = start_and_size(resolver, function)?;
        let start = resolver.object_address(&start_frame);
        Ok(start..start.saturating_add(size))
    }
}

/// The frame at the start of a function, and the number of bytes listed.
pub(crate) fn start_and_size(
    resolver: &Resolver<'_>,
    function: &SampledFunction,
) -> Result<(Frame, u64), NoCode> {
    let symbol = resolver.symbol(function.symbol).ok_or(NoCode::Empty)?;
    let size = symbol
        .end
        .saturating_sub(symbol.start)
        .min(MAX_FUNCTION_BYTES);
    // Wraps around if the frame is after the start; `moved` then wraps back.
    let to_start = symbol.start.wrapping_sub(function.frame.address);
    match size {
        0 => Err(NoCode::Empty),
        size => Ok((moved(&function.frame, to_start), size)),
    }
}

/// `frame` with its addresses moved forward by `bytes`.
fn moved(frame: &Frame, bytes: u64) -> Frame {
    Frame {
        ip: frame.ip.wrapping_add(bytes),
        address: frame.address.wrapping_add(bytes),
        ..*frame
    }
}

/// Assigns the hits of `function` to the instructions that contain their addresses, or else precede them. The function's start is
/// `symbol_start` in terms of [`Frame::address`], and `object_start` in the object.
fn assign_hits(
    lines: &mut [InstructionLine<'_>],
    function: &SampledFunction,
    symbol_start: u64,
    object_start: u64,
) {
    for line in &mut *lines {
        line.hits = vec![HitCount::default(); function.sums.len()];
    }
    for (address, event, hit) in &function.hits {
        let in_object = address
            .wrapping_sub(symbol_start)
            .wrapping_add(object_start);
        let after = lines.partition_point(|line| line.address <= in_object);
        let line = after.checked_sub(1).and_then(|index| lines.get_mut(index));
        if let Some(sum) = line.and_then(|line| line.hits.get_mut(*event)) {
            sum.add(*hit);
        }
    }
}

/// Disassembles the code of one function.
struct Walk<'r, 'w, 'o> {
    resolver: &'r Resolver<'w>,
    /// The frame at the start of the function.
    start_frame: Frame,
    /// The address of `start_frame` in the object.
    start: u64,
    options: ListOptions<'o>,
}

impl<'r> Walk<'r, '_, '_> {
    /// The parts of the function's `size` bytes that are in code sections; all of them if the sections are unknown. A symbol
    /// without a size extends to the next symbol, which may be in another section.
    fn parts(&self, size: usize) -> Vec<Range<usize>> {
        let Some(sections) = self.resolver.code_sections(&self.start_frame) else {
            return std::iter::once(0..size).collect();
        };
        // Sections are ranges of `Frame::address`, not of addresses in the object such as `self.start`.
        let offset = |address: u64| {
            let offset = address.saturating_sub(self.start_frame.address);
            usize::try_from(offset).map_or(size, |offset| offset.min(size))
        };
        let parts = sections
            .iter()
            .map(|section| offset(section.start)..offset(section.end));
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// Appends the instructions in the range `part` of `code`, up to the first that neither objdump nor `printer` disassembles.
    fn list(
        &self,
        code: &[u8],
        part: Range<usize>,
        mut printer: Option<&mut Printer>,
        lines: &mut Vec<InstructionLine<'r>>,
    ) {
        let mut calls = Vec::new();
        let mut rest = part;
        while let Some(bytes) = code.get(rest.clone()).filter(|bytes| !bytes.is_empty()) {
            let offset = rest.start as u64;
            let address = self.start.wrapping_add(offset);
            let mut text = String::new();
            let printed = self.print(address, bytes, printer.as_deref_mut(), &mut text);
            let Some(printed) = printed else {
                return;
            };
            let site = self.options.sources.then(|| self.site(offset, &mut calls));
            let length = printed.len.min(bytes.len());
            lines.push(InstructionLine {
                address,
                bytes: bytes[..length].to_vec(),
                text,
                flow: printed.flow,
                target: printed.target.map(|address| self.operand_address(address)),
                referenced: printed
                    .referenced
                    .map(|address| self.operand_address(address)),
                hits: Vec::new(),
                site: site.flatten(),
            });
            rest.start += length;
        }
    }

    /// Disassembles the instruction at the start of `bytes`: as objdump does, if its output has the instruction, otherwise with
    /// `printer`. `None` if neither is possible.
    fn print(
        &self,
        address: u64,
        bytes: &[u8],
        printer: Option<&mut Printer>,
        text: &mut String,
    ) -> Option<Printed> {
        let printed = printer.and_then(|printer| printer.print(address, bytes, text));
        let objdump = self.options.objdump.and_then(|objdump| objdump.at(address));
        let Some((len, instruction)) = objdump.filter(|(len, _)| *len <= bytes.len()) else {
            return printed;
        };
        text.clear();
        match printed.filter(|printed| printed.len == len) {
            // objdump's symbol and comment are removed: `InstructionLine::full_text` adds them, as for text of `printer`.
            Some(printed) if printed.target.or(printed.referenced).is_some() => {
                let without_symbol = instruction.split(" <").next().unwrap_or(instruction);
                let without_comment = without_symbol.split("  #").next();
                text.push_str(without_comment.unwrap_or(without_symbol).trim_end());
                Some(printed)
            }
            printed => {
                text.push_str(instruction);
                Some(Printed {
                    len,
                    flow: printed.map_or(InsnFlow::Next, |printed| printed.flow),
                    target: None,
                    referenced: None,
                })
            }
        }
    }

    /// An address of the object with its symbol.
    fn operand_address(&self, address: u64) -> OperandAddress<'r> {
        let frame = self.resolver.frame_in_object(&self.start_frame, address);
        let symbol = frame.and_then(|frame| {
            let symbol = frame.symbol?;
            let offset = frame.address - self.resolver.symbol(symbol)?.start;
            Some((self.resolver.symbol_name(symbol), offset))
        });
        OperandAddress { address, symbol }
    }

    /// The source location at an offset in the function; `None` if no function is known there. `calls` is a buffer.
    fn site(&self, offset: u64, calls: &mut Vec<CallFrame<'r>>) -> Option<LineSite<'r>> {
        calls.clear();
        self.resolver
            .expand(&moved(&self.start_frame, offset), calls);
        let innermost = calls.first()?;
        let symbol = innermost.frame.symbol?;
        let line = innermost.source_line.filter(|line| line.line > 0);
        Some(LineSite {
            function: self.resolver.symbol_name(symbol),
            is_inlined: self.resolver.is_inlined(symbol),
            line: line.map(|line| (line.path, line.line)),
        })
    }
}
