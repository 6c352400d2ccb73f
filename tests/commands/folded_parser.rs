//! Parses folded stacks.

use std::collections::BTreeMap;

/// Stacks, outermost frame first, with their weights.
pub(super) type Folded = BTreeMap<String, u64>;

/// Parses folded text; weights of repeated stacks are added up.
pub(super) fn parse(text: &str) -> Folded {
    let mut stacks = Folded::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("stack and weight");
        let weight: u64 = weight.parse().expect("a number");
        *stacks.entry(stack.to_owned()).or_default() += weight;
    }
    stacks
}
