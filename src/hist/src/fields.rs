//! What a report can show of a row: numbers and sort keys, by the words that `--sort` and `--fields` take.

use crate::error::Error;
use crate::histogram::{Sum, Weights};
use crate::keys::{KEYS, Key};

/// A number of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// [`Weights::own`].
    Own,
    /// The part of it that fell on the kernel.
    Kernel,
    /// On user space.
    User,
    /// On a guest's kernel.
    GuestKernel,
    /// On a guest's user space.
    GuestUser,
    /// [`Weights::total`].
    Total,
    /// [`Weights::samples`].
    Samples,
    /// [`Weights::own`], as events instead of a share.
    Period,
    /// [`Weights::latency`].
    Latency,
    /// [`Weights::total_latency`].
    TotalLatency,
    /// The first of [`Weights::costs`], as its average over [`Weights::samples`]: the weight.
    FirstCost,
    /// The second: on x86 the latency of the instruction.
    SecondCost,
    /// The third: the time until its retirement.
    ThirdCost,
}

/// All numbers by their words, in perf's order.
const NUMBERS: &[(&str, Number)] = &[
    ("overhead", Number::Own),
    ("overhead_sys", Number::Kernel),
    ("overhead_us", Number::User),
    ("overhead_guest_sys", Number::GuestKernel),
    ("overhead_guest_us", Number::GuestUser),
    ("overhead_children", Number::Total),
    ("sample", Number::Samples),
    ("period", Number::Period),
    ("latency", Number::Latency),
    ("latency_children", Number::TotalLatency),
    ("weight1", Number::FirstCost),
    ("weight2", Number::SecondCost),
    ("weight3", Number::ThirdCost),
];

impl Number {
    /// The number itself: events, samples, or a sum of costs.
    #[must_use]
    pub fn of(self, weights: &Weights) -> u64 {
        match self {
            Self::Own | Self::Period => weights.own,
            Self::Kernel => weights.modes[0],
            Self::User => weights.modes[1],
            Self::GuestKernel => weights.modes[2],
            Self::GuestUser => weights.modes[3],
            Self::Total => weights.total,
            Self::Samples => weights.samples,
            Self::Latency => weights.latency,
            Self::TotalLatency => weights.total_latency,
            Self::FirstCost => weights.costs[0],
            Self::SecondCost => weights.costs[1],
            Self::ThirdCost => weights.costs[2],
        }
    }

    /// The number that its shares are of.
    #[must_use]
    pub fn whole(self, sum: &Sum) -> u64 {
        match self {
            Self::Latency | Self::TotalLatency => sum.latency,
            _ => sum.period,
        }
    }

    /// Whether it is of the time that passed.
    #[must_use]
    pub fn is_latency(self) -> bool {
        matches!(self, Self::Latency | Self::TotalLatency)
    }

    /// Whether it is shown as a share of all events.
    #[must_use]
    pub fn is_share(self) -> bool {
        !matches!(self, Self::Samples | Self::Period) && !self.is_average()
    }

    /// Whether it is shown as an average over samples.
    #[must_use]
    pub fn is_average(self) -> bool {
        matches!(self, Self::FirstCost | Self::SecondCost | Self::ThirdCost)
    }
}

/// A column, or what rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// A number; larger ones first.
    Number(Number),
    /// A sort key.
    Key(&'static Key),
}

impl Field {
    /// The key, if it is one.
    #[must_use]
    pub fn key(self) -> Option<&'static Key> {
        match self {
            Self::Key(key) => Some(key),
            Self::Number(_) => None,
        }
    }

    /// The number, if it is one.
    #[must_use]
    pub fn number(self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(number),
            Self::Key(_) => None,
        }
    }
}

/// The words that [`parse`] knows, in the order in which they are tried.
pub fn names() -> impl Iterator<Item = &'static str> {
    let keys = KEYS.iter().map(|key| key.name);
    keys.chain(NUMBERS.iter().map(|(name, _)| *name))
}

/// The fields that `words` names, separated by commas: any beginning of a name in any case, as in perf. The same field
/// twice counts once.
///
/// # Errors
///
/// [`Error::UnknownField`] for a word that no name begins with.
pub fn parse(words: &str) -> Result<Vec<Field>, Error> {
    let mut fields: Vec<Field> = Vec::new();
    for word in words.split([',', ' ']).filter(|word| !word.is_empty()) {
        let field = find(word).ok_or_else(|| Error::UnknownField(word.to_owned()))?;
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    Ok(fields)
}

/// The field that a word names: any beginning of a name in any case.
#[must_use]
pub fn find(word: &str) -> Option<Field> {
    let begins = |name: &str| {
        let name = name.as_bytes().get(..word.len());
        name.is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    let key = KEYS.iter().find(|key| begins(key.name));
    let number = || NUMBERS.iter().find(|(name, _)| begins(name));
    key.map(|key| Field::Key(key))
        .or_else(|| number().map(|(_, number)| Field::Number(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Vec<&'static str> {
        let fields = parse(words).expect("known words");
        let name = |field: &Field| {
            let named = names().find(|name| find(name) == Some(*field));
            named.expect("every field is found by its name")
        };
        fields.iter().map(name).collect()
    }

    #[test]
    fn beginnings_of_names_are_enough() {
        assert_eq!(parsed("comm,dso,symbol"), ["comm", "dso", "symbol"]);
        assert_eq!(parsed("sym,C"), ["symbol", "comm"]);
        assert_eq!(parsed("p,t,cp,tid"), ["pid", "transaction", "cpu", "tid"]);
        assert_eq!(parsed("dso,DSO,,d"), ["dso"]);
        assert_eq!(parsed("srcl,srcfile"), ["srcline", "srcfile"]);
        assert_eq!(parsed("o,per,sa"), ["overhead", "period", "sample"]);
        assert_eq!(
            parsed("overhead_us,overhead_c"),
            ["overhead_us", "overhead_children"]
        );
        assert_eq!(parsed(""), [""; 0]);
    }

    #[test]
    fn an_unknown_word_is_named() {
        let error = parse("comm,symbols").expect_err("no such key");
        assert_eq!(error, Error::UnknownField("symbols".to_owned()));
    }
}
