//! Samples as text: the `print fmt` of a format file, compiled once and evaluated for raw records.
//!
//! [`PrintFmt::compile`] turns the C-like `print fmt` into a flat program, and [`PrintFmt::write`] runs it per sample.
//!
//! The output matches Linux perf 6.1, except that `%d` prints signed fields and array elements of 8 and 16 bits with
//! their sign. perf's libtraceevent has its own rules for expressions: operators of equal precedence associate to the
//! right, parentheses do not protect a looser operator from a tighter one before them (`a * (b + c)` is read as
//! `a * b + c`), a cast only masks bits, and only for some type names, and arithmetic is on unsigned 64-bit numbers,
//! except for constants in the tables of `__print_flags` and `__print_symbolic`. This parser builds the same trees, so that
//! traces read the same in both tools.

mod compile;
mod constants;
mod digits;
mod dynamic;
mod eval;
mod generic;
mod helper;
mod lex;
mod names;
mod parse;
mod pointer;
mod printk;
mod program;
mod spec;
mod strings;
mod tree;

pub use names::ValueNames;
pub use printk::PrintkFormats;
pub use program::{KernelSymbols, NoSymbols, PrintContext, PrintFmt};
