// Generic code of the standard library inlined into a small program.
use std::collections::BTreeMap;

#[inline(never)]
fn count(words: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        *counts.entry(word.as_str()).or_insert(0) += 1;
    }
    counts
}

fn main() {
    let mut words: Vec<String> = std::env::args().flat_map(|arg| arg.split('/').map(str::to_owned).collect::<Vec<_>>()).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    for (word, count) in count(&words) {
        println!("{word}: {count}");
    }
}
