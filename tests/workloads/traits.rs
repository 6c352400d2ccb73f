//! Mangled Rust symbols: generics, closures, trait objects.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

trait Work {
    fn run(&self, rounds: u64) -> u64;
}

struct Adder<const N: usize>;
struct Table<T>(Vec<T>);

impl<const N: usize> Work for Adder<N> {
    #[inline(never)]
    fn run(&self, rounds: u64) -> u64 {
        (0..rounds).fold(N as u64, |sum, round| sum.wrapping_add(black_box(round)))
    }
}

impl<T: Copy + Into<u64>> Work for Table<T> {
    #[inline(never)]
    fn run(&self, rounds: u64) -> u64 {
        let mut seen: HashMap<u64, u64> = HashMap::new();
        for round in 0..rounds {
            for &value in &self.0 {
                *seen.entry(value.into() % 64).or_default() += round;
            }
        }
        seen.values().sum()
    }
}

#[inline(never)]
fn apply(work: &[Box<dyn Work>], step: impl Fn(u64) -> u64) -> u64 {
    work.iter().map(|work| step(work.run(500))).sum()
}

fn main() {
    let milliseconds = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let end = Instant::now() + Duration::from_millis(milliseconds.unwrap_or(100));
    let work: Vec<Box<dyn Work>> = vec![
        Box::new(Adder::<7>),
        Box::new(Table((0..100_u32).collect())),
        Box::new(Table(vec![1_u8, 2, 3])),
    ];
    while Instant::now() < end {
        black_box(apply(&work, |sum| sum.rotate_left(3)));
    }
}
