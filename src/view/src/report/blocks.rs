//! The table of `--total-cycles`: basic blocks between branches.

use std::io::{self, Write};

use rperf_hist::BlockTable;

use super::table::ReportLayout;
use crate::percent::Percent;
use crate::table::{Cell, Column, Table, TextStyle};

/// Titles, and widths in characters.
const COLUMNS: [(&str, usize); 6] = [
    ("Sampled Cycles%", 15),
    ("Sampled Cycles", 14),
    ("Avg Cycles%", 11),
    ("Avg Cycles", 10),
    ("[Program Block Range]", 70),
    ("Shared Object", 20),
];

/// Writes the titles, unless `quiet`, and the blocks with at least the minimum share of all cycles (`min_percent`).
pub(super) fn write(
    out: &mut dyn Write,
    blocks: &BlockTable,
    layout: &ReportLayout,
    quiet: bool,
) -> io::Result<()> {
    let table = table(blocks, layout.min_percent);
    if let Some(separator) = &layout.separator {
        let with_titles = !quiet;
        return table.write_separated(out, separator, with_titles);
    }
    let style = TextStyle {
        rule: true,
        colors: layout.colors,
        ..TextStyle::PLAIN
    };
    match quiet {
        true => table.write_rows(out, style),
        false => table.write_text(out, style),
    }
}

fn table(blocks: &BlockTable, min_percent: f64) -> Table {
    let mut table = Table::new(COLUMNS.map(|(title, width)| Column::right(title).fixed(width)));
    let (all_cycles, sum_of_averages) = (blocks.total_cycles, blocks.sum_of_averages());
    for block in &blocks.blocks {
        if Percent::of(block.cycles, all_cycles).below(min_percent) {
            continue;
        }
        let [start, end] = &block.range;
        table.push([
            Cell::share(block.cycles, all_cycles),
            Cell::count(block.cycles, short_cycles(block.cycles)),
            Cell::share(block.average(), sum_of_averages),
            Cell::count(block.average(), short_cycles(block.average())),
            format!("[{start} -> {end}]").into(),
            block.object.clone().into(),
        ]);
    }
    table
}

/// A number of cycles, from 1000 on in thousands or millions.
fn short_cycles(cycles: u64) -> String {
    match cycles {
        0..1_000 => cycles.to_string(),
        1_000..1_000_000 => format!("{:.1}K", cycles as f64 / 1e3),
        _ => format!("{:.1}M", cycles as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_hist::Block;

    fn text(layout: &ReportLayout) -> String {
        let block = |cycles, executions, start: &str, end: &str| Block {
            cycles,
            executions,
            range: [start.to_owned(), end.to_owned()],
            object: "calc".to_owned(),
            ..Block::default()
        };
        let table = BlockTable {
            blocks: vec![
                block(1_500, 10, "calc.c:3", "calc.c:9"),
                block(500, 10, "leaf+0", "leaf+8"),
            ],
            total_cycles: 4_000,
        };
        let mut out = Vec::new();
        let quiet = false;
        write(&mut out, &table, layout, quiet).expect("writing to memory succeeds");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn shares_are_of_all_cycles_and_of_the_averages() {
        let report = text(&ReportLayout::default());
        // The titles, the rule below them and a line `#` are skipped.
        let lines: Vec<&str> = report.lines().skip(3).collect();
        assert_eq!(
            lines,
            [
                format!(
                    "           37.50%            1.5K       75.00%         150  {:>70}  {:>20}",
                    "[calc.c:3 -> calc.c:9]", "calc"
                ),
                format!(
                    "           12.50%             500       25.00%          50  {:>70}  {:>20}",
                    "[leaf+0 -> leaf+8]", "calc"
                ),
            ]
        );
    }

    #[test]
    fn separated_cells_are_not_padded() {
        let layout = ReportLayout {
            separator: Some(",".to_owned()),
            min_percent: 20.0,
            ..ReportLayout::default()
        };
        assert_eq!(
            text(&layout),
            "# Sampled Cycles%,Sampled Cycles,Avg Cycles%,Avg Cycles,[Program Block Range],Shared Object\n\
             37.50%,1.5K,75.00%,150,[calc.c:3 -> calc.c:9],calc\n"
        );
    }
}
