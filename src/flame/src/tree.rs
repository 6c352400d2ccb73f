//! Stacks merged from the root, as frames in the order they are drawn.

use rustc_hash::FxHashMap;

use crate::stacks::{Label, Stacks};

/// One frame of the picture: a path from the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Callers above it; 0 is the root, which stands for everything.
    pub depth: usize,
    /// What it is called.
    pub label: Label,
    /// Where it begins, in units of width.
    pub start: u64,
    /// How wide it is.
    pub width: u64,
    /// The weight of the stacks that go through it.
    pub total: u64,
    /// The same in the recording compared with, scaled if that was asked for.
    pub before: u64,
    /// How much more of it ends here than before.
    pub growth: i64,
}

/// Which of two recordings gives the widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Widths {
    /// The one compared with.
    Before,
    /// The one that is shown.
    #[default]
    After,
}

/// A flame graph: parents before children, siblings by name.
#[derive(Debug, Clone, Default)]
pub struct Flame {
    /// The frames; the first is the root.
    pub frames: Vec<Frame>,
    /// Whether two recordings are compared.
    pub compares: bool,
}

/// Weights of one path in the recordings.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    before: u64,
    after: u64,
}

impl Weights {
    fn add(&mut self, other: Self) {
        self.before = self.before.saturating_add(other.before);
        self.after = self.after.saturating_add(other.after);
    }

    fn of(self, widths: Widths) -> u64 {
        match widths {
            Widths::Before => self.before,
            Widths::After => self.after,
        }
    }
}

/// One path while the tree grows.
#[derive(Debug, Default)]
struct Node {
    label: u32,
    children: Vec<u32>,
    own: Weights,
    all: Weights,
}

/// The tree while it grows.
struct Grown {
    /// Labels of both recordings, by number.
    labels: Stacks,
    nodes: Vec<Node>,
    /// From a path and a label to the longer path.
    steps: FxHashMap<(u32, u32), u32>,
}

impl Flame {
    /// The flame graph of `stacks`; `reverse` merges them from the innermost frame.
    #[must_use]
    pub fn new(stacks: &Stacks, reverse: bool) -> Self {
        let mut grown = Grown::new();
        grown.add(stacks, reverse, |after| Weights { before: 0, after });
        grown.finish(Widths::After, false)
    }

    /// The flame graph of `after`, whose frames know what they were in `before`. With `normalize` the weights of `before`
    /// are scaled so that both add up to the same.
    #[must_use]
    pub fn compare(
        before: &Stacks,
        after: &Stacks,
        widths: Widths,
        normalize: bool,
        reverse: bool,
    ) -> Self {
        let whole = |stacks: &Stacks| -> u64 { stacks.iter().map(|(_, weight)| weight).sum() };
        let scale = match whole(before) {
            all @ 1.. if normalize => whole(after) as f64 / all as f64,
            _ => 1.0,
        };
        let mut grown = Grown::new();
        grown.add(before, reverse, |weight| Weights {
            before: (weight as f64 * scale).round() as u64,
            after: 0,
        });
        grown.add(after, reverse, |after| Weights { before: 0, after });
        grown.finish(widths, true)
    }

    /// The weight of everything.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.frames.first().map_or(0, |root| root.total)
    }

    /// Rows of the picture that hold frames of at least `least` units.
    #[must_use]
    pub fn rows(&self, least: f64) -> usize {
        let drawn = self
            .frames
            .iter()
            .filter(|frame| frame.width as f64 >= least);
        drawn.map(|frame| frame.depth + 1).max().unwrap_or_default()
    }
}

impl Grown {
    fn new() -> Self {
        let mut labels = Stacks::default();
        let root = labels.label("all", crate::Kind::User);
        Self {
            labels,
            nodes: vec![Node {
                label: root,
                ..Node::default()
            }],
            steps: FxHashMap::default(),
        }
    }

    fn add(&mut self, stacks: &Stacks, reverse: bool, weights: impl Fn(u64) -> Weights) {
        let mut path = Vec::new();
        for (frames, weight) in stacks.iter() {
            path.clear();
            for number in frames {
                if let Some(label) = stacks.get(*number) {
                    path.push(self.labels.label(&label.name, label.kind));
                }
            }
            if reverse {
                path.reverse();
            }
            self.insert(&path, weights(weight));
        }
    }

    fn insert(&mut self, path: &[u32], weights: Weights) {
        let mut at = 0;
        for label in path {
            let next = self.nodes.len() as u32;
            let child = *self.steps.entry((at, *label)).or_insert(next);
            if child == next {
                self.nodes.push(Node {
                    label: *label,
                    ..Node::default()
                });
                self.nodes[at as usize].children.push(child);
            }
            at = child;
        }
        self.nodes[at as usize].own.add(weights);
    }

    fn finish(mut self, widths: Widths, compares: bool) -> Flame {
        // A child has a higher number than its parent.
        for index in (0..self.nodes.len()).rev() {
            let mut all = self.nodes[index].own;
            for child in &self.nodes[index].children {
                all.add(self.nodes[*child as usize].all);
            }
            self.nodes[index].all = all;
        }
        self.order_siblings();
        let mut frames = Vec::with_capacity(self.nodes.len());
        let mut to_draw = vec![(0_u32, 0_usize, 0_u64)];
        while let Some((index, depth, start)) = to_draw.pop() {
            let node = &self.nodes[index as usize];
            if let Some(label) = self.labels.get(node.label) {
                frames.push(frame(node, label, depth, start, widths));
            }
            // Those pushed last are drawn first.
            let mut end = start;
            let children = node.children.iter().map(|child| {
                let start = end;
                end = end.saturating_add(self.nodes[*child as usize].all.of(widths));
                (*child, depth + 1, start)
            });
            let first = to_draw.len();
            to_draw.extend(children);
            to_draw[first..].reverse();
        }
        Flame { frames, compares }
    }

    fn order_siblings(&mut self) {
        let mut labels: Vec<(&Label, u32)> = Vec::new();
        for number in 0.. {
            match self.labels.get(number) {
                Some(label) => labels.push((label, number)),
                None => break,
            }
        }
        labels.sort_unstable();
        let mut ranks = vec![0_u32; labels.len()];
        for (rank, (_, number)) in (0..).zip(&labels) {
            ranks[*number as usize] = rank;
        }
        let rank: Vec<u32> = self
            .nodes
            .iter()
            .map(|node| ranks[node.label as usize])
            .collect();
        for node in &mut self.nodes {
            node.children
                .sort_unstable_by_key(|child| rank[*child as usize]);
        }
    }
}

fn frame(node: &Node, label: &Label, depth: usize, start: u64, widths: Widths) -> Frame {
    let growth = i128::from(node.own.after) - i128::from(node.own.before);
    let lowest = i128::from(i64::MIN);
    Frame {
        depth,
        label: label.clone(),
        start,
        width: node.all.of(widths),
        total: node.all.after,
        before: node.all.before,
        growth: growth.clamp(lowest, i128::from(i64::MAX)) as i64,
    }
}

#[cfg(test)]
mod tests;
