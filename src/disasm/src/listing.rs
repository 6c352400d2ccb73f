//! The instructions of one function.

use std::fmt::Write as _;
use std::ops::Range;

use rperf_insn::{Isa, Printed, Printer, Syntax};
use rperf_replay::Order;
use rperf_resolve::{Call, Frame, Resolver};

use crate::{Function, Hit};

/// The most bytes of code that are shown of one function.
const MOST: u64 = 16 << 20;

/// Why there is nothing to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCode {
    /// No file at hand has the code.
    Missing,
    /// The code is of an architecture that cannot be read.
    Foreign,
    /// The symbol covers no bytes.
    Empty,
}

/// Where the code of an instruction is in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site<'r> {
    /// The innermost function, as the source has it.
    pub function: &'r str,
    /// Whether it was inlined into the one that is listed.
    pub is_inlined: bool,
    /// The file's path, as far as the compiler told, and the line from 1.
    pub line: Option<(&'r str, u32)>,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'r> {
    /// Its address in the object.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it reads as, places with their names.
    pub text: String,
    /// What fell on it.
    pub hit: Hit,
    /// Its place in the source.
    pub site: Option<Site<'r>>,
}

/// A function's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<'r> {
    /// The address of the first in the object.
    pub start: u64,
    /// All of them.
    pub lines: Vec<Line<'r>>,
}

impl<'r> Listing<'r> {
    /// Lists `function` with its samples; with `sources` each instruction has its place in the source.
    ///
    /// # Errors
    ///
    /// Why nothing can be listed.
    pub fn new(
        resolver: &'r Resolver<'_>,
        function: &Function,
        syntax: Syntax,
        sources: bool,
    ) -> Result<Self, NoCode> {
        let symbol = resolver.symbol(function.symbol).ok_or(NoCode::Empty)?;
        let size = symbol.end.saturating_sub(symbol.start).min(MOST);
        let first = moved(
            &function.frame,
            symbol.start.wrapping_sub(function.frame.address),
        );
        let size = usize::try_from(size).map_err(|_| NoCode::Empty)?;
        if size == 0 {
            return Err(NoCode::Empty);
        }
        let code = resolver.code(&first, Order::MAX, size);
        let code = code.ok_or(NoCode::Missing)?;
        let isa = Isa::of_elf(code.file).ok_or(NoCode::Foreign)?;
        let walk = Walk {
            resolver,
            first,
            start: resolver.object_address(&first),
            sources,
        };
        let mut printer = Printer::new(isa, syntax);
        let mut lines = Vec::new();
        for part in walk.parts(code.bytes.len()) {
            walk.list(&code.bytes, part, &mut printer, &mut lines);
        }
        share_out(&mut lines, function, symbol.start, walk.start);
        Ok(Self {
            start: walk.start,
            lines,
        })
    }
}

/// The frame `bytes` further on.
fn moved(frame: &Frame, bytes: u64) -> Frame {
    Frame {
        ip: frame.ip.wrapping_add(bytes),
        address: frame.address.wrapping_add(bytes),
        ..*frame
    }
}

/// Gives each instruction what fell on its bytes.
fn share_out(lines: &mut [Line<'_>], function: &Function, symbol_start: u64, start: u64) {
    for (address, hit) in &function.hits {
        let shown = address.wrapping_sub(symbol_start).wrapping_add(start);
        let behind = lines.partition_point(|line| line.address <= shown);
        if let Some(line) = behind.checked_sub(1).and_then(|index| lines.get_mut(index)) {
            line.hit.add(*hit);
        }
    }
}

/// A way through the code of one function.
struct Walk<'r, 'w> {
    resolver: &'r Resolver<'w>,
    first: Frame,
    start: u64,
    sources: bool,
}

impl<'r> Walk<'r, '_> {
    /// The stretches of `size` bytes that are code: a symbol without a size reaches up to the next one, beyond its section.
    fn parts(&self, size: usize) -> Vec<Range<usize>> {
        let Some(sections) = self.resolver.code_sections(&self.first) else {
            return std::iter::once(0..size).collect();
        };
        let inside = |address: u64| {
            let bytes = address.saturating_sub(self.first.address);
            usize::try_from(bytes).map_or(size, |bytes| bytes.min(size))
        };
        let parts = sections
            .iter()
            .map(|section| inside(section.start)..inside(section.end));
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// Appends the instructions of a part of the code.
    fn list(
        &self,
        code: &[u8],
        part: Range<usize>,
        printer: &mut Printer,
        lines: &mut Vec<Line<'r>>,
    ) {
        let mut calls = Vec::new();
        let mut rest = part;
        while let Some(bytes) = code.get(rest.clone()) {
            let done = rest.start as u64;
            let address = self.start.wrapping_add(done);
            let mut text = String::new();
            let Some(printed) = printer.print(address, bytes, &mut text) else {
                return;
            };
            self.name(&printed, &mut text);
            let site = self.sources.then(|| self.site(done, &mut calls)).flatten();
            let length = printed.len.min(bytes.len());
            lines.push(Line {
                address,
                bytes: bytes[..length].to_vec(),
                text,
                hit: Hit::default(),
                site,
            });
            rest.start += length;
        }
    }

    /// Appends the names of the places that an instruction names or means.
    fn name(&self, printed: &Printed, text: &mut String) {
        if let Some(name) = printed.target.and_then(|place| self.symbol_at(place)) {
            text.push_str(&name);
        }
        if let Some(place) = printed.refers {
            // Writing to a string cannot fail.
            let _ = write!(text, "        # {place:x}");
            text.push_str(&self.symbol_at(place).unwrap_or_default());
        }
    }

    /// The symbol at an address of the object, and how far into it that is.
    fn symbol_at(&self, place: u64) -> Option<String> {
        let frame = moved(&self.first, place.wrapping_sub(self.start));
        let frame = self
            .resolver
            .in_mapping(frame.mapping?, frame.ip, frame.level);
        let symbol = frame.symbol?;
        let bytes = frame.address - self.resolver.symbol(symbol)?.start;
        let name = self.resolver.symbol_name(symbol);
        Some(match bytes {
            0 => format!(" <{name}>"),
            bytes => format!(" <{name}+0x{bytes:x}>"),
        })
    }

    fn site(&self, bytes: u64, calls: &mut Vec<Call<'r>>) -> Option<Site<'r>> {
        calls.clear();
        self.resolver.expand(&moved(&self.first, bytes), calls);
        let innermost = calls.first()?;
        let symbol = innermost.frame.symbol?;
        let line = innermost.place.filter(|place| place.line > 0);
        Some(Site {
            function: self.resolver.symbol_name(symbol),
            is_inlined: self.resolver.is_inlined(symbol),
            line: line.map(|place| (place.path, place.line)),
        })
    }
}
