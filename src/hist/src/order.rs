//! The order of rows.
//!
//! perf puts rows into a red-black tree. Where call graphs are shown with children, its comparison is no order: rows of
//! equal weight are compared by their depth if their first samples are of one thread, else by their own weight and
//! names, and three rows can form a circle. What comes out then depends on the tree's shape. [`by_insertion`] builds that
//! tree, so that rows stand where perf's do.

use std::cmp::Ordering;

const NIL: u32 = u32::MAX;

/// The positions `0..count` in the order in which a red-black tree holds them after inserting them one by one.
/// `above(new, old)` says whether `new` goes before `old`; if not, it goes after.
pub(crate) fn by_insertion(count: u32, above: impl Fn(u32, u32) -> bool) -> Vec<u32> {
    let mut tree = Tree::with_capacity(count as usize);
    for item in 0..count {
        tree.insert(item, &above);
    }
    tree.into_order()
}

/// The positions `0..count`, sorted stably.
pub(crate) fn by_sorting(count: u32, compare: impl Fn(u32, u32) -> Ordering) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by(|left, right| compare(*left, *right));
    order
}

#[derive(Clone, Copy)]
struct Links {
    parent: u32,
    child: [u32; 2],
    red: bool,
}

/// Nodes are numbered like the items they hold.
struct Tree {
    root: u32,
    links: Vec<Links>,
}

impl Tree {
    fn with_capacity(count: usize) -> Self {
        Self {
            root: NIL,
            links: Vec::with_capacity(count),
        }
    }

    fn insert(&mut self, item: u32, above: &impl Fn(u32, u32) -> bool) {
        let (mut parent, mut side, mut at) = (NIL, 0, self.root);
        while at != NIL {
            side = usize::from(!above(item, at));
            parent = at;
            at = self.child(at, side);
        }
        self.links.push(Links {
            parent,
            child: [NIL; 2],
            red: true,
        });
        if parent == NIL {
            self.root = item;
        } else {
            self.links[parent as usize].child[side] = item;
        }
        self.balance(item);
    }

    /// Restores the rules of colour after `node` was hung in red.
    fn balance(&mut self, mut node: u32) {
        while let Some((parent, grandparent)) = self.red_parent(node) {
            let side = self.side(grandparent, parent);
            let uncle = self.child(grandparent, 1 - side);
            if self.is_red(uncle) {
                self.paint(parent, false);
                self.paint(uncle, false);
                self.paint(grandparent, true);
                node = grandparent;
                continue;
            }
            let top = if self.child(parent, 1 - side) == node {
                self.rotate(parent, side);
                node
            } else {
                parent
            };
            self.paint(top, false);
            self.paint(grandparent, true);
            self.rotate(grandparent, 1 - side);
            break;
        }
        self.paint(self.root, false);
    }

    /// The parent of `node` and that one's parent, if the former is red: then it is not the root.
    fn red_parent(&self, node: u32) -> Option<(u32, u32)> {
        let parent = self.links[node as usize].parent;
        let grandparent = self.links.get(parent as usize)?.parent;
        (self.is_red(parent) && grandparent != NIL).then_some((parent, grandparent))
    }

    /// Moves `node` down to its `side`; its other child takes its place.
    fn rotate(&mut self, node: u32, side: usize) {
        let risen = self.child(node, 1 - side);
        let inner = self.child(risen, side);
        let parent = self.links[node as usize].parent;
        self.links[node as usize].child[1 - side] = inner;
        if inner != NIL {
            self.links[inner as usize].parent = node;
        }
        self.links[risen as usize].parent = parent;
        if parent == NIL {
            self.root = risen;
        } else {
            let place = self.side(parent, node);
            self.links[parent as usize].child[place] = risen;
        }
        self.links[risen as usize].child[side] = node;
        self.links[node as usize].parent = risen;
    }

    fn child(&self, node: u32, side: usize) -> u32 {
        self.links[node as usize].child[side]
    }

    fn side(&self, parent: u32, child: u32) -> usize {
        usize::from(self.child(parent, 1) == child)
    }

    fn is_red(&self, node: u32) -> bool {
        self.links.get(node as usize).is_some_and(|links| links.red)
    }

    fn paint(&mut self, node: u32, red: bool) {
        if let Some(links) = self.links.get_mut(node as usize) {
            links.red = red;
        }
    }

    fn into_order(self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.links.len());
        let mut path = Vec::new();
        let mut at = self.root;
        loop {
            while at != NIL {
                path.push(at);
                at = self.child(at, 0);
            }
            let Some(node) = path.pop() else {
                return order;
            };
            order.push(node);
            at = self.child(node, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn with_a_real_order_both_ways_agree(values in prop::collection::vec(0u8..20, 0..200)) {
            let value = |item: u32| values[item as usize];
            let count = u32::try_from(values.len()).expect("few");
            let inserted = by_insertion(count, |new, old| value(new) < value(old));
            let sorted = by_sorting(count, |left, right| value(left).cmp(&value(right)));
            prop_assert_eq!(inserted, sorted);
        }

        #[test]
        fn every_row_comes_out_once_whatever_the_comparison(seed in any::<u64>(), count in 0u32..300) {
            let above = |new: u32, old: u32| (u64::from(new * 31 + old) ^ seed).count_ones() % 2 == 0;
            let mut order = by_insertion(count, above);
            order.sort_unstable();
            prop_assert_eq!(order, (0..count).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn the_tree_stays_flat() {
        let mut tree = Tree::with_capacity(1024);
        for item in 0..1024 {
            tree.insert(item, &|new, old| new < old);
        }
        let depth = |mut node: u32| {
            let mut depth = 0;
            while node != NIL {
                depth += 1;
                node = tree.links[node as usize].parent;
            }
            depth
        };
        let deepest = (0..1024).map(depth).max();
        assert!(deepest.is_some_and(|depth| depth <= 20), "{deepest:?}");
    }
}
