//! Benchmarks of memory: copying, filling, mapping, and searching bitmaps.

mod block;
mod cycles;
mod find_bit;
mod mapping;

pub use block::{Block, BlockFunction, BlockOperation};
pub use cycles::{Clock, Cost};
pub use find_bit::{BitTimes, FindBit};
pub use mapping::{Mmap, MmapCosts, MmapFunction};
