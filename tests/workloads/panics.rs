//! Rust stacks: a panic that unwinds through frames with destructors, a closure called by the standard library, trait objects, a
//! thread.

use std::hint::black_box;
use std::panic;

#[inline(never)]
fn burn() -> u64 {
    (0..200_000).fold(0, |sum: u64, n| {
        black_box(sum.wrapping_mul(31).wrapping_add(n))
    })
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        black_box(burn());
    }
}

#[inline(never)]
fn fails(depth: u32) -> u32 {
    let _guard = Guard;
    if depth == 0 {
        panic!("on purpose");
    }
    fails(depth - 1) + 1
}

#[inline(never)]
fn sorts() {
    let mut numbers: Vec<u32> = (0..50).rev().collect();
    numbers.sort_by(|a, b| {
        if *a == 3 {
            black_box(burn());
        }
        a.cmp(b)
    });
    black_box(numbers);
}

trait Walk {
    fn walk(&self, steps: u32) -> u64;
}

struct Walker;

impl Walk for Walker {
    fn walk(&self, steps: u32) -> u64 {
        if steps == 0 {
            return burn();
        }
        let next: Box<dyn Walk> = black_box(Box::new(Walker));
        next.walk(steps - 1) + 1
    }
}

fn main() {
    panic::set_hook(Box::new(|_| {
        black_box(burn());
    }));
    // A round takes about three milliseconds of CPU time.
    let milliseconds = std::env::args()
        .nth(1)
        .and_then(|word| word.parse::<u32>().ok());
    for _ in 0..milliseconds.unwrap_or(300) / 3 {
        let _failed = panic::catch_unwind(|| fails(4));
        sorts();
        black_box(Walker.walk(12));
        std::thread::scope(|scope| {
            scope.spawn(|| black_box(Walker.walk(3)));
        });
    }
}
