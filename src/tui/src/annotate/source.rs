//! The source view with the counts of its lines: one half of the split view.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use rperf_disasm::{HitCount, Instruction};
use rperf_view::annotate::expand_tabs;
use rustc_hash::FxHashMap;

use super::screen::{AnnotateScreen, Annotated};
use crate::list::List;
use crate::page::{ScrolledList, draw_rows, put};
use crate::theme::Theme;

/// The counts of source lines: the index of the file and the line number from 1, each with one count per event.
pub(super) type LineHits = FxHashMap<(usize, u32), Vec<HitCount>>;

/// Adds up the counts of each line.
pub(super) fn line_hits(shown: &Annotated) -> LineHits {
    let code = &shown.code;
    // A site is the source location of instructions; its `line` is the index of the file and the line number.
    let mut sums = LineHits::default();
    for instruction in &code.instructions {
        let site = instruction.site.and_then(|site| code.sites.get(site));
        let Some(file_and_line) = site.and_then(|site| site.line) else {
            continue;
        };
        let zeros = || vec![HitCount::default(); instruction.hits.len()];
        let sum = sums.entry(file_and_line).or_insert_with(zeros);
        let pairs = sum.iter_mut().zip(&instruction.hits);
        pairs.for_each(|(sum, hit)| sum.add(*hit));
    }
    sums
}

impl AnnotateScreen {
    /// Draws the source file of the instruction at the cursor, with the instruction's line selected and in the middle.
    pub(super) fn draw_source(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let shown = &self.shown;
        let Some((file, line)) = self.source_line() else {
            let text = "The source line of this instruction is unknown";
            put(frame, Line::from(text).style(theme.muted), area);
            return;
        };
        let path = shown.code.files.get(file).map_or("", String::as_str);
        if let Some(first) = area.rows().next() {
            let heading = Line::from(Span::raw(path)).style(theme.heading);
            put(frame, heading, first);
        }
        let rest = Rect {
            y: area.y.saturating_add(1),
            height: area.height.saturating_sub(1),
            ..area
        };
        let Some(Some(lines)) = shown.sources.get(file) else {
            let message = format!("{path}: source file not found (line {line})");
            put(
                frame,
                Line::from(Span::raw(message)).style(theme.muted),
                rest,
            );
            return;
        };
        let mut list = List::new(lines.len());
        list.lay_out(rest);
        list.center(usize::try_from(line).unwrap_or_default().saturating_sub(1));
        let digits = lines.len().to_string().len();
        let row = |index: usize, _is_selected| {
            let number = u32::try_from(index + 1).unwrap_or_default();
            let hits = self
                .line_hits
                .get(&(file, number))
                .map_or(&[][..], Vec::as_slice);
            // The columns of counts; `number` is the line number.
            let mut spans = self.numbers(hits, theme);
            spans.push(Span::styled("│", theme.muted));
            spans.push(Span::styled(format!("{number:>digits$} "), theme.muted));
            spans.push(Span::raw(
                lines
                    .get(index)
                    .map_or(String::new(), |text| expand_tabs(text)),
            ));
            Line::from(spans)
        };
        let scrolled = ScrolledList {
            list: &mut list,
            left: 0,
        };
        draw_rows(frame, rest, theme, scrolled, row);
    }

    /// Returns the index of the file, and the line number, of the instruction at the cursor.
    pub(super) fn source_line(&self) -> Option<(usize, u32)> {
        let code = &self.shown.code;
        let row = self.rows.get(self.list.cursor()?)?;
        self.line_of(code.instructions.get(row.instruction)?)
    }

    /// Returns the index of the file, and the line number, of an instruction.
    pub(super) fn line_of(&self, instruction: &Instruction) -> Option<(usize, u32)> {
        let site = self.shown.code.sites.get(instruction.site?)?;
        site.line
    }
}
