//! Comparisons against a slow, simple calculation, and rows checked by hand.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{
    ComparedValue, Comparison, ComparisonMethod, ComparisonOptions, compared_columns, percent,
};
use crate::fields::parse;
use crate::histogram::{ColumnSum, Histogram, HistogramRow, Weights};

/// The number of the object, the index of the function in [`FUNCTIONS`] (0 for code without a symbol), the address and the
/// period.
type Hit = (u8, u8, u16, u64);

const FUNCTIONS: &[&str] = &["", "a", "b", "main"];

/// A histogram with a row for each of `hits` (the comparison joins those of a function), and `hidden` more in its total period.
fn histogram(hits: &[Hit], hidden: u64) -> Histogram {
    let columns = parse("dso,symbol").expect("known keys");
    let period = hits.iter().map(|hit| hit.3).sum::<u64>() + hidden;
    let total = ColumnSum {
        period,
        ..ColumnSum::default()
    };
    Histogram {
        events: vec![0],
        totals: vec![total],
        all: total,
        // The second argument is the sort order: the key `symbol` in it adds the column of the function name.
        columns: compared_columns(&columns, &columns),
        rows: hits.iter().map(row).collect(),
        ..Histogram::default()
    }
}

fn row((dso, function, address, period): &Hit) -> HistogramRow {
    let name = FUNCTIONS[usize::from(*function)];
    let text = match name {
        "" => format!("[.] {address:#018x}"),
        name => format!("[.] {name}"),
    };
    HistogramRow {
        weights: Weights {
            own: *period,
            ..Weights::default()
        },
        others: Vec::new(),
        // The third is the function name, the column that `compared_columns` appends.
        cells: vec![format!("lib{dso}"), text, name.to_owned()],
        unresolved: name.is_empty(),
        chains: 0,
        graph: Vec::new(),
    }
}

fn compare(files: &[Vec<Hit>], options: &ComparisonOptions) -> Comparison {
    let histograms: Vec<Histogram> = files.iter().map(|hits| histogram(hits, 0)).collect();
    let files: Vec<Option<&Histogram>> = histograms.iter().map(Some).collect();
    Comparison::new(&files, options)
}

const PLAIN: ComparisonOptions = ComparisonOptions {
    method: ComparisonMethod::AbsoluteDelta,
    order_file: 1,
    baseline_only: false,
};

/// The period of a function in a file, by adding up all of its hits; `None` without a hit.
fn period(hits: &[Hit], dso: u8, function: u8) -> Option<u64> {
    let mut sum = None;
    for hit in hits {
        if (hit.0, hit.1) == (dso, function) {
            sum = Some(sum.unwrap_or(0) + hit.3);
        }
    }
    sum
}

fn sum(hits: &[Hit]) -> u64 {
    hits.iter().map(|hit| hit.3).sum()
}

/// The value of a row, straight from its definition.
fn value(method: ComparisonMethod, files: &[Vec<Hit>], file: usize, key: (u8, u8)) -> Option<f64> {
    let new = period(&files[file], key.0, key.1)?;
    let old = period(&files[0], key.0, key.1);
    match method {
        ComparisonMethod::Delta | ComparisonMethod::AbsoluteDelta => {
            let share = |period: u64, hits: &[Hit]| match sum(hits) {
                0 => 0.0,
                sum => period as f64 * 100.0 / sum as f64,
            };
            Some(share(new, &files[file]) - share(old.unwrap_or(0), &files[0]))
        }
        // Nothing is divided by 0: an old period of 0 counts as 1.
        ComparisonMethod::Ratio => old.map(|old| new as f64 / old.max(1) as f64),
        ComparisonMethod::WeightedDifference { baseline, other } => {
            let (new, old) = (new as i64, old? as i64);
            Some((new * other - old * baseline) as f64)
        }
        ComparisonMethod::Cycles => None,
    }
}

fn as_number(value: ComparedValue) -> Option<f64> {
    match value {
        ComparedValue::Percent(value) | ComparedValue::Ratio(value) => Some(value),
        ComparedValue::Weighted(value) => Some(value as f64),
        ComparedValue::Undefined => None,
    }
}

fn hits() -> impl Strategy<Value = Vec<Hit>> {
    prop::collection::vec((0u8..3, 0u8..4, 0u16..9, 0u64..1000), 0..20)
}

fn methods() -> impl Strategy<Value = ComparisonMethod> {
    prop_oneof![
        Just(ComparisonMethod::Delta),
        Just(ComparisonMethod::AbsoluteDelta),
        Just(ComparisonMethod::Ratio),
        (-3i64..4, -3i64..4).prop_map(|(baseline, other)| {
            ComparisonMethod::WeightedDifference { baseline, other }
        }),
    ]
}

proptest! {
    #[test]
    fn rows_values_and_order_match_their_definition(
        files in prop::collection::vec(hits(), 2..4),
        method in methods(),
        order_file in 0usize..2,
        baseline_only in any::<bool>(),
    ) {
        let options = ComparisonOptions { method, order_file, baseline_only };
        let comparison = compare(&files, &options);
        let mut expected = BTreeSet::new();
        for (dso, function) in (0..3).flat_map(|dso| (0..4).map(move |function| (dso, function))) {
            let periods: Vec<_> = files.iter().map(|hits| period(hits, dso, function)).collect();
            // `baseline_only` drops what only the baseline has, too: rows must be in the baseline and in another file.
            let paired = periods[0].is_some() && periods[1..].iter().any(Option::is_some);
            if periods.iter().any(Option::is_some) && (paired || !baseline_only) {
                expected.insert((dso, function));
            }
        }
        let mut keys = BTreeSet::new();
        let mut previous: Option<(bool, f64)> = None;
        for row in &comparison.rows {
            let dso: u8 = row.cells[0]["lib".len()..].parse().expect("a number");
            let function = FUNCTIONS.iter().position(|name| *name == row.function).expect("known");
            let key = (dso, function as u8);
            prop_assert!(keys.insert(key), "{key:?} twice");
            for (file, hits) in files.iter().enumerate() {
                prop_assert_eq!(row.period(file), period(hits, key.0, key.1));
            }
            for file in 1..files.len() {
                let number = comparison.value(row, file).and_then(as_number);
                prop_assert_eq!(number, value(method, &files, file, key));
            }
            let sort_value = match order_file {
                0 => Some(period(&files[0], key.0, key.1).unwrap_or(0) as f64),
                file => value(method, &files, file, key),
            };
            let absolute = method == ComparisonMethod::AbsoluteDelta;
            let compared = sort_value.map_or(0.0, |value| if absolute { value.abs() } else { value });
            let rank = (sort_value.is_none(), -compared);
            if let Some(previous) = previous {
                prop_assert!(previous <= rank, "{:?} before {:?}", previous, rank);
            }
            previous = Some(rank);
        }
        prop_assert_eq!(keys, expected);
    }

    #[test]
    fn the_order_of_the_rows_of_a_file_does_not_matter(files in prop::collection::vec(hits(), 2..4), method in methods()) {
        let options = ComparisonOptions { method, ..PLAIN };
        let reversed: Vec<Vec<Hit>> = files.iter().map(|hits| hits.iter().rev().copied().collect()).collect();
        prop_assert_eq!(compare(&files, &options), compare(&reversed, &options));
    }
}

/// One row for each object; the address is the lowest in the first file that has the row, here the baseline.
#[test]
fn code_without_symbols_is_one_row_with_its_lowest_address() {
    let old = vec![(0, 0, 7, 10), (0, 0, 3, 10), (1, 0, 5, 20)];
    let new = vec![(0, 0, 1, 40)];
    let comparison = compare(&[old, new], &PLAIN);
    let rows: Vec<_> = comparison
        .rows
        .iter()
        .map(|row| (&*row.cells[1], &row.periods[..]))
        .collect();
    assert_eq!(
        rows,
        [
            ("[.] 0x0000000000000003", &[Some(20), Some(40)][..]),
            ("[.] 0x0000000000000005", &[Some(20), None]),
        ]
    );
}

#[test]
fn rows_without_a_pair_are_dropped_and_baseline_shares_are_of_the_rest() {
    let options = ComparisonOptions {
        baseline_only: true,
        ..PLAIN
    };
    let files = [
        vec![(0, 1, 0, 30), (0, 2, 0, 10)],
        vec![(0, 1, 0, 50), (0, 3, 0, 50)],
    ];
    let comparison = compare(&files, &options);
    let [row] = &comparison.rows[..] else {
        panic!("{comparison:?}");
    };
    assert_eq!(comparison.baseline_share(row), Some(100.0));
    // Differences are between shares of all samples, including samples in dropped rows.
    assert_eq!(
        comparison.value(row, 1),
        Some(ComparedValue::Percent(-25.0))
    );
    assert_eq!(comparison.change(row, 1), -25.0);
}

#[test]
fn an_event_that_a_file_lacks_has_no_rows_in_it() {
    let old = histogram(&[(0, 1, 0, 30)], 10);
    let comparison = Comparison::new(&[Some(&old), None], &PLAIN);
    assert_eq!(comparison.totals, [40, 0]);
    let row = &comparison.rows[0];
    assert_eq!(
        (row.is_in_other_file(), comparison.value(row, 1)),
        (false, None)
    );
    assert_eq!(comparison.baseline_share(row), Some(75.0));
    // A share of a total of 0, as in the file without the event, is 0.
    assert_eq!(percent(5, 0), 0.0);
}
