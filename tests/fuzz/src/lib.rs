//! Shared by the fuzz targets: object files in parts, and a disk with an object.

mod disk;
mod elf;
mod parts;

pub use disk::{Disk, OBJECT, addresses};
pub use elf::Layout;
pub use parts::{Extra, Parts, Section};
