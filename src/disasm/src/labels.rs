//! Short disassembly: jump targets within the function are offsets, other targets have their symbols.

use rperf_insn::InsnFlow;
use rustc_hash::FxHashMap;

use crate::{InstructionLine, Listing, OperandAddress};

/// Direction of control flow from an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrow {
    /// Forward in the function, or to its end.
    Down,
    /// Backward in the function, or to the instruction itself.
    Up,
    /// A call, or a jump out of the function or to an unknown address.
    Out,
    /// Return to the caller.
    Back,
}

impl Arrow {
    /// The arrow as a character.
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

/// The jump labels of a listing, and the short disassembly with them.
pub struct Labels<'l> {
    listing: &'l Listing<'l>,
    /// Number of jumps within the function to each target; jumps to the end of the function are not counted.
    jump_counts: FxHashMap<u64, usize>,
    /// Width of the longest mnemonic in characters.
    mnemonic_width: usize,
}

impl<'l> Labels<'l> {
    /// Collects the jump targets.
    #[must_use]
    pub fn new(listing: &'l Listing<'l>) -> Self {
        let lines = listing.lines.iter();
        let widths = lines.map(|line| split(&line.text).0.len());
        let mut labels = Self {
            listing,
            jump_counts: FxHashMap::default(),
            mnemonic_width: widths.max().unwrap_or_default(),
        };
        for line in &listing.lines {
            if let Some(target) = labels.jump_within(line)
                && target < listing.end
            {
                *labels.jump_counts.entry(target).or_default() += 1;
            }
        }
        labels
    }

    /// Width of the longest possible label in characters: the function's size in hexadecimal.
    #[must_use]
    pub fn width(&self) -> usize {
        let size = self.listing.end - self.listing.start;
        format!("{size:x}").len()
    }

    /// Number of jumps within the function to an instruction.
    #[must_use]
    pub fn jump_count(&self, line: &InstructionLine<'_>) -> usize {
        let count = self.jump_counts.get(&line.address);
        count.copied().unwrap_or_default()
    }

    /// The target of a jump within the function or, as in perf, to its end.
    #[must_use]
    pub fn jump_within(&self, line: &InstructionLine<'_>) -> Option<u64> {
        let target = line
            .target
            .as_ref()
            .filter(|_| line.flow == InsnFlow::Jump)?;
        let inside = self.listing.start..=self.listing.end;
        inside.contains(&target.address).then_some(target.address)
    }

    /// The control flow after an instruction, unless it continues with the next one.
    #[must_use]
    pub fn arrow(&self, line: &InstructionLine<'_>) -> Option<Arrow> {
        match (line.flow, self.jump_within(line)) {
            (InsnFlow::Next, _) => None,
            (InsnFlow::Return, _) => Some(Arrow::Back),
            (InsnFlow::Jump, Some(target)) if target > line.address => Some(Arrow::Down),
            (InsnFlow::Jump, Some(_)) => Some(Arrow::Up),
            (InsnFlow::Jump | InsnFlow::Call, _) => Some(Arrow::Out),
        }
    }

    /// The short disassembly, with the mnemonic padded to the longest. As in perf, `nop` is shown without size suffix and
    /// operands.
    #[must_use]
    pub fn text(&self, line: &InstructionLine<'_>) -> String {
        let (name, operands) = split(&line.text);
        if name.starts_with("nop") {
            return format!("{:<width$}", "nop", width = self.mnemonic_width);
        }
        self.instruction(name, operands, line)
    }

    /// Mnemonic and operands; for a `lock` prefix, the prefix and the instruction after it.
    fn instruction(&self, name: &str, operands: &str, line: &InstructionLine<'_>) -> String {
        let width = self.mnemonic_width;
        let rest = match name {
            "lock" => {
                let (locked, operands) = split(operands);
                self.instruction(locked, operands, line)
            }
            _ => self.operands(operands, line),
        };
        format!("{name:<width$} {rest}")
    }

    /// The operands with symbols. Those of a direct jump or call end with the target's address, which an offset or a symbol
    /// replaces.
    fn operands(&self, operands: &str, line: &InstructionLine<'_>) -> String {
        let head = operands.trim_end_matches(|letter: char| letter.is_ascii_hexdigit());
        match (line.flow, &line.target, &line.referenced) {
            (InsnFlow::Jump, Some(target), _) => match self.jump_within(line) {
                Some(address) => format!("{head}{:x}", address - self.listing.start),
                // As in perf, a target before the function keeps its address, followed by its symbol.
                None if target.address < self.listing.start => with_symbol(operands, target),
                None => external_target(head, target),
            },
            (InsnFlow::Call, Some(target), _) => external_target(head, target),
            // `xbegin`: it has a target, but continues with the next instruction.
            (_, Some(target), _) => with_symbol(operands, target),
            (_, None, Some(place)) if place.symbol.is_some() => {
                replace_pc_relative(operands, place)
                    .unwrap_or_else(|| format!("{operands}        # {:x} <{place}>", place.address))
            }
            (_, None, Some(place)) => format!("{operands}        # {:x}", place.address),
            (_, None, None) => operands.to_owned(),
        }
    }
}

/// Splits mnemonic and operands.
fn split(text: &str) -> (&str, &str) {
    let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
    (name, operands.trim_start())
}

/// `operands`, followed by the symbol of `target` if known.
fn with_symbol(operands: &str, target: &OperandAddress<'_>) -> String {
    match target.symbol {
        Some(_) => format!("{operands} <{target}>"),
        None => operands.to_owned(),
    }
}

/// `head` (the operands before the target of a call or of a jump out of the function) and the symbol of `target`; without a
/// symbol, `head`, `*` and the address of `target`.
fn external_target(head: &str, target: &OperandAddress<'_>) -> String {
    match target.symbol {
        Some(_) => format!("{head}{target}"),
        None => format!("{head}*{:x}", target.address),
    }
}

/// `operands` with the symbol in place of an operand relative to the program counter (in AT&T syntax). `None` without such an
/// operand, or if a jump or call reads its target from it.
fn replace_pc_relative(operands: &str, place: &OperandAddress<'_>) -> Option<String> {
    const COUNTER: &str = "(%rip)";
    let (before, after) = operands.split_once(COUNTER)?;
    let start = before.rfind([',', '*', ' ', ':']).map_or(0, |at| at + 1);
    let head = &before[..start];
    (!head.ends_with('*')).then(|| format!("{head}{place}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address with its symbol and the offset in it; without a symbol if `symbol` is empty.
    fn named(address: u64, symbol: &str, offset: u64) -> Option<OperandAddress<'_>> {
        Some(OperandAddress {
            address,
            symbol: (!symbol.is_empty()).then_some((symbol, offset)),
        })
    }

    fn line(address: u64, text: &str, flow: InsnFlow) -> InstructionLine<'static> {
        InstructionLine {
            address,
            bytes: vec![0; 4],
            text: text.to_owned(),
            flow,
            target: None,
            referenced: None,
            hits: Vec::new(),
            site: None,
        }
    }

    /// Arrow, number of jumps to the line, and text of each line.
    fn line_texts(lines: Vec<InstructionLine<'_>>) -> Vec<String> {
        let listing = Listing {
            start: 0x1000,
            end: 0x1020,
            lines,
        };
        let labels = Labels::new(&listing);
        let text_of = |line| {
            let arrow = labels.arrow(line).map_or(' ', Arrow::sign);
            format!("{arrow}{} {}", labels.jump_count(line), labels.text(line))
        };
        listing.lines.iter().map(text_of).collect()
    }

    #[test]
    fn only_jump_targets_in_the_function_are_offsets() {
        let jump = |text: &str, target| InstructionLine {
            target,
            ..line(0x1004, text, InsnFlow::Jump)
        };
        let call = |text: &str, target| InstructionLine {
            target,
            ..line(0x1008, text, InsnFlow::Call)
        };
        let lines = vec![
            line(0x1000, "nopw   0x0(%rax)", InsnFlow::Next),
            jump("jne    1010", named(0x1010, "leaf", 16)),
            jump("tbnz   w0, #26, 1000", named(0x1000, "leaf", 0)),
            jump("jmp    1020", named(0x1020, "next", 0)),
            jump("jmp    900", named(0x900, "before", 5)),
            jump("jmp    2000", named(0x2000, "behind", 0)),
            jump("jmp    *%rax", None),
            call("call   3000", named(0x3000, "twist", 0)),
            call("call   3000", named(0x3000, "", 0)),
            line(0x1010, "ret", InsnFlow::Return),
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
        assert_eq!(line_texts(lines), expected);
    }

    #[test]
    fn memory_operands_are_labelled_by_symbol() {
        let refers = |text: &str, symbol: &'static str, flow| InstructionLine {
            referenced: named(0x4010, symbol, 8),
            ..line(0x1000, text, flow)
        };
        let lines = vec![
            refers("mov    0x3000(%rip),%rcx", "sink", InsnFlow::Next),
            refers("cmpl   $0x0,0x3000(%rip)", "sink", InsnFlow::Next),
            refers("lock incl 0x3000(%rip)", "sink", InsnFlow::Next),
            refers("mov    0x3000(%rip),%rcx", "", InsnFlow::Next),
            refers("jmp    *0x3000(%rip)", "sink", InsnFlow::Jump),
            refers("mov    rax,QWORD PTR [rip+0x3000]", "sink", InsnFlow::Next),
        ];
        let expected = [
            " 0 mov  sink+0x8,%rcx",
            " 0 cmpl $0x0,sink+0x8",
            " 0 lock incl sink+0x8",
            " 0 mov  0x3000(%rip),%rcx        # 4010",
            "→0 jmp  *0x3000(%rip)        # 4010 <sink+0x8>",
            " 0 mov  rax,QWORD PTR [rip+0x3000]        # 4010 <sink+0x8>",
        ];
        assert_eq!(line_texts(lines), expected);
    }
}
