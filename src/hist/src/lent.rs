//! Call graphs of one event for another without callchains: `--show-ref-call-graph`.

use rustc_hash::FxHashMap;

use crate::histogram::{Branch, Histogram, Row, Sum};

/// Gives the rows of every event without callchains the call graph that the row of the same name has in the first event with
/// them, its parts shrunk or grown to what the row counts.
pub(crate) fn lend(histograms: &mut [Histogram], callchains: &[bool]) {
    let has_chains = |histogram: &Histogram| {
        let leader = histogram.events.first();
        leader.is_some_and(|event| callchains.get(*event) == Some(&true))
    };
    let Some(reference) = histograms.iter().position(has_chains) else {
        return;
    };
    let lenders = std::mem::take(&mut histograms[reference].rows);
    // Of several rows of one name the first counts.
    let rows = lenders.iter().rev();
    let graphs: FxHashMap<&[String], &Row> = rows.map(|row| (&*row.cells, row)).collect();
    for histogram in histograms.iter_mut().filter(|other| !has_chains(other)) {
        histogram.lent_graphs = true;
        for row in &mut histogram.rows {
            if let Some(lender) = graphs.get(&*row.cells) {
                let part = Part::of(row, lender);
                row.graph = part.of_branches(&lender.graph);
                row.chains = part.of_samples(lender.chains);
            }
        }
    }
    histograms[reference].rows = lenders;
}

/// How much a row counts of what another does.
#[derive(Clone, Copy)]
struct Part {
    periods: (u64, u64),
    samples: (u64, u64),
}

impl Part {
    fn of(row: &Row, lender: &Row) -> Self {
        let (own, theirs) = (&row.weights, &lender.weights);
        Self {
            periods: (own.total, theirs.total),
            samples: (own.samples, lender.chains),
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

    fn of_sum(self, sum: Sum) -> Sum {
        Sum {
            period: scaled(sum.period, self.periods),
            samples: self.of_samples(sum.samples),
            latency: scaled(sum.latency, self.periods),
        }
    }

    fn of_samples(self, samples: u64) -> u64 {
        scaled(samples, self.samples)
    }
}

/// `value` times a fraction, to the nearest; 0 where the fraction is of nothing.
fn scaled(value: u64, (above, below): (u64, u64)) -> u64 {
    let product = u128::from(value) * u128::from(above) + u128::from(below / 2);
    let scaled = product.checked_div(u128::from(below)).unwrap_or_default();
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Weights;

    fn sum(period: u64, samples: u64) -> Sum {
        Sum {
            period,
            samples,
            latency: 0,
        }
    }

    fn histogram(event: usize, (total, samples): (u64, u64), graph: Vec<Branch>) -> Histogram {
        let row = Row {
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
        lend(&mut histograms, &[false, true, false]);
        assert_eq!(
            histograms.each_ref().map(|one| one.lent_graphs),
            [true, false, true]
        );
        let [nothing, lender, borrower] = histograms.map(|mut one| one.rows.remove(0));
        assert_eq!(lender.graph, graph);
        assert_eq!(nothing.graph[0].all, sum(0, 0));
        assert_eq!(borrower.graph[0].frames, graph[0].frames);
        assert_eq!(borrower.graph[0].all, sum(5000, 4));
        assert_eq!(borrower.graph[0].own, sum(1500, 1));
        assert_eq!(borrower.chains, 4);
    }

    #[test]
    fn nobody_lends_without_callchains() {
        let mut histograms = [histogram(0, (3, 1), Vec::new())];
        lend(&mut histograms, &[false]);
        assert!(histograms[0].rows[0].graph.is_empty());
        assert_eq!(scaled(7, (u64::MAX, 1)), u64::MAX);
        assert_eq!(scaled(7, (1, 0)), 0);
    }
}
