//! A flame graph as a self-contained SVG whose script zooms and searches.

use std::io::{self, Write};

use crate::color::{Palette, Rgb, difference};
use crate::kind::FrameKind;
use crate::text::{Escaped, Grouped, amount};
use crate::tree::{Flame, FlameFrame};

/// Height of a row, in pixels.
const ROW: usize = 16;
/// Horizontal margin, in pixels; the script uses the same.
const MARGIN: f64 = 10.0;
/// Height of the text above the frames, in pixels.
const HEADER_HEIGHT: usize = 60;
/// Height of the text below the frames, in pixels.
const FOOTER_HEIGHT: usize = 34;
/// Width of a character, in pixels; the script uses the same.
const CHARACTER: f64 = 7.05;
/// Distance of a frame's name from the frame's left and right edges, in pixels; the script uses the same.
const NAME_MARGIN: f64 = 3.0;
/// Width of the search field, in pixels.
const SEARCH_WIDTH: f64 = 230.0;
/// Width of a picture that fits its window, in pixels, until the script runs.
const DEFAULT_WIDTH: u32 = 1200;
/// Colour of the root, unless recordings are compared.
const ROOT_COLOR: Rgb = Rgb(235, 232, 225);

const SCRIPT: &str = include_str!("svg/script.js");
const STYLE: &str = include_str!("svg/style.css");

/// Options of the picture.
#[derive(Debug, Clone)]
pub struct SvgOptions {
    /// The title.
    pub title: String,
    /// A second, smaller line.
    pub subtitle: Option<String>,
    /// Width in pixels; `None` fits the window.
    pub width: Option<u32>,
    /// Frames narrower than this, in pixels, are omitted.
    pub min_width: f64,
    /// Whether the root is at the top.
    pub inverted: bool,
    /// Colour scheme, unless recordings are compared.
    pub palette: Palette,
    /// The counted unit, such as `samples`.
    pub unit: String,
}

/// Writes the picture.
///
/// # Errors
///
/// Write errors.
pub fn write(flame: &Flame, options: &SvgOptions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    SvgWriter::new(flame, options).write(out)
}

/// Writes an HTML page with the picture. It needs no other file.
///
/// # Errors
///
/// Write errors.
pub fn write_html(flame: &Flame, options: &SvgOptions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<!DOCTYPE html>\n<html>\n<head><meta charset=\"utf-8\"><title>{}</title></head>\n<body style=\"margin:0\">",
        Escaped(&options.title)
    )?;
    SvgWriter::new(flame, options).write(out)?;
    out.write_all(b"</body>\n</html>\n")
}

/// Writes a picture with these dimensions.
struct SvgWriter<'a> {
    flame: &'a Flame,
    options: &'a SvgOptions,
    width: f64,
    /// Pixels per unit of [`FlameFrame::width`].
    scale: f64,
    /// Minimum width of drawn frames, in units of [`FlameFrame::width`].
    min_width: f64,
    rows: usize,
    /// Maximum growth or decline of the own weight of a frame.
    max_change: u64,
}

impl<'a> SvgWriter<'a> {
    fn new(flame: &'a Flame, options: &'a SvgOptions) -> Self {
        // At least half of the width is left for the frames between the margins.
        let width = f64::from(options.width.unwrap_or(DEFAULT_WIDTH)).max(4.0 * MARGIN);
        let root_width = flame.frames.first().map_or(0, |root| root.width);
        let scale = (width - 2.0 * MARGIN) / root_width.max(1) as f64;
        let min_width = options.min_width / scale;
        let changes = flame
            .frames
            .iter()
            .map(|frame| frame.own_growth.unsigned_abs());
        Self {
            flame,
            options,
            width,
            scale,
            min_width,
            rows: flame.rows(min_width),
            max_change: changes.max().unwrap_or_default(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_head(out)?;
        for frame in &self.flame.frames {
            // A parent is at least as wide as its children, so no frame loses its parent.
            if frame.width > 0 && frame.width as f64 >= self.min_width {
                self.write_frame(frame, out)?;
            }
        }
        writeln!(out, "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>")
    }

    fn write_head(&self, out: &mut dyn Write) -> io::Result<()> {
        let SvgOptions {
            title,
            subtitle,
            inverted,
            unit,
            ..
        } = self.options;
        let width = self.width;
        let height = HEADER_HEIGHT + self.rows * ROW + FOOTER_HEIGHT;
        // In a comparison, the widths may be weights in the earlier recording. Then `root_width` differs from `total()`, which is
        // always the total of the displayed recording.
        let root_width = self.flame.frames.first().map_or(0, |root| root.width);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" data-whole=\"{root_width}\" data-total=\"{}\" data-unit=\"{}\" \
             data-fluid=\"{}\" data-least=\"{}\">\n\
             <style>{STYLE}</style>\n\
             <rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n\
             <text id=\"title\" x=\"{}\" y=\"24\">{}</text>",
            self.flame.total(),
            Escaped(unit),
            self.options.width.is_none(),
            self.options.min_width,
            width / 2.0,
            Escaped(title),
        )?;
        if let Some(subtitle) = subtitle {
            let middle = width / 2.0;
            writeln!(
                out,
                "<text id=\"subtitle\" x=\"{middle}\" y=\"43\">{}</text>",
                Escaped(subtitle)
            )?;
        }
        let foot = height - FOOTER_HEIGHT / 3;
        writeln!(
            out,
            "<text id=\"reset\" x=\"{MARGIN}\" y=\"24\" class=\"off\">Reset zoom</text>\n\
             <text id=\"details\" x=\"{MARGIN}\" y=\"{foot}\"> </text>\n\
             <text id=\"matched\" x=\"{}\" y=\"50\"> </text>\n\
             <foreignObject id=\"tools\" x=\"{}\" y=\"8\" width=\"{SEARCH_WIDTH}\" height=\"26\">\
             <input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" type=\"search\" placeholder=\"search (/)\" \
             spellcheck=\"false\"/></foreignObject>\n\
             <g id=\"frames\" data-inverted=\"{inverted}\">",
            width - MARGIN,
            width - MARGIN - SEARCH_WIDTH,
        )
    }

    fn write_frame(&self, frame: &FlameFrame, out: &mut dyn Write) -> io::Result<()> {
        let row = match self.options.inverted {
            true => frame.depth,
            // The depth of a drawn frame is below the number of rows.
            false => self.rows.saturating_sub(frame.depth + 1),
        };
        let y = HEADER_HEIGHT + row * ROW;
        let x = MARGIN + frame.start as f64 * self.scale;
        let width = frame.width as f64 * self.scale;
        let Rgb(red, green, blue) = self.color(frame);
        write!(
            out,
            "<g class=\"f\" data-x=\"{}\" data-w=\"{}\" data-d=\"{}\"><title>",
            frame.start, frame.width, frame.depth
        )?;
        self.write_details(frame, out)?;
        write!(
            out,
            "</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" fill=\"rgb({red},{green},{blue})\"/>",
            ROW - 1
        )?;
        let text = fitting(self.flame.label(frame).0, width);
        if !text.is_empty() {
            write!(
                out,
                "<text x=\"{:.2}\" y=\"{}\">{}</text>",
                x + NAME_MARGIN,
                y + ROW - 4,
                Escaped(&text)
            )?;
        }
        writeln!(out, "</g>")
    }

    fn color(&self, frame: &FlameFrame) -> Rgb {
        if self.flame.compares {
            return difference(frame.own_growth, self.max_change);
        }
        if frame.depth == 0 {
            return ROOT_COLOR;
        }
        let (name, kind) = self.flame.label(frame);
        self.options.palette.color(name, kind)
    }

    /// Writes `name (1,234 samples, 12.34%)`, which the script splits at the last opening parenthesis. A comparison adds the
    /// weight in the earlier recording.
    fn write_details(&self, frame: &FlameFrame, out: &mut dyn Write) -> io::Result<()> {
        let (name, kind) = self.flame.label(frame);
        let inlined = match kind {
            FrameKind::Inlined => " [inlined]",
            FrameKind::User | FrameKind::Kernel | FrameKind::Jit => "",
        };
        let percent = percentage(frame.total, self.flame.total());
        write!(
            out,
            "{}{inlined} ({}, {percent:.2}%",
            Escaped(name),
            Escaped(&amount(frame.total, &self.options.unit)),
        )?;
        if self.flame.compares {
            let total_before = self.flame.frames.first().map_or(0, |root| root.before);
            let percent_before = percentage(frame.before, total_before);
            let before = match &*self.options.unit {
                "ns" => amount(frame.before, "ns"),
                _ => Grouped(frame.before).to_string(),
            };
            write!(out, "; before {before}, {percent_before:.2}%")?;
        }
        write!(out, ")")
    }
}

fn percentage(part: u64, total: u64) -> f64 {
    part as f64 * 100.0 / total.max(1) as f64
}

/// Returns a name if it fits into `width` pixels. Otherwise returns its beginning with `..`, or nothing if fewer than 3
/// characters fit.
fn fitting(name: &str, width: f64) -> String {
    let room = ((width - 2.0 * NAME_MARGIN) / CHARACTER).max(0.0) as usize;
    if name.chars().count() <= room {
        return name.to_owned();
    }
    match room {
        0..3 => String::new(),
        room => name.chars().take(room - 2).chain("..".chars()).collect(),
    }
}

#[cfg(test)]
mod tests;
