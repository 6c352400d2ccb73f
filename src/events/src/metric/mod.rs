//! Metrics: numbers that are computed from counts.
//!
//! [`Expr`] is a formula as tables write it (`MetricExpr`), [`Plan`] says what has to be counted for one and computes it.
//!
//! ```text
//! choice := bits [ "if" bits "else" choice ]
//! bits   := sums, products and comparisons, loosest first:  |  ^  &  < >  + -  * / %  unary -
//! value  := number | event | "#" literal | "(" choice ")" | min(a, b) | max(a, b) | d_ratio(a, b)
//!         | source_count(event) | has_event(event) | strcmp_cpuid_str(pattern)
//! ```
//!
//! In names of events `@` stands for `/` and a backslash before a character that would end the name:
//! `cpu@INST_RETIRED.ANY\,cmask\=1@`.

mod error;
mod eval;
mod expr;
mod parse;
mod plan;
mod token;

pub use error::MetricError;
pub use eval::Counts;
pub use expr::{Expr, Known, Operator};
pub use plan::{Outcome, Plan};

#[cfg(test)]
mod tests;
