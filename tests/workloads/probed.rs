//! Prints the values that probes record, such as `scale: number=1`.

use std::hint::black_box;

struct Item {
    id: u32,
    value: u64,
    name: &'static str,
}

#[inline(never)]
fn weigh(item: &Item, factor: u64) -> u64 {
    let weight = item.value * factor;
    black_box(weight) + u64::from(item.id)
}

mod inner {
    #[inline(never)]
    pub fn scale(number: i32) -> i32 {
        std::hint::black_box(number) * 3
    }
}

fn main() {
    let item = Item {
        id: 7,
        value: 40,
        name: "alpha",
    };
    for round in 0..3 {
        println!("weigh: value={} factor={round} length={}", item.value, item.name.len());
        println!("scale: number={round}");
        black_box(weigh(&item, round) + inner::scale(round as i32) as u64);
    }
}
