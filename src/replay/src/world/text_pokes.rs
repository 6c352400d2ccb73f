//! Modifications of kernel code at run time: jump labels, probes, trampolines.

use std::collections::BTreeMap;

use rperf_wire::TextPoke;

use crate::Order;

/// A modification of code: its address is the key of [`TextPokes::by_address`].
#[derive(Debug)]
struct Modification {
    /// The position of its TEXT_POKE record in the order of all records.
    at: Order,
    old: Box<[u8]>,
    new: Box<[u8]>,
}

impl Modification {
    fn len(&self) -> usize {
        self.old.len().max(self.new.len())
    }
}

/// The modifications of the host kernel's code.
#[derive(Debug, Default)]
pub(super) struct TextPokes {
    /// By address, in order of time.
    by_address: BTreeMap<u64, Vec<Modification>>,
    /// Length in bytes of the longest modification.
    longest: u64,
}

impl TextPokes {
    pub(super) fn add(&mut self, at: Order, poke: &TextPoke<'_>) {
        let (old, new) = (poke.old.into(), poke.new.into());
        let modification = Modification { at, old, new };
        self.longest = self.longest.max(modification.len() as u64);
        self.by_address
            .entry(poke.addr)
            .or_default()
            .push(modification);
    }

    /// Removes modifications that a later one at the same address replaces completely; one that is longer than all later ones
    /// stays. [`TextPokes::code_at`] is then only valid for orders after all modifications so far: only live sessions call this,
    /// and they do not query earlier orders.
    pub(super) fn keep_last(&mut self) {
        for pokes in self.by_address.values_mut() {
            let mut longest_later = None;
            let mut kept: Vec<Modification> = Vec::new();
            for poke in pokes.drain(..).rev() {
                if longest_later.is_none_or(|longest| poke.new.len() > longest) {
                    longest_later = Some(poke.new.len());
                    kept.push(poke);
                }
            }
            kept.reverse();
            *pokes = kept;
        }
    }

    /// Number of modifications.
    pub(super) fn len(&self) -> usize {
        self.by_address.values().map(Vec::len).sum()
    }

    /// Returns the modifications that overlap the `length` bytes from `start` on, with their addresses.
    fn within(&self, start: u64, length: u64) -> Vec<(u64, &Modification)> {
        let first = start.saturating_sub(self.longest);
        let near = self.by_address.range(first..start.saturating_add(length));
        let near = near.flat_map(|(address, pokes)| pokes.iter().map(move |poke| (*address, poke)));
        near.filter(|(address, poke)| address.saturating_add(poke.len() as u64) > start)
            .collect()
    }

    /// Returns the content that `code`, read at `address` at any time, had just before `order`; `None` if no modification
    /// overlaps it.
    pub(super) fn code_at(&self, order: Order, address: u64, code: &[u8]) -> Option<Vec<u8>> {
        let mut pokes = self.within(address, code.len() as u64);
        if pokes.is_empty() {
            return None;
        }
        let mut code_then = code.to_vec();
        pokes.sort_by_key(|(_, poke)| poke.at);
        let applied = pokes.partition_point(|(_, poke)| poke.at < order);
        let (before, after) = pokes.split_at(applied);
        // A byte is what the last modification before `order` wrote; if there is none, what the first later one replaced.
        for (start, poke) in after.iter().rev() {
            copy_overlap(&mut code_then, address, &poke.old, *start);
        }
        for (start, poke) in before {
            copy_overlap(&mut code_then, address, &poke.new, *start);
        }
        Some(code_then)
    }
}

/// Copies the part of `bytes`, located at `start`, that overlaps `code`, located at `address`.
fn copy_overlap(code: &mut [u8], address: u64, bytes: &[u8], start: u64) {
    // 0 if `to` is before `from`.
    let distance =
        |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let target = code.iter_mut().skip(distance(address, start));
    let source = bytes.iter().skip(distance(start, address));
    for (target, source) in target.zip(source) {
        *target = *source;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(time: u64) -> Order {
        Order {
            time,
            ..Order::default()
        }
    }

    /// The 8 bytes of code at address 100 as of `time`; after all modifications they are `abCDeFgh`.
    fn at(pokes: &TextPokes, time: u64) -> Vec<u8> {
        pokes.code_at(order(time), 100, b"abCDeFgh").unwrap()
    }

    #[test]
    fn code_is_read_as_of_a_time() {
        let mut pokes = TextPokes::default();
        for (time, addr, old, new) in [
            (10, 102, &b"cde"[..], &b"xyz"[..]),
            (20, 102, b"x", b"C"),
            (30, 104, b"zf", b"eF"),
            (40, 103, b"y", b"D"),
            // These overlap the start and the end of the code.
            (50, 98, b"!!A", b"!!a"),
            (60, 107, b"H!!", b"h!!"),
            // Without old code, the byte at earlier times is the one read: `b`.
            (70, 101, b"", b"b"),
        ] {
            pokes.add(order(time), &TextPoke { addr, old, new });
        }
        assert_eq!(
            at(&pokes, 10),
            b"AbcdefgH",
            "a modification applies to later samples only"
        );
        assert_eq!(at(&pokes, 11), b"AbxyzfgH");
        assert_eq!(at(&pokes, 21), b"AbCyzfgH");
        assert_eq!(at(&pokes, 31), b"AbCyeFgH");
        assert_eq!(at(&pokes, 41), b"AbCDeFgH");
        assert_eq!(at(&pokes, 51), b"abCDeFgH");
        assert_eq!(at(&pokes, 71), b"abCDeFgh");
    }

    #[test]
    fn modifications_replaced_at_their_address_are_removed() {
        let mut pokes = TextPokes::default();
        for (time, addr, old, new) in [
            (10, 102, &b"c"[..], &b"x"[..]),
            (20, 102, b"xde", b"Cyz"),
            (30, 104, b"z", b"e"),
            (40, 102, b"C", b"c"),
            (50, 102, b"c", b"C"),
            (60, 103, b"y", b"D"),
        ] {
            pokes.add(order(time), &TextPoke { addr, old, new });
        }
        let before = at(&pokes, 70);
        pokes.keep_last();
        // At 102, the last one and a longer one before; one each at 103 and 104.
        assert_eq!(pokes.len(), 4);
        assert_eq!(at(&pokes, 70), before);
    }

    #[test]
    fn only_code_that_a_modification_overlaps_is_changed() {
        let mut pokes = TextPokes::default();
        let (old, new) = (&b"old"[..], &b"new"[..]);
        pokes.add(
            order(1),
            // It would end after the last address, `u64::MAX`.
            &TextPoke {
                addr: u64::MAX - 1,
                old,
                new,
            },
        );
        pokes.add(
            order(1),
            &TextPoke {
                addr: 100,
                old,
                new,
            },
        );
        let at = |address| pokes.code_at(order(2), address, b"as it is");
        for address in [92, 103, 0, u64::MAX - 10] {
            assert_eq!(at(address), None, "{address}");
        }
        assert_eq!(at(u64::MAX - 7).unwrap(), b"as it ne");
    }
}
