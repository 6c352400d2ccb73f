//! A Rust workload with two threads: trait objects, closures, iterators, generic sorting, string maps and recursion
//! over boxed trees. Stacks that perf copies (`--call-graph dwarf`) differ in depth, and most frames contain inlined ones.
//! Build: rustc --edition 2021 -O -C debuginfo=1 load.rs -o load-rust;  run: ./load-rust SECONDS
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A random number generator (xorshift), so that the workload needs no crate.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

enum Expression {
    Number(f64),
    Sum(Vec<Expression>),
    Product(Box<Expression>, Box<Expression>),
    Choice(Box<Expression>, Box<Expression>, Box<Expression>),
}

impl Expression {
    fn grow(random: &mut Random, depth: u32) -> Self {
        let operand = |random: &mut Random| Box::new(Self::grow(random, depth - 1));
        match if depth == 0 { 0 } else { random.below(4) } {
            0 => Self::Number(random.below(1000) as f64),
            1 => Self::Sum((0..3).map(|_| *operand(random)).collect()),
            2 => Self::Product(operand(random), operand(random)),
            _ => Self::Choice(operand(random), operand(random), operand(random)),
        }
    }

    fn value(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Sum(parts) => parts.iter().map(Self::value).filter(|value| value.is_finite()).sum(),
            Self::Product(left, right) => left.value() * right.value().sqrt(),
            Self::Choice(condition, left, right) => {
                if condition.value() > 500.0 { left.value() } else { right.value() }
            }
        }
    }
}

trait Shape {
    /// `depth` is the number of recursive calls that a square makes. Each group around the square adds 1.
    fn area(&self, depth: u32) -> f64;
}

struct Square(f64);
struct Group(Vec<Box<dyn Shape>>);

impl Shape for Square {
    fn area(&self, depth: u32) -> f64 {
        if depth == 0 { self.0 * self.0 } else { self.area(depth - 1) * 0.5 + self.0 }
    }
}

impl Shape for Group {
    fn area(&self, depth: u32) -> f64 {
        self.0.iter().map(|shape| shape.area(depth + 1)).fold(0.0, f64::max)
    }
}

fn random_shape(random: &mut Random, depth: u32) -> Box<dyn Shape> {
    if depth == 0 || random.below(4) == 0 {
        return Box::new(Square(random.below(10) as f64));
    }
    Box::new(Group((0..3).map(|_| random_shape(random, depth - 1)).collect()))
}

fn sort_by<T: Clone, F: FnMut(&T, &T) -> Ordering>(values: &[T], order: F) -> Vec<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(order);
    sorted
}

fn count_words(lines: &[String]) -> BTreeMap<String, usize> {
    let words: HashMap<&str, usize> = lines.iter().flat_map(|line| line.split(' ')).fold(HashMap::new(), |mut map, word| {
        *map.entry(word).or_default() += 1;
        map
    });
    words.into_iter().map(|(word, times)| (word.to_uppercase(), times)).collect()
}

fn work(end: Instant, seed: u64) {
    let mut random = Random(seed);
    while Instant::now() < end {
        let numbers: Vec<f64> = (0..500).map(|_| random.below(1_000_000) as f64).collect();
        let lines: Vec<String> = (0..60).map(|_| format!("line {} of {:x}", random.below(100), random.next())).collect();
        black_box(sort_by(&numbers, f64::total_cmp));
        black_box(sort_by(&numbers, |a, b| b.sqrt().total_cmp(&a.sqrt())));
        black_box(sort_by(&lines, |a, b| a.len().cmp(&b.len()).then_with(|| b.cmp(a))));
        black_box(count_words(&lines));
        let expression = Expression::grow(&mut random, 8);
        let shape = random_shape(&mut random, 5);
        for _ in 0..20 {
            black_box(black_box(&expression).value());
            black_box(black_box(&shape).area(2));
        }
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10);
    let end = Instant::now() + Duration::from_secs(seconds);
    let other = std::thread::spawn(move || work(end, 1));
    work(end, 2);
    other.join().expect("the other thread ends as this one does");
}
