//! 64-bit Arm: the words of yaxpeax-arm, with numbers and conditions as objdump writes them.

use std::fmt::Write as _;

use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use super::{Flow, Printed, lay_out};

/// The bytes of every instruction.
const LEN: usize = 4;

/// Instructions whose numbers are of bits, which are counted in tens.
const OF_BITS: &[&str] = &[
    "lsl", "lsr", "asr", "ror", "ubfx", "ubfiz", "sbfx", "sbfiz", "bfi", "bfxil", "bfc", "tbz",
    "tbnz", "extr", "shl", "sshr", "ushr", "ssra", "usra", "srshr", "urshr", "srsra", "ursra",
    "sli", "sri", "shrn", "shrn2", "rshrn", "rshrn2", "sshll", "sshll2", "ushll", "ushll2",
    "sqshl", "uqshl", "sqshlu", "sqshrn", "uqshrn", "ext", "cmlt", "cmge", "cmgt", "cmle", "cmeq",
    "shll", "shll2", "udf", "xar",
];

pub(super) fn print(address: u64, bytes: &[u8], text: &mut String) -> Printed {
    let mut printed = Printed {
        len: LEN.min(bytes.len()),
        flow: Flow::Next,
        target: None,
        refers: None,
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
    let shown = insn.to_string();
    let (name, operands) = shown.split_once(' ').unwrap_or((&shown, ""));
    printed.flow = flow(name);
    let (name, operands) = widened(name, operands);
    let mut line = Operands {
        name,
        address,
        text: String::with_capacity(operands.len()),
        place: None,
    };
    line.rewrite(operands);
    line.finish(u32::from_le_bytes(*word));
    match printed.flow {
        Flow::Next => printed.refers = line.place,
        _ => printed.target = line.place,
    }
    lay_out(text, condition_of(name).unwrap_or(name), &line.text);
    printed
}

fn flow(name: &str) -> Flow {
    match name {
        "ret" | "retaa" | "retab" | "eret" => Flow::Return,
        "bl" | "blr" | "blraa" | "blrab" | "blraaz" | "blrabz" => Flow::Call,
        "b" | "br" | "braa" | "brab" | "braaz" | "brabz" | "cbz" | "cbnz" | "tbz" | "tbnz" => {
            Flow::Jump
        }
        name if name.starts_with("b.") || name.starts_with("bc.") => Flow::Jump,
        _ => Flow::Next,
    }
}

/// Branches on conditions that have two names.
fn condition_of(name: &str) -> Option<&'static str> {
    match name {
        "b.hs" => Some("b.cs"),
        "b.lo" => Some("b.cc"),
        _ => None,
    }
}

/// Shifts to twice the width by no bit have names of their own.
fn widened<'t>(name: &'t str, operands: &'t str) -> (&'t str, &'t str) {
    let names = [
        ("ushll", "uxtl"),
        ("ushll2", "uxtl2"),
        ("sshll", "sxtl"),
        ("sshll2", "sxtl2"),
    ];
    let found = names.iter().find(|(long, _)| *long == name);
    match (found, operands.strip_suffix(", #0x0")) {
        (Some((_, short)), Some(rest)) => (short, rest),
        _ => (name, operands),
    }
}

/// The operands of one instruction as they are rewritten.
struct Operands<'n> {
    name: &'n str,
    address: u64,
    text: String,
    place: Option<u64>,
}

impl Operands<'_> {
    /// Takes the operands one after the other; brackets hold the parts of one.
    fn rewrite(&mut self, operands: &str) {
        let (mut inside, mut behind) = (false, false);
        for (index, part) in operands.split(", ").enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            inside |= part.starts_with('[');
            self.part(part, inside || behind);
            if part.contains(']') {
                (inside, behind) = (false, true);
            }
        }
    }

    /// What only the encoding says, and lists of registers.
    fn finish(&mut self, word: u32) {
        // Additions and subtractions of extended registers (C4.1.90): 64 bits and a word without a sign.
        let extends = word & 0x9fe0_0000 == 0x8b20_0000;
        if extends && word >> 13 & 7 == 0b010 {
            match self.text.rsplit_once(", lsl ") {
                Some((rest, bits)) => self.text = format!("{rest}, uxtw {bits}"),
                None => self.text.push_str(", uxtw"),
            }
        }
        if let Some((list, rest)) = self.text.strip_prefix('{').and_then(|t| t.split_once('}')) {
            let registers: Vec<&str> = list.split(", ").collect();
            if let [first, _, .., last] = registers[..]
                && registers.len() > 2
            {
                self.text = format!("{{{first}-{last}}}{rest}");
            }
        }
    }

    fn part(&mut self, part: &str, of_memory: bool) {
        if let Some(register) = part.strip_suffix(" #0]") {
            self.text.push_str(register);
            self.text.push(']');
        } else if let Some(distance) = part.strip_prefix('$') {
            self.distance(distance);
        } else if matches!(part, "hs" | "lo") {
            self.text.push_str(if part == "hs" { "cs" } else { "cc" });
        } else if let Some((before, number)) = part.split_once("#")
            && (of_memory || OF_BITS.contains(&self.name))
        {
            let end = number.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '-');
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

    /// An address by its distance from the instruction, or from its page.
    fn distance(&mut self, distance: &str) {
        const PAGE: u64 = 4096;
        let from = match self.name {
            "adrp" => self.address / PAGE * PAGE,
            _ => self.address,
        };
        let sign = distance.trim_start_matches('+');
        let Some(distance) = signed(sign) else {
            self.text.push_str(distance);
            return;
        };
        let place = from.wrapping_add_signed(distance);
        self.place = Some(place);
        let _ = write!(self.text, "{place:x}");
    }
}

/// A number of digits, or of hexadecimal ones behind `0x`.
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
