//! Merges stacks into a flame graph: a tree of frames in drawing order.

use crate::kind::FrameKind;
use crate::stacks::{Label, Stacks};

/// Name and type of the root frame. It is not code: `User` is the type without a suffix in folded text.
const ROOT: (&str, FrameKind) = ("all", FrameKind::User);

/// A frame of the picture: a path from the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameFrame {
    /// Distance from the root, which has depth 0.
    pub depth: usize,
    /// Index of its name in [`Flame::labels`]; the root has none.
    label: Option<u32>,
    /// Horizontal position, in the unit of `width`.
    pub start: u64,
    /// The frame's weight in the recording that determines the widths ([`FrameWidths`]).
    pub width: u64,
    /// The weight of the stacks through the frame in the displayed recording.
    pub total: u64,
    /// The weight of the stacks through the frame in the recording that the displayed one is compared with, scaled if requested;
    /// 0 without a comparison.
    pub before: u64,
    /// The frame's own weight (without its children) in the displayed recording, minus its own weight in the recording that the
    /// displayed one is compared with, scaled if requested. Without a comparison, the own weight.
    pub own_growth: i64,
}

/// Which of two recordings determines the widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameWidths {
    /// The recording that the displayed one is compared with.
    Before,
    /// The displayed recording.
    #[default]
    After,
}

/// A flame graph: parents before children, siblings by name.
#[derive(Debug, Clone, Default)]
pub struct Flame {
    /// The frames; the first is the root.
    pub frames: Vec<FlameFrame>,
    labels: Vec<Label>,
    /// Whether two recordings are compared.
    pub compares: bool,
}

/// Weights in the two recordings.
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

    fn of(self, widths: FrameWidths) -> u64 {
        match widths {
            FrameWidths::Before => self.before,
            FrameWidths::After => self.after,
        }
    }
}

/// The paths of all stacks. Sorted by the ranks of their frames, they are in drawing order.
#[derive(Default)]
struct Paths {
    /// All labels, sorted; the index is the rank, which orders siblings.
    labels: Vec<Label>,
    /// The ranks of all paths' frames, concatenated.
    ranks: Vec<u32>,
    paths: Vec<Path>,
}

/// A path: its range in [`Paths::ranks`], and its weights.
struct Path {
    start: usize,
    end: usize,
    weights: Weights,
}

impl Flame {
    /// The flame graph of `stacks`; `reverse` merges them from the innermost frame.
    #[must_use]
    pub fn new(stacks: &Stacks, reverse: bool) -> Self {
        let mut paths = Paths::with_labels(&[stacks]);
        paths.add(stacks, reverse, |after| Weights { before: 0, after });
        let compares = false;
        paths.finish(FrameWidths::After, compares)
    }

    /// The flame graph of `after` compared with `before`. With `normalize` the weights of `before`
    /// are scaled so that its total is that of `after`. `reverse` merges stacks from the innermost frame.
    #[must_use]
    pub fn compare(
        before: &Stacks,
        after: &Stacks,
        widths: FrameWidths,
        normalize: bool,
        reverse: bool,
    ) -> Self {
        let total_weight = |stacks: &Stacks| {
            let weights = stacks.iter().map(|(_, weight)| weight);
            weights.fold(0, u64::saturating_add)
        };
        let scale = match total_weight(before) {
            all @ 1.. if normalize => total_weight(after) as f64 / all as f64,
            _ => 1.0,
        };
        let mut paths = Paths::with_labels(&[before, after]);
        paths.add(before, reverse, |weight| Weights {
            before: (weight as f64 * scale).round() as u64,
            after: 0,
        });
        paths.add(after, reverse, |after| Weights { before: 0, after });
        let compares = true;
        paths.finish(widths, compares)
    }

    /// Name and type of code of a frame.
    #[must_use]
    pub fn label(&self, frame: &FlameFrame) -> (&str, FrameKind) {
        let label = frame
            .label
            .and_then(|label| self.labels.get(label as usize));
        label.map_or(ROOT, |label| (&label.name, label.kind))
    }

    /// The total weight of the displayed recording.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.frames.first().map_or(0, |root| root.total)
    }

    /// Number of rows with frames that have at least the width `least`, in the unit of [`FlameFrame::width`].
    #[must_use]
    pub fn rows(&self, least: f64) -> usize {
        let drawn = self
            .frames
            .iter()
            .filter(|frame| frame.width as f64 >= least);
        drawn.map(|frame| frame.depth + 1).max().unwrap_or_default()
    }
}

impl Paths {
    /// Creates an empty collection with the labels of these stacks.
    fn with_labels(stacks: &[&Stacks]) -> Self {
        let labels = stacks.iter().flat_map(|stacks| stacks.labels());
        let mut labels: Vec<Label> = labels.cloned().collect();
        labels.sort_unstable();
        labels.dedup();
        Self {
            labels,
            ..Self::default()
        }
    }

    /// Adds the path of each stack of one recording. `weights` converts the weight of a stack to weights in both recordings,
    /// with 0 for the other recording.
    fn add(&mut self, stacks: &Stacks, reverse: bool, weights: impl Fn(u64) -> Weights) {
        // The rank of each label of `stacks`.
        let ranks: Vec<Option<u32>> = stacks
            .labels()
            .iter()
            .map(|label| u32::try_from(self.labels.binary_search(label).ok()?).ok())
            .collect();
        for (frames, weight) in stacks.iter() {
            let start = self.ranks.len();
            let rank = |frame: &u32| ranks.get(*frame as usize).copied().flatten();
            self.ranks.extend(frames.iter().filter_map(rank));
            if reverse && let Some(path) = self.ranks.get_mut(start..) {
                path.reverse();
            }
            self.paths.push(Path {
                start,
                end: self.ranks.len(),
                weights: weights(weight),
            });
        }
    }

    /// Merges the paths into a flame graph. The paths are sorted first, so that paths with a common prefix are
    /// consecutive: each frame is created by its first path.
    fn finish(mut self, widths: FrameWidths, compares: bool) -> Flame {
        let ranks = &self.ranks;
        let frames_of = |path: &Path| ranks.get(path.start..path.end).unwrap_or_default();
        self.paths
            .sort_unstable_by(|one, other| frames_of(one).cmp(frames_of(other)));
        let mut tree = Tree::default();
        let mut previous: &[u32] = &[];
        for path in &self.paths {
            let frames = frames_of(path);
            let pairs = frames.iter().zip(previous);
            let common = pairs.take_while(|(one, other)| one == other).count();
            tree.add(
                common,
                frames.get(common..).unwrap_or_default(),
                path.weights,
            );
            previous = frames;
        }
        Flame {
            frames: tree.into_frames(widths),
            labels: self.labels,
            compares,
        }
    }
}

/// A frame while paths are added in order.
struct Node {
    depth: usize,
    label: Option<u32>,
    /// The weights of the paths that end in the frame.
    own: Weights,
    /// The weights of all paths through the frame.
    total: Weights,
}

/// All frames, parents before children.
struct Tree {
    nodes: Vec<Node>,
    /// Indices of the last path's frames in `nodes`, the root first.
    open: Vec<usize>,
}

impl Default for Tree {
    /// Only the root.
    fn default() -> Self {
        let root = Node {
            depth: 0,
            label: None,
            own: Weights::default(),
            total: Weights::default(),
        };
        Self {
            nodes: vec![root],
            open: vec![0],
        }
    }
}

impl Tree {
    /// Adds a path that shares `common` frames (not counting the root) with the previous one, followed by `more`.
    fn add(&mut self, common: usize, more: &[u32], weights: Weights) {
        self.open.truncate(common + 1);
        for label in more {
            self.nodes.push(Node {
                depth: self.open.len(),
                label: Some(*label),
                own: Weights::default(),
                total: Weights::default(),
            });
            self.open.push(self.nodes.len() - 1);
        }
        for index in &self.open {
            if let Some(node) = self.nodes.get_mut(*index) {
                node.total.add(weights);
            }
        }
        let last = self.open.last().and_then(|last| self.nodes.get_mut(*last));
        if let Some(last) = last {
            last.own.add(weights);
        }
    }

    /// The frames with their positions: siblings are placed side by side from the start of their parent.
    fn into_frames(self, widths: FrameWidths) -> Vec<FlameFrame> {
        // `next[d]` is the start of the next frame at depth `d`, for depths up to that of the children of the last placed frame.
        let mut next: Vec<u64> = vec![0];
        let place = |node: &Node| {
            next.truncate(node.depth + 1);
            let start = next.last().copied().unwrap_or_default();
            let width = node.total.of(widths);
            if let Some(next) = next.last_mut() {
                *next = start.saturating_add(width);
            }
            next.push(start);
            frame(node, start, width)
        };
        self.nodes.iter().map(place).collect()
    }
}

fn frame(node: &Node, start: u64, width: u64) -> FlameFrame {
    let own_growth = i128::from(node.own.after) - i128::from(node.own.before);
    let lowest = i128::from(i64::MIN);
    FlameFrame {
        depth: node.depth,
        label: node.label,
        start,
        width,
        total: node.total.after,
        before: node.total.before,
        own_growth: own_growth.clamp(lowest, i128::from(i64::MAX)) as i64,
    }
}

#[cfg(test)]
mod tests;
