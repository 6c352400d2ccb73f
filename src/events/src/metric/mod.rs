//! Metrics: values computed from counts.
//!
//! [`Expr`] is a formula of a table (`MetricExpr`); [`MetricPlan`] determines the events to count and
//! computes the value.
//!
//! ```text
//! choice := bits [ "if" bits "else" choice ]
//! bits   := binary operators by precedence, loosest first:  |  ^  &  < >  + -  * / %  unary -
//! value  := number | name | "#" literal | "(" choice ")" | min(a, b) | max(a, b) | d_ratio(a, b)
//!         | source_count(event) | has_event(event) | strcmp_cpuid_str(pattern)
//! ```
//!
//! A name is that of an event or metric. In names of events `@` is a slash, and a backslash escapes characters that would end
//! the name:
//! `cpu@INST_RETIRED.ANY\,cmask\=1@`.

mod error;
mod eval;
mod expr;
mod parse;
mod plan;
mod token;

pub use error::MetricError;
pub use eval::MetricCounts;
pub use expr::{Expr, MachineProperties, Operator};
pub use plan::{MetricPlan, MetricResult};

#[cfg(test)]
mod tests;
