//! The order of rows.
//!
//! perf puts rows into a red-black tree. Where call graphs are shown with children, its comparison is no order: rows of
//! equal weight are compared by their depth if their first samples are of one thread, else by their own weight and
//! names, and three rows can form a circle. What comes out then depends on the tree's shape. [`by_insertion`] builds that
//! tree, so that rows stand where perf's do.

const NIL: u32 = u32::MAX;

/// The positions of `items` in the order in which a red-black tree holds them after inserting them one by one.
/// `above(new, old)` says whether `new` goes before `old`; if not, it goes after.
pub(crate) fn by_insertion<T: Copy>(
    items: impl ExactSizeIterator<Item = T>,
    above: impl Fn(&T, &T) -> bool,
) -> Vec<u32> {
    let mut tree = Tree {
        root: NIL,
        nodes: Vec::with_capacity(items.len()),
    };
    for item in items {
        tree.insert(item, &above);
    }
    tree.into_order()
}

#[derive(Clone, Copy)]
struct Node<T> {
    parent: u32,
    child: [u32; 2],
    red: bool,
    item: T,
}

/// Nodes are numbered like the items they hold.
struct Tree<T> {
    root: u32,
    nodes: Vec<Node<T>>,
}

impl<T: Copy> Tree<T> {
    fn insert(&mut self, item: T, above: &impl Fn(&T, &T) -> bool) {
        let (mut parent, mut side, mut at) = (NIL, 0, self.root);
        while let Some(old) = self.nodes.get(at as usize) {
            side = usize::from(!above(&item, &old.item));
            parent = at;
            at = old.child[side];
        }
        let new = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent,
            child: [NIL; 2],
            red: true,
            item,
        });
        if parent == NIL {
            self.root = new;
        } else {
            self.nodes[parent as usize].child[side] = new;
        }
        self.balance(new);
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
        let parent = self.nodes[node as usize].parent;
        let grandparent = self.nodes.get(parent as usize)?.parent;
        (self.is_red(parent) && grandparent != NIL).then_some((parent, grandparent))
    }

    /// Moves `node` down to its `side`; its other child takes its place.
    fn rotate(&mut self, node: u32, side: usize) {
        let risen = self.child(node, 1 - side);
        let inner = self.child(risen, side);
        let parent = self.nodes[node as usize].parent;
        self.nodes[node as usize].child[1 - side] = inner;
        if inner != NIL {
            self.nodes[inner as usize].parent = node;
        }
        self.nodes[risen as usize].parent = parent;
        if parent == NIL {
            self.root = risen;
        } else {
            let place = self.side(parent, node);
            self.nodes[parent as usize].child[place] = risen;
        }
        self.nodes[risen as usize].child[side] = node;
        self.nodes[node as usize].parent = risen;
    }

    fn child(&self, node: u32, side: usize) -> u32 {
        self.nodes[node as usize].child[side]
    }

    fn side(&self, parent: u32, child: u32) -> usize {
        usize::from(self.child(parent, 1) == child)
    }

    fn is_red(&self, node: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| node.red)
    }

    fn paint(&mut self, node: u32, red: bool) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.red = red;
        }
    }

    fn into_order(self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.nodes.len());
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
            let inserted = by_insertion(values.iter(), |new, old| new < old);
            let mut sorted: Vec<u32> = (0..).zip(&values).map(|(position, _)| position).collect();
            sorted.sort_by_key(|position| values[*position as usize]);
            prop_assert_eq!(inserted, sorted);
        }

        #[test]
        fn every_row_comes_out_once_whatever_the_comparison(seed in any::<u64>(), count in 0u32..300) {
            let above = |new: &u32, old: &u32| (u64::from(new * 31 + old) ^ seed).count_ones() % 2 == 0;
            let mut order = by_insertion((0..count).collect::<Vec<u32>>().into_iter(), above);
            order.sort_unstable();
            prop_assert_eq!(order, (0..count).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn the_tree_stays_flat() {
        let mut tree = Tree {
            root: NIL,
            nodes: Vec::new(),
        };
        for item in 0..1024 {
            tree.insert(item, &|new, old| new < old);
        }
        let depth = |mut node: u32| {
            let mut depth = 0;
            while node != NIL {
                depth += 1;
                node = tree.nodes[node as usize].parent;
            }
            depth
        };
        let deepest = (0..1024).map(depth).max();
        assert!(deepest.is_some_and(|depth| depth <= 20), "{deepest:?}");
    }
}
