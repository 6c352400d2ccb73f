//! `comm`: the name of the task. `comm_nodigit`: the name with each number replaced, so that numbered workers share a row.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::iter;

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue};
use crate::names::RecordingNames;

pub(super) static COMM: Key = Key {
    name: "comm",
    title: "Command",
    unresolved_width: 0,
    pads: CellPadding::Always,
    reads: KeyDependency::Comm,
    identity: |input, names| KeyValue::Text(name(input, names)),
    rank: |input, names| KeyValue::Text(name(input, names)),
    text: |input, names| name(input, names).to_owned(),
};

pub(super) static COMM_NODIGIT: Key = Key {
    name: "comm_nodigit",
    title: "CommandND",
    identity: |input, names| KeyValue::Numberless(NumberlessName(name(input, names))),
    rank: |input, names| KeyValue::Numberless(NumberlessName(name(input, names))),
    text: |input, names| NumberlessName(name(input, names)).text(),
    ..COMM
};

/// A name that is compared as if all numbers were equal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberlessName<'n>(&'n str);

/// Placeholder of a number.
const NUMBER: &str = "<N>";

impl<'n> NumberlessName<'n> {
    /// Returns the parts of the name: the text between numbers, and [`NUMBER`] for each number.
    fn pieces(self) -> impl Iterator<Item = &'n str> {
        let mut rest = self.0;
        iter::from_fn(move || {
            let is_digit = |letter: char| letter.is_ascii_digit();
            let after = rest.trim_start_matches(is_digit);
            if after.len() < rest.len() {
                rest = after;
                return Some(NUMBER);
            }
            let (piece, after) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
            rest = after;
            Some(piece).filter(|piece| !piece.is_empty())
        })
    }

    fn text(self) -> String {
        self.pieces().collect()
    }
}

impl Ord for NumberlessName<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pieces().cmp(other.pieces())
    }
}

impl PartialOrd for NumberlessName<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NumberlessName<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for NumberlessName<'_> {}

impl Hash for NumberlessName<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pieces().for_each(|piece| piece.hash(state));
    }
}

fn name<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> &'n str {
    let comm = input.context.comm;
    comm.map_or("", |comm| names.comm(comm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_are_equal() {
        let same = |one, other| NumberlessName(one) == NumberlessName(other);
        assert!(same("kworker/0:1", "kworker/12:345"));
        assert!(!same("kworker/0:1", "kworker/u8:1"));
        assert!(!same("worker", "worker1"));
        assert_eq!(NumberlessName("9p-12x").text(), "<N>p-<N>x");
        assert_eq!(NumberlessName("").text(), "");
    }
}
