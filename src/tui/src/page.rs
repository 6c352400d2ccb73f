//! The page of a browser (not ratatui's `Frame`): a title line, column headings, rows, a bottom line.

use std::borrow::Cow;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use rperf_view::terminal::escaped_line;

use crate::list::List;
use crate::theme::Theme;

/// The parts around a list.
#[derive(Debug, Default)]
pub struct Page<'a> {
    /// The first line.
    pub title: Line<'a>,
    /// The column headings, or other lines above the rows.
    pub headings: Vec<Line<'a>>,
    /// The last line: help, or progress.
    pub bottom: Line<'a>,
}

/// A list, and how far its rows are scrolled to the right.
#[derive(Debug)]
pub struct ScrolledList<'l> {
    /// The list.
    pub list: &'l mut List,
    /// Number of characters of each row that are scrolled out of view on the left.
    pub left: usize,
}

impl Page<'_> {
    /// Draws the page with the visible rows of `scrolled`. `row` renders a row; it receives the row's number, and whether the
    /// cursor is on it. Headings are scrolled to the right like the rows.
    pub fn draw<'r>(
        self,
        frame: &mut Frame<'_>,
        area: Rect,
        theme: &Theme,
        scrolled: ScrolledList<'_>,
        row: impl FnMut(usize, bool) -> Line<'r>,
    ) {
        let left = scrolled.left;
        let mut rects = area.rows();
        if let Some(rect) = rects.next() {
            draw_bar(frame, rect, theme, self.title);
        }
        let last = rects.next_back();
        for heading in self.headings {
            if let Some(rect) = rects.next() {
                let heading = escaped(heading).style(theme.heading);
                put(frame, shifted(heading, left), rect);
            }
        }
        // The lines between the headings and the bottom line, for the rows.
        let rest = match rects.next() {
            Some(rect) => Rect {
                height: u16::try_from(rects.count() + 1).unwrap_or(u16::MAX),
                ..rect
            },
            None => Rect::default(),
        };
        draw_rows(frame, rest, theme, scrolled, row);
        if let Some(rect) = last {
            draw_bar(frame, rect, theme, self.bottom);
        }
    }
}

/// Draws the visible rows of a list, each in a line of `area`.
pub(crate) fn draw_rows<'r>(
    frame: &mut Frame<'_>,
    area: Rect,
    theme: &Theme,
    scrolled: ScrolledList<'_>,
    mut row: impl FnMut(usize, bool) -> Line<'r>,
) {
    let ScrolledList { list, left } = scrolled;
    let visible = list.lay_out(area);
    let cursor = list.cursor();
    for (number, rect) in visible.zip(area.rows()) {
        let is_selected = cursor == Some(number);
        let mut line = escaped(row(number, is_selected));
        if is_selected {
            // The selection style applies to all spans of the row.
            for span in &mut line.spans {
                span.style = theme.selected;
            }
            line.style = theme.selected;
            frame.buffer_mut().set_style(rect, theme.selected);
        }
        put(frame, shifted(line, left), rect);
    }
}

/// Draws the first or the last line of a screen.
pub(crate) fn draw_bar(frame: &mut Frame<'_>, rect: Rect, theme: &Theme, line: Line<'_>) {
    frame.buffer_mut().set_style(rect, theme.bar);
    put(frame, line.style(theme.bar), rect);
}

/// Draws a line with control characters escaped; a line that the caller has escaped already is drawn as it is. Unescaped, ratatui
/// would drop C0 and C1 characters, and send the characters that change the text direction to the terminal.
pub(crate) fn put(frame: &mut Frame<'_>, line: Line<'_>, rect: Rect) {
    frame.render_widget(escaped(line), rect);
}

/// Escapes control characters except tabs, and the characters that change the text direction. `escaped_line` keeps tabs, so
/// ratatui drops them, like any control character that is not escaped.
fn escaped(mut line: Line<'_>) -> Line<'_> {
    for span in &mut line.spans {
        if let Cow::Owned(text) = escaped_line(&span.content) {
            span.content = text.into();
        }
    }
    line
}

/// Returns a line without its first `left` characters. The line must be escaped: its characters are counted as
/// shown, except that a tab, which is not shown, counts as one.
fn shifted(line: Line<'_>, left: usize) -> Line<'_> {
    if left == 0 {
        return line;
    }
    let mut skipped = 0;
    let spans = line.spans.into_iter().filter_map(|span| {
        let len = span.content.chars().count();
        let skip = left.saturating_sub(skipped).min(len);
        skipped += skip;
        // The part of the span that stays visible.
        let rest: String = match skip {
            0 => return Some(span),
            _ => span.content.chars().skip(skip).collect(),
        };
        (!rest.is_empty()).then(|| Span::styled(rest, span.style))
    });
    Line::from(spans.collect::<Vec<_>>()).style(line.style)
}
