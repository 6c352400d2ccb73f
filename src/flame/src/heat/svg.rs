//! The picture: an SVG that needs nothing beside it, in which a click and another one choose a stretch of time.

use std::fmt::{self, Display};
use std::io::{self, Write};

use super::{Heat, Scale};
use crate::text::{Escaped, Grouped};

const SCRIPT: &str = include_str!("script.js");
const STYLE: &str = include_str!("style.css");

/// Left of the cells, in pixels: the scale.
const LEFT: u64 = 120;
/// Above them: title and what is chosen.
const HEAD: u64 = 64;
/// Below them: times, and what the pointer is on.
const FOOT: u64 = 56;
const RIGHT: u64 = 20;
/// Height of a cell.
const CELL: u64 = 8;
/// Cells are this wide where there is room.
const WIDEST: u64 = 16;
const NARROWEST: u64 = 2;
/// Pixels for all columns.
const ROOM: u64 = 1120;
/// Times below the picture are at least so far apart.
const LABEL: u64 = 120;

impl Heat {
    /// Writes the picture.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let wide = (ROOM / self.columns).clamp(NARROWEST, WIDEST);
        self.write_head(wide, out)?;
        let cells = self.cells();
        let most = cells.iter().map(|(_, count)| *count).max().unwrap_or(1);
        for ((column, row), count) in cells {
            let x = LEFT + column * wide;
            let y = HEAD + u64::from(self.rows - 1 - row) * CELL;
            // The eye tells few from none rather than many from more.
            let heat = (count as f64 / most as f64).sqrt();
            let (green, blue) = (225.0 - 205.0 * heat, 210.0 - 200.0 * heat);
            writeln!(
                out,
                "<rect class=\"c\" data-c=\"{column}\" data-r=\"{row}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{CELL}\" \
                 fill=\"rgb(255,{green:.0},{blue:.0})\"><title>{}, {}: {} {}</title></rect>",
                Seconds(self.begin(column, row)),
                Row(self, row),
                Grouped(count),
                Escaped(&self.unit),
            )?;
        }
        writeln!(out, "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>")
    }

    /// When a cell begins.
    fn begin(&self, column: u64, row: u32) -> u64 {
        let start = self.start + column * self.column;
        match self.scale {
            Scale::Offset => start + self.slot() * u64::from(row),
            Scale::Duration(_) => start,
        }
    }

    fn write_head(&self, wide: u64, out: &mut dyn Write) -> io::Result<()> {
        let (high, across) = (u64::from(self.rows) * CELL, self.columns * wide);
        let (width, height) = ((LEFT + across + RIGHT).max(640), HEAD + high + FOOT);
        // What a click chooses: a cell, or a whole column.
        let (slots, slot) = match self.scale {
            Scale::Offset => (self.rows, self.slot()),
            Scale::Duration(_) => (1, self.column),
        };
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" data-start=\"{}\" data-slot=\"{slot}\" data-slots=\"{slots}\" \
             data-columns=\"{}\" data-rows=\"{}\" data-left=\"{LEFT}\" data-top=\"{HEAD}\" data-wide=\"{wide}\" \
             data-high=\"{CELL}\">\n<style>{STYLE}</style>\n<rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n\
             <text id=\"title\" x=\"{}\" y=\"24\">{}</text>\n\
             <text id=\"chosen\" x=\"{LEFT}\" y=\"48\">click where a stretch of time begins, and again where it ends</text>\n\
             <rect id=\"field\" x=\"{LEFT}\" y=\"{HEAD}\" width=\"{across}\" height=\"{high}\"/>",
            self.start,
            self.columns,
            self.rows,
            width / 2,
            Escaped(&self.title),
        )?;
        self.write_scales(wide, out)?;
        let foot = HEAD + high + FOOT - 12;
        writeln!(
            out,
            "<text id=\"details\" x=\"{LEFT}\" y=\"{foot}\"> </text>\n<g id=\"cells\">"
        )
    }

    fn write_scales(&self, wide: u64, out: &mut dyn Write) -> io::Result<()> {
        let step = (self.rows / 5).max(1);
        for row in (0..self.rows).step_by(step as usize) {
            let y = HEAD + u64::from(self.rows - row) * CELL;
            writeln!(
                out,
                "<text class=\"row\" x=\"{}\" y=\"{y}\">{}</text>",
                LEFT - 8,
                Row(self, row)
            )?;
        }
        let every = (LABEL / wide).max(1);
        let y = HEAD + u64::from(self.rows) * CELL + 16;
        for column in (0..self.columns).step_by(every as usize) {
            writeln!(
                out,
                "<text class=\"column\" x=\"{}\" y=\"{y}\">{}</text>",
                LEFT + column * wide,
                // As many digits as there is room for.
                Seconds(self.begin(column, 0) / MILLISECOND * MILLISECOND)
            )?;
        }
        Ok(())
    }
}

/// In nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds as `--time` takes them, without zeros at the end.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{}s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Where a row begins.
struct Row<'h>(&'h Heat, u32);

impl Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(heat, row) = self;
        let nanoseconds = match heat.scale {
            Scale::Offset => heat.slot() * u64::from(*row),
            Scale::Duration(each) => each * u64::from(*row),
        };
        let (unit, name) = match nanoseconds {
            1_000_000_000.. => (1e9, "s"),
            1_000_000.. => (1e6, "ms"),
            1_000.. => (1e3, "us"),
            _ => (1.0, "ns"),
        };
        if matches!(heat.scale, Scale::Duration(_)) && row + 1 == heat.rows {
            f.write_str("from ")?;
        }
        let text = format!("{:.1}", nanoseconds as f64 / unit);
        write!(f, "{} {name}", text.trim_end_matches(".0"))
    }
}
