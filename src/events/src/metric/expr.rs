//! The expression tree of a formula.

use std::collections::BTreeSet;

/// A formula, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// The count of an event in the syntax of `-e`, or the value of another metric.
    Name(String),
    /// A property of the machine, in lower case without `#`: `smt_on`, `num_cpus`.
    Literal(String),
    /// `-x`.
    Negative(Box<Self>),
    /// A binary operation.
    Binary(Operator, Box<Self>, Box<Self>),
    /// `then if condition else otherwise`; the condition holds if it is not 0. NaN if the condition is NaN.
    Choice {
        /// The condition.
        condition: Box<Self>,
        /// Value if the condition holds.
        then: Box<Self>,
        /// Value otherwise.
        otherwise: Box<Self>,
    },
    /// `source_count(event)`: the number of counters summed up for the event.
    Sources(String),
    /// `has_event(event)`: 1 if the machine has the event.
    Has(String),
    /// `strcmp_cpuid_str(pattern)`: 1 if the CPUID string matches the regular expression.
    Processor(String),
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `|` of integers.
    Or,
    /// `^` of integers.
    Xor,
    /// `&` of integers.
    And,
    /// `<`: 1 or 0.
    Less,
    /// `>`: 1 or 0.
    Greater,
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`; division by 0 is NaN.
    Divide,
    /// `%` of integers.
    Remainder,
    /// `min(a, b)`.
    Minimum,
    /// `max(a, b)`.
    Maximum,
    /// `d_ratio(a, b)`: division that returns 0 if the divisor is 0.
    Ratio,
}

/// Properties of the machine that are known before counting.
pub trait MachineProperties {
    /// The value of the literal `name`, which is in lower case without `#`; `None` if the value is unknown.
    fn literal(&self, name: &str) -> Option<f64>;

    /// Whether the machine has an event.
    fn has_event(&self, event: &str) -> bool;

    /// Whether the whole CPUID string matches a regular expression.
    fn is_processor(&self, pattern: &str) -> bool;
}

impl Expr {
    /// The distinct names of events and metrics in the formula, in order of appearance. Includes
    /// those in `source_count` but not in `has_event`.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let (mut seen, mut names) = (BTreeSet::new(), Vec::new());
        self.visit(&mut |expr| {
            if let Self::Name(name) | Self::Sources(name) = expr
                && seen.insert(name.as_str())
            {
                names.push(name.as_str());
            }
        });
        names
    }

    /// Calls `take` for this expression, then for its parts in the order of the formula's text.
    fn visit<'a>(&'a self, take: &mut dyn FnMut(&'a Self)) {
        take(self);
        match self {
            Self::Negative(inner) => inner.visit(take),
            Self::Binary(_, left, right) => {
                left.visit(take);
                right.visit(take);
            }
            Self::Choice {
                condition,
                then,
                otherwise,
            } => {
                then.visit(take);
                condition.visit(take);
                otherwise.visit(take);
            }
            _ => {}
        }
    }

    /// Substitutes known properties, computes constant parts, and removes alternatives of choices that can't be taken, so that
    /// their events aren't counted. Unknown literals are kept.
    #[must_use]
    pub fn simplified_for(self, known: &dyn MachineProperties) -> Self {
        let number = |holds: bool| Self::Number(f64::from(u8::from(holds)));
        let boxed = |expr: Box<Self>| Box::new(expr.simplified_for(known));
        match self {
            Self::Literal(name) => match known.literal(&name) {
                Some(value) => Self::Number(value),
                None => Self::Literal(name),
            },
            Self::Has(event) => number(known.has_event(&event)),
            Self::Processor(pattern) => number(known.is_processor(&pattern)),
            Self::Negative(inner) => match inner.simplified_for(known) {
                Self::Number(value) => Self::Number(-value),
                inner => Self::Negative(Box::new(inner)),
            },
            Self::Binary(operator, left, right) => {
                match (left.simplified_for(known), right.simplified_for(known)) {
                    (Self::Number(left), Self::Number(right)) => {
                        Self::Number(operator.apply(left, right))
                    }
                    (left, right) => Self::Binary(operator, Box::new(left), Box::new(right)),
                }
            }
            Self::Choice {
                condition,
                then,
                otherwise,
            } => match condition.simplified_for(known) {
                Self::Number(condition) if condition.is_nan() => Self::Number(f64::NAN),
                Self::Number(0.0) => otherwise.simplified_for(known),
                Self::Number(_) => then.simplified_for(known),
                condition => Self::Choice {
                    condition: Box::new(condition),
                    then: boxed(then),
                    otherwise: boxed(otherwise),
                },
            },
            same @ (Self::Number(_) | Self::Name(_) | Self::Sources(_)) => same,
        }
    }
}
