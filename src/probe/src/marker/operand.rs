//! Arguments of USDT markers in assembler syntax: `SIZE@OPERAND`.

use object::Architecture;

use crate::definition::signed_number;
use crate::field::Dereference;
use crate::register;

/// The base of an argument: its value if [`Operand::reads`] is empty, otherwise the address from which the value is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OperandBase {
    /// A register or a constant, in the kernel's syntax for probes (`%ax`, `\5`).
    Known(String),
    /// The memory at an offset from a symbol. [`Operand::reads`] is empty, since the kernel's syntax for it, `@+OFFSET` (an
    /// offset in the file), already reads the memory there.
    Symbol(String, i64),
}

/// A parsed argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) base: OperandBase,
    /// The read of memory at an offset from the base, at most one; empty if the base is the value.
    pub(super) reads: Vec<Dereference>,
    /// The type of the value: `s32`.
    pub(super) kind: String,
}

/// Splits the arguments of a marker at blanks, except those in brackets: arm64 has operands such as `[sp, 8]`.
pub(super) fn split(arguments: &str) -> Vec<&str> {
    let mut is_in_brackets = false;
    let is_separator = |c: char| {
        match c {
            '[' => is_in_brackets = true,
            ']' => is_in_brackets = false,
            _ => {}
        }
        c.is_ascii_whitespace() && !is_in_brackets
    };
    let words = arguments.split(is_separator);
    words.filter(|word| !word.is_empty()).collect()
}

/// Parses one argument; `None` if it is malformed or the kernel cannot fetch it, such as a scaled index.
pub(super) fn parse(architecture: Architecture, word: &str) -> Option<Operand> {
    let (size, operand) = word.split_once('@')?;
    let kind = kind(size)?;
    let with_known_base = |text: String, reads| Operand {
        base: OperandBase::Known(text),
        reads,
        kind: kind.clone(),
    };
    let kernel_register = |name: &str| {
        // On arm64, registers have no prefix.
        let prefixed = match name.starts_with('%') {
            true => name.to_owned(),
            false => format!("%{name}"),
        };
        match register::is_known(architecture, &prefixed) {
            true => Some(prefixed),
            // A name of the assembler, such as `%eax` for the kernel's `%ax`.
            false => register::kernel_name(architecture, &prefixed),
        }
    };
    if architecture == Architecture::Aarch64 {
        return arm64(operand, &kernel_register).map(|(base, reads)| with_known_base(base, reads));
    }
    if let Some(constant) = operand.strip_prefix('$') {
        return Some(with_known_base(
            format!("\\{}", signed_number(constant)?),
            Vec::new(),
        ));
    }
    if operand.starts_with('%') {
        return Some(with_known_base(kernel_register(operand)?, Vec::new()));
    }
    let (offset, inside) = operand.strip_suffix(')')?.split_once('(')?;
    if inside == "%rip" {
        let end = offset.find(['+', '-']).unwrap_or(offset.len());
        let (symbol, distance) = offset.split_at(end);
        let distance = if distance.is_empty() {
            0
        } else {
            signed_number(distance)?
        };
        return Some(Operand {
            base: OperandBase::Symbol(symbol.to_owned(), distance),
            reads: Vec::new(),
            kind,
        });
    }
    let offset = if offset.is_empty() {
        0
    } else {
        signed_number(offset)?
    };
    let read = Dereference {
        offset,
        // Only kernel probes need it: uprobes read user memory anyway.
        is_user: false,
    };
    Some(with_known_base(kernel_register(inside)?, vec![read]))
}

/// Parses an operand of arm64: `[sp, 8]`, `x0` or `5`. Returns its base and reads.
fn arm64(
    operand: &str,
    kernel_register: &dyn Fn(&str) -> Option<String>,
) -> Option<(String, Vec<Dereference>)> {
    if let Some(inside) = operand.strip_prefix('[') {
        let inside = inside.strip_suffix(']')?;
        let (base, offset) = inside.split_once(',').unwrap_or((inside, "0"));
        let read = Dereference {
            offset: signed_number(offset.trim())?,
            is_user: false,
        };
        return Some((kernel_register(base)?, vec![read]));
    }
    match signed_number(operand) {
        Some(constant) => Some((format!("\\{constant}"), Vec::new())),
        None => Some((kernel_register(operand)?, Vec::new())),
    }
}

/// Returns the type for a size in bytes, which is negative for signed numbers; `None` if the kernel has no such type.
fn kind(size: &str) -> Option<String> {
    // Floating point numbers have an f after the size. The kernel has no type for them: their bits are fetched as an integer.
    let size = signed_number(size.trim_end_matches('f'))?;
    let letter = if size < 0 { 's' } else { 'u' };
    let bytes = size.unsigned_abs();
    matches!(bytes, 1 | 2 | 4 | 8).then(|| format!("{letter}{}", bytes * 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(architecture: Architecture, word: &str) -> Option<String> {
        let operand = parse(architecture, word)?;
        let base = match operand.base {
            OperandBase::Known(text) => text,
            OperandBase::Symbol(name, offset) => format!("{name}{offset:+}"),
        };
        let field = crate::field::ProbeField {
            name: None,
            base,
            reads: operand.reads,
            kind: Some(operand.kind),
        };
        Some(field.to_string())
    }

    #[test]
    fn blanks_in_brackets_do_not_separate_arguments() {
        assert_eq!(split("-4@%ebx  8@(%rax)"), ["-4@%ebx", "8@(%rax)"]);
        assert_eq!(split("-4@[sp, 12] 8@x0"), ["-4@[sp, 12]", "8@x0"]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn operands_are_converted_to_the_kernels_syntax() {
        for (word, expected) in [
            ("4@%esi", Some("%si:u32")),
            ("-4@%ebx", Some("%bx:s32")),
            ("8@%r14", Some("%r14:u64")),
            ("-1@%al", Some("%ax:s8")),
            ("1@%sil", Some("%si:u8")),
            ("1@%ah", None),
            ("8@-1144(%rbp)", Some("-1144(%bp):u64")),
            ("-4@(%rax)", Some("+0(%ax):s32")),
            ("4@$5", Some("\\5:u32")),
            ("-4@$-1", Some("\\-1:s32")),
            ("8@total+4(%rip)", Some("total+4:u64")),
            ("8@(%rax,%rbx,8)", None),
            ("3@%rax", None),
            ("nonsense", None),
        ] {
            assert_eq!(
                converted(Architecture::X86_64, word).as_deref(),
                expected,
                "{word}"
            );
        }
        for (word, expected) in [
            ("8@x0", Some("%x0:u64")),
            ("-4@[sp, 12]", Some("+12(%sp):s32")),
            ("4@7", Some("\\7:u32")),
        ] {
            assert_eq!(
                converted(Architecture::Aarch64, word).as_deref(),
                expected,
                "{word}"
            );
        }
    }
}
