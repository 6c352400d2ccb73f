//! Renders the lines of a function.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use rperf_disasm::{Arrow, BranchTarget, CodeSite, HitCount, Instruction};
use rperf_view::annotate::{expand_tabs, file_name, function_heading, hex};
use rperf_view::padding::LeftAligned;

use super::rows::{RowContent, row_of};
use super::screen::{AnnotateScreen, ShownLabels};
use super::values::largest;
use crate::page::{ScrolledList, draw_bar, draw_rows, put};
use crate::theme::{PercentHeat, Theme};

/// The separator between numbers and code.
const BORDER: &str = "│";

/// Columns for the bytes of an instruction: those of ten bytes in hexadecimal. The text of longer instructions is shifted.
const BYTES_WIDTH: usize = 29;

/// Columns for a source line number. The text of lines with larger numbers is shifted.
const LINE_NUMBER_WIDTH: usize = 4;

/// The arrow of the jump at the cursor: the indices in `AnnotateScreen::rows` of the jump and of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JumpArrow {
    from: usize,
    to: usize,
}

impl JumpArrow {
    /// Returns the part of the arrow in line `row`: three columns right after the label. `None` if the arrow does not cross the
    /// line, or is a jump to its own line.
    fn at(self, row: usize) -> Option<&'static str> {
        let (first, last) = (self.from.min(self.to), self.from.max(self.to));
        let is_target = row == self.to;
        match row {
            _ if first == last || row < first || row > last => None,
            _ if row == first => Some(if is_target { "┌─→" } else { "┌──" }),
            _ if row == last => Some(if is_target { "└─→" } else { "└──" }),
            _ => Some("│  "),
        }
    }
}

impl AnnotateScreen {
    /// Draws the screen.
    pub(super) fn paint(
        &mut self,
        frame: &mut Frame<'_>,
        area: Rect,
        theme: &Theme,
        bottom: Line<'_>,
    ) {
        let mut lines = area.rows();
        if let Some(row) = lines.next() {
            let title = Line::from(Span::raw(&self.shown.title));
            draw_bar(frame, row, theme, title);
        }
        let last = lines.next_back();
        if let Some(row) = lines.next() {
            let heading = Line::from(Span::raw(self.heading()));
            put(frame, heading.style(theme.heading), row);
        }
        let rest = Rect {
            y: area.y.saturating_add(2),
            height: u16::try_from(lines.count()).unwrap_or(u16::MAX),
            ..area
        };
        let code = match self.looks.split && rest.height > 0 {
            true => {
                let side = rest.width / 2;
                let source = Rect {
                    width: side.saturating_sub(1),
                    ..rest
                };
                self.draw_source(frame, source, theme);
                Rect {
                    x: rest.x + side,
                    width: rest.width - side,
                    ..rest
                }
            }
            false => rest,
        };
        self.draw_code(frame, code, theme);
        if let Some(row) = last {
            draw_bar(frame, row, theme, bottom);
        }
    }

    /// Returns the second line: the function, its object, and what percentages relate to.
    fn heading(&self) -> String {
        let code = &self.shown.code;
        let base = self.column_options.percent_base();
        format!("{}  {} [Percent: {base}]", code.name, code.object)
    }

    /// Draws the title of the numbers and the visible lines.
    fn draw_code(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let mut lines = area.rows();
        if let Some(row) = lines.next() {
            let title = self.column_options.column.title();
            let text = format!("{}{BORDER}", LeftAligned(title, self.numbers_width()));
            put(frame, Line::from(text).style(theme.heading), row);
        }
        let rest = Rect {
            y: area.y.saturating_add(1),
            height: area.height.saturating_sub(1),
            ..area
        };
        if self.is_fresh
            && let Some(row) = self.list.cursor()
        {
            // Until now, the height of the list was unknown, so the cursor could not be centered.
            self.is_fresh = false;
            self.list.lay_out(rest);
            self.list.center(row);
        }
        // A copy, as `render_row` borrows `self`.
        let mut list = self.list.clone();
        let jump_arrow = self.jump_arrow();
        let render_row = |number, _is_selected| self.line(number, jump_arrow, theme);
        let scrolled = ScrolledList {
            list: &mut list,
            left: self.left,
        };
        draw_rows(frame, rest, theme, scrolled, render_row);
        self.list = list;
    }

    /// Returns the width of the numbers before the separator: one number for each event.
    fn numbers_width(&self) -> usize {
        self.column_options.column.brief_width() * self.shown.code.sums.len().max(1)
    }

    /// Returns the arrow of the jump at the cursor, if arrows are shown.
    fn jump_arrow(&self) -> Option<JumpArrow> {
        if !self.looks.arrows {
            return None;
        }
        let from = self.list.cursor()?;
        let row = self
            .rows
            .get(from)
            .filter(|row| row.kind == RowContent::Code)?;
        let instruction = self.shown.code.instructions.get(row.instruction)?;
        let Some(BranchTarget::Within(target)) = instruction.target else {
            return None;
        };
        let to = row_of(&self.rows, target);
        Some(JumpArrow { from, to })
    }

    /// Renders the line with index `number` in `rows`.
    fn line(&self, number: usize, jump_arrow: Option<JumpArrow>, theme: &Theme) -> Line<'static> {
        let Some(row) = self.rows.get(number) else {
            return Line::default();
        };
        let code = &self.shown.code;
        let Some(instruction) = code.instructions.get(row.instruction) else {
            return Line::default();
        };
        let hits = match row.kind {
            RowContent::Code => instruction.hits.as_slice(),
            _ => &[],
        };
        let mut spans = self.numbers(hits, theme);
        // In the split view, the instructions of the cursor's source line are marked.
        let is_marked = self.looks.split
            && self
                .source_line()
                .is_some_and(|line| self.line_of(instruction) == Some(line));
        let border = match is_marked {
            true => theme.cursor_line_border,
            false => theme.muted,
        };
        spans.push(Span::styled(BORDER, border));
        let arrow = jump_arrow.and_then(|jump_arrow| jump_arrow.at(number));
        match row.kind {
            RowContent::Code => self.instruction_spans(instruction, arrow, theme, &mut spans),
            _ => {
                let gutter = self.jump_counts_width() + self.label_width() + 1;
                spans.push(Span::raw(" ".repeat(gutter)));
                // The arrow starts and ends at instructions, so it can only pass this line: as a stroke, like the border.
                let passing = if arrow.is_some() { BORDER } else { " " };
                spans.push(Span::styled(passing, theme.jump));
                spans.push(Span::raw(self.line_text(number)));
            }
        }
        Line::from(spans)
    }

    fn instruction_spans(
        &self,
        instruction: &Instruction,
        arrow: Option<&'static str>,
        theme: &Theme,
        spans: &mut Vec<Span<'static>>,
    ) {
        if self.looks.jump_counts {
            let width = self.jump_counts_width() - 1;
            let text = match instruction.jump_count {
                0 => format!("{:width$} ", ""),
                count => format!("{count:>width$} "),
            };
            spans.push(Span::raw(text));
        }
        let width = self.label_width() + 1;
        let label = self
            .label(instruction)
            .map_or(String::new(), |at| format!("{at:x}:"));
        spans.push(Span::styled(format!("{label:<width$}"), theme.address));
        match arrow {
            Some(arrow) => spans.push(Span::styled(arrow, theme.jump)),
            None => {
                let sign = instruction.arrow.map_or(' ', Arrow::sign);
                spans.push(Span::styled(format!(" {sign} "), theme.jump));
            }
        }
        let heat = self.heat(&instruction.hits);
        spans.push(Span::styled(self.code_text(instruction), theme.heat(heat)));
    }

    /// Returns the heat of an instruction or source line.
    fn heat(&self, hits: &[HitCount]) -> PercentHeat {
        let shown = &self.shown;
        PercentHeat::of(largest(&self.column_options.shares(
            hits,
            &shown.code,
            &shown.totals,
        )))
    }

    /// Formats the numbers of an instruction or source line; blank if all percentages are 0.
    pub(super) fn numbers(&self, hits: &[HitCount], theme: &Theme) -> Vec<Span<'static>> {
        let shown = &self.shown;
        let shares = self.column_options.shares(hits, &shown.code, &shown.totals);
        if largest(&shares) == 0.0 {
            return vec![Span::raw(" ".repeat(self.numbers_width()))];
        }
        let width = self.column_options.column.brief_width() - 1;
        let pairs = hits.iter().zip(shares);
        let span = |(hit, share): (&HitCount, f64)| {
            let number = self.column_options.column.number(*hit, share);
            Span::styled(
                format!("{number:>width$} "),
                theme.heat(PercentHeat::of(share)),
            )
        };
        pairs.map(span).collect()
    }

    /// Returns the width of the number of jumps to an instruction, with the space after it; 0 if not shown.
    fn jump_counts_width(&self) -> usize {
        if !self.looks.jump_counts {
            return 0;
        }
        let counts = self.shown.code.instructions.iter();
        let most = counts
            .map(|instruction| instruction.jump_count)
            .max()
            .unwrap_or_default();
        most.to_string().len() + 1
    }

    /// Returns the width of labels without the colon: that of the last address.
    fn label_width(&self) -> usize {
        let code = &self.shown.code;
        let last = code.instructions.last();
        last.map_or(0, |last| format!("{:x}", self.address(last)).len())
    }

    /// Returns the address or offset shown before an instruction, if any.
    fn label(&self, instruction: &Instruction) -> Option<u64> {
        let is_shown = self.looks.addresses
            || instruction.jump_count > 0
            || match self.looks.labels {
                ShownLabels::Targets => false,
                ShownLabels::Calls => instruction.is_call,
                ShownLabels::All => true,
            };
        is_shown.then(|| self.address(instruction))
    }

    /// Returns the address in memory or in the object, or the offset in the function, as selected.
    fn address(&self, instruction: &Instruction) -> u64 {
        let code = &self.shown.code;
        match (self.looks.in_memory, self.looks.addresses) {
            (true, _) => code.in_memory(instruction),
            (false, true) => instruction.address,
            (false, false) => instruction.address.wrapping_sub(code.start),
        }
    }

    fn code_text(&self, instruction: &Instruction) -> String {
        // `addresses` also selects the disassembly with addresses in the operands.
        let text = match self.looks.addresses {
            true => &instruction.full,
            false => &instruction.brief,
        };
        match self.options.raw {
            true => format!("{:<BYTES_WIDTH$} {text}", hex(&instruction.bytes)),
            false => text.clone(),
        }
    }

    /// Returns the text of a line without the numbers before the separator, and without jump counts and labels.
    pub(super) fn line_text(&self, number: usize) -> String {
        let code = &self.shown.code;
        let Some(row) = self.rows.get(number) else {
            return String::new();
        };
        let site = |index: usize| code.sites.get(index);
        match row.kind {
            RowContent::Start => format!("{:016x} <{}>:", code.start, code.name),
            RowContent::Function(at) => site(at).map_or(String::new(), |site| {
                function_heading(&site.function, site.is_inlined)
            }),
            RowContent::Source(at) => site(at).map_or(String::new(), |site| self.source_text(site)),
            RowContent::Code => {
                let instruction = code.instructions.get(row.instruction);
                instruction.map_or(String::new(), |instruction| self.code_text(instruction))
            }
        }
    }

    /// Returns the source line of a location; file and line number if the text is unavailable.
    fn source_text(&self, site: &CodeSite) -> String {
        let Some((file, line)) = site.line else {
            return String::new();
        };
        let index = usize::try_from(line).unwrap_or_default().checked_sub(1);
        let lines = self.shown.sources.get(file).and_then(Option::as_ref);
        let text = lines.zip(index).and_then(|(lines, index)| lines.get(index));
        match (text, self.looks.line_numbers) {
            (Some(text), true) => {
                format!("{line:<LINE_NUMBER_WIDTH$} {}", expand_tabs(text.trim()))
            }
            (Some(text), false) => expand_tabs(text.trim()),
            (None, _) => {
                let path = self.shown.code.files.get(file).map_or("", String::as_str);
                format!("{}:{line}", file_name(path, &self.options))
            }
        }
    }

    /// Returns the first two lines of the screen and all lines of the function as text.
    pub(super) fn text(&self) -> String {
        let no_arrow = None;
        let mut text = format!("{}\n{}\n", self.shown.title, self.heading());
        for number in 0..self.rows.len() {
            let line = self.line(number, no_arrow, &self.theme).to_string();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
