//! Samples as text: the `print fmt` of a format file, compiled once and evaluated for raw records.
//!
//! [`PrintFmt::compile`] turns the C-like `print fmt` into a flat program, and [`PrintFmt::write`] runs it per sample.
//!
//! The output matches Linux perf 6.1, whose library parses `print fmt` with its own expression
//! parser: operators of equal precedence associate to the right, parentheses do not prevent
//! rebalancing, most casts do nothing, and all arithmetic is on unsigned 64-bit numbers. This
//! parser builds the same trees, so that traces read the same in both tools.

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
