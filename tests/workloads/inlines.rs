//! Generic code of the standard library, inlined into a loop that runs for a while.

use std::collections::BTreeMap;

#[inline(never)]
fn count(words: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for word in words.iter().filter(|word| word.len() > 1) {
        *counts.entry(word.as_str()).or_insert(0) += 1;
    }
    counts
}

#[inline(never)]
fn round(seed: u64) -> u64 {
    let mut state = seed;
    let mut words: Vec<String> = (0..300)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:x}", state >> 50)
        })
        .collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().rev().collect::<String>()));
    count(&words).values().map(|&count| count as u64).sum()
}

fn main() {
    println!("{}", (0..1000).map(round).sum::<u64>());
}
