//! 64-bit Arm: the output of yaxpeax-arm, rewritten in objdump's format.

use std::fmt::Write as _;

use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use super::{InsnFlow, Printed, lay_out};

/// Instruction size in bytes.
const LEN: usize = 4;

/// Instructions whose numbers objdump prints in decimal, mostly shifts and bit fields.
const WITH_DECIMALS: &[&str] = &[
    "lsl", "lsr", "asr", "ror", "ubfx", "ubfiz", "sbfx", "sbfiz", "bfi", "bfxil", "bfc", "tbz",
    "tbnz", "extr", "shl", "sshr", "ushr", "ssra", "usra", "srshr", "urshr", "srsra", "ursra",
    "sli", "sri", "shrn", "shrn2", "rshrn", "rshrn2", "sshll", "sshll2", "ushll", "ushll2",
    "sqshl", "uqshl", "sqshlu", "sqshrn", "uqshrn", "ext", "cmlt", "cmge", "cmgt", "cmle", "cmeq",
    "shll", "shll2", "udf", "xar",
];

pub(super) fn print(address: u64, bytes: &[u8], text: &mut String) -> Printed {
    let mut printed = Printed {
        len: LEN.min(bytes.len()),
        flow: InsnFlow::Next,
        target: None,
        referenced: None,
    };
    let Some(word) = bytes.first_chunk::<LEN>() else {
        text.push_str("(bad)");
        return printed;
    };
    let Ok(insn) = InstDecoder::default().decode(&mut U8Reader::new(word)) else {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            ".inst  0x{:08x} ; undefined",
            u32::from_le_bytes(*word)
        );
        return printed;
    };
    let insn_text = insn.to_string();
    let (name, operands) = insn_text.split_once(' ').unwrap_or((&insn_text, ""));
    printed.flow = flow(name);
    let (name, operands) = with_alias(name, operands);
    let mut rewritten = Operands {
        name,
        address,
        text: String::with_capacity(operands.len()),
        pc_relative: None,
    };
    rewritten.rewrite(operands);
    rewritten.finish(u32::from_le_bytes(*word));
    match printed.flow {
        InsnFlow::Next => printed.referenced = rewritten.pc_relative,
        _ => printed.target = rewritten.pc_relative,
    }
    lay_out(text, branch_name(name).unwrap_or(name), &rewritten.text);
    printed
}

fn flow(name: &str) -> InsnFlow {
    match name {
        "ret" | "retaa" | "retab" | "eret" => InsnFlow::Return,
        "bl" | "blr" | "blraa" | "blrab" | "blraaz" | "blrabz" => InsnFlow::Call,
        "b" | "br" | "braa" | "brab" | "braaz" | "brabz" | "cbz" | "cbnz" | "tbz" | "tbnz" => {
            InsnFlow::Jump
        }
        name if name.starts_with("b.") || name.starts_with("bc.") => InsnFlow::Jump,
        _ => InsnFlow::Next,
    }
}

/// objdump's name of a conditional branch, if it differs from the decoder's.
fn branch_name(name: &str) -> Option<&'static str> {
    match name {
        "b.hs" => Some("b.cs"),
        "b.lo" => Some("b.cc"),
        _ => None,
    }
}

/// Replaces a widening shift by zero bits (`ushll v6.8h, v6.8b, #0x0`) with its alias (`uxtl v6.8h, v6.8b`).
fn with_alias<'t>(name: &'t str, operands: &'t str) -> (&'t str, &'t str) {
    let names = [
        ("ushll", "uxtl"),
        ("ushll2", "uxtl2"),
        ("sshll", "sxtl"),
        ("sshll2", "sxtl2"),
    ];
    let alias = names.iter().find(|(long, _)| *long == name);
    match (alias, operands.strip_suffix(", #0x0")) {
        (Some((_, short)), Some(rest)) => (short, rest),
        _ => (name, operands),
    }
}

/// Rewrites the operands of an instruction.
struct Operands<'n> {
    name: &'n str,
    address: u64,
    /// The operands rewritten so far.
    text: String,
    /// The absolute address of an operand that is relative to the program counter.
    pc_relative: Option<u64>,
}

impl Operands<'_> {
    /// Rewrites operands one by one. A memory operand is enclosed in brackets, and its parts are separated by commas, too. An
    /// operand after the brackets is the increment of the address, and is printed like a part of the memory operand.
    fn rewrite(&mut self, operands: &str) {
        let (mut in_brackets, mut after_brackets) = (false, false);
        for (index, part) in operands.split(", ").enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            in_brackets |= part.starts_with('[');
            self.part(part, in_brackets || after_brackets);
            if part.contains(']') {
                (in_brackets, after_brackets) = (false, true);
            }
        }
    }

    /// If `word`, the encoded instruction, extends its last register with `uxtw`, adds this extension: the decoder omits it, or
    /// prints `lsl` in its place if there is a shift. Abbreviates lists of three or more registers.
    fn finish(&mut self, word: u32) {
        // "Add/subtract (extended register)" in the manual, of 64 bits. Its option 0b010 is an unsigned 32-bit operand.
        let extends = word & 0x9fe0_0000 == 0x8b20_0000;
        if extends && word >> 13 & 7 == 0b010 {
            match self.text.rsplit_once(", lsl ") {
                Some((rest, bits)) => self.text = format!("{rest}, uxtw {bits}"),
                None => self.text.push_str(", uxtw"),
            }
        }
        if let Some((list, rest)) = self.text.strip_prefix('{').and_then(|t| t.split_once('}')) {
            let registers: Vec<&str> = list.split(", ").collect();
            if let [first, _, .., last] = registers[..] {
                self.text = format!("{{{first}-{last}}}{rest}");
            }
        }
    }

    /// Appends one operand. With `is_memory`, it is one part of a memory operand, in which objdump prints numbers in decimal.
    fn part(&mut self, part: &str, is_memory: bool) {
        // objdump omits a shift of the index register by 0: `[x2, w4, sxtw #0]`.
        if let Some(extension) = part.strip_suffix(" #0]") {
            self.text.push_str(extension);
            self.text.push(']');
        } else if let Some(distance) = part.strip_prefix('$') {
            // A program-counter-relative operand: `$+0x10`.
            self.distance(distance);
        } else if matches!(part, "hs" | "lo") {
            // objdump has other names for these conditions.
            self.text.push_str(if part == "hs" { "cs" } else { "cc" });
        } else if let Some((before, number)) = part.split_once("#")
            && (is_memory || WITH_DECIMALS.contains(&self.name))
        {
            // The number ends before the first character that cannot be in it, such as the `]` of a memory operand.
            let end = number.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let (number, after) = number.split_at(end.unwrap_or(number.len()));
            match signed(number) {
                // Writing to a string cannot fail.
                Some(number) => {
                    let _ = write!(self.text, "{before}#{number}{after}");
                }
                None => self.text.push_str(part),
            }
        } else {
            self.text.push_str(part);
        }
    }

    /// Appends the absolute address of a program-counter-relative operand. `text` is its distance from the instruction, or for
    /// `adrp` from the page of the instruction.
    fn distance(&mut self, text: &str) {
        const PAGE: u64 = 4096;
        let from = match self.name {
            "adrp" => self.address / PAGE * PAGE,
            _ => self.address,
        };
        let Some(distance) = signed(text.trim_start_matches('+')) else {
            self.text.push_str(text);
            return;
        };
        let absolute = from.wrapping_add_signed(distance);
        self.pc_relative = Some(absolute);
        let _ = write!(self.text, "{absolute:x}");
    }
}

/// Parses a decimal number, or a hexadecimal one with `0x`, after an optional minus sign.
fn signed(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -number } else { number })
}
