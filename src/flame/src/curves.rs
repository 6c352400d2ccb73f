//! Curves: amounts over time, as filled areas with a common scale.

use std::io::{self, Write};

use crate::text::{Escaped, Grouped};

const STYLE: &str = include_str!("curves/style.css");

/// Size of the picture in pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
/// The edges of the plot in pixels.
const LEFT: f64 = 130.0;
const RIGHT: f64 = WIDTH - 40.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = HEIGHT - 40.0;
/// The number of intervals between the horizontal lines, one less than the number of lines.
const LINE_INTERVALS: u64 = 4;
/// The number of intervals between the times below the plot, one less than the number of times.
const TIME_INTERVALS: u64 = 6;
/// The maximum number of curves that are drawn: the style sheet has a color for each.
const COLORS: usize = 2;

/// Amounts over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CurveChart {
    /// The title.
    pub title: String,
    /// A second, smaller line.
    pub subtitle: String,
    /// The times of the amounts, in seconds from the start, ascending.
    pub times: Vec<f64>,
    /// The name of each curve, and its amount at each of `times`. A curve starts with the amount 0 at time 0. Only the
    /// first two curves are drawn.
    pub curves: Vec<(String, Vec<u64>)>,
}

impl CurveChart {
    /// Writes the chart as an SVG with colors for light and dark color schemes.
    ///
    /// # Errors
    ///
    /// Write errors.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\">\n<style>{STYLE}</style>\n\
             <rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n\
             <text id=\"title\" x=\"12\" y=\"26\">{}</text>\n\
             <text id=\"subtitle\" x=\"12\" y=\"46\">{}</text>",
            Escaped(&self.title),
            Escaped(&self.subtitle),
        )?;
        let amounts = self.curves.iter().flat_map(|(_, amounts)| amounts);
        let top_amount = round_amount(amounts.copied().max().unwrap_or_default());
        let end = self
            .times
            .last()
            .copied()
            .filter(|end| *end > 0.0)
            .unwrap_or(1.0);
        write_axes(out, top_amount, end)?;
        for (number, (name, amounts)) in self.curves.iter().take(COLORS).enumerate() {
            self.write_curve(out, number, amounts, &Scales { top_amount, end })?;
            let x = LEFT + 180.0 * number as f64;
            writeln!(
                out,
                "<rect class=\"c{number}\" x=\"{x}\" y=\"66\" width=\"12\" height=\"12\"/>\
                 <text x=\"{}\" y=\"76\">{}</text>",
                x + 18.0,
                Escaped(name)
            )?;
        }
        writeln!(out, "</svg>")
    }

    fn write_curve(
        &self,
        out: &mut dyn Write,
        number: usize,
        amounts: &[u64],
        scales: &Scales,
    ) -> io::Result<()> {
        write!(out, "<path class=\"c{number}\" d=\"M{LEFT} {BOTTOM}")?;
        let mut x = LEFT;
        for (time, amount) in self.times.iter().zip(amounts) {
            x = LEFT + (RIGHT - LEFT) * time / scales.end;
            let y = BOTTOM - (BOTTOM - TOP) * *amount as f64 / scales.top_amount as f64;
            write!(out, "L{x:.1} {y:.1}")?;
        }
        writeln!(out, "L{x:.1} {BOTTOM}Z\"/>")
    }
}

/// The amount at the top of the plot, and the time at its right end.
struct Scales {
    top_amount: u64,
    end: f64,
}

/// Returns the lowest of 4, 8, 12, 16, 20, 24, 32, 40, 80, … that is not below `most`, so that the lines across the plot have
/// round amounts.
fn round_amount(most: u64) -> u64 {
    let mut step: u64 = 1;
    loop {
        for factor in [1, 2, 3, 4, 5, 6, 8] {
            let amount = step.saturating_mul(factor).saturating_mul(LINE_INTERVALS);
            if amount >= most {
                return amount;
            }
        }
        step = step.saturating_mul(10);
    }
}

/// Writes the horizontal lines with their amounts, and the times below the plot.
fn write_axes(out: &mut dyn Write, top_amount: u64, end: f64) -> io::Result<()> {
    for line in 0..=LINE_INTERVALS {
        let y = BOTTOM - (BOTTOM - TOP) * line as f64 / LINE_INTERVALS as f64;
        writeln!(
            out,
            "<path class=\"line\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
             <text class=\"amount\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            Grouped(top_amount / LINE_INTERVALS * line)
        )?;
    }
    for time in 0..=TIME_INTERVALS {
        let share = time as f64 / TIME_INTERVALS as f64;
        writeln!(
            out,
            "<text class=\"time\" x=\"{:.1}\" y=\"{}\">{:.3} s</text>",
            LEFT + (RIGHT - LEFT) * share,
            BOTTOM + 20.0,
            end * share
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(chart: &CurveChart) -> String {
        let mut out = Vec::new();
        chart.write(&mut out).expect("writing to memory succeeds");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn curves_share_a_scale_with_round_amounts() {
        let chart = CurveChart {
            title: "a < b".to_owned(),
            subtitle: String::new(),
            times: vec![1.0, 2.0],
            curves: vec![
                ("pages".to_owned(), vec![400, 800]),
                ("slab".to_owned(), vec![200, 0]),
            ],
        };
        let text = text(&chart);
        for part in [
            ">a &lt; b</text>",
            // Half of the width and of the height, then the right end at the top.
            "<path class=\"c0\" d=\"M130 380L495.0 238.0L860.0 96.0L860.0 380Z\"/>",
            "<path class=\"c1\" d=\"M130 380L495.0 309.0L860.0 380.0L860.0 380Z\"/>",
            ">600</text>",
            ">1.000 s</text>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn top_amounts_are_round_and_empty_charts_have_no_nan() {
        assert_eq!(
            [0, 4, 5, 801, 2001].map(round_amount),
            [4, 4, 8, 1200, 2400]
        );
        assert_eq!(round_amount(u64::MAX), u64::MAX);
        let empty = text(&CurveChart::default());
        assert!(
            !empty.contains("NaN") && empty.ends_with("</svg>\n"),
            "{empty}"
        );
    }
}
