//! Tables as aligned text.

use std::fmt;
use std::io::{self, Write};

use super::{Align, Cell, Column, Table, Value, Width};
use crate::digits;
use crate::padding::{LeftAligned, RightAligned};
use crate::terminal::{Csi, Sgr};

/// Text around cells and titles, and colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    /// Before titles and rule.
    pub titles_start: &'static str,
    /// Before each row.
    pub row_start: &'static str,
    /// Between cells.
    pub gap: &'static str,
    /// Whether a dotted rule and a line with only `#` follow the titles, as in reports.
    pub rule: bool,
    /// The introducer of the control sequences that colour percentages; `None` without colours.
    pub colors: Option<Csi>,
}

impl TextStyle {
    /// Titles after `#`, two blanks between columns, as in perf's tables; no rule, no colours.
    pub const PLAIN: Self = Self {
        titles_start: "# ",
        row_start: "  ",
        gap: "  ",
        rule: false,
        colors: None,
    };
}

/// Columns of known width. Titles and rows are written by separate calls, so that other lines can come between them.
#[derive(Debug, Clone)]
pub struct TextTable<'t> {
    columns: &'t [Column],
    widths: Vec<usize>,
    style: TextStyle,
}

impl<'t> TextTable<'t> {
    /// Creates a table whose columns have their fixed widths, or else the widths of their titles.
    #[must_use]
    pub fn new(columns: &'t [Column], style: TextStyle) -> Self {
        let widths = columns.iter().map(|column| match column.width {
            Width::Fixed(width) => width,
            Width::Fit => column.title.chars().count(),
        });
        Self {
            columns,
            widths: widths.collect(),
            style,
        }
    }

    /// Widens columns without a fixed width to fit the cells of `row`.
    fn fit(&mut self, row: &[Cell]) {
        for ((column, width), cell) in self.columns.iter().zip(&mut self.widths).zip(row) {
            if column.width == Width::Fit {
                *width = cell.text.chars().count().max(*width);
            }
        }
    }

    /// Writes the titles, and the rule if the style includes one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_titles(&self, out: &mut dyn Write) -> io::Result<()> {
        let TextStyle {
            titles_start, gap, ..
        } = self.style;
        out.write_all(titles_start.as_bytes())?;
        let columns = self.columns.iter().zip(&self.widths);
        for (number, (column, width)) in columns.enumerate() {
            let before = if number > 0 { gap } else { "" };
            write!(out, "{before}{}", column.align.fill(&column.title, *width))?;
        }
        out.write_all(b"\n")?;
        if self.style.rule {
            // A title can be longer than a fixed width: the rule is as long as the title.
            let lengths = self.columns.iter().zip(&self.widths);
            let lengths = lengths.map(|(column, width)| column.title.chars().count().max(*width));
            let rules: Vec<String> = lengths.map(|length| ".".repeat(length)).collect();
            writeln!(out, "{titles_start}{}\n#", rules.join(gap))?;
        }
        Ok(())
    }

    /// Writes a row.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_row(&self, out: &mut dyn Write, row: &[Cell]) -> io::Result<()> {
        out.write_all(self.style.row_start.as_bytes())?;
        let columns = self.columns.iter().zip(&self.widths).zip(row);
        for (number, ((column, width), cell)) in columns.enumerate() {
            let before = if number > 0 { self.style.gap } else { "" };
            let (begin, end) = match cell.value {
                Value::Share(share) => share.paint(self.style.colors),
                _ => (Sgr::NONE, Sgr::NONE),
            };
            let text = column.align.fill(&cell.text, *width);
            write!(out, "{before}{begin}{text}{end}")?;
        }
        out.write_all(b"\n")
    }
}

impl Align {
    /// Appends what [`Align::fill`] returns.
    pub(crate) fn push(self, out: &mut String, text: &str, width: usize) {
        let blanks = width.saturating_sub(text.chars().count());
        if self == Self::Right {
            digits::push_blanks(out, blanks);
        }
        out.push_str(text);
        if self == Self::Left {
            digits::push_blanks(out, blanks);
        }
    }

    /// Pads text to a width in characters.
    pub(crate) fn fill(self, text: &str, width: usize) -> PaddedText<'_> {
        PaddedText {
            align: self,
            text,
            width,
        }
    }
}

/// Text padded to a number of characters; longer text is not truncated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaddedText<'a> {
    align: Align,
    text: &'a str,
    width: usize,
}

impl fmt::Display for PaddedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.align {
            Align::Left => LeftAligned(self.text, self.width).fmt(f),
            Align::Right => RightAligned(self.text, self.width).fmt(f),
        }
    }
}

impl Table {
    /// Writes titles and rows as aligned text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, out: &mut dyn Write, style: TextStyle) -> io::Result<()> {
        let text = self.fitted(style);
        text.write_titles(out)?;
        self.write_text_rows(out, &text)
    }

    /// Writes only the rows, in columns that are also wide enough for the titles.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_rows(&self, out: &mut dyn Write, style: TextStyle) -> io::Result<()> {
        self.write_text_rows(out, &self.fitted(style))
    }

    /// Returns the columns; those without a fixed width are wide enough for the title and all cells.
    fn fitted(&self, style: TextStyle) -> TextTable<'_> {
        let mut text = TextTable::new(&self.columns, style);
        self.rows.iter().for_each(|row| text.fit(row));
        text
    }

    fn write_text_rows(&self, out: &mut dyn Write, text: &TextTable<'_>) -> io::Result<()> {
        self.rows
            .iter()
            .try_for_each(|row| text.write_row(out, row))
    }
}
