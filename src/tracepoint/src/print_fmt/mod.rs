//! Text of samples: the `print fmt` of a format file, compiled once and run over raw records.
//!
//! [`PrintFmt::compile`] turns the C-like `print fmt` into a flat program, and [`PrintFmt::write`] runs it per sample
//! without allocating.
//!
//! The aim is the text of Linux perf 6.1, whose library reads `print fmt` with an expression parser
//! of its own: operators of one precedence associate to the right, parentheses do not shield from
//! re-balancing, most casts do nothing, and all arithmetic is on unsigned 64-bit numbers. The
//! parser here builds the same trees, so that a trace reads the same in both tools.

mod compile;
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
pub use program::{Context, KernelSymbols, NoSymbols, PrintFmt};
