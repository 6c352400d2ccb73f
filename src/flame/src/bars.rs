//! Bar charts: labels with counts, from top to bottom.

use std::io::{self, Write};

use crate::text::{Escaped, Grouped};

const STYLE: &str = include_str!("bars/style.css");

/// Height of a bar with its margin, in pixels like the other sizes.
const ROW: usize = 20;
/// Height above the bars.
const HEADER_HEIGHT: usize = 64;
/// Height below the bars.
const FOOTER_HEIGHT: usize = 16;
/// Length of the longest bar.
const LONGEST: f64 = 640.0;
/// Width of the counts on the right of the longest bar.
const RIGHT: f64 = 140.0;
/// Width of a character.
const CHARACTER: f64 = 7.3;
/// Horizontal margin.
const MARGIN: f64 = 12.0;

/// A chart of counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BarChart {
    /// The title.
    pub title: String,
    /// A second, smaller line.
    pub subtitle: String,
    /// The label and the count of each bar.
    pub bars: Vec<(String, u64)>,
}

impl BarChart {
    /// Writes the chart as an SVG with colours for light and dark colour schemes.
    ///
    /// # Errors
    ///
    /// Write errors.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let label_lengths = self.bars.iter().map(|(label, _)| label.chars().count());
        let left = 2.0 * MARGIN + label_lengths.max().unwrap_or_default() as f64 * CHARACTER;
        let width = left + LONGEST + RIGHT;
        let height = HEADER_HEIGHT + self.bars.len() * ROW + FOOTER_HEIGHT;
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width:.0}\" height=\"{height}\" \
             viewBox=\"0 0 {width:.0} {height}\">\n<style>{STYLE}</style>\n\
             <rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n\
             <text id=\"title\" x=\"{MARGIN}\" y=\"26\">{}</text>\n\
             <text id=\"subtitle\" x=\"{MARGIN}\" y=\"46\">{}</text>",
            Escaped(&self.title),
            Escaped(&self.subtitle),
        )?;
        let most = self.bars.iter().map(|(_, count)| *count).max();
        let counts = self.bars.iter().map(|(_, count)| *count);
        let total = counts.fold(0, u64::saturating_add);
        for (number, (label, count)) in self.bars.iter().enumerate() {
            let share = |whole: u64| *count as f64 / whole.max(1) as f64;
            let length = LONGEST * share(most.unwrap_or(1));
            let y = HEADER_HEIGHT + number * ROW;
            let baseline = y + ROW - 6;
            writeln!(
                out,
                "<g class=\"b\"><title>{}: {} ({:.2}%)</title>\
                 <text class=\"label\" x=\"{:.1}\" y=\"{baseline}\">{}</text>\
                 <rect class=\"bar\" x=\"{left:.1}\" y=\"{y}\" width=\"{length:.2}\" height=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{baseline}\">{}</text></g>",
                Escaped(label),
                Grouped(*count),
                100.0 * share(total),
                left - MARGIN,
                Escaped(label),
                ROW - 3,
                left + length + 6.0,
                Grouped(*count),
            )?;
        }
        writeln!(out, "</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_to_their_counts() {
        let chart = BarChart {
            title: "a < b".to_owned(),
            subtitle: String::new(),
            bars: vec![("0 -> 3".to_owned(), 500), ("4 ->".to_owned(), 1500)],
        };
        let mut out = Vec::new();
        chart.write(&mut out).expect("writing to memory succeeds");
        let text = String::from_utf8(out).expect("text");
        for part in [
            ">a &lt; b</text>",
            "<title>0 -&gt; 3: 500 (25.00%)</title>",
            "width=\"213.33\"",
            "width=\"640.00\"",
            ">1,500</text>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("</svg>\n"));
    }

    #[test]
    fn a_count_of_zero_has_an_empty_bar() {
        let chart = BarChart {
            bars: vec![("none".to_owned(), 0)],
            ..BarChart::default()
        };
        let mut out = Vec::new();
        chart.write(&mut out).expect("writing to memory succeeds");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.contains("width=\"0.00\"") && !text.contains("NaN"),
            "{text}"
        );
    }
}
