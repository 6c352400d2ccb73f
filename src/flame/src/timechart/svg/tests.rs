//! Tests of the text of the picture.

use super::*;
use crate::timechart::{ChartArrow, ChartGap};

/// A box from the bottom of its row up to `high` percent of the row's height. Below 100 percent, it is one of several boxes with
/// the same times ([`ChartBox::is_merged`]).
fn item(from: u64, to: u64, high: u8, paint: Paint, name: Option<u32>) -> ChartBox {
    ChartBox {
        from,
        to,
        low: 0,
        high,
        paint,
        is_merged: high < 100,
        name,
    }
}

fn row(kind: RowKind, label: &str, boxes: Vec<ChartBox>) -> ChartRow {
    ChartRow {
        kind,
        label: label.to_owned(),
        details: format!("about {label}"),
        weight: 7,
        names: vec!["a&b:7".to_owned()],
        boxes,
        line: Vec::new(),
    }
}

/// A CPU and two tasks, over [`UNITS`] nanoseconds, so that a unit of the drawing is a nanosecond.
fn chart() -> TimeChart {
    let cpu_boxes = vec![
        item(1_000, 1_000 + (UNITS >> 1), 100, Paint::Task(1), Some(0)),
        item(
            1_000 + (UNITS >> 1),
            1_010 + (UNITS >> 1),
            50,
            Paint::Running,
            None,
        ),
    ];
    let task_boxes = vec![
        item(1_000, 1_100, 100, Paint::Running, None),
        item(1_100, 1_300, 100, Paint::Waiting, None),
        item(1_300, 1_301, 100, Paint::Running, None),
    ];
    TimeChart {
        title: "a <title>".to_owned(),
        notes: vec!["3 records were lost".to_owned()],
        start: 1_000,
        end: 1_000 + UNITS,
        width: Some(1000),
        rows: vec![
            ChartRow {
                line: vec![(1_000, 50), (2_000, 100)],
                ..row(RowKind::Cpu, "CPU 0", cpu_boxes)
            },
            row(RowKind::Task, "a&b:7 (1 ms)", task_boxes),
            row(RowKind::Task, "\"c\":8", Vec::new()),
        ],
        arrows: vec![
            ChartArrow {
                time: 1_300,
                from: 2,
                to: 1,
            },
            // Not drawn: there is no row 77.
            ChartArrow {
                time: 9,
                from: 2,
                to: 77,
            },
        ],
        gaps: vec![ChartGap {
            from: 1_500,
            to: 1_600,
            row: Some(0),
            name: "3 records of CPU 0 were lost".to_owned(),
        }],
    }
}

fn svg_of(chart: &TimeChart) -> String {
    let mut out = Vec::new();
    chart
        .write_svg(&mut out)
        .expect("writing to memory succeeds");
    String::from_utf8(out).expect("text")
}

#[track_caller]
fn assert_has(svg: &str, part: &str) {
    assert!(svg.contains(part), "no {part} in {svg}");
}

#[test]
fn boxes_of_one_colour_are_one_path() {
    let svg = svg_of(&chart());
    // Paths are relative to their row. The row of the CPU is 26 pixels high.
    let task_path =
        "<path class=\"ru t1\" d=\"M0 0h2097152v26h-2097152z\"><title>a&amp;b:7</title></path>";
    assert_has(&svg, task_path);
    assert_has(&svg, "<path class=\"ru m\" d=\"M2097152 13h10v13h-10z\"/>");
    assert_has(
        &svg,
        "<path class=\"ru\" d=\"M0 0h100v15h-100zM300 0h1v15h-1z\"/>",
    );
    assert_has(&svg, "<path class=\"wa\" d=\"M100 0h200v15h-200z\"/>");
    assert_has(&svg, "<path class=\"freq\" d=\"M0 13H1000V0H4194304\"/>");
    // The row of the CPU is below title, note, legend, times and heading.
    assert_has(
        &svg,
        "<g class=\"row box\" transform=\"translate(0,110)\" data-y=\"110\" data-h=\"26\" data-w=\"7\" data-n=\"CPU 0\">",
    );
    assert_has(&svg, "data-n=\"&quot;c&quot;:8\"");
}

#[test]
fn labels_notes_legend_and_gaps_are_drawn() {
    let svg = svg_of(&chart());
    assert_has(&svg, ">a &lt;title&gt;</text>");
    assert_has(&svg, ">3 records were lost</text>");
    assert_has(&svg, ">CPU 0<title>about CPU 0</title></text>");
    assert_has(&svg, "<title>3 records of CPU 0 were lost</title>");
    assert_has(&svg, ">waiting for a CPU</text>");
    // The legend has only the colours of boxes in the chart.
    assert!(!svg.contains(">sleeping</text>"), "{svg}");
    // The box is wide enough for its name.
    assert_has(
        &svg,
        "<text class=\"inner\" x=\"233.0\" y=\"127\">a&amp;b:7</text>",
    );
    assert_has(
        &svg,
        "<title>&quot;c&quot;:8 wakes a&amp;b:7 (1 ms)</title>",
    );
    assert_eq!(svg.matches("class=\"arrow\"").count(), 1);
}

#[test]
fn a_page_needs_no_other_file() {
    let mut out = Vec::new();
    chart()
        .write_html(&mut out)
        .expect("writing to memory succeeds");
    let page = String::from_utf8(out).expect("text");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    // The beginning of the address of SVG's DTD. The addresses of namespaces are not loaded.
    assert!(!page.contains("http://www.w3.org/Graphics") && !page.contains("src="));
}

#[test]
fn a_chart_without_rows_is_a_complete_picture() {
    let svg = svg_of(&TimeChart::default());
    assert!(svg.ends_with("</svg>\n"), "{svg}");
}

#[test]
fn a_box_takes_few_bytes() {
    let chart_of_boxes = |count: u64| {
        let boxes = (0..count).map(|at| item(at * 4, at * 4 + 3, 40, Paint::Running, None));
        TimeChart {
            end: count * 4,
            rows: vec![row(RowKind::Task, "x", boxes.collect())],
            ..TimeChart::default()
        }
    };
    let sizes = [1_000, 21_000].map(|count| svg_of(&chart_of_boxes(count)).len());
    // A box is a part of a path, such as `M4194104 9h149v6h-149z` (22 bytes); an element `rect` takes more than 40 bytes. The
    // limit is between these.
    assert!(sizes[1] - sizes[0] < 20_000 * 36, "{sizes:?}");
}

#[test]
fn steps_are_round_and_times_have_the_decimals_of_their_step() {
    for (span, most, step) in [
        (10_000_000_000, 10.0, 1_000_000_000),
        (10_000_000_001, 10.0, 2_000_000_000),
        (3_300_000, 8.0, 500_000),
        (1, 10.0, 1),
    ] {
        assert_eq!(tick_step(span, most), step);
    }
    let text = |time, step| Seconds { time, step }.to_string();
    assert_eq!(text(12_500_000_000, 500_000_000), "12.5 s");
    assert_eq!(text(12_000_000_000, 1_000_000_000), "12 s");
    assert_eq!(text(1_000_000_007, 1), "1.000000007 s");
    // At most 0 marks is taken as at most 1. The step for the longest span does not overflow.
    assert!(tick_step(u64::MAX, 0.0) >= u64::MAX / 2);
}
