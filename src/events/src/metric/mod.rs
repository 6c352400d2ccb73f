//! Metrics: values computed from counts.
//!
//! [`Expr`] is a formula: the `MetricExpr` of a metric in the tables of events and metrics. [`MetricPlan`] determines the events
//! to count and computes the value.
//!
//! ```text
//! choice    := operation [ "if" operation "else" choice ]
//! operation := values with operators, loosest first:  |  ^  &  < >  + -  * / %  unary -
//! value     := number | name | "#" literal | "(" choice ")"
//!            | min(choice, choice) | max(choice, choice) | d_ratio(choice, choice)
//!            | source_count(event) | has_event(event) | strcmp_cpuid_str(pattern)
//! ```
//!
//! A name is that of an event or metric. In names of events `@` is a slash, and a backslash escapes characters that would end
//! the name: `cpu@INST_RETIRED.ANY\,cmask\=1@`.

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
