//! Evaluation of formulas.

use super::expr::{Expr, Operator};

/// Counts of events, and metrics already computed.
pub trait MetricCounts {
    /// The count of an event or the value of a metric; `None` if it is not available.
    fn value(&self, name: &str) -> Option<f64>;

    /// The number of counters summed up for an event; `None` if the event was not counted.
    fn source_count(&self, name: &str) -> Option<u32>;
}

impl Operator {
    /// Applies the operator; NaN if an operand is NaN, or the divisor of a division or remainder is 0 (for a remainder, after
    /// truncation to an integer). A ratio (`d_ratio`) with the divisor 0 is 0.
    #[must_use]
    pub fn apply(self, left: f64, right: f64) -> f64 {
        if left.is_nan() || right.is_nan() {
            return f64::NAN;
        }
        let truth = |holds: bool| f64::from(u8::from(holds));
        match self {
            Self::Or => integer_operation(left, right, |left, right| left | right),
            Self::Xor => integer_operation(left, right, |left, right| left ^ right),
            Self::And => integer_operation(left, right, |left, right| left & right),
            Self::Less => truth(left < right),
            Self::Greater => truth(left > right),
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide if right == 0.0 => f64::NAN,
            Self::Divide => left / right,
            Self::Remainder => match integer(right) {
                0 => f64::NAN,
                // Only `i64::MIN % -1` overflows: its remainder is 0.
                divisor => to_float(integer(left).wrapping_rem(divisor)),
            },
            Self::Minimum => left.min(right),
            Self::Maximum => left.max(right),
            Self::Ratio if right == 0.0 => 0.0,
            Self::Ratio => left / right,
        }
    }
}

fn integer_operation(left: f64, right: f64, operation: impl Fn(i64, i64) -> i64) -> f64 {
    to_float(operation(integer(left), integer(right)))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates, as intended in formulas"
)]
fn integer(value: f64) -> i64 {
    value as i64
}

#[expect(clippy::cast_precision_loss, reason = "metrics are floating point")]
fn to_float(value: i64) -> f64 {
    value as f64
}

impl Expr {
    /// Evaluates the formula: NaN if it is undefined because of a missing value, or a division or remainder by 0.
    /// The names of missing values (of literals, with `#`) are added to `missing`. In a choice, only the condition and the
    /// selected alternative are evaluated; if the condition is NaN, neither alternative.
    pub fn value(&self, counts: &dyn MetricCounts, missing: &mut Vec<String>) -> f64 {
        let mut miss = |name: String| {
            if !missing.contains(&name) {
                missing.push(name);
            }
            f64::NAN
        };
        match self {
            Self::Number(value) => *value,
            Self::Name(name) => match counts.value(name) {
                Some(value) => value,
                None => miss(name.clone()),
            },
            Self::Sources(name) => match counts.source_count(name) {
                Some(count) => f64::from(count),
                None => miss(name.clone()),
            },
            // Unknown on this machine: before counting, `Expr::simplified_for` replaced the known literals with numbers.
            Self::Literal(name) => miss(format!("#{name}")),
            // `Expr::simplified_for` replaced these, too; in a formula that was not simplified, they are false.
            Self::Has(_) | Self::Processor(_) => 0.0,
            Self::Negative(inner) => -inner.value(counts, missing),
            Self::Binary(operator, left, right) => {
                let left = left.value(counts, missing);
                operator.apply(left, right.value(counts, missing))
            }
            Self::Choice {
                condition,
                then,
                otherwise,
            } => {
                let condition = condition.value(counts, missing);
                if condition.is_nan() {
                    f64::NAN
                } else if condition == 0.0 {
                    otherwise.value(counts, missing)
                } else {
                    then.value(counts, missing)
                }
            }
        }
    }
}
