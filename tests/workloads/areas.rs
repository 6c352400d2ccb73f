//! A program with traits, generic functions and a second, named thread.

use std::collections::HashMap;

trait Area {
    fn area(&self) -> f64;
}

struct Square(f64);
struct Circle(f64);

impl Area for Square {
    #[inline(never)]
    fn area(&self) -> f64 {
        (0..2000)
            .map(|step| (self.0 * f64::from(step)).sqrt())
            .sum()
    }
}

impl Area for Circle {
    #[inline(never)]
    fn area(&self) -> f64 {
        (0..1500)
            .map(|step| (self.0 + f64::from(step)).cbrt())
            .sum()
    }
}

mod work {
    use super::{Area, HashMap};

    #[inline(never)]
    pub fn generic<T: Area + ?Sized>(items: &[Box<T>]) -> f64 {
        items.iter().map(|item| item.area()).sum()
    }

    #[inline(never)]
    pub fn hashing(numbers: u64) -> u64 {
        let mut sums: HashMap<u64, u64> = HashMap::new();
        for number in 0..numbers {
            *sums.entry(number % 997).or_default() += number;
        }
        sums.values().sum()
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let rounds: u32 = rounds.unwrap_or(400);
    let hashing = move || -> u64 {
        (0..u64::from(rounds))
            .map(|round| work::hashing(20000 + round))
            .sum()
    };
    let builder = std::thread::Builder::new().name("hash worker".into());
    let worker = builder.spawn(hashing).unwrap();
    let mut sum = 0.0;
    for round in 0..rounds {
        let items: Vec<Box<dyn Area>> = vec![
            Box::new(Square(round.into())),
            Box::new(Circle(round.into())),
        ];
        for _ in 0..20 {
            sum += work::generic(&items);
        }
    }
    println!("{sum} {}", worker.join().unwrap());
}
