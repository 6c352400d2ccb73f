//! The instructions of one function.

use std::ops::Range;

use rperf_insn::{Flow, Isa, Printed, Printer, Syntax};
use rperf_replay::Order;
use rperf_resolve::{Call, Frame, Resolver};

use crate::{Function, Hit, Line, Named, Site, Told};

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

/// A function's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<'r> {
    /// The address of the first in the object.
    pub start: u64,
    /// That behind the last byte of the function.
    pub end: u64,
    /// All of them.
    pub lines: Vec<Line<'r>>,
}

/// How code is listed.
#[derive(Clone, Copy, Default)]
pub struct ListOptions<'o> {
    /// How operands are written.
    pub syntax: Syntax,
    /// Whether each instruction has its place in the source.
    pub sources: bool,
    /// What objdump printed of the function, where its words are wanted.
    pub told: Option<&'o Told>,
}

impl<'r> Listing<'r> {
    /// Lists `function` with its samples.
    ///
    /// # Errors
    ///
    /// Why nothing can be listed.
    pub fn new(
        resolver: &'r Resolver<'_>,
        function: &Function,
        options: ListOptions<'_>,
    ) -> Result<Self, NoCode> {
        let (first, size) = first(resolver, function)?;
        let length = usize::try_from(size).map_err(|_| NoCode::Empty)?;
        let code = resolver.code(&first, Order::MAX, length);
        let code = code.ok_or(NoCode::Missing)?;
        let isa = Isa::of_elf(code.file);
        if isa.is_none() && options.told.is_none() {
            return Err(NoCode::Foreign);
        }
        let start = resolver.object_address(&first);
        let walk = Walk {
            resolver,
            first,
            start,
            options,
        };
        let mut printer = isa.map(|isa| Printer::new(isa, options.syntax));
        let mut lines = Vec::new();
        for part in walk.parts(code.bytes.len()) {
            walk.list(&code.bytes, part, printer.as_mut(), &mut lines);
        }
        share_out(&mut lines, function, first.address, start);
        let end = start.saturating_add(size);
        Ok(Self { start, end, lines })
    }

    /// The addresses of a function in its object.
    ///
    /// # Errors
    ///
    /// That it covers none.
    pub fn place(resolver: &Resolver<'_>, function: &Function) -> Result<Range<u64>, NoCode> {
        let (first, size) = first(resolver, function)?;
        let start = resolver.object_address(&first);
        Ok(start..start.saturating_add(size))
    }
}

/// Where a function begins, and how many bytes of it are shown.
pub(crate) fn first(resolver: &Resolver<'_>, function: &Function) -> Result<(Frame, u64), NoCode> {
    let symbol = resolver.symbol(function.symbol).ok_or(NoCode::Empty)?;
    let size = symbol.end.saturating_sub(symbol.start).min(MOST);
    let before = symbol.start.wrapping_sub(function.frame.address);
    match size {
        0 => Err(NoCode::Empty),
        size => Ok((moved(&function.frame, before), size)),
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
    for line in &mut *lines {
        line.hits = vec![Hit::default(); function.sums.len()];
    }
    for (address, event, hit) in &function.hits {
        let shown = address.wrapping_sub(symbol_start).wrapping_add(start);
        let behind = lines.partition_point(|line| line.address <= shown);
        let line = behind.checked_sub(1).and_then(|index| lines.get_mut(index));
        if let Some(sum) = line.and_then(|line| line.hits.get_mut(*event)) {
            sum.add(*hit);
        }
    }
}

/// A way through the code of one function.
struct Walk<'r, 'w, 'o> {
    resolver: &'r Resolver<'w>,
    first: Frame,
    start: u64,
    options: ListOptions<'o>,
}

impl<'r> Walk<'r, '_, '_> {
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
        mut printer: Option<&mut Printer>,
        lines: &mut Vec<Line<'r>>,
    ) {
        let mut calls = Vec::new();
        let mut rest = part;
        while let Some(bytes) = code.get(rest.clone()) {
            let done = rest.start as u64;
            let address = self.start.wrapping_add(done);
            let mut text = String::new();
            let printed = self.print(address, bytes, printer.as_deref_mut(), &mut text);
            let Some(printed) = printed else {
                return;
            };
            let site = self.options.sources.then(|| self.site(done, &mut calls));
            let length = printed.len.min(bytes.len());
            lines.push(Line {
                address,
                bytes: bytes[..length].to_vec(),
                text,
                flow: printed.flow,
                target: printed.target.map(|place| self.named(place)),
                refers: printed.refers.map(|place| self.named(place)),
                hits: Vec::new(),
                site: site.flatten(),
            });
            rest.start += length;
        }
    }

    /// Prints an instruction in the words that are wanted; `None` at the end of the code that can be read.
    fn print(
        &self,
        address: u64,
        bytes: &[u8],
        printer: Option<&mut Printer>,
        text: &mut String,
    ) -> Option<Printed> {
        let printed = printer.and_then(|printer| printer.print(address, bytes, text));
        let told = self.options.told.and_then(|told| told.at(address));
        let Some((len, words)) = told.filter(|(len, _)| *len <= bytes.len()) else {
            return printed;
        };
        text.clear();
        match printed.filter(|printed| printed.len == len) {
            // Names of places are put behind it again, as those of other lines.
            Some(printed) if printed.target.or(printed.refers).is_some() => {
                let words = words.split(" <").next().unwrap_or(words);
                let words = words.split("  #").next().unwrap_or(words);
                text.push_str(words.trim_end());
                Some(printed)
            }
            printed => {
                text.push_str(words);
                Some(Printed {
                    len,
                    flow: printed.map_or(Flow::Next, |printed| printed.flow),
                    target: None,
                    refers: None,
                })
            }
        }
    }

    /// An address of the object with the symbol there.
    fn named(&self, address: u64) -> Named<'r> {
        let beside = self.resolver.beside(&self.first, address);
        let symbol = beside.and_then(|frame| {
            let symbol = frame.symbol?;
            let bytes = frame.address - self.resolver.symbol(symbol)?.start;
            Some((self.resolver.symbol_name(symbol), bytes))
        });
        Named { address, symbol }
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
