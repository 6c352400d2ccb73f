//! Tests of reports built without a recording.

use std::num::NonZeroUsize;

use rperf_hist::{
    Branch, ColumnSum, GraphForm, Histogram, HistogramRow, NumberField, ReportField, Weights,
    parse_fields,
};

use super::{
    GraphValue, ReportEvent, ReportLayout, write_banner, write_constant_columns, write_event,
    write_lost, write_tip,
};

/// Values of the argument `quiet` of [`text`]: with `true`, the lines that begin with `#` are omitted.
const QUIET: bool = true;
const WITH_HEADINGS: bool = false;

/// In all graphs and rows here, each sample has a period of 10.
fn branch(frames: &[&str], period: u64, branches: Vec<Branch>) -> Branch {
    Branch {
        frames: frames.iter().map(|frame| (*frame).into()).collect(),
        all: ColumnSum {
            period,
            samples: period / 10,
            ..ColumnSum::default()
        },
        own: ColumnSum::default(),
        branches,
    }
}

fn weights(own: u64, total: u64) -> Weights {
    Weights {
        own,
        // A quarter in the kernel, the rest in user space.
        modes: [own / 4, own - own / 4, 0, 0],
        total,
        samples: own / 10,
        ..Weights::default()
    }
}

fn row(own: u64, total: u64, cells: &[&str], graph: Vec<Branch>) -> HistogramRow {
    HistogramRow {
        weights: weights(own, total),
        others: Vec::new(),
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
        chains: total / 10,
        unresolved: cells.last().is_some_and(|cell| cell.contains("0x")),
        graph,
    }
}

/// A histogram of one event. Its totals are constant, whatever `rows` has: percentages are relative to a period of 10,000.
fn histogram(columns: &str, rows: Vec<HistogramRow>) -> Histogram {
    let total = ColumnSum {
        period: 10_000,
        samples: 452,
        ..ColumnSum::default()
    };
    let children = rows.iter().any(|row| row.weights.own != row.weights.total);
    let shares = if children {
        "overhead_children,overhead"
    } else {
        "overhead"
    };
    Histogram {
        events: vec![0],
        totals: vec![total],
        all: total,
        columns: parse_fields(&format!("{shares},{columns}")).expect("known words"),
        children,
        reference_call_graphs: false,
        sort_event: 0,
        rows,
    }
}

fn text(histogram: &Histogram, layout: ReportLayout, quiet: bool) -> String {
    let event = ReportEvent {
        name: "cpu-clock:ppp",
        plural: histogram.events.len() > 1,
        times: None,
        socket: None,
        access_sort_keys: None,
        histogram,
        blocks: None,
    };
    let layout = ReportLayout {
        titles_own_as_self: histogram.children,
        ..layout
    };
    let mut out = Vec::new();
    write_event(&mut out, event, &layout, quiet).expect("writing to memory succeeds");
    String::from_utf8(out).expect("text")
}

/// Returns `expected` without the `~` that mark trailing blanks.
fn without_marks(expected: &str) -> String {
    expected.replace('~', "")
}

/// The callees of `main`: `middle`, which always calls `leaf`, and `other`, which seldom calls `rare`.
fn forks() -> Vec<Branch> {
    let middle = branch(&["middle", "leaf"], 8142, vec![]);
    let deeper = branch(&["rare"], 60, vec![]);
    let other = branch(&["other"], 1858, vec![deeper]);
    vec![middle, other]
}

/// A stem: the frames before the first fork.
#[test]
fn a_stem_of_all_samples_has_no_percentage() {
    let stem = vec![branch(&["start", "main"], 10_000, forks())];
    let rows = vec![row(0, 10_000, &["calc", "[.] main"], stem)];
    let expected = "\
# Samples: 452  of event 'cpu-clock:ppp'
# Event count (approx.): 10000
#
# Children      Self  Command  Symbol  ~
# ........  ........  .......  ........
#
   100.00%     0.00%  calc     [.] main
            |
            ---start
               main
               |          ~
               |--81.42%--middle
               |          leaf
               |          ~
                --18.58%--other
                          |          ~
                           --0.60%--rare


\n";
    assert_eq!(
        text(
            &histogram("comm,symbol", rows),
            ReportLayout::default(),
            WITH_HEADINGS
        ),
        without_marks(expected)
    );
}

#[test]
fn a_partial_single_branch_has_a_percentage() {
    let graph = vec![branch(&["start", "main"], 9956, vec![])];
    let rows = vec![row(9956, 10_000, &["calc"], graph)];
    let expected = [
        "   100.00%    99.56%  calc   ",
        "            |          ",
        "             --99.56%--start",
        "                       main",
        "",
        "",
        "",
        "",
    ];
    let printed = text(&histogram("comm", rows), ReportLayout::default(), QUIET);
    assert_eq!(printed, expected.join("\n"));
}

/// If a row has no symbol, the object and symbol columns have at least perf's minimum widths for such rows.
#[test]
fn cells_are_not_truncated_and_unresolved_rows_widen_columns() {
    let rows = vec![
        row(9000, 9000, &["calc", "a", "[.] leaf"], vec![]),
        row(
            1000,
            1000,
            &["perf-exec", "b", "[k] 0xffffffff81000000"],
            vec![],
        ),
    ];
    let layout = ReportLayout::default();
    let expected = "\
# Samples: 452  of event 'cpu-clock:ppp'
# Event count (approx.): 10000
#
# Overhead       Samples  Command    Shared Object     Symbol                ~
# ........  ............  .........  ................  ......................
#
    90.00%           900  calc       a                 [.] leaf
    10.00%           100  perf-exec  b                 [k] 0xffffffff81000000


";
    assert_eq!(
        text(
            &histogram("sample,comm,dso,symbol", rows),
            layout,
            WITH_HEADINGS
        ),
        without_marks(expected)
    );
}

#[test]
fn names_longer_than_format_widths_widen_their_columns() {
    // `format!` takes widths up to 65,535.
    let name = "n".repeat(70_000);
    let rows = vec![row(10_000, 10_000, &["calc", &name], vec![])];
    let text = text(
        &histogram("comm,sym", rows),
        ReportLayout::default(),
        WITH_HEADINGS,
    );
    let rule = ".".repeat(name.len());
    let title = format!("Symbol{}", " ".repeat(name.len() - 6));
    assert!(text.contains(&format!("  Command  {title}\n")));
    assert!(text.contains(&format!("  {rule}\n")));
    assert!(text.contains(&format!("%  calc     {name}\n")));
}

#[test]
fn limits_omit_rows_branches_and_lines() {
    let stem = vec![branch(&["start", "main"], 10_000, forks())];
    let rows = vec![
        row(0, 10_000, &["calc"], stem),
        // 4.99% is below the minimum.
        row(499, 499, &["rare"], vec![]),
    ];
    let layout = ReportLayout {
        min_percent: 5.0,
        // One line of the stem, and one branch of each node.
        graph_limit: NonZeroUsize::new(1),
        ..ReportLayout::default()
    };
    let printed = text(&histogram("comm", rows), layout, QUIET);
    assert!(!printed.contains("rare"), "{printed}");
    assert!(printed.contains("---start\n"), "{printed}");
    assert!(!printed.contains("               main\n"), "{printed}");
    assert!(printed.contains("|--81.42%--middle"), "{printed}");
    assert!(!printed.contains("other"), "{printed}");
}

#[test]
fn a_stem_of_the_rows_own_symbol_is_not_repeated() {
    let layout = ReportLayout {
        skips_first_frame: true,
        ..ReportLayout::default()
    };
    let graph = |frames: &[&str]| vec![branch(frames, 10_000, vec![])];
    let rows = vec![
        row(10_000, 10_000, &["[.] leaf"], graph(&["leaf"])),
        row(0, 10_000, &["[.] main"], graph(&["main", "leaf"])),
    ];
    let expected = [
        "   100.00%   100.00%  [.] leaf",
        "   100.00%     0.00%  [.] main",
        "            |",
        "            ---leaf",
        "",
        "",
        "",
        "",
    ];
    let printed = text(&histogram("symbol", rows), layout, QUIET);
    assert_eq!(printed, expected.join("\n"));
}

#[test]
fn fractal_graphs_show_the_remainder() {
    let stem = branch(&["start", "main"], 10_000, forks());
    let rows = vec![row(0, 10_000, &["calc"], vec![stem])];
    let layout = ReportLayout {
        graph_form: GraphForm::Fractal,
        graph_limit: NonZeroUsize::new(2),
        graph_value: GraphValue::Count,
        ..ReportLayout::default()
    };
    let expected = "   100.00%     0.00%  calc   ~
            |
            ---start
               main
               |          ~
               |--814--middle
               |          leaf
               |          ~
                --185--other
                          |          ~
                          |--6--rare
                           --179--[...]


\n";
    let printed = text(&histogram("comm", rows), layout, QUIET);
    assert_eq!(printed, without_marks(expected));
}

#[test]
fn chains_are_listed_one_by_one() {
    // `own` and `all` differ, to show which is printed: `all` in flat lists, `own` in folded ones.
    let chain = Branch {
        own: ColumnSum {
            period: 2500,
            samples: 250,
            ..ColumnSum::default()
        },
        ..branch(&["main", "leaf"], 5000, vec![])
    };
    let rows = || vec![row(10_000, 10_000, &["calc"], vec![chain.clone()])];
    let report = |layout| text(&histogram("comm", rows()), layout, QUIET);
    let flat = ReportLayout {
        graph_form: GraphForm::Flat,
        ..ReportLayout::default()
    };
    let expected = "   100.00%  calc   ~\n           50.00%\n                main\n                leaf\n\n\n\n";
    assert_eq!(report(flat), without_marks(expected));
    let folded = ReportLayout {
        graph_form: GraphForm::Folded,
        graph_value: GraphValue::Period,
        ..ReportLayout::default()
    };
    assert_eq!(
        report(folded),
        without_marks("   100.00%  calc   ~\n2500 main;leaf\n\n\n")
    );
}

/// Returns a histogram of a group of two events, with two rows.
fn group_histogram() -> Histogram {
    let with_second_event = |row: HistogramRow, own, total| HistogramRow {
        others: vec![weights(own, total)],
        ..row
    };
    let rows = vec![
        with_second_event(row(9000, 9000, &["calc", "a,b"], vec![]), 0, 0),
        with_second_event(row(1000, 1000, &["perf-exec", "libc.so.6"], vec![]), 20, 20),
    ];
    let mut histogram = histogram("sample,comm,dso", rows);
    histogram.events.push(1);
    histogram.totals.push(ColumnSum {
        period: 40,
        samples: 4,
        ..ColumnSum::default()
    });
    histogram
}

#[test]
fn the_events_of_a_group_are_side_by_side() {
    let expected = "\
# Samples: 456  of events 'cpu-clock:ppp'
# Event count (approx.): 10040
#
#         Overhead                   Samples  Command    Shared Object
# ................  ........................  .........  .............
#
    90.00%   0.00%           900           0  calc       a,b          ~
    10.00%  50.00%           100           2  perf-exec  libc.so.6    ~


";
    assert_eq!(
        text(&group_histogram(), ReportLayout::default(), WITH_HEADINGS),
        without_marks(expected)
    );
}

#[test]
fn separated_cells_are_not_padded_and_separators_in_them_become_dots() {
    let layout = ReportLayout {
        separator: Some(",".to_owned()),
        ..ReportLayout::default()
    };
    let expected = "\
# Samples: 456  of events 'cpu-clock:ppp'
# Event count (approx.): 10040
#
# Overhead,Samples,Command,Shared Object
90.00% 0.00%,900 0,calc,a.b
10.00% 50.00%,100 2,perf-exec,libc.so.6


";
    assert_eq!(text(&group_histogram(), layout, WITH_HEADINGS), expected);
}

#[test]
fn explicit_widths_truncate_cells_and_titles() {
    let rows = vec![row(9000, 9000, &["calc", "library.so"], vec![])];
    let layout = ReportLayout {
        // 0: an automatic width, also used for the last column, which has no number here.
        widths: vec![10, 0, 3, 4],
        ..ReportLayout::default()
    };
    let mut histogram = histogram("overhead_us,comm,dso", rows);
    histogram
        .columns
        .push(ReportField::Number(NumberField::Period));
    let expected = "\
# Samples: 452  of event 'cpu-clock:ppp'
# Event count (approx.): 10000
#
#   Overhead       usr  Com  Shar        Period
# ..........  ........  ...  ....  ............
#
      90.00%    67.50%  cal  libr          9000


";
    assert_eq!(text(&histogram, layout, WITH_HEADINGS), expected);
}

#[test]
fn columns_with_a_single_value_are_lines_above_the_table() {
    let mut out = Vec::new();
    write_constant_columns(&mut out, &[("comm", "calc"), ("dso", "libc.so.6")])
        .expect("writing to memory succeeds");
    assert_eq!(out, b"# comm: calc\n# dso: libc.so.6\n");
}

#[test]
fn banner_losses_and_tip_are_comment_lines() {
    let mut out = Vec::new();
    write_banner(&mut out).expect("writing to memory succeeds");
    write_lost(&mut out, 7).expect("writing to memory succeeds");
    write_tip(&mut out, "# (Tip: read it)").expect("writing to memory succeeds");
    let expected = "\
# To display the perf.data header info, please use --header/--header-only options.
#
#
# Total Lost Samples: 7
#
#
# (Tip: read it)
#
";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}
