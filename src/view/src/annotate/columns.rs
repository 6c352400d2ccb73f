//! The numbers before an instruction.

use rperf_disasm::HitCount;

use super::{AnnotateColumn, AnnotateOptions, Annotation};
use crate::percent::Percent;

impl AnnotateColumn {
    /// The heading of the column.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Percent => "Percent",
            Self::Samples => "Samples",
            Self::Period => "Period",
        }
    }

    /// Width of each event's number in the full layout (perf's `--stdio`).
    pub(super) fn width(self) -> usize {
        match self {
            Self::Percent | Self::Samples => 8,
            Self::Period => 12,
        }
    }

    /// Width of each event's number in the brief layout (perf's `--stdio2`), including the blank after it.
    #[must_use]
    pub const fn brief_width(self) -> usize {
        match self {
            Self::Percent | Self::Samples => 7,
            Self::Period => 12,
        }
    }

    /// The text of one event's number. `hit` has the samples and periods of the instruction, `share` is its percentage.
    #[must_use]
    pub fn number(self, hit: HitCount, share: f64) -> String {
        match self {
            Self::Percent => format!("{share:.2}"),
            Self::Samples => hit.samples.to_string(),
            Self::Period => hit.period.to_string(),
        }
    }
}

/// Each event's hits as a percentage of that event's total in [`Annotation::totals`].
pub(super) fn shares(
    hits: &[HitCount],
    annotation: &Annotation<'_>,
    options: &AnnotateOptions,
) -> Vec<Percent> {
    let pairs = hits.iter().zip(annotation.totals);
    let share = |(hit, total): (&HitCount, &HitCount)| share_of(*hit, *total, options.by_samples);
    pairs.map(share).collect()
}

/// The percentage of `hit` in `total`: of samples if `by_samples`, otherwise of periods.
#[must_use]
pub fn percent(hit: HitCount, total: HitCount, by_samples: bool) -> f64 {
    share_of(hit, total, by_samples).value()
}

/// Like [`percent`], as a value that can be coloured.
fn share_of(hit: HitCount, total: HitCount, by_samples: bool) -> Percent {
    match by_samples {
        true => Percent::of(hit.samples, total.samples),
        false => Percent::of(hit.period, total.period),
    }
}

/// The largest of the percentages; 0 % if there are none.
pub(super) fn largest(shares: &[Percent]) -> Percent {
    let most = |a: Percent, b: Percent| if b.value() > a.value() { b } else { a };
    shares.iter().copied().fold(Percent::of(0, 0), most)
}

/// Colours `text` by its percentage, if colours are enabled.
pub(super) fn painted(text: &str, share: Percent, options: &AnnotateOptions) -> String {
    let (begin, end) = share.paint(options.colors);
    format!("{begin}{text}{end}")
}
