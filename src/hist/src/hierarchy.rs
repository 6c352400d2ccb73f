//! Rows put below each other, one sort key to a level.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::fields::{Field, Number};
use crate::histogram::{Histogram, Row};

/// A line of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which of the keys it is of, from 0.
    pub level: usize,
    /// Its only cell is that key's. The last level alone has call graphs.
    pub row: Row,
}

impl Histogram {
    /// The rows as a tree: each line with what follows it on a deeper level as its parts.
    #[must_use]
    pub fn hierarchy(&self) -> Vec<Step> {
        let keys = self.columns.iter().filter(|field| field.key().is_some());
        let mut steps = Vec::new();
        self.append(
            &self.rows.iter().collect::<Vec<_>>(),
            0,
            keys.count(),
            &mut steps,
        );
        steps
    }

    /// Appends the lines of `rows`, which are alike in the keys before `level`.
    fn append(&self, rows: &[&Row], level: usize, levels: usize, steps: &mut Vec<Step>) {
        if level + 1 >= levels {
            let leaves = rows.iter().map(|row| Step {
                level,
                row: with_cell(row, level),
            });
            return steps.extend(leaves);
        }
        let mut groups: Vec<(Row, Vec<&Row>)> = Vec::new();
        let mut known: FxHashMap<&str, usize> = FxHashMap::default();
        for row in rows {
            let cell = row.cells.get(level).map_or("", String::as_str);
            let place = *known.entry(cell).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((sum, parts)) => {
                    sum.add(row);
                    parts.push(row);
                }
                None => {
                    let sum = Row {
                        graph: Vec::new(),
                        chains: 0,
                        ..with_cell(row, level)
                    };
                    groups.push((sum, vec![row]));
                }
            }
        }
        let number = self.columns.iter().find_map(|field| match field {
            Field::Number(number) => Some(*number),
            Field::Key(_) => None,
        });
        let number = number.unwrap_or(Number::Own);
        groups.sort_by_cached_key(|(sum, _)| {
            let numbers: Vec<u64> = sum.numbers(number).collect();
            (Reverse(numbers), sum.cells.clone())
        });
        for (row, parts) in groups {
            steps.push(Step { level, row });
            self.append(&parts, level + 1, levels, steps);
        }
    }
}

/// The row with the cell of one key alone.
fn with_cell(row: &Row, level: usize) -> Row {
    Row {
        cells: row.cells.get(level).cloned().into_iter().collect(),
        ..row.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::parse;
    use crate::histogram::Weights;

    #[test]
    fn every_level_is_ordered_by_its_own_weight() {
        let row = |cells: [&str; 2], own| Row {
            weights: Weights {
                own,
                total: own,
                samples: 1,
                ..Weights::default()
            },
            others: Vec::new(),
            cells: cells.map(str::to_owned).to_vec(),
            unresolved: false,
            chains: 0,
            graph: Vec::new(),
        };
        let histogram = Histogram {
            columns: parse("overhead,comm,dso").expect("known words"),
            rows: vec![
                row(["sh", "libc"], 5),
                row(["ls", "libc"], 4),
                row(["ls", "ls"], 4),
                row(["cat", "libc"], 5),
            ],
            ..Histogram::default()
        };
        let steps = histogram.hierarchy();
        let shown: Vec<_> = steps
            .iter()
            .map(|step| (step.level, &*step.row.cells[0], step.row.weights.own))
            .collect();
        let expected = [
            (0, "ls", 8),
            (1, "libc", 4),
            (1, "ls", 4),
            (0, "cat", 5),
            (1, "libc", 5),
            (0, "sh", 5),
            (1, "libc", 5),
        ];
        assert_eq!(shown, expected);
    }
}
