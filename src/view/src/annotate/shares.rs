//! What stands before an instruction.

use rperf_disasm::Hit;

use super::{AnnotateOptions, Annotation, Column};
use crate::percent::Percent;

impl Column {
    /// The heading of the column.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Percent => "Percent",
            Self::Samples => "Samples",
            Self::Period => "Period",
        }
    }

    /// Characters of each event's number.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Percent | Self::Samples => 8,
            Self::Period => 12,
        }
    }

    /// The same where there are few words, with the blank behind it.
    #[must_use]
    pub const fn narrow(self) -> usize {
        match self {
            Self::Percent | Self::Samples => 7,
            Self::Period => 12,
        }
    }

    /// The number of an event; `share` is in percent.
    #[must_use]
    pub fn number(self, hit: Hit, share: f64) -> String {
        match self {
            Self::Percent => format!("{share:.2}"),
            Self::Samples => hit.samples.to_string(),
            Self::Period => hit.period.to_string(),
        }
    }
}

/// The share of a hit in what its event counts.
pub(super) fn shares(
    hits: &[Hit],
    shown: &Annotation<'_>,
    options: &AnnotateOptions,
) -> Vec<Percent> {
    let pairs = hits.iter().zip(shown.wholes);
    let share = |(hit, whole): (&Hit, &Hit)| part(*hit, *whole, options.by_samples);
    pairs.map(share).collect()
}

/// The share of a hit in `whole`, in percent.
#[must_use]
pub fn percent(hit: Hit, whole: Hit, by_samples: bool) -> f64 {
    part(hit, whole, by_samples).value()
}

fn part(hit: Hit, whole: Hit, by_samples: bool) -> Percent {
    match by_samples {
        true => Percent::of(hit.samples, whole.samples),
        false => Percent::of(hit.period, whole.period),
    }
}

/// The largest of some shares.
pub(super) fn largest(shares: &[Percent]) -> Percent {
    let most = |a: Percent, b: Percent| if b.value() > a.value() { b } else { a };
    shares.iter().copied().fold(Percent::of(0, 0), most)
}

/// `text` in the colour of a share, if there are colours.
pub(super) fn painted(text: &str, share: Percent, options: &AnnotateOptions) -> String {
    let (begin, end) = share.paint(options.colors);
    format!("{begin}{text}{end}")
}
