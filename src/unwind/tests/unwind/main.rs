//! Unwinds stacks of generated programs, with generated object files. The frames are compared with the calls that led to the
//! stack, and unwind instructions of 32-bit Arm with readelf's text. With damaged input, any result is accepted.

mod elf;
mod exceptions;
mod mutation;
mod program;
mod property;
mod readelf;
mod special_cases;
