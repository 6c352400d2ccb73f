//! Stacks of programs that never ran, in objects made of bytes, against what they were made of.

mod elf;
mod exceptions;
mod known;
mod mutation;
mod program;
mod property;
mod readelf;
