//! Selects the instructions to show: all, or the hottest with their context.

use rperf_disasm::InstructionLine;

use super::columns::{largest, shares};
use super::{AnnotateOptions, Annotation};

/// Instructions shown on each side of a hot one.
const CONTEXT_LINES: usize = 4;

/// The instructions to show, with `None` in place of each sequence of hidden ones.
pub(super) fn lines<'a>(
    annotation: &Annotation<'a>,
    options: &AnnotateOptions,
) -> impl Iterator<Item = Option<&'a InstructionLine<'a>>> {
    let lines = &annotation.listing.lines;
    let is_kept = match (options.hottest, options.least) {
        (None, None) => vec![true; lines.len()],
        (count, least) => {
            let least = least.map_or(0.0, f64::from);
            let most = count.unwrap_or(usize::MAX);
            near(
                &hottest(lines, most, least, annotation, options),
                lines.len(),
            )
        }
    };
    let mut gap = false;
    lines.iter().zip(is_kept).flat_map(move |(line, is_kept)| {
        let begins = !is_kept && !gap;
        gap = !is_kept;
        match (is_kept, begins) {
            (true, _) => Some(Some(line)),
            (false, true) => Some(None),
            (false, false) => None,
        }
    })
}

/// The indices of the hottest instructions, limited in number and by a minimum percentage;
/// instructions without samples are excluded.
fn hottest(
    lines: &[InstructionLine<'_>],
    count: usize,
    least: f64,
    annotation: &Annotation<'_>,
    options: &AnnotateOptions,
) -> Vec<usize> {
    let hits = lines.iter().enumerate().filter(|(_, line)| line.is_hit());
    let heats = hits.map(|(index, line)| {
        let share = largest(&shares(&line.hits, annotation, options));
        (share.value(), index)
    });
    let heats = heats.filter(|(share, _)| *share >= least);
    let mut heats: Vec<(f64, usize)> = heats.collect();
    heats.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    heats.into_iter().take(count).map(|(_, at)| at).collect()
}

/// Whether each index below `count` is near one of `hits`.
fn near(hits: &[usize], count: usize) -> Vec<bool> {
    let mut is_near = vec![false; count];
    for index in hits {
        let end = (index + CONTEXT_LINES + 1).min(count);
        is_near[index.saturating_sub(CONTEXT_LINES)..end].fill(true);
    }
    is_near
}
