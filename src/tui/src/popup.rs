//! Popups: boxes over a screen, to which they return a [`Reply`](crate::Reply).

mod help;
mod menu;
mod notice;
mod prompt;
mod question;

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear};

use rperf_view::terminal::escaped_line;

use crate::theme::Theme;

pub use self::help::Help;
pub use self::menu::Menu;
pub use self::notice::Notice;
pub use self::prompt::Prompt;
pub use self::question::Question;

/// The size of a popup's content.
struct PopupSize {
    /// In columns.
    width: usize,
    /// In lines.
    height: usize,
}

/// Draws an empty box in the middle of `area`, large enough for content of this size if possible; returns its inner area.
fn window(frame: &mut Frame<'_>, area: Rect, theme: &Theme, title: &str, size: PopupSize) -> Rect {
    let fit = |size: usize, room: u16| u16::try_from(size).unwrap_or(u16::MAX).min(room);
    // The border has a column or line on each side; left and right of the content there is also a space.
    let rect = Rect {
        x: 0,
        y: 0,
        width: fit(size.width.max(width([title])) + 4, area.width),
        height: fit(size.height + 2, area.height),
    };
    let rect = Rect {
        x: area.x + (area.width - rect.width) / 2,
        y: area.y + (area.height - rect.height) / 2,
        ..rect
    };
    frame.render_widget(Clear, rect);
    let title = escaped_line(title);
    let mut block = Block::bordered().style(theme.popup);
    if !title.is_empty() {
        block = block.title(format!(" {title} "));
    }
    frame.render_widget(block, rect);
    rect.inner(Margin::new(2, 1))
}

/// Returns the width of the longest line with control characters escaped, in columns; 0 without lines.
fn width<'l>(lines: impl IntoIterator<Item = &'l str>) -> usize {
    let widths = lines
        .into_iter()
        .map(|line| Line::from(escaped_line(line)).width());
    widths.max().unwrap_or_default()
}
