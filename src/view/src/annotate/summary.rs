//! The hottest source lines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_disasm::HitCount;

use super::columns::{largest, painted, shares};
use super::{AnnotateOptions, Annotation, MIN_PERCENT, file_name};

/// The length of the rule below the title, in characters.
const RULE: usize = 46;

/// Prints the source lines above [`MIN_PERCENT`] with their percentages, hottest first.
pub(super) fn write(
    out: &mut dyn Write,
    annotation: &Annotation<'_>,
    options: &AnnotateOptions,
) -> io::Result<()> {
    // By path and number of the source line: a sum for each event.
    let mut sums: BTreeMap<(&str, u32), Vec<HitCount>> = BTreeMap::new();
    for instruction in &annotation.listing.lines {
        let Some(place) = instruction.site.and_then(|site| site.line) else {
            continue;
        };
        let zeros = || vec![HitCount::default(); instruction.hits.len()];
        let sum = sums.entry(place).or_insert_with(zeros);
        let pairs = sum.iter_mut().zip(&instruction.hits);
        pairs.for_each(|(sum, hit)| sum.add(*hit));
    }
    let lines = sums.iter().map(|(place, hits)| {
        let shares = shares(hits, annotation, options);
        (largest(&shares), shares, *place)
    });
    let mut lines: Vec<_> = lines.filter(|line| line.0.value() > MIN_PERCENT).collect();
    lines.sort_by(|a, b| b.0.value().total_cmp(&a.0.value()).then(a.2.cmp(&b.2)));
    let title = format!("\nSorted summary for file {}", annotation.object);
    writeln!(out, "{title}\n{}\n", "-".repeat(RULE))?;
    if lines.is_empty() {
        return writeln!(out, " Nothing higher than {MIN_PERCENT}%");
    }
    for (largest_share, shares, (path, number)) in lines {
        for share in shares {
            let percentage = format!("{:>8.2}", share.value());
            write!(out, "{}", painted(&percentage, share, options))?;
        }
        let place = format!(" {}:{number}", file_name(path, options));
        writeln!(out, "{}", painted(&place, largest_share, options))?;
    }
    Ok(())
}
