//! The expression tree of a `print fmt` argument, and constant evaluation.

/// An argument of `print fmt`, or a part of one. The `__get_rel_` helpers are parsed like the `__get_` ones.
#[derive(Debug, Clone, Default)]
pub(super) enum Node {
    /// Nothing: the left side of a unary operator.
    #[default]
    Null,
    /// A number, an enumerator, the name of a type, or text that was in quotes.
    Atom(String),
    /// `REC->name`.
    Field(String),
    /// `(type)operand`.
    Cast {
        type_name: String,
        operand: Box<Node>,
    },
    /// An operator; conditionals are `?` with a `:` operation on the right, indexing is `[`.
    Operation(Box<Operation>),
    /// `__print_flags(value, delimiter, table)`.
    Flags {
        value: Box<Node>,
        delimiter: String,
        table: Vec<Entry>,
    },
    /// `__print_symbolic(value, table)`.
    Symbolic { value: Box<Node>, table: Vec<Entry> },
    /// `__print_hex(bytes, count)`, or `__print_hex_str(bytes, count)`, which has no separator.
    Hex {
        bytes: Box<Node>,
        count: Box<Node>,
        separator: &'static str,
    },
    /// `__print_array(array, count, element size)`.
    Array {
        array: Box<Node>,
        count: Box<Node>,
        element_size: Box<Node>,
    },
    /// `__get_str(field)`.
    Str(String),
    /// `__get_bitmask(field)`.
    Bitmask(String),
    /// `__get_dynamic_array(field)`.
    DynamicArray(String),
    /// `__get_dynamic_array_len(field)`.
    DynamicLength(String),
}

/// An operator with its operands.
#[derive(Debug, Clone, Default)]
pub(super) struct Operation {
    pub(super) operator: String,
    /// Precedence of a binary operator; higher binds more loosely. 0 for unary operators, conditionals and indexing.
    pub(super) looseness: u8,
    pub(super) left: Node,
    pub(super) right: Node,
}

/// An entry of a table of flags or symbols: a value and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) value: i64,
    pub(super) name: String,
}

impl Node {
    /// The number of this argument type in perf's warnings.
    pub(super) fn type_number(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Atom(_) => 1,
            Self::Field(_) => 2,
            Self::Flags { .. } => 3,
            Self::Symbolic { .. } => 4,
            Self::Hex { separator: "", .. } => 15,
            Self::Hex { .. } => 5,
            Self::Array { .. } => 6,
            Self::Cast { .. } => 7,
            Self::Str(_) => 8,
            Self::DynamicArray(_) => 10,
            Self::Operation(_) => 11,
            Self::Bitmask(_) => 13,
            Self::DynamicLength(_) => 14,
        }
    }
}

/// Parses a number like C's `strtoull` with base 0: the longest valid prefix, 0 if there is none.
pub(super) fn number_prefix(text: &str) -> u64 {
    let text = text.trim_start();
    let (is_negative, text) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (radix, digits) = match hexadecimal {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => (16, digits),
        _ if text.starts_with('0') => (8, text),
        _ => (10, text),
    };
    let mut value = 0_u64;
    for digit in digits.chars().map_while(|c| c.to_digit(radix)) {
        let next = value.checked_mul(radix.into());
        value = match next.and_then(|next| next.checked_add(digit.into())) {
            Some(next) => next,
            None => return u64::MAX,
        };
    }
    if is_negative {
        value.wrapping_neg()
    } else {
        value
    }
}

/// The bits of a number that a cast to `type_name` keeps. As in perf, a cast to a type of at most 32 bits has an effect only
/// if the type has one of the names below, and a cast to a signed type does not extend the sign.
pub(super) fn cast_mask(type_name: &str) -> u64 {
    let plain = type_name.strip_prefix("unsigned ").unwrap_or(type_name);
    match (type_name, plain) {
        ("u8" | "s8", _) | (_, "char") => 0xff,
        ("u16" | "s16", _) | (_, "short") => 0xffff,
        ("u32" | "s32", _) | (_, "int") => 0xffff_ffff,
        _ => u64::MAX,
    }
}

/// Enumerators that some kernels print in their tables by name.
const ENUMERATORS: [(&str, i64); 12] = [
    ("HI_SOFTIRQ", 0),
    ("TIMER_SOFTIRQ", 1),
    ("NET_TX_SOFTIRQ", 2),
    ("NET_RX_SOFTIRQ", 3),
    ("BLOCK_SOFTIRQ", 4),
    ("IRQ_POLL_SOFTIRQ", 5),
    ("TASKLET_SOFTIRQ", 6),
    ("SCHED_SOFTIRQ", 7),
    ("HRTIMER_SOFTIRQ", 8),
    ("RCU_SOFTIRQ", 9),
    ("HRTIMER_NORESTART", 0),
    ("HRTIMER_RESTART", 1),
];

/// The value of a table entry from the text of its constant. Like in perf, text that doesn't start
/// with a digit and isn't a known enumerator is -1, including negative numbers.
pub(super) fn entry_value(text: &str) -> i64 {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return number_prefix(text).cast_signed();
    }
    let known = ENUMERATORS.iter().find(|(name, _)| *name == text);
    known.map_or(-1, |(_, value)| *value)
}

/// The text of a constant expression in a table. `None` if it is not constant.
pub(super) fn constant_text(node: &Node) -> Option<String> {
    match node {
        Node::Atom(text) => Some(text.clone()),
        // As in perf, a cast has an effect only within an operation.
        Node::Cast { operand, .. } => constant_text(operand),
        Node::Operation(_) => constant(node).map(|value| value.to_string()),
        _ => None,
    }
}

/// The signed value of a constant expression, in which enumerators and other names count as 0. `None` if it is not constant.
pub(super) fn constant(node: &Node) -> Option<i64> {
    match node {
        Node::Atom(text) if text.starts_with('-') => Some(number_prefix(text).cast_signed()),
        // As in `strtoll`, a number that is too large becomes the largest signed one.
        Node::Atom(text) => Some(i64::try_from(number_prefix(text)).unwrap_or(i64::MAX)),
        Node::Cast { type_name, operand } => {
            let value = constant(operand)?.cast_unsigned();
            Some((value & cast_mask(type_name)).cast_signed())
        }
        Node::Operation(operation) => constant_operation(operation),
        _ => None,
    }
}

/// The value of an operation; `None` if an operand is not constant, and for the operators that perf doesn't evaluate in constants
/// (`*`, `/`, `?`, …).
fn constant_operation(operation: &Operation) -> Option<i64> {
    let right = constant(&operation.right)?;
    let operator = operation.operator.as_str();
    let left = match (&operation.left, operator) {
        (_, "~") => return Some(!right),
        (Node::Null, "-" | "+") => 0,
        (left, _) => constant(left)?,
    };
    let shift = right as u32;
    Some(match operator {
        "|" => left | right,
        "||" => i64::from(left != 0 || right != 0),
        "&" => left & right,
        "&&" => i64::from(left != 0 && right != 0),
        "<" => i64::from(left < right),
        "<=" => i64::from(left <= right),
        "<<" => left.wrapping_shl(shift),
        ">" => i64::from(left > right),
        ">=" => i64::from(left >= right),
        ">>" => left.wrapping_shr(shift),
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "-" => left.wrapping_sub(right),
        "+" => left.wrapping_add(right),
        _ => return None,
    })
}
