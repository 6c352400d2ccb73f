//! The basic blocks of a function in several files.

use crate::blocks::Block;

/// A line of a function's blocks: one of each file except the baseline; `None` if the file does not have the function.
pub type BlockLine = Vec<Option<ComparedBlock>>;

/// A block of a file, compared with the same block of the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedBlock {
    /// The block.
    pub block: Block,
    /// The average cycles less those of the baseline; 0 if the baseline does not have the block.
    pub difference: i64,
    /// The absolute differences of the cycles of the first executions, at most 8; none if the baseline does not have the block.
    pub first_differences: Vec<u64>,
}

/// Compares the blocks of a function in several files, the baseline first; `None` is a file without the function. If the
/// baseline does not have the function, files are compared with the first file that has it.
///
/// The blocks of each file are sorted by the size of their differences, largest first, then by their offsets. The n-th line
/// has the n-th block of each file. As in perf:
/// - There are at most as many lines as blocks in the first file with the function.
/// - A line is omitted if a file has fewer blocks.
/// - There is at most one line if a file other than the baseline does not have the function.
#[must_use]
pub fn compare_blocks(files: &[Option<Vec<&Block>>]) -> Vec<BlockLine> {
    // The first file with the function, which replaces a baseline without it.
    let Some(baseline) = files.iter().flatten().next() else {
        return Vec::new();
    };
    let compared = files.iter().skip(1).map(|blocks| {
        let blocks = blocks.as_ref()?;
        Some(sorted_by_difference(blocks, baseline))
    });
    let compared: Vec<Option<Vec<ComparedBlock>>> = compared.collect();
    let line = |number: usize| {
        // The outer `Option` is `None` if the line is omitted, the inner one if the file does not have the function.
        let cells = compared.iter().map(|blocks| match blocks {
            Some(blocks) => Some(Some(blocks.get(number)?.clone())),
            None => (number == 0).then_some(None),
        });
        cells.collect::<Option<BlockLine>>()
    };
    (0..baseline.len()).filter_map(line).collect()
}

fn sorted_by_difference(blocks: &[&Block], baseline: &[&Block]) -> Vec<ComparedBlock> {
    let mut compared: Vec<ComparedBlock> = blocks
        .iter()
        .map(|block| {
            // The same block of the baseline.
            let pair = baseline.iter().find(|pair| pair.offsets == block.offsets);
            let average = |block: &Block| i64::try_from(block.average()).unwrap_or(i64::MAX);
            ComparedBlock {
                block: (*block).clone(),
                difference: pair.map_or(0, |pair| average(block) - average(pair)),
                first_differences: pair.map_or_else(Vec::new, |pair| {
                    let first = block.first_cycles.iter().zip(&pair.first_cycles);
                    first.map(|(new, old)| new.abs_diff(*old)).collect()
                }),
            }
        })
        .collect();
    compared.sort_by_key(|compared| {
        let size = std::cmp::Reverse(compared.difference.unsigned_abs());
        (size, compared.block.offsets)
    });
    compared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offsets: [u64; 2], cycles: u64) -> Block {
        Block {
            cycles,
            executions: 1,
            offsets,
            first_cycles: vec![cycles],
            ..Block::default()
        }
    }

    /// The differences in each line.
    fn differences(lines: &[BlockLine]) -> Vec<Vec<Option<i64>>> {
        let line = |line: &BlockLine| {
            let differences = line.iter().map(|block| Some(block.as_ref()?.difference));
            differences.collect()
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn blocks_are_paired_by_offsets_and_sorted_by_difference() {
        let old = [block([0, 8], 10), block([4, 20], 50), block([4, 30], 7)];
        let new = [block([0, 8], 11), block([4, 20], 20), block([4, 31], 99)];
        let lines = compare_blocks(&[Some(old.iter().collect()), Some(new.iter().collect())]);
        assert_eq!(differences(&lines), [[Some(-30)], [Some(1)], [Some(0)]]);
        assert_eq!(
            lines[0][0].as_ref().map(|block| &*block.first_differences),
            Some(&[30][..])
        );
        // A line needs a block of each file.
        let lines = compare_blocks(&[
            Some(old.iter().collect()),
            Some(new.iter().take(1).collect()),
        ]);
        assert_eq!(differences(&lines), [[Some(1)]]);
    }

    #[test]
    fn files_may_lack_the_function() {
        let blocks = [block([0, 8], 10), block([4, 20], 50)];
        let present = || Some(blocks.iter().collect::<Vec<_>>());
        assert_eq!(differences(&compare_blocks(&[present(), None])), [[None]]);
        assert_eq!(
            differences(&compare_blocks(&[present(), present(), None])),
            [[Some(0), None]]
        );
        // The baseline lacks the function: the only other file is compared with itself.
        assert_eq!(
            differences(&compare_blocks(&[None, present()])),
            [[Some(0)], [Some(0)]]
        );
        assert_eq!(compare_blocks(&[None, None]), Vec::<BlockLine>::new());
    }
}
