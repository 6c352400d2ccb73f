//! A self-contained SVG whose script zooms, searches and shows details.
//!
//! The boxes of a row with the same `PathKey` are drawn by one path, so a box takes some 20 bytes. The script reads
//! the paths.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use super::{ChartBox, ChartRow, Paint, RowKind, TimeChart};
use crate::text::Escaped;

const SCRIPT: &str = include_str!("script.js");
const STYLE: &str = include_str!("style.css");

/// Width of a picture that fits its window, until the script runs.
const DEFAULT_WIDTH: u32 = 1200;
const MIN_WIDTH: u32 = 400;
/// Width of the labels left of the rows, in pixels, as are all sizes unless noted.
const LEFT: u32 = 230;
/// Width of the margin right of the rows.
const RIGHT: u32 = 12;
/// Height of the title and the buttons.
const TITLE_HEIGHT: u32 = 34;
/// Height of a note, and of the legend.
const LINE: u32 = 18;
/// Height of the times above the rows.
const AXIS: u32 = 20;
/// Height of the heading of a section.
const HEADING: u32 = 20;
/// Distance between rows.
const SPACE: u32 = 3;
/// Height below the rows.
const FOOTER: u32 = 16;
/// Width of the search field.
const SEARCH_WIDTH: u32 = 180;
/// Width of the rows in horizontal units. Browsers may store coordinates as `f32`, which are exact for integers up to `1 << 24`.
const UNITS: u64 = 1 << 22;
/// Width of a character of a label.
const LABEL_CHARACTER: f64 = 6.65;
/// Width of a character within a box.
const INNER_CHARACTER: f64 = 6.05;
/// Minimum distance between the times above the rows.
const TICK_DISTANCE: f64 = 110.0;
/// Minimum distance of a time from the right end of the rows, as room for its text.
const TICK_WIDTH: f64 = 90.0;

impl TimeChart {
    /// Writes the picture.
    ///
    /// # Errors
    ///
    /// Write errors.
    pub fn write_svg(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        ChartWriter::new(self).write(out)
    }

    /// Writes an HTML page with the picture. It needs no other file.
    ///
    /// # Errors
    ///
    /// Write errors.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "<!DOCTYPE html>\n<html>\n<head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\
             <title>{}</title></head>\n<body style=\"margin:0\">",
            Escaped(&self.title)
        )?;
        ChartWriter::new(self).write(out)?;
        out.write_all(b"</body>\n</html>\n")
    }
}

/// Writes a picture with this layout; positions and sizes are in pixels.
struct ChartWriter<'c> {
    chart: &'c TimeChart,
    width: u32,
    height: u32,
    /// The top of the first section, which begins with its heading.
    top: u32,
    /// The top of each row.
    tops: Vec<u32>,
    /// Colours in the legend. Tasks have several colours, of which the legend shows one.
    legend: Vec<Paint>,
}

/// Returns the height of a row.
fn row_height(row: &ChartRow) -> u32 {
    match row.kind {
        RowKind::Cpu => 26,
        RowKind::Task => 15,
        RowKind::Calls => 22,
    }
}

impl<'c> ChartWriter<'c> {
    fn new(chart: &'c TimeChart) -> Self {
        let notes = u32::try_from(chart.notes.len()).unwrap_or_default();
        let mut y = TITLE_HEIGHT + LINE * (notes + 1) + AXIS;
        let top = y;
        let mut tops = Vec::new();
        let mut section = None;
        for row in &chart.rows {
            if section != Some(row.kind) {
                section = Some(row.kind);
                y += HEADING;
            }
            tops.push(y);
            y += row_height(row) + SPACE;
        }
        let boxes = chart.rows.iter().flat_map(|row| &row.boxes);
        let mut legend: Vec<Paint> = boxes.map(|item| item.paint.legend()).collect();
        legend.sort_unstable();
        legend.dedup();
        Self {
            chart,
            width: chart.width.unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH),
            height: y + FOOTER,
            top,
            tops,
            legend,
        }
    }

    fn span(&self) -> u64 {
        self.chart.end.saturating_sub(self.chart.start).max(1)
    }

    /// The width of the rows, in pixels.
    fn rows_width(&self) -> u32 {
        self.width - LEFT - RIGHT
    }

    /// The position of a time, in horizontal units; a time outside of the chart has the position of the nearer edge.
    fn x(&self, time: u64) -> u64 {
        let since = time.saturating_sub(self.chart.start).min(self.span());
        let units = u128::from(since) * u128::from(UNITS) / u128::from(self.span());
        u64::try_from(units).unwrap_or(UNITS)
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_head(out)?;
        self.write_legend(out)?;
        let scale = f64::from(self.rows_width()) / UNITS as f64;
        writeln!(
            out,
            "<g id=\"axis\">{}</g>\n<g clip-path=\"url(#clip)\">\
             <g id=\"plot\" transform=\"translate({LEFT},0) scale({scale:.12},1)\">\n\
             <rect id=\"field\" x=\"0\" y=\"{}\" width=\"{UNITS}\" height=\"{}\" fill-opacity=\"0\"/>",
            Ticks(self),
            self.top,
            self.height - self.top,
        )?;
        for (row, top) in self.chart.rows.iter().zip(&self.tops) {
            self.write_row(row, *top, out)?;
        }
        self.write_arrows(out)?;
        self.write_gaps(out)?;
        writeln!(out, "</g>\n<g id=\"inner\">{}</g></g>", InnerLabels(self))?;
        self.write_labels(out)?;
        writeln!(
            out,
            "<rect id=\"mark\" class=\"off\" y=\"{}\" height=\"{}\"/>\n\
             <g id=\"hover\" class=\"off\"><rect rx=\"3\"/><text/></g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>",
            self.top,
            self.height - self.top,
        )
    }

    fn write_head(&self, out: &mut dyn Write) -> io::Result<()> {
        let (width, height) = (self.width, self.height);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" data-start=\"{}\" data-span=\"{}\" data-units=\"{UNITS}\" data-left=\"{LEFT}\" \
             data-right=\"{RIGHT}\" data-top=\"{}\" data-fluid=\"{}\">\n<style>{STYLE}</style>\n\
             <clipPath id=\"clip\"><rect id=\"window\" x=\"{LEFT}\" y=\"0\" width=\"{}\" height=\"{height}\"/></clipPath>\n\
             <rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n<text id=\"title\" x=\"10\" y=\"23\">{}</text>",
            self.chart.start,
            self.span(),
            self.top,
            self.chart.width.is_none(),
            self.rows_width(),
            Escaped(&self.chart.title),
        )?;
        // Right ends of the time range and of two buttons: each leaves room for the text right of it, or for the search field.
        writeln!(
            out,
            "<text id=\"range\" class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"22\"> </text>\n\
             <text id=\"reset\" class=\"button off\" text-anchor=\"end\" x=\"{}\" y=\"22\">reset zoom</text>\n\
             <text id=\"wakes\" class=\"button{}\" text-anchor=\"end\" x=\"{}\" y=\"22\">hide wakeups</text>\n\
             <foreignObject id=\"tools\" x=\"{}\" y=\"6\" width=\"{SEARCH_WIDTH}\" height=\"26\">\
             <input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" type=\"search\" placeholder=\"search (/)\" \
             spellcheck=\"false\"/></foreignObject>",
            width - 375,
            width - 292,
            if self.chart.arrows.is_empty() {
                " off"
            } else {
                ""
            },
            width - 200,
            width - RIGHT - SEARCH_WIDTH,
        )?;
        let mut y = TITLE_HEIGHT;
        for note in &self.chart.notes {
            y += LINE;
            let baseline = y - 6;
            writeln!(
                out,
                "<text class=\"note\" x=\"10\" y=\"{baseline}\">{}</text>",
                Escaped(note)
            )?;
        }
        Ok(())
    }

    fn write_legend(&self, out: &mut dyn Write) -> io::Result<()> {
        let y = self.top - AXIS - LINE;
        let mut x = f64::from(LEFT);
        writeln!(out, "<g id=\"legend\">")?;
        for paint in &self.legend {
            let name = paint.name();
            writeln!(
                out,
                "<rect class=\"{class}\" data-c=\"{class}\" x=\"{x:.0}\" y=\"{y}\" width=\"11\" height=\"11\"/>\
                 <text x=\"{:.0}\" y=\"{}\">{name}</text>",
                x + 15.0,
                y + 9,
                class = paint.class(),
            )?;
            x += 34.0 + LABEL_CHARACTER * name.chars().count() as f64;
        }
        writeln!(out, "</g>")
    }

    fn write_row(&self, row: &ChartRow, top: u32, out: &mut dyn Write) -> io::Result<()> {
        let height = row_height(row);
        let kind = match row.kind {
            RowKind::Cpu => " cpu",
            RowKind::Task | RowKind::Calls => "",
        };
        writeln!(
            out,
            "<g class=\"row box\" transform=\"translate(0,{top})\" data-y=\"{top}\" data-h=\"{height}\" \
             data-w=\"{}\" data-n=\"{}\">\
             <rect class=\"lane{kind}\" width=\"{UNITS}\" height=\"{height}\"/>",
            row.weight,
            Escaped(&row.label),
        )?;
        for (key, path) in self.paths(row, height) {
            let merged = if key.is_merged { " m" } else { "" };
            write!(
                out,
                "<path class=\"{}{merged}\" d=\"{path}\"",
                key.paint.class()
            )?;
            let name = key.name.and_then(|name| row.names.get(name as usize));
            match name {
                Some(name) => writeln!(out, "><title>{}</title></path>", Escaped(name))?,
                None => writeln!(out, "/>")?,
            }
        }
        if !row.line.is_empty() {
            writeln!(
                out,
                "<path class=\"freq\" d=\"{}\"/>",
                self.line(row, height)
            )?;
        }
        writeln!(out, "</g>")
    }

    /// Returns a path for the boxes of each key.
    fn paths(&self, row: &ChartRow, height: u32) -> BTreeMap<PathKey, String> {
        let mut paths: BTreeMap<PathKey, String> = BTreeMap::new();
        for item in &row.boxes {
            let path = paths.entry(PathKey::of(item)).or_default();
            let (from, to) = (self.x(item.from), self.x(item.to));
            let box_width = to.saturating_sub(from).max(1);
            let y = |percent: u8| f64::from(height) * (1.0 - f64::from(percent.min(100)) / 100.0);
            let (upper, lower) = (y(item.high), y(item.low));
            let box_height = (lower - upper).max(0.0);
            // Writing to a String cannot fail.
            let _written = write!(
                path,
                "M{from} {}h{box_width}v{}h-{box_width}z",
                Short(upper),
                Short(box_height)
            );
        }
        paths
    }

    /// Returns the path of [`ChartRow::line`], up to the end of the chart.
    fn line(&self, row: &ChartRow, height: u32) -> String {
        let mut path = String::new();
        for (index, (time, percent)) in row.line.iter().enumerate() {
            let y = f64::from(height) * (1.0 - f64::from((*percent).min(100)) / 100.0);
            let (x, y) = (self.x(*time), Short(y));
            let _written = match index {
                0 => write!(path, "M{x} {y}"),
                _ => write!(path, "H{x}V{y}"),
            };
        }
        let _written = write!(path, "H{UNITS}");
        path
    }

    fn write_arrows(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut pairs: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
        for arrow in &self.chart.arrows {
            let times = pairs.entry((arrow.from, arrow.to)).or_default();
            times.push(self.x(arrow.time));
        }
        writeln!(out, "<g id=\"arrows\">")?;
        for ((from, to), times) in pairs {
            let ends = self.label_and_middle(from).zip(self.label_and_middle(to));
            let Some(((waker, start), (woken, end))) = ends else {
                continue;
            };
            // The tip is a line without length: its round ends are drawn as a dot at the woken task.
            let (mut line, mut tip) = (String::new(), String::new());
            for x in &times {
                let _written = write!(line, "M{x} {start}V{end}");
                let _written = write!(tip, "M{x} {end}h0");
            }
            writeln!(
                out,
                "<g><title>{} wakes {}</title><path class=\"arrow\" d=\"{line}\"/><path class=\"tip\" d=\"{tip}\"/></g>",
                Escaped(waker),
                Escaped(woken),
            )?;
        }
        writeln!(out, "</g>")
    }

    /// Returns the label of a row and the y coordinate of its middle.
    fn label_and_middle(&self, index: usize) -> Option<(&str, u32)> {
        let (row, top) = self.chart.rows.get(index).zip(self.tops.get(index))?;
        Some((&row.label, top + row_height(row) / 2))
    }

    fn write_gaps(&self, out: &mut dyn Write) -> io::Result<()> {
        for gap in &self.chart.gaps {
            let (from, to) = (self.x(gap.from), self.x(gap.to));
            let bounds = gap.row.and_then(|index| {
                let row = self.chart.rows.get(index)?;
                Some((*self.tops.get(index)?, row_height(row)))
            });
            let (y, high) = bounds.unwrap_or((self.top, self.height - self.top));
            writeln!(
                out,
                "<rect class=\"gap\" x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"{high}\"><title>{}</title></rect>",
                to.saturating_sub(from).max(1),
                Escaped(&gap.name),
            )?;
        }
        Ok(())
    }

    fn write_labels(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<g id=\"labels\">")?;
        let mut section = None;
        for (row, top) in self.chart.rows.iter().zip(&self.tops) {
            if section != Some(row.kind) {
                section = Some(row.kind);
                // A chart has `Task` or `Calls` rows, not both, so "Tasks" occurs once.
                let heading = match row.kind {
                    RowKind::Cpu => "CPUs",
                    RowKind::Task | RowKind::Calls => "Tasks",
                };
                writeln!(
                    out,
                    "<text class=\"head\" x=\"10\" y=\"{}\">{heading}</text>",
                    top - 6
                )?;
            }
            let room = f64::from(LEFT - 16) / LABEL_CHARACTER;
            writeln!(
                out,
                "<text class=\"label\" x=\"10\" y=\"{}\">{}<title>{}</title></text>",
                top + row_height(row) / 2 + 4,
                Escaped(&fitting(&row.label, room as usize)),
                Escaped(&row.details),
            )?;
        }
        writeln!(out, "</g>")
    }
}

/// Properties that the boxes of one path have in common. Paths are drawn in the order of their keys: later ones cover earlier
/// ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PathKey {
    paint: Paint,
    /// Whether the boxes summarise states that changed too fast to draw each change, see [`ChartBox::is_merged`].
    is_merged: bool,
    /// Index in the names of the row.
    name: Option<u32>,
}

impl PathKey {
    fn of(item: &ChartBox) -> Self {
        Self {
            paint: item.paint,
            is_merged: item.is_merged,
            name: item.name,
        }
    }
}

/// Returns `text` if it has at most `room` characters. Otherwise returns its beginning with an ellipsis, or nothing if `room` is
/// below 3.
fn fitting(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    match room {
        0..3 => String::new(),
        room => text.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// A number with at most one decimal.
struct Short(f64);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}

/// Names in those boxes of CPU rows that are wide enough. Like [`Ticks`], they are outside of the scaled group, which would
/// stretch the text.
struct InnerLabels<'w>(&'w ChartWriter<'w>);

impl Display for InnerLabels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writer = self.0;
        let scale = f64::from(writer.rows_width()) / UNITS as f64;
        let rows = writer.chart.rows.iter().zip(&writer.tops);
        for (row, top) in rows.filter(|(row, _)| row.kind == RowKind::Cpu) {
            for item in &row.boxes {
                let name = item.name.and_then(|name| row.names.get(name as usize));
                let (from, to) = (writer.x(item.from), writer.x(item.to));
                let box_width = to.saturating_sub(from) as f64 * scale;
                let text = fitting(
                    name.map_or("", String::as_str),
                    ((box_width - 6.0) / INNER_CHARACTER).max(0.0) as usize,
                );
                if !text.is_empty() {
                    let x = f64::from(LEFT) + from as f64 * scale + 3.0;
                    let y = top + row_height(row) / 2 + 4;
                    let text = Escaped(&text);
                    write!(
                        f,
                        "<text class=\"inner\" x=\"{x:.1}\" y=\"{y}\">{text}</text>"
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Times above the rows, with vertical lines through the rows. Their positions are in pixels, not in horizontal units as those
/// of boxes.
struct Ticks<'w>(&'w ChartWriter<'w>);

impl Display for Ticks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writer = self.0;
        let (start, span) = (writer.chart.start, writer.span());
        let rows_width = f64::from(writer.rows_width());
        let step = tick_step(span, rows_width / TICK_DISTANCE);
        let mut time = start.div_ceil(step).saturating_mul(step);
        while time <= writer.chart.end {
            let x = f64::from(LEFT) + rows_width * (time - start) as f64 / span as f64;
            if x < f64::from(writer.width - RIGHT) - TICK_WIDTH {
                let seconds = Seconds { time, step };
                let (x, y) = (x + 3.0, writer.top - 6);
                write!(
                    f,
                    "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\">{seconds}</text>"
                )?;
            }
            write!(
                f,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\"/>",
                writer.top - AXIS + 4,
                writer.height - FOOTER,
            )?;
            let Some(next) = time.checked_add(step) else {
                break;
            };
            time = next;
        }
        Ok(())
    }
}

/// Returns the distance of the marks on the time axis in nanoseconds: the least of 1, 2, 5, 10, 20, … that fits at most `most`
/// times into `span` nanoseconds.
fn tick_step(span: u64, most: f64) -> u64 {
    let least = (span as f64 / most.max(1.0)).max(1.0);
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step as f64 >= least || step == u64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A time in nanoseconds, printed in seconds with the decimals that `step` (also in nanoseconds) needs.
struct Seconds {
    time: u64,
    step: u64,
}

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.time / 1_000_000_000, self.time % 1_000_000_000);
        let mut decimals = 9_usize;
        let mut step = self.step;
        while decimals > 0 && step.is_multiple_of(10) {
            step /= 10;
            decimals -= 1;
        }
        match decimals {
            0 => write!(f, "{seconds} s"),
            _ => {
                let digits = format!("{fraction:09}");
                let digits = digits.get(..decimals).unwrap_or(&digits);
                write!(f, "{seconds}.{digits} s")
            }
        }
    }
}

#[cfg(test)]
mod tests;
