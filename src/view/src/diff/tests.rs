//! Tables as text and JSON.

use rperf_hist::{ComparedRow, Comparison, ComparisonMethod, parse_fields};

use super::{DiffEvent, DiffLayout, write_diff, write_json};

fn row(cells: [&str; 2], periods: &[Option<u64>]) -> ComparedRow {
    ComparedRow {
        cells: cells.map(str::to_owned).to_vec(),
        function: cells[1].trim_start_matches("[.] ").to_owned(),
        unresolved: false,
        periods: periods.to_vec(),
    }
}

fn comparison(method: ComparisonMethod) -> Comparison {
    let keys = parse_fields("dso,symbol").expect("known keys");
    Comparison {
        method,
        keys: keys.iter().filter_map(|field| field.key()).collect(),
        totals: vec![80_000, 100_000],
        baseline_total: 80_000,
        rows: vec![
            row(["work", "[.] leaf"], &[Some(60_000), Some(50_000)]),
            row(["work", "[.] a,b"], &[None, Some(50_000)]),
            row(["libc.so.6", "[.] gone"], &[Some(20_000), None]),
        ],
    }
}

fn text(method: ComparisonMethod, layout: &DiffLayout) -> String {
    let comparison = comparison(method);
    let files = ["old.data", "new.data"].map(str::to_owned);
    let event = DiffEvent {
        name: "cpu-clock",
        files: &files,
        comparison: &comparison,
        blocks: None,
    };
    let mut out = Vec::new();
    let is_first = true;
    write_diff(&mut out, &event, layout, is_first).expect("memory");
    String::from_utf8(out).expect("text")
}

#[test]
fn columns_and_formulas_are_as_in_perf() {
    let plain = text(ComparisonMethod::AbsoluteDelta, &DiffLayout::default());
    let expected = "\
# Event 'cpu-clock'
#
# Baseline  Delta Abs  Shared Object  Symbol \u{20}
# ........  .........  .............  ........
#
    75.00%    -25.00%  work           [.] leaf
              +50.00%  work           [.] a,b
    25.00%             libc.so.6      [.] gone
";
    assert_eq!(plain, expected);
    let layout = DiffLayout {
        formula: true,
        periods: true,
        quiet: true,
        ..DiffLayout::default()
    };
    let ratio = text(ComparisonMethod::Ratio, &layout);
    // The column of the formula is 70 characters wide.
    let blanks = |count| " ".repeat(count);
    let first = format!(
        "    75.00%           60000        0.833333  {}50000 / 60000           50000  work           [.] leaf",
        blanks(57)
    );
    let second = format!(
        "                         0             N/A  {}50000 / 0           50000  work           [.] a,b",
        blanks(61)
    );
    let lines: Vec<&str> = ratio.lines().collect();
    assert_eq!(lines[..2], [first, second]);
    let weights = ComparisonMethod::WeightedDifference {
        baseline: 2,
        other: 1,
    };
    let weighted = text(weights, &layout);
    assert!(weighted.contains("(50000 * 1) - (60000 * 2)"), "{weighted}");
    assert!(weighted.contains("          -70000  "), "{weighted}");
}

#[test]
fn separated_cells_are_trimmed_and_separators_replaced() {
    let layout = DiffLayout {
        separator: Some(",".to_owned()),
        ..DiffLayout::default()
    };
    // As in perf, only deltas have a percent sign here, not the baseline's shares.
    let expected = "\
# Event 'cpu-clock'
#
# Baseline,Delta Abs,Shared Object,Symbol
75.00,-25.00%,work,[.] leaf
,+50.00%,work,[.] a.b
25.00,,libc.so.6,[.] gone
";
    assert_eq!(text(ComparisonMethod::AbsoluteDelta, &layout), expected);
}

#[test]
fn json_has_null_for_missing_periods_and_values() {
    let comparison = comparison(ComparisonMethod::Ratio);
    let files = ["old.data", "new.data"].map(str::to_owned);
    let event = DiffEvent {
        name: "cpu-clock",
        files: &files,
        comparison: &comparison,
        blocks: None,
    };
    let mut out = Vec::new();
    write_json(&mut out, &files, &[event]).expect("memory");
    let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(
        (&json["version"], &json["compute"]),
        (&1.into(), &"ratio".into())
    );
    let rows = &json["events"][0]["rows"];
    assert_eq!(rows[0]["keys"]["symbol"], "[.] leaf");
    assert_eq!(rows[0]["percent"], serde_json::json!([75.0, 50.0]));
    assert!(
        rows[0]["values"][0]
            .as_f64()
            .is_some_and(|ratio| (ratio - 0.8333).abs() < 0.001)
    );
    assert_eq!(rows[1]["values"], serde_json::json!([null]), "no baseline");
    assert_eq!(rows[2]["periods"], serde_json::json!([20_000, null]));
}
