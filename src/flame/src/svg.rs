//! The picture: an SVG that needs nothing beside it, and whose script zooms and searches.

use std::io::{self, Write};

use crate::color::{Palette, Rgb, difference};
use crate::kind::Kind;
use crate::text::{Escaped, Grouped};
use crate::tree::{Flame, Frame};

/// Height of a row, in pixels.
const ROW: usize = 16;
/// Left and right of the frames.
const MARGIN: f64 = 10.0;
/// Above the frames: title, search and what it found.
const HEAD: usize = 60;
/// Below them: what the pointer is on.
const FOOT: usize = 34;
/// Width of a character, in pixels; the script uses the same.
const CHARACTER: f64 = 7.05;
/// Width of a picture that fits itself to its window, until a script runs.
const USUAL_WIDTH: u32 = 1200;

const SCRIPT: &str = include_str!("svg/script.js");
const STYLE: &str = include_str!("svg/style.css");

/// How the picture looks.
#[derive(Debug, Clone)]
pub struct Options {
    /// The line above it.
    pub title: String,
    /// A second, smaller line.
    pub subtitle: Option<String>,
    /// Pixels; `None` fits the window.
    pub width: Option<u32>,
    /// Frames narrower than this, in pixels, are left out.
    pub min_width: f64,
    /// Whether the root is at the top.
    pub inverted: bool,
    /// How frames are coloured, unless recordings are compared.
    pub palette: Palette,
    /// What is counted: `samples`.
    pub unit: String,
}

/// Writes the picture.
///
/// # Errors
///
/// Writing fails.
pub fn write(flame: &Flame, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    Picture::new(flame, options).write(out)
}

/// Measures of one picture.
struct Picture<'a> {
    flame: &'a Flame,
    options: &'a Options,
    width: f64,
    /// Pixels of one unit of width.
    scale: f64,
    /// The narrowest frame, in units.
    least: f64,
    rows: usize,
    /// The largest growth or loss of a frame.
    most: u64,
}

impl<'a> Picture<'a> {
    fn new(flame: &'a Flame, options: &'a Options) -> Self {
        let width = f64::from(options.width.unwrap_or(USUAL_WIDTH)).max(4.0 * MARGIN);
        let whole = flame.frames.first().map_or(0, |root| root.width);
        let scale = (width - 2.0 * MARGIN) / whole.max(1) as f64;
        let least = options.min_width / scale;
        let growth = flame.frames.iter().map(|frame| frame.growth.unsigned_abs());
        Self {
            flame,
            options,
            width,
            scale,
            least,
            rows: flame.rows(least),
            most: growth.max().unwrap_or_default(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_head(out)?;
        for frame in &self.flame.frames {
            // A parent is as wide as its children at the least, so no frame loses its parent.
            if frame.width > 0 && frame.width as f64 >= self.least {
                self.write_frame(frame, out)?;
            }
        }
        writeln!(out, "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>")
    }

    fn write_head(&self, out: &mut dyn Write) -> io::Result<()> {
        let Options {
            title,
            subtitle,
            inverted,
            unit,
            ..
        } = self.options;
        let width = self.width;
        let height = HEAD + self.rows * ROW + FOOT;
        let whole = self.flame.frames.first().map_or(0, |root| root.width);
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" data-whole=\"{whole}\" data-total=\"{}\" data-unit=\"{}\" \
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
        let foot = height - FOOT / 3;
        writeln!(
            out,
            "<text id=\"reset\" x=\"{MARGIN}\" y=\"24\" class=\"off\">Reset zoom</text>\n\
             <text id=\"details\" x=\"{MARGIN}\" y=\"{foot}\"> </text>\n\
             <text id=\"matched\" x=\"{}\" y=\"50\"> </text>\n\
             <foreignObject id=\"tools\" x=\"{}\" y=\"8\" width=\"230\" height=\"26\">\
             <input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" type=\"search\" placeholder=\"search (/)\" \
             spellcheck=\"false\"/></foreignObject>\n\
             <g id=\"frames\" data-inverted=\"{inverted}\">",
            width - MARGIN,
            width - MARGIN - 230.0,
        )
    }

    fn write_frame(&self, frame: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let row = match self.options.inverted {
            true => frame.depth,
            // A frame of the lowest row is never deeper than the rows that are drawn.
            false => self.rows.saturating_sub(frame.depth + 1),
        };
        let y = HEAD + row * ROW;
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
                x + 3.0,
                y + ROW - 4,
                Escaped(&text)
            )?;
        }
        writeln!(out, "</g>")
    }

    fn color(&self, frame: &Frame) -> Rgb {
        match (self.flame.compares, frame.depth) {
            (true, _) => difference(frame.growth, self.most),
            (false, 0) => Rgb(235, 232, 225),
            (false, _) => {
                let (name, kind) = self.flame.label(frame);
                self.options.palette.color(name, kind)
            }
        }
    }

    /// `name (1,234 samples, 12.34%)`: what the script takes apart at the last bracket.
    fn write_details(&self, frame: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let (name, kind) = self.flame.label(frame);
        let inlined = match kind {
            Kind::Inlined => " [inlined]",
            Kind::User | Kind::Kernel | Kind::Jit => "",
        };
        let share = share(frame.total, self.flame.total());
        write!(
            out,
            "{}{inlined} ({} {}, {share:.2}%",
            Escaped(name),
            Grouped(frame.total),
            Escaped(&self.options.unit),
        )?;
        if self.flame.compares {
            let whole = self.flame.frames.first().map_or(0, |root| root.before);
            let was = self::share(frame.before, whole);
            write!(out, "; before {}, {was:.2}%", Grouped(frame.before))?;
        }
        write!(out, ")")
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// As much of a name as fits.
fn fitting(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
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
