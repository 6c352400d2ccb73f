//! A workload to profile: two threads repeatedly count the words of the Rust files in `src`, one with a hash map and the
//! other by sorting.
//!
//! Build it with `rustc -O -g -C force-frame-pointers=yes examples/first_profile/workload.rs` and run it in the project's
//! folder; the first argument is the number of seconds it runs.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(3.0);
    let mut text = String::new();
    read_sources(Path::new("src"), &mut text);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (hashed, sorted) = std::thread::scope(|scope| {
        let hashing = scope.spawn(|| repeat_until(end, || count_by_hashing(&text)));
        let sorting = scope.spawn(|| repeat_until(end, || count_by_sorting(&text)));
        (hashing.join(), sorting.join())
    });
    match (hashed, sorted) {
        (Ok((hashed_distinct, hashed_total)), Ok((sorted_distinct, sorted_total))) => {
            println!("counted {hashed_total} words by hashing and {sorted_total} by sorting");
            assert_eq!(hashed_distinct, sorted_distinct, "both ways find the same number of distinct words");
        }
        _ => std::process::exit(1),
    }
}

/// Appends the Rust files below `folder` to `text`, except for those that cannot be read.
fn read_sources(folder: &Path, text: &mut String) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            read_sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

/// Calls `count` repeatedly until `end`; each call returns the number of distinct words and the number of all words. Returns
/// the number of distinct words, and the number of words that all calls counted.
#[inline(never)]
fn repeat_until(end: Instant, count: impl Fn() -> (usize, usize)) -> (usize, usize) {
    let (mut distinct, mut total) = (0, 0);
    while Instant::now() < end {
        let words;
        (distinct, words) = count();
        total += words;
    }
    (distinct, total)
}

#[inline(never)]
fn count_by_hashing(text: &str) -> (usize, usize) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    (counts.len(), counts.values().sum())
}

#[inline(never)]
fn count_by_sorting(text: &str) -> (usize, usize) {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.sort_unstable();
    let total = words.len();
    words.dedup();
    (words.len(), total)
}
