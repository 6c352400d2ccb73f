//! `transaction`: flags of hardware transactions, `PERF_TXN_*` of linux/perf_event.h.

use super::{CellPadding, Key, KeyDependency, KeyValue, Property, label};

pub(super) static TRANSACTION: Key = Key::plain(
    // As in perf, blanks widen the column.
    label("transaction", "Transaction                "),
    KeyDependency::Property(Property::Transaction),
    CellPadding::Always,
    |input, names| {
        let transaction = names.properties(input).transaction;
        // Negated for descending order.
        KeyValue::Number(transaction.cast_signed().wrapping_neg())
    },
    |input, names| text(names.properties(input).transaction),
);

/// Names of the bits, from the lowest.
const BITS: [&str; 8] = [
    "EL",
    "TX",
    "SYNC",
    "ASYNC",
    "RETRY",
    "CON",
    "CAP-WRITE",
    "CAP-READ",
];

/// The bits `SYNC` and `ASYNC`. The text has `NEITHER` if other bits are set, but neither of these.
const SYNC_OR_ASYNC: u64 = 1 << 2 | 1 << 3;

/// The lowest bit of the program's abort code (`PERF_TXN_ABORT_SHIFT`).
const ABORT_CODE_SHIFT: u32 = 32;

fn text(transaction: u64) -> String {
    let mut text = String::new();
    for (bit, name) in BITS.iter().enumerate() {
        if transaction >> bit & 1 == 1 {
            text.push_str(name);
            text.push(' ');
        }
    }
    if transaction != 0 && transaction & SYNC_OR_ASYNC == 0 {
        text.push_str("NEITHER ");
    }
    let code = transaction >> ABORT_CODE_SHIFT;
    if code != 0 {
        text.push_str(&format!(":{code:x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits are shown by name, and the abort code of the program as a hexadecimal number.
    #[test]
    fn bits_have_names_and_aborts_a_code() {
        assert_eq!(text(0), "");
        assert_eq!(text(0b10), "TX NEITHER ");
        assert_eq!(text(0b110 | 0xff << 32), "TX SYNC :ff");
    }
}
