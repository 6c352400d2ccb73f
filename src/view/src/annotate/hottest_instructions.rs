//! Selects the instructions to show: all, or the hottest with their context.

use rperf_disasm::InstructionLine;

use super::columns::{largest, shares};
use super::{AnnotateOptions, Annotation};

/// Instructions shown on each side of a hot one.
const CONTEXT_LINES: usize = 4;

/// The instructions to show: all, unless the options limit them to the hottest with their context. `None` replaces each sequence
/// of hidden instructions.
pub(super) fn lines<'a>(
    annotation: &Annotation<'a>,
    options: &AnnotateOptions,
) -> impl Iterator<Item = Option<&'a InstructionLine<'a>>> {
    let lines = &annotation.listing.lines;
    let kept = match (options.hottest, options.min_percent) {
        (None, None) => vec![true; lines.len()],
        (count, least) => {
            let least = least.map_or(0.0, f64::from);
            let count = count.unwrap_or(usize::MAX);
            near(
                &hottest(lines, count, least, annotation, options),
                lines.len(),
            )
        }
    };
    let mut was_kept = true;
    lines.iter().zip(kept).filter_map(move |(line, is_kept)| {
        let begins_gap = was_kept && !is_kept;
        was_kept = is_kept;
        match is_kept {
            true => Some(Some(line)),
            false => begins_gap.then_some(None),
        }
    })
}

/// The indices of the hottest instructions, hottest first: at most `count`. With several events, the largest of an instruction's
/// percentages counts. Instructions below `least` percent and instructions without samples are excluded.
fn hottest(
    lines: &[InstructionLine<'_>],
    count: usize,
    least: f64,
    annotation: &Annotation<'_>,
    options: &AnnotateOptions,
) -> Vec<usize> {
    let sampled = lines.iter().enumerate().filter(|(_, line)| line.is_hit());
    let heats = sampled.map(|(index, line)| {
        let share = largest(&shares(&line.hits, annotation, options));
        (share.value(), index)
    });
    let heats = heats.filter(|(share, _)| *share >= least);
    let mut heats: Vec<(f64, usize)> = heats.collect();
    heats.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    heats.into_iter().take(count).map(|(_, at)| at).collect()
}

/// Whether each index below `line_count` is near one of the `hot` indices.
fn near(hot: &[usize], line_count: usize) -> Vec<bool> {
    let mut is_near = vec![false; line_count];
    for index in hot {
        let end = (index + CONTEXT_LINES + 1).min(line_count);
        is_near[index.saturating_sub(CONTEXT_LINES)..end].fill(true);
    }
    is_near
}
