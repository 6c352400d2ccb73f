//! A formula as a tree.

use std::collections::BTreeSet;

/// A formula, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// The count of an event, or the value of another metric: the text that `-e` takes, or the metric's name.
    Name(String),
    /// A fact about the machine, in small letters and without its `#`: `smt_on`, `num_cpus`.
    Literal(String),
    /// `-x`.
    Negative(Box<Self>),
    /// Two values and what is done with them.
    Binary(Operator, Box<Self>, Box<Self>),
    /// `then if condition else otherwise`; a condition holds when it is not 0.
    Choice {
        /// Asked first.
        condition: Box<Self>,
        /// Where it holds.
        then: Box<Self>,
        /// Where it does not.
        otherwise: Box<Self>,
    },
    /// `source_count(event)`: how many counters make up the event's count.
    Sources(String),
    /// `has_event(event)`: 1 where the machine has it.
    Has(String),
    /// `strcmp_cpuid_str(pattern)`: 1 where the processor's name fits the regular expression.
    Processor(String),
}

/// What is done with two values.
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
    /// `/`; what is divided by 0 is not a number.
    Divide,
    /// `%` of integers.
    Remainder,
    /// `min(a, b)`.
    Minimum,
    /// `max(a, b)`.
    Maximum,
    /// `d_ratio(a, b)`: a division that gives 0 where it would be by 0.
    Ratio,
}

/// Facts about the machine that formulas ask for before anything is counted.
pub trait Known {
    /// The value of a literal, in small letters and without its `#`; `None` where it is not known.
    fn literal(&self, name: &str) -> Option<f64>;

    /// Whether the machine has an event.
    fn has_event(&self, event: &str) -> bool;

    /// Whether all of the processor's name fits a regular expression.
    fn is_processor(&self, pattern: &str) -> bool;
}

impl Expr {
    /// The names of events and metrics that are counted or computed for it, each once, in their order in the formula.
    /// Those in `source_count` are among them, those in `has_event` are not.
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

    /// The same formula with what is known put in, and without what then can't be chosen: no event of it is counted. A
    /// literal that is not known stays.
    #[must_use]
    pub fn with(self, known: &dyn Known) -> Self {
        let number = |holds: bool| Self::Number(f64::from(u8::from(holds)));
        let boxed = |expr: Box<Self>| Box::new(expr.with(known));
        match self {
            Self::Literal(name) => match known.literal(&name) {
                Some(value) => Self::Number(value),
                None => Self::Literal(name),
            },
            Self::Has(event) => number(known.has_event(&event)),
            Self::Processor(pattern) => number(known.is_processor(&pattern)),
            Self::Negative(inner) => match inner.with(known) {
                Self::Number(value) => Self::Number(-value),
                inner => Self::Negative(Box::new(inner)),
            },
            Self::Binary(operator, left, right) => match (left.with(known), right.with(known)) {
                (Self::Number(left), Self::Number(right)) => Self::Number(operator.of(left, right)),
                (left, right) => Self::Binary(operator, Box::new(left), Box::new(right)),
            },
            Self::Choice {
                condition,
                then,
                otherwise,
            } => match condition.with(known) {
                Self::Number(condition) if condition.is_nan() => Self::Number(f64::NAN),
                Self::Number(0.0) => otherwise.with(known),
                Self::Number(_) => then.with(known),
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
