//! Folded text, read back.

use std::collections::BTreeMap;

/// Stacks, outermost frame first, with their weights.
pub(super) type Folded = BTreeMap<String, u64>;

/// The stacks of folded text. What stands twice is added up.
pub(super) fn parse(text: &str) -> Folded {
    let mut stacks = Folded::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("stack and weight");
        let weight: u64 = weight.parse().expect("a number");
        *stacks.entry(stack.to_owned()).or_default() += weight;
    }
    stacks
}
