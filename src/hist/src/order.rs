//! The order of rows.
//!
//! perf puts rows into a red-black tree. With `--children` and call graphs its comparison is not a
//! strict order: rows of equal total are compared by the depth of their call graphs if their first
//! samples are of one thread, otherwise by own weight and names, so three rows can form a cycle.
//! Then the result depends on the shape of the tree. [`by_insertion`] builds the same tree to get
//! the same order.

const NO_NODE: u32 = u32::MAX;

/// Colors, as values of [`Node::red`].
const RED: bool = true;
const BLACK: bool = false;

/// The positions of `items` in order, after inserting them one by one into a red-black tree.
/// `above(new, old)` returns whether `new` precedes `old`.
pub(crate) fn by_insertion<T: Copy>(
    items: impl ExactSizeIterator<Item = T>,
    above: impl Fn(&T, &T) -> bool,
) -> Vec<u32> {
    let mut tree = InsertionTree {
        root: NO_NODE,
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
    /// By side: at 0 the root of the nodes before it, at 1 that of the nodes after it.
    child: [u32; 2],
    red: bool,
    item: T,
}

/// Nodes have the indices of their items.
struct InsertionTree<T> {
    root: u32,
    nodes: Vec<Node<T>>,
}

impl<T: Copy> InsertionTree<T> {
    fn insert(&mut self, item: T, above: &impl Fn(&T, &T) -> bool) {
        let (mut parent, mut side, mut at) = (NO_NODE, 0, self.root);
        while let Some(old) = self.nodes.get(at as usize) {
            side = usize::from(!above(&item, &old.item));
            parent = at;
            at = old.child[side];
        }
        let new = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent,
            child: [NO_NODE; 2],
            red: RED,
            item,
        });
        if parent == NO_NODE {
            self.root = new;
        } else {
            self.nodes[parent as usize].child[side] = new;
        }
        self.balance(new);
    }

    /// Rebalances the tree after inserting the red `node`.
    fn balance(&mut self, mut node: u32) {
        while let Some((parent, grandparent)) = self.red_parent(node) {
            let side = self.side(grandparent, parent);
            let uncle = self.child(grandparent, 1 - side);
            if self.is_red(uncle) {
                self.paint(parent, BLACK);
                self.paint(uncle, BLACK);
                self.paint(grandparent, RED);
                node = grandparent;
                continue;
            }
            let top = if self.child(parent, 1 - side) == node {
                self.rotate(parent, side);
                node
            } else {
                parent
            };
            self.paint(top, BLACK);
            self.paint(grandparent, RED);
            self.rotate(grandparent, 1 - side);
            break;
        }
        self.paint(self.root, BLACK);
    }

    /// The parent and grandparent of `node`, if the parent is red. A red node is never the root, so the parent has a parent.
    fn red_parent(&self, node: u32) -> Option<(u32, u32)> {
        let parent = self.nodes[node as usize].parent;
        let grandparent = self.nodes.get(parent as usize)?.parent;
        (self.is_red(parent) && grandparent != NO_NODE).then_some((parent, grandparent))
    }

    /// Rotates `node` down to `side`; its child on the other side takes its place.
    fn rotate(&mut self, node: u32, side: usize) {
        let risen = self.child(node, 1 - side);
        let inner = self.child(risen, side);
        let parent = self.nodes[node as usize].parent;
        self.nodes[node as usize].child[1 - side] = inner;
        if inner != NO_NODE {
            self.nodes[inner as usize].parent = node;
        }
        self.nodes[risen as usize].parent = parent;
        if parent == NO_NODE {
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
            while at != NO_NODE {
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
        fn a_strict_order_is_that_of_a_sort(values in prop::collection::vec(0u8..20, 0..200)) {
            let inserted = by_insertion(values.iter(), |new, old| new < old);
            let mut sorted: Vec<u32> = (0..).zip(&values).map(|(position, _)| position).collect();
            sorted.sort_by_key(|position| values[*position as usize]);
            prop_assert_eq!(inserted, sorted);
        }

        #[test]
        fn every_row_is_output_once_for_any_comparison(seed in any::<u64>(), count in 0u32..300) {
            let above = |new: &u32, old: &u32| (u64::from(new * 31 + old) ^ seed).count_ones() % 2 == 0;
            let mut order = by_insertion((0..count).collect::<Vec<u32>>().into_iter(), above);
            order.sort_unstable();
            prop_assert_eq!(order, (0..count).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn the_tree_stays_balanced() {
        let mut tree = InsertionTree {
            root: NO_NODE,
            nodes: Vec::new(),
        };
        for item in 0..1024 {
            tree.insert(item, &|new, old| new < old);
        }
        let depth = |mut node: u32| {
            let mut depth = 0;
            while node != NO_NODE {
                depth += 1;
                node = tree.nodes[node as usize].parent;
            }
            depth
        };
        let deepest = (0..1024).map(depth).max();
        // A red-black tree of n nodes has at most 2 log2(n + 1) levels.
        assert!(deepest.is_some_and(|depth| depth <= 20), "{deepest:?}");
    }
}
