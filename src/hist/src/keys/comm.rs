//! `comm`: the name of the task. `comm_nodigit`: the same where numbers do not count, as of workers that are numbered.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::iter;

use super::{Key, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static COMM: Key = Key {
    name: "comm",
    title: "Command",
    unresolved_width: 0,
    pads: Pads::Always,
    reads: Reads::Comm,
    identity: |subject, names| Part::Text(name(subject, names)),
    rank: |subject, names| Part::Text(name(subject, names)),
    text: |subject, names| name(subject, names).to_owned(),
};

pub(super) static COMM_NODIGIT: Key = Key {
    name: "comm_nodigit",
    title: "CommandND",
    identity: |subject, names| Part::Numberless(Numberless(name(subject, names))),
    rank: |subject, names| Part::Numberless(Numberless(name(subject, names))),
    text: |subject, names| Numberless(name(subject, names)).text(),
    ..COMM
};

/// A name in which all numbers are alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numberless<'n>(&'n str);

/// What stands for a number.
const NUMBER: &str = "<N>";

impl<'n> Numberless<'n> {
    /// Its pieces: what stands between numbers, and [`NUMBER`] for each of these.
    fn pieces(self) -> impl Iterator<Item = &'n str> {
        let mut rest = self.0;
        iter::from_fn(move || {
            let is_digit = |letter: char| letter.is_ascii_digit();
            let behind = rest.trim_start_matches(is_digit);
            if behind.len() < rest.len() {
                rest = behind;
                return Some(NUMBER);
            }
            let (piece, behind) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
            rest = behind;
            Some(piece).filter(|piece| !piece.is_empty())
        })
    }

    fn text(self) -> String {
        self.pieces().collect()
    }
}

impl Ord for Numberless<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pieces().cmp(other.pieces())
    }
}

impl PartialOrd for Numberless<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numberless<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Numberless<'_> {}

impl Hash for Numberless<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pieces().for_each(|piece| piece.hash(state));
    }
}

fn name<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> &'n str {
    let comm = subject.context.comm;
    comm.map_or("", |comm| names.comm(comm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_count() {
        let same = |one, other| Numberless(one) == Numberless(other);
        assert!(same("kworker/0:1", "kworker/12:345"));
        assert!(!same("kworker/0:1", "kworker/u8:1"));
        assert!(!same("worker", "worker1"));
        assert_eq!(Numberless("9p-12x").text(), "<N>p-<N>x");
        assert_eq!(Numberless("").text(), "");
    }
}
