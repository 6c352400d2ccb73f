//! Shared by the fuzz targets: object files that are assembled from independent parts of an input, and a disk with one
//! object and its split DWARF file.

mod disk;
mod elf;
mod parts;

pub use disk::{Disk, OBJECT, addresses};
pub use elf::Layout;
pub use parts::{Extra, Parts, Section};
