//! Call graphs of one event shown for events without callchains: `--show-ref-call-graph`.

use rustc_hash::FxHashMap;

use crate::histogram::{Branch, ColumnSum, Histogram, HistogramRow};

/// Copies the call graphs of the first histogram with callchains to those without: to each row from the row with the same
/// cells. The copies are scaled to the counts of the row. `callchains` has for each event whether its samples have callchains.
pub(crate) fn copy_reference_call_graphs(histograms: &mut [Histogram], callchains: &[bool]) {
    let has_chains = |histogram: &Histogram| {
        let leader = histogram.events.first();
        leader.is_some_and(|event| callchains.get(*event) == Some(&true))
    };
    let Some(reference) = histograms.iter().position(has_chains) else {
        return;
    };
    let reference_rows = std::mem::take(&mut histograms[reference].rows);
    // Of several rows with the same cells, the first is used.
    let rows = reference_rows.iter().rev();
    let graphs: FxHashMap<&[String], &HistogramRow> = rows.map(|row| (&*row.cells, row)).collect();
    for histogram in histograms.iter_mut().filter(|other| !has_chains(other)) {
        histogram.reference_call_graphs = true;
        for row in &mut histogram.rows {
            if let Some(reference_row) = graphs.get(&*row.cells) {
                let ratio = CountRatio::of(row, reference_row);
                row.graph = ratio.of_branches(&reference_row.graph);
                row.chains = ratio.of_samples(reference_row.chains);
            }
        }
    }
    histograms[reference].rows = reference_rows;
}

/// Ratios of a row's numbers to those of its reference row, each as numerator and denominator.
#[derive(Clone, Copy)]
struct CountRatio {
    /// Also applied to latencies, which no call graph shows.
    periods: (u64, u64),
    /// The denominator counts only samples with callchains.
    samples: (u64, u64),
}

impl CountRatio {
    fn of(row: &HistogramRow, reference_row: &HistogramRow) -> Self {
        Self {
            periods: (row.weights.total, reference_row.weights.total),
            samples: (row.weights.samples, reference_row.chains),
        }
    }

    fn of_branches(self, branches: &[Branch]) -> Vec<Branch> {
        let part = |branch: &Branch| Branch {
            frames: branch.frames.clone(),
            all: self.of_sum(branch.all),
            own: self.of_sum(branch.own),
            branches: self.of_branches(&branch.branches),
        };
        branches.iter().map(part).collect()
    }

    fn of_sum(self, sum: ColumnSum) -> ColumnSum {
        let (numerator, denominator) = self.periods;
        ColumnSum {
            period: scaled(sum.period, numerator, denominator),
            samples: self.of_samples(sum.samples),
            latency: scaled(sum.latency, numerator, denominator),
        }
    }

    fn of_samples(self, samples: u64) -> u64 {
        let (numerator, denominator) = self.samples;
        scaled(samples, numerator, denominator)
    }
}

/// `value` times a fraction, rounded, at most `u64::MAX`; 0 if the denominator is 0.
fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator) + u128::from(denominator / 2);
    let scaled = product
        .checked_div(u128::from(denominator))
        .unwrap_or_default();
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Weights;

    fn sum(period: u64, samples: u64) -> ColumnSum {
        ColumnSum {
            period,
            samples,
            latency: 0,
        }
    }

    fn histogram(event: usize, (total, samples): (u64, u64), graph: Vec<Branch>) -> Histogram {
        let row = HistogramRow {
            weights: Weights {
                total,
                samples,
                ..Weights::default()
            },
            others: Vec::new(),
            cells: vec!["leaf".to_owned()],
            unresolved: false,
            chains: if graph.is_empty() { 0 } else { samples },
            graph,
        };
        Histogram {
            events: vec![event],
            rows: vec![row],
            ..Histogram::default()
        }
    }

    #[test]
    fn graphs_keep_their_shares() {
        let graph = vec![Branch {
            frames: vec!["leaf".into(), "main".into()],
            all: sum(100, 10),
            own: sum(30, 3),
            branches: Vec::new(),
        }];
        let mut histograms = [
            histogram(0, (0, 0), Vec::new()),
            histogram(1, (100, 10), graph.clone()),
            histogram(2, (5000, 4), Vec::new()),
        ];
        copy_reference_call_graphs(&mut histograms, &[false, true, false]);
        assert_eq!(
            histograms.each_ref().map(|one| one.reference_call_graphs),
            [true, false, true]
        );
        let [nothing, reference_row, copy] = histograms.map(|mut one| one.rows.remove(0));
        assert_eq!(reference_row.graph, graph);
        assert_eq!(nothing.graph[0].all, sum(0, 0));
        assert_eq!(copy.graph[0].frames, graph[0].frames);
        assert_eq!(copy.graph[0].all, sum(5000, 4));
        assert_eq!(copy.graph[0].own, sum(1500, 1));
        assert_eq!(copy.chains, 4);
    }

    #[test]
    fn no_reference_without_callchains() {
        let mut histograms = [histogram(0, (3, 1), Vec::new())];
        copy_reference_call_graphs(&mut histograms, &[false]);
        assert!(histograms[0].rows[0].graph.is_empty());
    }

    #[test]
    fn scaled_numbers_are_bounded() {
        assert_eq!(scaled(7, u64::MAX, 1), u64::MAX);
        assert_eq!(scaled(7, 1, 0), 0);
    }
}
