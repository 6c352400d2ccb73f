//! Search order of overlapping symbols.
//!
//! perf keeps symbols in a red-black tree sorted only by start and stops at the first node on the
//! way down that covers the address. For overlapping symbols (entry points inside assembly
//! functions, code replaced by a JIT compiler) the result depends on the shape of the tree, and the
//! shape on the order of insertion and removal. To get the same names, this history is replayed for
//! the few tables that need it.

use std::ops::Range;

use crate::symbol::Symbol;

/// A step of a table's history; numbers are positions in order of insertion.
#[derive(Debug, Clone)]
pub(crate) enum TreeChange {
    /// Insertions, in this order.
    Insert(Range<u32>),
    /// A removal.
    Erase(u32),
}

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    /// Left and right.
    child: [u32; 2],
    red: bool,
}

/// A new node.
const LEAF: Node = Node {
    parent: NONE,
    child: [NONE; 2],
    red: true,
};

/// The final tree, with positions in the finished table.
#[derive(Debug, Clone)]
pub(crate) struct SearchTree {
    root: u32,
    children: Vec<[u32; 2]>,
}

impl SearchTree {
    /// Builds the tree that results from `changes` of symbols with these `starts`. `place` maps
    /// positions of insertion to those of the finished table, and symbols that were removed to `u32::MAX`.
    pub(crate) fn replay(starts: &[u64], changes: &[TreeChange], place: &[u32]) -> Self {
        let mut tree = RedBlack {
            root: NONE,
            nodes: vec![LEAF; starts.len()],
        };
        for change in changes {
            match change {
                TreeChange::Insert(range) => {
                    range.clone().for_each(|node| tree.insert(starts, node));
                }
                TreeChange::Erase(node) => tree.erase(*node),
            }
        }
        let rename = |node: u32| place.get(node as usize).copied().unwrap_or(NONE);
        let live = place.iter().filter(|&&position| position != NONE).count();
        let mut children = vec![[NONE; 2]; live];
        for (node, &position) in tree.nodes.iter().zip(place) {
            if let Some(slot) = children.get_mut(position as usize) {
                *slot = node.child.map(rename);
            }
        }
        Self {
            root: rename(tree.root),
            children,
        }
    }

    /// The position of the first symbol that covers `address`, on the way down from the root; `None` if the search ends without
    /// one. `symbol_at` returns the symbol at a position.
    pub(crate) fn find(
        &self,
        symbol_at: impl Fn(u32) -> Option<Symbol>,
        address: u64,
    ) -> Option<u32> {
        let mut node = self.root;
        while let Some(symbol) = symbol_at(node) {
            // A symbol without size covers its start.
            let side = if address < symbol.start {
                0
            } else if address > symbol.end || (address == symbol.end && address != symbol.start) {
                1
            } else {
                return Some(node);
            };
            node = self.children.get(node as usize)?[side];
        }
        None
    }
}

/// A red-black tree with the algorithms of the textbook (Cormen et al., chapter 13), which the kernel's tree uses too.
struct RedBlack {
    root: u32,
    nodes: Vec<Node>,
}

impl RedBlack {
    /// The node with this number. [`NONE`] is a black node without relatives; the setters below ignore it.
    fn node(&self, node: u32) -> Node {
        self.nodes
            .get(node as usize)
            .copied()
            .unwrap_or(Node { red: false, ..LEAF })
    }

    fn parent(&self, node: u32) -> u32 {
        self.node(node).parent
    }

    fn child(&self, node: u32, side: usize) -> u32 {
        self.node(node).child[side]
    }

    fn is_red(&self, node: u32) -> bool {
        self.node(node).red
    }

    fn set_red(&mut self, node: u32, red: bool) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.red = red;
        }
    }

    fn set_parent(&mut self, node: u32, parent: u32) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.parent = parent;
        }
    }

    fn set_child(&mut self, node: u32, side: usize, child: u32) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.child[side] = child;
        }
    }

    /// 1 if `node` is the right child of `parent`, otherwise 0.
    fn side(&self, node: u32, parent: u32) -> usize {
        usize::from(self.child(parent, 1) == node)
    }

    /// Replaces the child `old` of `parent` by `new`.
    fn replace(&mut self, parent: u32, old: u32, new: u32) {
        if parent == NONE {
            self.root = new;
        } else {
            let side = self.side(old, parent);
            self.set_child(parent, side, new);
        }
        self.set_parent(new, parent);
    }

    /// Rotates `node` down to `side`; its child on the other side takes its place.
    fn rotate(&mut self, node: u32, side: usize) {
        let up = self.child(node, 1 - side);
        let inner = self.child(up, side);
        self.set_child(node, 1 - side, inner);
        self.set_parent(inner, node);
        self.replace(self.parent(node), node, up);
        self.set_child(up, side, node);
        self.set_parent(node, up);
    }

    fn insert(&mut self, starts: &[u64], new: u32) {
        let start = |node: u32| starts.get(node as usize);
        let (mut parent, mut side, mut below) = (NONE, 0, self.root);
        while below != NONE {
            parent = below;
            side = usize::from(start(new) >= start(below));
            below = self.child(below, side);
        }
        if let Some(node) = self.nodes.get_mut(new as usize) {
            *node = Node { parent, ..LEAF };
        }
        if parent == NONE {
            self.root = new;
        } else {
            self.set_child(parent, side, new);
        }
        self.balance_inserted(new);
    }

    fn balance_inserted(&mut self, mut node: u32) {
        while self.is_red(self.parent(node)) {
            let mut parent = self.parent(node);
            let grand = self.parent(parent);
            let side = self.side(parent, grand);
            let uncle = self.child(grand, 1 - side);
            if self.is_red(uncle) {
                self.set_red(parent, false);
                self.set_red(uncle, false);
                self.set_red(grand, true);
                node = grand;
                continue;
            }
            if self.child(parent, 1 - side) == node {
                self.rotate(parent, side);
                parent = node;
            }
            self.set_red(parent, false);
            self.set_red(grand, true);
            self.rotate(grand, 1 - side);
            break;
        }
        self.set_red(self.root, false);
    }

    fn erase(&mut self, node: u32) {
        let Node {
            parent,
            child: [left, right],
            red,
        } = self.node(node);
        if left != NONE && right != NONE {
            return self.erase_inner(node);
        }
        let child = if left == NONE { right } else { left };
        self.replace(parent, node, child);
        if child != NONE {
            self.set_red(child, red);
        } else if !red {
            self.balance_erased(parent, NONE);
        }
    }

    /// Removes a node with two children: its successor takes its position and colour.
    fn erase_inner(&mut self, node: u32) {
        let Node {
            parent,
            child: [left, right],
            red,
        } = self.node(node);
        let mut successor = right;
        while self.child(successor, 0) != NONE {
            successor = self.child(successor, 0);
        }
        let orphan = self.child(successor, 1);
        let was_red = self.is_red(successor);
        // The parent of `orphan` after the removal.
        let mut orphan_parent = self.parent(successor);
        if orphan_parent == node {
            orphan_parent = successor;
        } else {
            self.set_child(orphan_parent, 0, orphan);
            self.set_parent(orphan, orphan_parent);
            self.set_child(successor, 1, right);
            self.set_parent(right, successor);
        }
        self.set_child(successor, 0, left);
        self.set_parent(left, successor);
        self.replace(parent, node, successor);
        self.set_red(successor, red);
        if orphan != NONE {
            self.set_red(orphan, false);
        } else if !was_red {
            self.balance_erased(orphan_parent, NONE);
        }
    }

    /// Rebalances the tree after the subtree at `node` (possibly [`NONE`]), a child of `parent`, has lost one black node.
    fn balance_erased(&mut self, mut parent: u32, mut node: u32) {
        while parent != NONE && !self.is_red(node) {
            let side = usize::from(self.child(parent, 0) != node);
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.set_red(sibling, false);
                self.set_red(parent, true);
                self.rotate(parent, side);
                sibling = self.child(parent, 1 - side);
            }
            let (near, far) = (self.child(sibling, side), self.child(sibling, 1 - side));
            if !self.is_red(near) && !self.is_red(far) {
                self.set_red(sibling, true);
                node = parent;
                parent = self.parent(node);
                continue;
            }
            if !self.is_red(far) {
                self.set_red(near, false);
                self.set_red(sibling, true);
                self.rotate(sibling, 1 - side);
                sibling = near;
            }
            self.set_red(sibling, self.is_red(parent));
            self.set_red(parent, false);
            self.set_red(self.child(sibling, 1 - side), false);
            self.rotate(parent, side);
            return;
        }
        self.set_red(node, false);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builder::{NewSymbol, TableBuilder};
    use crate::symbol::{Binding, NameForm, Symbol, SymbolKind};
    use crate::table::{AddressKind, SymbolTable};

    /// A table of symbols with these starts and sizes. `is_fixed` selects whether ends are fixed and duplicates dropped.
    fn table(ranges: &[(u64, u64)], is_fixed: bool) -> SymbolTable {
        let demangle = false;
        let mut builder = TableBuilder::new(demangle);
        for &(start, size) in ranges {
            let new = NewSymbol {
                start,
                size,
                binding: Binding::Global,
                kind: SymbolKind::Function,
                form: NameForm::Plain,
            };
            builder.push(new, format!("{start}_{size}").as_bytes());
        }
        if is_fixed {
            // All symbols are in one region.
            builder.fix_ends(|_, _| false);
            builder.drop_duplicates();
        }
        builder.finish(AddressKind::Runtime)
    }

    impl RedBlack {
        /// Number of black nodes on each path down from `node`; `None` if the rules of red-black trees are violated.
        fn black_height(&self, node: u32) -> Option<u32> {
            if node == NONE {
                return Some(0);
            }
            let Node {
                child: [left, right],
                red,
                ..
            } = self.node(node);
            let parents_match = [left, right]
                .into_iter()
                .all(|c| c == NONE || self.parent(c) == node);
            let colours_match = !red || !(self.is_red(left) || self.is_red(right));
            let (l, r) = (self.black_height(left)?, self.black_height(right)?);
            (parents_match && colours_match && l == r).then_some(l + u32::from(!red))
        }

        fn in_order(&self, node: u32, into: &mut Vec<u32>) {
            if node != NONE {
                self.in_order(self.child(node, 0), into);
                into.push(node);
                self.in_order(self.child(node, 1), into);
            }
        }
    }

    proptest! {
        #[test]
        fn found_symbols_cover_the_address(ranges in prop::collection::vec((0u64..200, 0u64..30), 0..60), is_fixed: bool) {
            let table = table(&ranges, is_fixed);
            for address in 0..240 {
                let covers = |s: &Symbol| s.start == address || (s.start < address && address < s.end);
                let found = table.find(address).and_then(|at| table.get(at));
                if let Some(found) = found {
                    prop_assert!(covers(&found));
                }
                let candidates = table.iter().filter(|(_, s)| covers(s)).count();
                match &table.overlaps {
                    // The table uses the tree only in the ranges of overlapping symbols; elsewhere, too, the tree gives the
                    // same result.
                    Some(overlaps) => {
                        let tree = overlaps.tree(&table.tied, table.compared_names());
                        let result = tree.find(|at| table.at(at), address);
                        prop_assert_eq!(result.and_then(|at| table.at(at)), found);
                    }
                    // Without overlaps at most one symbol covers an address.
                    None => prop_assert_eq!(candidates, usize::from(found.is_some())),
                }
            }
        }

        #[test]
        fn the_tree_keeps_its_invariants(
            starts in prop::collection::vec(0u64..100, 1..80),
            erased in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let mut tree = RedBlack { root: NONE, nodes: vec![LEAF; starts.len()] };
            let mut expected: Vec<u32> = Vec::new();
            for node in 0..starts.len() as u32 {
                tree.insert(&starts, node);
                expected.push(node);
                prop_assert!(tree.black_height(tree.root).is_some());
            }
            expected.sort_by_key(|&node| starts[node as usize]);
            for index in erased {
                if expected.is_empty() {
                    break;
                }
                tree.erase(expected.remove(index.index(expected.len())));
                prop_assert!(tree.black_height(tree.root).is_some());
                let mut order = Vec::new();
                tree.in_order(tree.root, &mut order);
                prop_assert_eq!(&order, &expected);
            }
        }
    }
}
