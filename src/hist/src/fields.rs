//! Columns of a report: numbers and sort keys, with their names for `--sort` and `--fields`.

use crate::error::Error;
use crate::histogram::{ColumnSum, Weights};
use crate::keys::{KEYS, Key};

/// A number of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberField {
    /// [`Weights::own`].
    Own,
    /// The part of [`Weights::own`] in the kernel.
    Kernel,
    /// The part of [`Weights::own`] in user space.
    User,
    /// The part of [`Weights::own`] in a guest's kernel.
    GuestKernel,
    /// The part of [`Weights::own`] in a guest's user space.
    GuestUser,
    /// [`Weights::total`].
    Total,
    /// [`Weights::samples`].
    Samples,
    /// [`Weights::own`], shown as a number instead of a percentage.
    Period,
    /// [`Weights::latency`].
    Latency,
    /// [`Weights::total_latency`].
    TotalLatency,
    /// The average of the first of [`Weights::costs`] over the samples: the weight (`PERF_SAMPLE_WEIGHT`).
    FirstCost,
    /// The average of the second of [`Weights::costs`]: on x86 the instruction latency.
    SecondCost,
    /// The average of the third of [`Weights::costs`]: on x86 the cycles since the previous instruction retired.
    ThirdCost,
}

/// All numbers with their names, in perf's order.
const NUMBERS: &[(&str, NumberField)] = &[
    ("overhead", NumberField::Own),
    ("overhead_sys", NumberField::Kernel),
    ("overhead_us", NumberField::User),
    ("overhead_guest_sys", NumberField::GuestKernel),
    ("overhead_guest_us", NumberField::GuestUser),
    ("overhead_children", NumberField::Total),
    ("sample", NumberField::Samples),
    ("period", NumberField::Period),
    ("latency", NumberField::Latency),
    ("latency_children", NumberField::TotalLatency),
    ("weight1", NumberField::FirstCost),
    ("weight2", NumberField::SecondCost),
    ("weight3", NumberField::ThirdCost),
];

impl NumberField {
    /// The name in `--fields`.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = NUMBERS.iter().find(|(_, number)| *number == self);
        known.map_or("", |(name, _)| name)
    }

    /// The events of a group (indices 0 to `events` - 1; 0 is the leader) in the order in which two rows are compared by this
    /// number: first `sort_event`, or the leader if there is no event `sort_event`; then the other members. As in perf, the
    /// leader is never compared after another event, and [`Self::Total`] and [`Self::TotalLatency`] only for the leader.
    pub(crate) fn compared_events(
        self,
        sort_event: usize,
        events: usize,
    ) -> impl Iterator<Item = usize> {
        let is_total = matches!(self, Self::Total | Self::TotalLatency);
        let first = match sort_event {
            event if event < events && !is_total => event,
            _ => 0,
        };
        let others = 1..if is_total { 1 } else { events };
        std::iter::once(first).chain(others.filter(move |other| *other != first))
    }

    /// The value in `weights`, the sums of a row. For an average this is the sum, which the caller divides by the number of
    /// samples.
    #[must_use]
    pub fn value_in(self, weights: &Weights) -> u64 {
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

    /// The part of `sum`, the sums over all rows, that is 100 percent of this number.
    #[must_use]
    pub fn total(self, sum: &ColumnSum) -> u64 {
        match self {
            Self::Latency | Self::TotalLatency => sum.latency,
            _ => sum.period,
        }
    }

    /// Whether the number is a latency (wall-clock time).
    #[must_use]
    pub fn is_latency(self) -> bool {
        matches!(self, Self::Latency | Self::TotalLatency)
    }

    /// Whether the number is shown as a percentage of [`Self::total`].
    #[must_use]
    pub fn is_share(self) -> bool {
        !matches!(self, Self::Samples | Self::Period) && !self.is_average()
    }

    /// Whether the number is shown as an average over samples.
    #[must_use]
    pub fn is_average(self) -> bool {
        matches!(self, Self::FirstCost | Self::SecondCost | Self::ThirdCost)
    }
}

/// A column or sort field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportField {
    /// A number, sorted descending.
    Number(NumberField),
    /// A sort key.
    Key(&'static Key),
}

impl ReportField {
    /// The sort key, if the field is one.
    #[must_use]
    pub fn key(self) -> Option<&'static Key> {
        match self {
            Self::Key(key) => Some(key),
            Self::Number(_) => None,
        }
    }

    /// The number, if the field is one.
    #[must_use]
    pub fn number(self) -> Option<NumberField> {
        match self {
            Self::Number(number) => Some(number),
            Self::Key(_) => None,
        }
    }
}

/// The names of which [`parse`] accepts prefixes, in the order in which they are tried.
pub fn names() -> impl Iterator<Item = &'static str> {
    let keys = KEYS.iter().map(|key| key.name);
    keys.chain(NUMBERS.iter().map(|(name, _)| *name))
}

/// Parses field names, separated by commas or blanks. As in perf, a case-insensitive prefix of a name is enough.
/// Duplicates are ignored.
///
/// # Errors
///
/// [`Error::UnknownField`] for a word that is not a prefix of a name.
pub fn parse(words: &str) -> Result<Vec<ReportField>, Error> {
    let mut fields: Vec<ReportField> = Vec::new();
    for word in words.split([',', ' ']).filter(|word| !word.is_empty()) {
        let field = find(word).ok_or_else(|| Error::UnknownField(word.to_owned()))?;
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    Ok(fields)
}

/// The first field, keys before numbers, whose name begins with `word`; case is ignored.
#[must_use]
pub fn find(word: &str) -> Option<ReportField> {
    let begins = |name: &str| {
        let name = name.as_bytes().get(..word.len());
        name.is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    let key = KEYS.iter().find(|key| begins(key.name));
    let number = || NUMBERS.iter().find(|(name, _)| begins(name));
    key.map(|key| ReportField::Key(key))
        .or_else(|| number().map(|(_, number)| ReportField::Number(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Vec<&'static str> {
        let fields = parse(words).expect("known words");
        let name = |field: &ReportField| {
            let named = names().find(|name| find(name) == Some(*field));
            named.expect("every field is found by its name")
        };
        fields.iter().map(name).collect()
    }

    #[test]
    fn beginnings_of_names_are_enough_and_duplicates_are_ignored() {
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
