//! The workload of test guests, which call it `load`. `load [MILLISECONDS]` computes in a few frames and reads a file of /proc in
//! a loop; `load rounds N` computes N times, which takes the same number of instructions in each run.

use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn leaf(count: u64) -> u64 {
    (0..count).fold(0, |sum, number| black_box(sum + number * number))
}

#[inline(never)]
fn middle(count: u64) -> u64 {
    black_box(leaf(count)) + 1
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).map(String::as_str) == Some("rounds") {
        let rounds: u64 = words[2].parse().expect("a number");
        black_box((0..rounds).map(|_| middle(10_000)).sum::<u64>());
        return;
    }
    let milliseconds = words.get(1).and_then(|word| word.parse().ok());
    let duration = Duration::from_millis(milliseconds.unwrap_or(250));
    let start = Instant::now();
    let mut sum = 0;
    while start.elapsed() < duration {
        sum += middle(10_000);
        let status = std::fs::read("/proc/self/status");
        sum += status.map_or(0, |text| text.len() as u64);
    }
    black_box(sum);
}
