//! The value of a formula.

use super::expr::{Expr, Operator};

/// What was counted, and what is computed by now.
pub trait Counts {
    /// The count of an event or the value of a metric; `None` where it was not counted.
    fn value(&self, name: &str) -> Option<f64>;

    /// How many counters make up the count of an event.
    fn sources(&self, name: &str) -> Option<u32>;
}

impl Operator {
    /// What comes out of two values; not a number where one of them is none, and of a division by 0.
    #[must_use]
    pub fn of(self, left: f64, right: f64) -> f64 {
        if left.is_nan() || right.is_nan() {
            return f64::NAN;
        }
        let truth = |holds: bool| f64::from(u8::from(holds));
        match self {
            Self::Or => whole(left, right, |left, right| left | right),
            Self::Xor => whole(left, right, |left, right| left ^ right),
            Self::And => whole(left, right, |left, right| left & right),
            Self::Less => truth(left < right),
            Self::Greater => truth(left > right),
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide if right == 0.0 => f64::NAN,
            Self::Divide => left / right,
            Self::Remainder => match integer(right) {
                0 => f64::NAN,
                // The one quotient that does not fit leaves nothing.
                divisor => real(integer(left).wrapping_rem(divisor)),
            },
            Self::Minimum => left.min(right),
            Self::Maximum => left.max(right),
            Self::Ratio if right == 0.0 => 0.0,
            Self::Ratio => left / right,
        }
    }
}

fn whole(left: f64, right: f64, operation: impl Fn(i64, i64) -> i64) -> f64 {
    real(operation(integer(left), integer(right)))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the nearest integer that there is, as formulas mean it"
)]
fn integer(value: f64) -> i64 {
    value as i64
}

#[expect(clippy::cast_precision_loss, reason = "metrics are floating point")]
fn real(value: i64) -> f64 {
    value as f64
}

impl Expr {
    /// The value of the formula: not a number where that is undefined, because of a division by 0 or of a value that is
    /// missing. The names of the latter are added to `missing`; what is not chosen is not missed.
    pub fn value(&self, counts: &dyn Counts, missing: &mut Vec<String>) -> f64 {
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
            Self::Sources(name) => match counts.sources(name) {
                Some(sources) => f64::from(sources),
                None => miss(name.clone()),
            },
            Self::Literal(name) => miss(format!("#{name}")),
            // Asked of the machine before anything is counted.
            Self::Has(_) | Self::Processor(_) => 0.0,
            Self::Negative(inner) => -inner.value(counts, missing),
            Self::Binary(operator, left, right) => {
                let left = left.value(counts, missing);
                operator.of(left, right.value(counts, missing))
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
