//! Instructions in few words: places within the function by their distance from its start, others by their names.

use rperf_insn::Flow;
use rustc_hash::FxHashMap;

use crate::{Line, Listing, Named};

/// Where control goes, as seen from an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrow {
    /// Further down in the function.
    Down,
    /// Up in it.
    Up,
    /// Out of it.
    Out,
    /// Back to the caller.
    Back,
}

impl Arrow {
    /// The sign for it.
    #[must_use]
    pub const fn sign(self) -> char {
        match self {
            Self::Down => '↓',
            Self::Up => '↑',
            Self::Out => '→',
            Self::Back => '←',
        }
    }
}

/// The labels of one listing.
pub struct Labels<'l> {
    listing: &'l Listing<'l>,
    /// How many jumps lead to an address.
    sources: FxHashMap<u64, usize>,
    /// Characters of the longest name of an instruction.
    names: usize,
}

impl<'l> Labels<'l> {
    /// Finds the places that jumps lead to.
    #[must_use]
    pub fn new(listing: &'l Listing<'l>) -> Self {
        let lines = listing.lines.iter();
        let names = lines.map(|line| split(&line.text).0.len());
        let mut labels = Self {
            listing,
            sources: FxHashMap::default(),
            names: names.max().unwrap_or_default(),
        };
        for line in &listing.lines {
            if let Some(target) = labels.jump_within(line)
                && target < listing.end
            {
                *labels.sources.entry(target).or_default() += 1;
            }
        }
        labels
    }

    /// Characters of the longest label.
    #[must_use]
    pub fn width(&self) -> usize {
        let size = self.listing.end - self.listing.start;
        format!("{size:x}").len()
    }

    /// How many jumps within the function lead to an instruction.
    #[must_use]
    pub fn sources(&self, line: &Line<'_>) -> usize {
        let sources = self.sources.get(&line.address);
        sources.copied().unwrap_or_default()
    }

    /// The most jumps that lead to one instruction.
    #[must_use]
    pub fn most_sources(&self) -> usize {
        self.sources.values().copied().max().unwrap_or_default()
    }

    /// The address in the function that an instruction jumps to.
    #[must_use]
    pub fn jump_within(&self, line: &Line<'_>) -> Option<u64> {
        let target = line.target.as_ref().filter(|_| line.flow == Flow::Jump)?;
        let inside = self.listing.start..=self.listing.end;
        inside.contains(&target.address).then_some(target.address)
    }

    /// Where control goes behind an instruction, if not just to the next one.
    #[must_use]
    pub fn arrow(&self, line: &Line<'_>) -> Option<Arrow> {
        match (line.flow, self.jump_within(line)) {
            (Flow::Next, _) => None,
            (Flow::Return, _) => Some(Arrow::Back),
            (Flow::Jump, Some(target)) if target > line.address => Some(Arrow::Down),
            (Flow::Jump, Some(_)) => Some(Arrow::Up),
            (Flow::Jump | Flow::Call, _) => Some(Arrow::Out),
        }
    }

    /// What an instruction reads as, its name padded to that of the longest.
    #[must_use]
    pub fn text(&self, line: &Line<'_>) -> String {
        let (name, operands) = split(&line.text);
        if name.starts_with("nop") {
            return format!("{:<width$}", "nop", width = self.names);
        }
        self.instruction(name, operands, line)
    }

    fn instruction(&self, name: &str, operands: &str, line: &Line<'_>) -> String {
        let width = self.names;
        let operands = match (name, split(operands)) {
            ("lock", (name, operands)) => self.instruction(name, operands, line),
            _ => self.operands(operands, line),
        };
        format!("{name:<width$} {operands}")
    }

    fn operands(&self, operands: &str, line: &Line<'_>) -> String {
        let head = operands.trim_end_matches(|letter: char| letter.is_ascii_hexdigit());
        match (line.flow, &line.target, &line.refers) {
            (Flow::Jump, Some(target), _) => match self.jump_within(line) {
                Some(inside) => format!("{head}{:x}", inside - self.listing.start),
                // As in perf, what lies before the function keeps its address.
                None if target.address < self.listing.start => full(operands, target),
                None => outside(head, target),
            },
            (Flow::Call, Some(target), _) => outside(head, target),
            (_, Some(target), _) => full(operands, target),
            (_, None, Some(place)) => {
                let named = place
                    .symbol
                    .as_ref()
                    .and_then(|_| relative(operands, place));
                named.unwrap_or_else(|| match place.symbol {
                    Some(_) => format!("{operands}        # {:x} <{place}>", place.address),
                    None => format!("{operands}        # {:x}", place.address),
                })
            }
            (_, None, None) => operands.to_owned(),
        }
    }
}

/// The name of an instruction and its operands.
fn split(text: &str) -> (&str, &str) {
    let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
    (name, operands.trim_start())
}

/// An operand with its address and the name of that.
fn full(operands: &str, target: &Named<'_>) -> String {
    match target.symbol {
        Some(_) => format!("{operands} <{target}>"),
        None => operands.to_owned(),
    }
}

/// A place in another function behind the operands before it.
fn outside(head: &str, target: &Named<'_>) -> String {
    match target.symbol {
        Some(_) => format!("{head}{target}"),
        None => format!("{head}*{:x}", target.address),
    }
}

/// `operands` with the name of the place for the one that is relative to the program counter. A jump or a call through such
/// a place stays as it is: it leads elsewhere.
fn relative(operands: &str, place: &Named<'_>) -> Option<String> {
    const COUNTER: &str = "(%rip)";
    let (before, behind) = operands.split_once(COUNTER)?;
    let start = before.rfind([',', '*', ' ', ':']).map_or(0, |at| at + 1);
    let head = &before[..start];
    (!head.ends_with('*')).then(|| format!("{head}{place}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(address: u64, symbol: &str, bytes: u64) -> Option<Named<'_>> {
        Some(Named {
            address,
            symbol: (!symbol.is_empty()).then_some((symbol, bytes)),
        })
    }

    fn line(address: u64, text: &str, flow: Flow) -> Line<'static> {
        Line {
            address,
            bytes: vec![0; 4],
            text: text.to_owned(),
            flow,
            target: None,
            refers: None,
            hits: Vec::new(),
            site: None,
        }
    }

    /// The sign, the label and the text of each line.
    fn shown(lines: Vec<Line<'_>>) -> Vec<String> {
        let listing = Listing {
            start: 0x1000,
            end: 0x1020,
            lines,
        };
        let labels = Labels::new(&listing);
        let line = |line| {
            let arrow = labels.arrow(line).map_or(' ', Arrow::sign);
            format!("{arrow}{} {}", labels.sources(line), labels.text(line))
        };
        listing.lines.iter().map(line).collect()
    }

    #[test]
    fn places_inside_are_offsets_and_others_names() {
        let jump = |text: &str, target| Line {
            target,
            ..line(0x1004, text, Flow::Jump)
        };
        let call = |text: &str, target| Line {
            target,
            ..line(0x1008, text, Flow::Call)
        };
        let lines = vec![
            line(0x1000, "nopw   0x0(%rax)", Flow::Next),
            jump("jne    1010", named(0x1010, "leaf", 16)),
            jump("tbnz   w0, #26, 1000", named(0x1000, "leaf", 0)),
            jump("jmp    1020", named(0x1020, "next", 0)),
            jump("jmp    900", named(0x900, "before", 5)),
            jump("jmp    2000", named(0x2000, "behind", 0)),
            jump("jmp    *%rax", None),
            call("call   3000", named(0x3000, "twist", 0)),
            call("call   3000", named(0x3000, "", 0)),
            line(0x1010, "ret", Flow::Return),
        ];
        let expected = [
            " 1 nop ",
            "↓0 jne  10",
            "↑0 tbnz w0, #26, 0",
            "↓0 jmp  20",
            "→0 jmp  900 <before+0x5>",
            "→0 jmp  behind",
            "→0 jmp  *%rax",
            "→0 call twist",
            "→0 call *3000",
            "←1 ret  ",
        ];
        assert_eq!(shown(lines), expected);
    }

    #[test]
    fn memory_goes_by_its_name() {
        let refers = |text: &str, symbol: &'static str, flow| Line {
            refers: named(0x4010, symbol, 8),
            ..line(0x1000, text, flow)
        };
        let lines = vec![
            refers("mov    0x3000(%rip),%rcx", "sink", Flow::Next),
            refers("cmpl   $0x0,0x3000(%rip)", "sink", Flow::Next),
            refers("lock incl 0x3000(%rip)", "sink", Flow::Next),
            refers("mov    0x3000(%rip),%rcx", "", Flow::Next),
            refers("jmp    *0x3000(%rip)", "sink", Flow::Jump),
            refers("mov    rax,QWORD PTR [rip+0x3000]", "sink", Flow::Next),
        ];
        let expected = [
            " 0 mov  sink+0x8,%rcx",
            " 0 cmpl $0x0,sink+0x8",
            " 0 lock incl sink+0x8",
            " 0 mov  0x3000(%rip),%rcx        # 4010",
            "→0 jmp  *0x3000(%rip)        # 4010 <sink+0x8>",
            " 0 mov  rax,QWORD PTR [rip+0x3000]        # 4010 <sink+0x8>",
        ];
        assert_eq!(shown(lines), expected);
    }
}
