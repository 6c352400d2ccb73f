//! Reports built by hand, so that the text is seen without a recording.

use std::num::NonZeroUsize;

use rperf_hist::{Branch, GraphForm, Histogram, Row, Sum, parse_keys};

use super::{BranchValue, Event, Layout, write_banner, write_event, write_lost, write_tip};

fn branch(frames: &[&str], period: u64, branches: Vec<Branch>) -> Branch {
    Branch {
        frames: frames.iter().map(|frame| (*frame).into()).collect(),
        all: Sum {
            period,
            samples: period / 10,
        },
        own: Sum::default(),
        branches,
    }
}

fn row(own: u64, total: u64, cells: &[&str], graph: Vec<Branch>) -> Row {
    Row {
        own,
        total,
        samples: own / 10,
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
        chains: total / 10,
        unresolved: cells.last().is_some_and(|cell| cell.contains("0x")),
        graph,
    }
}

fn histogram(sort: &str, rows: Vec<Row>) -> Histogram {
    Histogram {
        keys: parse_keys(sort).expect("known keys"),
        samples: 452,
        period: 10_000,
        children: rows.iter().any(|row| row.own != row.total),
        rows,
    }
}

fn text(histogram: &Histogram, layout: Layout, quiet: bool) -> String {
    let name = "cpu-clock:ppp";
    let mut out = Vec::new();
    write_event(&mut out, Event { name, histogram }, &layout, quiet).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// `expected` with the blanks at the ends of lines, which a `~` stands behind.
fn marked(expected: &str) -> String {
    expected.replace('~', "")
}

/// `main` calls `middle` and `other`, which both call `leaf`.
fn forks() -> Vec<Branch> {
    let middle = branch(&["middle", "leaf"], 8142, vec![]);
    let deeper = branch(&["rare"], 60, vec![]);
    let other = branch(&["other"], 1858, vec![deeper]);
    vec![middle, other]
}

#[test]
fn a_stem_stands_alone_and_forks_have_shares() {
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
        text(&histogram("comm,symbol", rows), Layout::default(), false),
        marked(expected)
    );
}

#[test]
fn a_branch_that_misses_samples_has_a_share_even_alone() {
    let alone = vec![branch(&["start", "main"], 9956, vec![])];
    let rows = vec![row(9956, 10_000, &["calc"], alone)];
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
    let printed = text(&histogram("comm", rows), Layout::default(), true);
    assert_eq!(printed, expected.join("\n"));
}

#[test]
fn no_cell_is_cut_and_unresolved_rows_widen_their_columns() {
    let rows = vec![
        row(9000, 9000, &["calc", "a", "[.] leaf"], vec![]),
        row(
            1000,
            1000,
            &["perf-exec", "b", "[k] 0xffffffff81000000"],
            vec![],
        ),
    ];
    let layout = Layout {
        samples: true,
        ..Layout::default()
    };
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
        text(&histogram("comm,dso,symbol", rows), layout, false),
        marked(expected)
    );
}

#[test]
fn limits_leave_out_rows_branches_and_lines() {
    let stem = vec![branch(&["start", "main"], 10_000, forks())];
    let rows = vec![
        row(0, 10_000, &["calc"], stem),
        row(499, 499, &["rare"], vec![]),
    ];
    let layout = Layout {
        min_percent: 5.0,
        graph_limit: NonZeroUsize::new(1),
        ..Layout::default()
    };
    let printed = text(&histogram("comm", rows), layout, true);
    assert!(!printed.contains("rare"), "{printed}");
    assert!(printed.contains("---start\n"), "{printed}");
    assert!(!printed.contains("               main\n"), "{printed}");
    assert!(printed.contains("|--81.42%--middle"), "{printed}");
    assert!(!printed.contains("other"), "{printed}");
}

#[test]
fn a_stem_of_the_rows_own_symbol_is_not_repeated() {
    let layout = Layout {
        skip_symbol: true,
        ..Layout::default()
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
    let printed = text(&histogram("symbol", rows), layout, true);
    assert_eq!(printed, expected.join("\n"));
}

#[test]
fn fractal_graphs_name_what_is_left_of_a_fork() {
    let stem = branch(&["start", "main"], 10_000, forks());
    let rows = vec![row(0, 10_000, &["calc"], vec![stem])];
    let layout = Layout {
        graph_form: GraphForm::Fractal,
        graph_limit: NonZeroUsize::new(2),
        graph_value: BranchValue::Count,
        ..Layout::default()
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
    let printed = text(&histogram("comm", rows), layout, true);
    assert_eq!(printed, marked(expected));
}

#[test]
fn chains_are_listed_one_by_one() {
    let chain = Branch {
        own: Sum {
            period: 2500,
            samples: 250,
        },
        ..branch(&["main", "leaf"], 5000, vec![])
    };
    let rows = || vec![row(10_000, 10_000, &["calc"], vec![chain.clone()])];
    let shown = |layout| text(&histogram("comm", rows()), layout, true);
    let flat = Layout {
        graph_form: GraphForm::Flat,
        ..Layout::default()
    };
    let expected = "   100.00%  calc   ~\n           50.00%\n                main\n                leaf\n\n\n\n";
    assert_eq!(shown(flat), marked(expected));
    let folded = Layout {
        graph_form: GraphForm::Folded,
        graph_value: BranchValue::Period,
        ..Layout::default()
    };
    assert_eq!(
        shown(folded),
        marked("   100.00%  calc   ~\n2500 main;leaf\n\n\n")
    );
}

#[test]
fn the_frame_of_a_report() {
    let mut out = Vec::new();
    write_banner(&mut out).expect("memory takes it");
    write_lost(&mut out, 7).expect("memory takes it");
    write_tip(&mut out, "read it").expect("memory takes it");
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
