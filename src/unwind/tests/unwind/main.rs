//! Unwinds stacks of generated programs with generated objects; the frames are compared with the calls that led to the stack.

mod elf;
mod exceptions;
mod mutation;
mod program;
mod property;
mod readelf;
mod special_cases;
