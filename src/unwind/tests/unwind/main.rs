//! Stacks of generated programs in generated objects, compared with the calls they were generated from.

mod elf;
mod exceptions;
mod mutation;
mod program;
mod property;
mod readelf;
mod special_cases;
