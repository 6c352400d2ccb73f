//! Tracepoints: what a tracefs `format` file says about the bytes of a sample, and the text that
//! its `print fmt` makes of them.
//!
//! [`Format::parse`] reads the file; [`Format::field`] and [`Field::value`] get at single values.
//! [`PrintFmt::compile`] turns the C-like `print fmt` into a flat program once, and
//! [`PrintFmt::write`] runs it per sample without allocating.
//!
//! The aim is the text of Linux perf 6.1, whose library reads `print fmt` with an expression parser
//! of its own: operators of one precedence associate to the right, parentheses do not shield from
//! re-balancing, most casts do nothing, and all arithmetic is on unsigned 64-bit numbers. The
//! parser here builds the same trees, so that a trace reads the same in both tools.

mod compile;
mod digits;
mod error;
mod eval;
mod field;
mod format;
mod generic;
mod helper;
mod lex;
mod parse;
mod pointer;
mod printk;
mod program;
mod spec;
mod strings;
mod tree;

#[cfg(test)]
mod tests;

pub use error::{Error, Warning};
pub use field::{Elements, Field, Value};
pub use format::Format;
pub use printk::PrintkFormats;
pub use program::{Context, KernelSymbols, Machine, NoSymbols, PrintFmt};
