//! Weighted stacks of names.

use rustc_hash::FxHashMap;

use crate::kind::FrameKind;

/// The name of a frame and the type of its code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The name, usually of a function.
    pub name: Box<str>,
    /// The type of its code.
    pub kind: FrameKind,
}

/// Stacks in order of insertion, possibly with duplicates. Labels are numbered in order of their first use.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    labels: Vec<Label>,
    numbers: FxHashMap<Label, u32>,
    /// The numbers of the labels of all stacks, concatenated.
    frames: Vec<u32>,
    /// End of the frames of each stack, and its weight.
    stacks: Vec<(usize, u64)>,
}

impl Stacks {
    /// Returns the number of a label, which is added if it is new.
    pub fn label(&mut self, name: &str, kind: FrameKind) -> u32 {
        let label = Label {
            name: name.into(),
            kind,
        };
        if let Some(number) = self.numbers.get(&label) {
            return *number;
        }
        let number = self.labels.len() as u32;
        self.labels.push(label.clone());
        self.numbers.insert(label, number);
        number
    }

    /// Adds a stack of the labels with these numbers, outermost first.
    pub fn add(&mut self, frames: &[u32], weight: u64) {
        self.frames.extend_from_slice(frames);
        self.stacks.push((self.frames.len(), weight));
    }

    /// Whether there are no stacks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// All labels, by number.
    pub(crate) fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The numbers of the labels of each stack, and its weight.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u32], u64)> {
        let mut start = 0;
        self.stacks.iter().map(move |(end, weight)| {
            let frames = self.frames.get(start..*end).unwrap_or_default();
            start = *end;
            (frames, *weight)
        })
    }
}
