//! A self-contained SVG in which two clicks select a time range.

use std::fmt::{self, Display};
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::{HeatMap, HeatScale, SECOND};
use crate::text::{Escaped, amount};

const SCRIPT: &str = include_str!("script.js");
const STYLE: &str = include_str!("style.css");

/// Width of the labels left of the cells. All sizes are in pixels.
const LEFT: u64 = 120;
/// Height above the cells: title and selection.
const HEADER_HEIGHT: u64 = 64;
/// Height below the cells: times, and details of the cell under the pointer.
const FOOTER_HEIGHT: u64 = 56;
/// Width of the margin right of the cells.
const RIGHT: u64 = 20;
/// Height of a cell.
const CELL: u64 = 8;
/// Limits of the width of a cell.
const MAX_CELL_WIDTH: u64 = 16;
const MIN_CELL_WIDTH: u64 = 2;
/// Width of all columns, unless the limits of a cell's width make it smaller or larger.
const GRID_WIDTH: u64 = 1120;
/// Distance between the times below the cells, rounded down to whole columns.
const TIME_DISTANCE: u64 = 120;
/// Minimum number of rows with a label. If there are fewer rows, each has a label.
const ROW_LABELS: u32 = 5;

impl HeatMap {
    /// Writes the picture.
    ///
    /// # Errors
    ///
    /// Write errors.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let cell_width = (GRID_WIDTH / self.columns).clamp(MIN_CELL_WIDTH, MAX_CELL_WIDTH);
        self.write_head(cell_width, out)?;
        let cells = self.cells();
        let max_count = cells.iter().map(|(_, count)| *count).max().unwrap_or(1);
        let mut column_totals: FxHashMap<u64, u64> = FxHashMap::default();
        for ((column, _), count) in &cells {
            *column_totals.entry(*column).or_default() += count;
        }
        for ((column, row), count) in cells {
            let x = LEFT + column * cell_width;
            let y = HEADER_HEIGHT + u64::from(self.rows - 1 - row) * CELL;
            // Small counts must be distinguishable from none.
            let heat = (count as f64 / max_count as f64).sqrt();
            let (green, blue) = (225.0 - 205.0 * heat, 210.0 - 200.0 * heat);
            writeln!(
                out,
                "<rect class=\"c\" data-c=\"{column}\" data-r=\"{row}\" x=\"{x}\" y=\"{y}\" width=\"{cell_width}\" \
                 height=\"{CELL}\" fill=\"rgb(255,{green:.0},{blue:.0})\">\
                 <title>{}, {}: {}, {:.1}% of the column</title></rect>",
                Seconds(self.begin(column, row)),
                Row(self, row),
                Escaped(&amount(count, &self.unit)),
                100.0 * count as f64 / column_totals.get(&column).copied().unwrap_or(1) as f64,
            )?;
        }
        writeln!(out, "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>")
    }

    /// Start time of a cell. For [`HeatScale::Offset`], each row is a slot, an equal part of its column's time; for
    /// [`HeatScale::Duration`], whose rows are durations, a cell starts with its column.
    fn begin(&self, column: u64, row: u32) -> u64 {
        let start = self.start + column * self.column_duration;
        match self.scale {
            HeatScale::Offset => start + self.slot() * u64::from(row),
            HeatScale::Duration => start,
        }
    }

    /// Writes everything before the cells. The group of the cells is left open: [`HeatMap::write`] ends it.
    fn write_head(&self, cell_width: u64, out: &mut dyn Write) -> io::Result<()> {
        let (grid_width, grid_height) = (self.columns * cell_width, u64::from(self.rows) * CELL);
        let (width, height) = (
            // At least 640, so that the texts fit even if there are few columns.
            (LEFT + grid_width + RIGHT).max(640),
            HEADER_HEIGHT + grid_height + FOOTER_HEIGHT,
        );
        // The number of selectable time slots of a column, and the duration of a slot: a cell, or the whole column.
        let (slots, slot) = match self.scale {
            HeatScale::Offset => (self.rows, self.slot()),
            HeatScale::Duration => (1, self.column_duration),
        };
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" data-start=\"{}\" data-column=\"{}\" data-slot=\"{slot}\" \
             data-slots=\"{slots}\" data-columns=\"{}\" data-rows=\"{}\" data-left=\"{LEFT}\" data-top=\"{HEADER_HEIGHT}\" data-wide=\"{cell_width}\" \
             data-high=\"{CELL}\">\n<style>{STYLE}</style>\n<rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n\
             <text id=\"title\" x=\"{}\" y=\"24\">{}</text>\n\
             <text id=\"chosen\" x=\"{LEFT}\" y=\"48\">click where a stretch of time begins, and again where it ends</text>\n\
             <rect id=\"field\" x=\"{LEFT}\" y=\"{HEADER_HEIGHT}\" width=\"{grid_width}\" height=\"{grid_height}\"/>",
            self.start,
            self.column_duration,
            self.columns,
            self.rows,
            width / 2,
            Escaped(&self.title),
        )?;
        self.write_scales(cell_width, out)?;
        let foot = height - 12;
        writeln!(
            out,
            "<text id=\"details\" x=\"{LEFT}\" y=\"{foot}\"> </text>\n<g id=\"cells\">"
        )
    }

    fn write_scales(&self, cell_width: u64, out: &mut dyn Write) -> io::Result<()> {
        let step = (self.rows / ROW_LABELS).max(1);
        for row in (0..self.rows).step_by(step as usize) {
            let y = HEADER_HEIGHT + u64::from(self.rows - row) * CELL;
            writeln!(
                out,
                "<text class=\"row\" x=\"{}\" y=\"{y}\">{}</text>",
                LEFT - 8,
                Row(self, row)
            )?;
        }
        let every = (TIME_DISTANCE / cell_width).max(1);
        let y = HEADER_HEIGHT + u64::from(self.rows) * CELL + 16;
        for column in (0..self.columns).step_by(every as usize) {
            writeln!(
                out,
                "<text class=\"column\" x=\"{}\" y=\"{y}\">{}</text>",
                LEFT + column * cell_width,
                // Whole milliseconds: more digits would not fit.
                Seconds(self.begin(column, 0) / MILLISECOND * MILLISECOND)
            )?;
        }
        Ok(())
    }
}

/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds as seconds with the unit, without trailing zeros.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:09}", self.0 / SECOND, self.0 % SECOND);
        write!(f, "{}s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Label of a row: its lower edge.
struct Row<'h>(&'h HeatMap, u32);

impl Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(heat, row) = self;
        let nanoseconds = match heat.scale {
            HeatScale::Offset => heat.slot() * u64::from(*row),
            HeatScale::Duration => heat.edges.get(*row as usize).copied().unwrap_or_default(),
        };
        let (unit, name) = match nanoseconds {
            SECOND.. => (1e9, "s"),
            MILLISECOND.. => (1e6, "ms"),
            1_000.. => (1e3, "us"),
            _ => (1.0, "ns"),
        };
        let text = format!("{:.1}", nanoseconds as f64 / unit);
        write!(f, "{} {name}", text.trim_end_matches(".0"))?;
        match heat.scale == HeatScale::Duration && row + 1 == heat.rows {
            true => f.write_str(" and more"),
            false => Ok(()),
        }
    }
}
