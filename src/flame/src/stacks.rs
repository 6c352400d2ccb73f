//! Unique stacks of names, each with its weight.

use rustc_hash::FxHashMap;

use crate::kind::Kind;

/// What a frame is called, and what code it is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The function; the outermost frame is the program.
    pub name: Box<str>,
    /// The kind of code.
    pub kind: Kind,
}

/// Unique stacks. Labels are numbered in the order they came in; numbers are never shown.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    labels: Vec<Label>,
    numbers: FxHashMap<Label, u32>,
    weights: FxHashMap<Box<[u32]>, u64>,
}

impl Stacks {
    /// The number of a label.
    pub fn label(&mut self, name: &str, kind: Kind) -> u32 {
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

    /// Adds `weight` to the stack of these labels, outermost first.
    pub fn add(&mut self, frames: &[u32], weight: u64) {
        if let Some(sum) = self.weights.get_mut(frames) {
            *sum = sum.saturating_add(weight);
        } else {
            self.weights.insert(frames.into(), weight);
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The label of a number that [`Self::label`] gave.
    pub(crate) fn get(&self, number: u32) -> Option<&Label> {
        self.labels.get(number as usize)
    }

    /// The stacks, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u32], u64)> {
        self.weights
            .iter()
            .map(|(frames, weight)| (&**frames, *weight))
    }
}
