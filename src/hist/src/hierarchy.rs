//! Hierarchical rows, with one sort key per level.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::fields::NumberField;
use crate::histogram::{Histogram, HistogramRow};

/// A line of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HierarchyLine {
    /// Index of the line's key, from 0.
    pub level: usize,
    /// A row with the cell of that key only. Only rows of the last level have call graphs.
    pub row: HistogramRow,
}

impl Histogram {
    /// The rows as a tree in depth-first order.
    #[must_use]
    pub fn hierarchy(&self) -> Vec<HierarchyLine> {
        let keys = self.columns.iter().filter(|field| field.key().is_some());
        let mut lines = Vec::new();
        let first_level = 0;
        self.append(
            &self.rows.iter().collect::<Vec<_>>(),
            first_level,
            keys.count(),
            &mut lines,
        );
        lines
    }

    /// Appends the lines of `rows`, which have equal cells before `level`.
    fn append(
        &self,
        rows: &[&HistogramRow],
        level: usize,
        levels: usize,
        lines: &mut Vec<HierarchyLine>,
    ) {
        if level + 1 >= levels {
            let leaves = rows.iter().map(|row| HierarchyLine {
                level,
                row: with_cell(row, level),
            });
            return lines.extend(leaves);
        }
        let mut groups: Vec<(HistogramRow, Vec<&HistogramRow>)> = Vec::new();
        let mut group_indices: FxHashMap<&str, usize> = FxHashMap::default();
        for row in rows {
            let cell = row.cells.get(level).map_or("", String::as_str);
            let index = *group_indices.entry(cell).or_insert(groups.len());
            match groups.get_mut(index) {
                Some((sum, parts)) => {
                    sum.add(row);
                    parts.push(row);
                }
                None => {
                    // Only rows of the last level have call graphs; `chains` is the number of samples in a call graph.
                    let sum = HistogramRow {
                        graph: Vec::new(),
                        chains: 0,
                        ..with_cell(row, level)
                    };
                    groups.push((sum, vec![row]));
                }
            }
        }
        // The levels above the last are sorted by the first number among the columns. Lines of the last level keep the order of
        // the rows.
        let number = self.columns.iter().find_map(|field| field.number());
        let number = number.unwrap_or(NumberField::Own);
        groups.sort_by_cached_key(|(sum, _)| {
            let numbers: Vec<u64> = sum.compared_numbers(number, self.sort_event).collect();
            (Reverse(numbers), sum.cells.clone())
        });
        for (row, parts) in groups {
            lines.push(HierarchyLine { level, row });
            self.append(&parts, level + 1, levels, lines);
        }
    }
}

/// The row with the cell of one key only.
fn with_cell(row: &HistogramRow, level: usize) -> HistogramRow {
    HistogramRow {
        cells: row.cells.get(level).cloned().into_iter().collect(),
        ..row.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::parse;
    use crate::histogram::Weights;

    /// A row of a group of events: `own` has the own weight for each event, the leader first.
    fn row(cells: [&str; 2], own: &[u64]) -> HistogramRow {
        let mut weights = own.iter().map(|own| Weights {
            own: *own,
            total: *own,
            samples: 1,
            ..Weights::default()
        });
        HistogramRow {
            weights: weights.next().expect("a leader"),
            others: weights.collect(),
            cells: cells.map(str::to_owned).to_vec(),
            unresolved: false,
            chains: 0,
            graph: Vec::new(),
        }
    }

    /// The lines of these rows: level, text, and the leader's weight.
    fn lines_of(rows: Vec<HistogramRow>, sort_event: usize) -> Vec<(usize, String, u64)> {
        let histogram = Histogram {
            columns: parse("overhead,comm,dso").expect("known words"),
            sort_event,
            rows,
            ..Histogram::default()
        };
        let lines = histogram.hierarchy().into_iter();
        lines
            .map(|line| (line.level, line.row.cells[0].clone(), line.row.weights.own))
            .collect()
    }

    #[test]
    fn levels_above_the_last_are_ordered_by_their_sums() {
        let rows = vec![
            row(["sh", "libc"], &[5]),
            row(["ls", "libc"], &[4]),
            row(["ls", "ls"], &[4]),
            row(["cat", "libc"], &[5]),
        ];
        let expected = [
            (0, "ls", 8),
            (1, "libc", 4),
            (1, "ls", 4),
            (0, "cat", 5),
            (1, "libc", 5),
            (0, "sh", 5),
            (1, "libc", 5),
        ];
        assert_eq!(
            lines_of(rows, 0),
            expected.map(|(level, cell, own)| (level, cell.to_owned(), own))
        );
    }

    #[test]
    fn levels_above_the_last_are_ordered_by_the_chosen_event_of_a_group() {
        let rows = || {
            vec![
                row(["ls", "libc"], &[9, 1]),
                row(["sh", "libc"], &[5, 7]),
                row(["cat", "libc"], &[5, 8]),
            ]
        };
        let first_level = |sort_event| -> Vec<String> {
            let lines = lines_of(rows(), sort_event).into_iter();
            lines
                .filter(|(level, ..)| *level == 0)
                .map(|(_, cell, _)| cell)
                .collect()
        };
        assert_eq!(first_level(0), ["ls", "cat", "sh"]);
        assert_eq!(first_level(1), ["cat", "sh", "ls"]);
        // The rows have no event 2, so they are sorted by the leader.
        assert_eq!(first_level(2), ["ls", "cat", "sh"]);
    }
}
