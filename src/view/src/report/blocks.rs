//! The table of `--total-cycles`: stretches of code between branches.

use std::io::{self, Write};

use rperf_hist::{Block, BlockTable};

use super::table::Layout;
use crate::percent::Percent;
use crate::terminal::Sgr;

/// Titles and widths. All cells stand on the right.
const COLUMNS: [(&str, usize); 6] = [
    ("Sampled Cycles%", 15),
    ("Sampled Cycles", 14),
    ("Avg Cycles%", 11),
    ("Avg Cycles", 10),
    ("[Program Block Range]", 70),
    ("Shared Object", 20),
];

/// Writes titles and rule, unless `quiet`, and the stretches.
pub(super) fn write(
    out: &mut dyn Write,
    table: &BlockTable,
    layout: &Layout,
    quiet: bool,
) -> io::Result<()> {
    if !quiet {
        write_titles(out, layout)?;
    }
    let average = table.average();
    for block in &table.blocks {
        let share = Percent::of(block.cycles, table.cycles);
        if share.below(layout.min_percent) {
            continue;
        }
        let own = Percent::of(block.average(), average);
        write_block(out, block, [share, own], layout)?;
    }
    Ok(())
}

fn write_titles(out: &mut dyn Write, layout: &Layout) -> io::Result<()> {
    let titles = COLUMNS.map(|(title, _)| title);
    if let Some(separator) = &layout.separator {
        return writeln!(out, "# {}", titles.join(separator));
    }
    let padded = COLUMNS.map(|(title, width)| format!("{title:>width$}"));
    let rules = COLUMNS.map(|(_, width)| ".".repeat(width));
    writeln!(out, "# {}\n# {}\n#", padded.join("  "), rules.join("  "))
}

fn write_block(
    out: &mut dyn Write,
    block: &Block,
    shares: [Percent; 2],
    layout: &Layout,
) -> io::Result<()> {
    let [start, end] = &block.range;
    let [share, own] = shares;
    let cells = [
        (share.to_string(), Some(share)),
        (cut(block.cycles), None),
        (own.to_string(), Some(own)),
        (cut(block.average()), None),
        (format!("[{start} -> {end}]"), None),
        (block.object.clone(), None),
    ];
    if let Some(separator) = &layout.separator {
        let cells = cells.map(|(text, _)| match separator.as_str() {
            "" => text,
            separator => text.replace(separator, "."),
        });
        return writeln!(out, "{}", cells.join(separator));
    }
    for ((text, share), (_, width)) in cells.iter().zip(COLUMNS) {
        let paint = |share: Percent| share.paint(layout.colors);
        let (begin, end) = share.map_or((Sgr::NONE, Sgr::NONE), paint);
        write!(out, "  {begin}{text:>width$}{end}")?;
    }
    out.write_all(b"\n")
}

/// A number of cycles in thousands or millions.
fn cut(cycles: u64) -> String {
    match cycles {
        0..1_000 => cycles.to_string(),
        1_000..1_000_000 => format!("{:.1}K", cycles as f64 / 1e3),
        _ => format!("{:.1}M", cycles as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(layout: &Layout) -> String {
        let block = |cycles, times, start: &str, end: &str| Block {
            cycles,
            times,
            range: [start.to_owned(), end.to_owned()],
            object: "calc".to_owned(),
        };
        let table = BlockTable {
            blocks: vec![
                block(1_500, 10, "calc.c:3", "calc.c:9"),
                block(500, 10, "leaf+0", "leaf+8"),
            ],
            cycles: 4_000,
        };
        let mut out = Vec::new();
        write(&mut out, &table, layout, false).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn shares_are_of_all_cycles_and_of_the_averages() {
        let shown = text(&Layout::default());
        let lines: Vec<&str> = shown.lines().skip(3).collect();
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
        let layout = Layout {
            separator: Some(",".to_owned()),
            min_percent: 20.0,
            ..Layout::default()
        };
        assert_eq!(
            text(&layout),
            "# Sampled Cycles%,Sampled Cycles,Avg Cycles%,Avg Cycles,[Program Block Range],Shared Object\n\
             37.50%,1.5K,75.00%,150,[calc.c:3 -> calc.c:9],calc\n"
        );
    }
}
