//! A row's call graph as a flame view: the width of a frame is its share, and below a frame are its callees or callers, as in the
//! call graph.

use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use rperf_flame::{Flame, FrameKind, Stacks};
use rperf_hist::Branch;
use rperf_view::report::share;

use super::messages::ReaderMessage;
use super::screen::ReportScreen;
use super::table::TableView;
use crate::page::{draw_bar, put};
use crate::popup::{Help, Notice};
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// The minimum width of a readable name.
const MIN_NAME_WIDTH: u16 = 3;

/// Keys and their descriptions.
const KEYS: &[(&str, &str)] = &[
    (
        "UP DOWN",
        "Go to the frame above, or to the widest one below",
    ),
    ("LEFT RIGHT", "Go to the next frame on the left or right"),
    (
        "ENTER, second click",
        "Zoom the frame to the width of the screen",
    ),
    ("ESC", "Back to the previous zoom, or leave"),
    ("q", "Leave"),
];

impl ReportScreen {
    /// Opens the flame view of the row at the cursor.
    pub(super) fn open_flame(&mut self) -> InputResult<ReaderMessage> {
        let screen = self.view().and_then(|view| FlameScreen::new(view));
        match screen {
            Some(screen) => InputResult::Push(Box::new(screen)),
            None => InputResult::Push(Box::new(Notice::new("", "There is no call graph here."))),
        }
    }
}

/// The flame view of one row. Frames are given by their index in `flame.frames`, called number; frame 0 is the root.
struct FlameScreen {
    /// The cells of the row, which the root frame shows.
    name: String,
    flame: Flame,
    /// The selected frame.
    cursor: usize,
    /// The frames that were zoomed to full width, oldest first: the root, and last the one that is zoomed now.
    zooms: Vec<usize>,
    /// Depth of the first visible line.
    top: usize,
    /// The area of the frames when last drawn: without the first and the last line of the screen.
    area: Rect,
}

impl FlameScreen {
    /// Creates the view of the row at the cursor; `None` if it has no call graph.
    fn new(view: &TableView) -> Option<Self> {
        let line = view.list.cursor()?;
        let row = view.entries.row(line)?;
        let mut stacks = Stacks::default();
        for branch in &row.graph {
            add(&mut stacks, &mut Vec::new(), branch);
        }
        if stacks.is_empty() {
            return None;
        }
        // The stacks are in call graph order, with callers or callees first: they are merged from their first frame.
        let reverse = false;
        Some(Self {
            name: row.cells.join("  "),
            flame: Flame::new(&stacks, reverse),
            cursor: 0,
            zooms: vec![0],
            top: 0,
            area: Rect::default(),
        })
    }

    /// Returns the start and end column of a frame, relative to the area; `None` if the frame's width is rounded to 0 columns, or
    /// if the frame is outside of the zoomed one. Frames above the zoomed one have the full width, too. `start` and `width` of a
    /// frame are weights, not columns.
    fn columns(&self, number: usize) -> Option<(u16, u16)> {
        let frame = self.flame.frames.get(number)?;
        let zoom = self.flame.frames.get(*self.zooms.last()?)?;
        let zoom_end = zoom.start + zoom.width;
        if frame.start >= zoom_end || frame.start + frame.width <= zoom.start {
            return None;
        }
        let width = f64::from(self.area.width);
        let column = |position: u64| {
            let offset = position.clamp(zoom.start, zoom_end) - zoom.start;
            (offset as f64 / zoom.width.max(1) as f64 * width).round() as u16
        };
        let (start, end) = (column(frame.start), column(frame.start + frame.width));
        (start < end).then_some((start, end))
    }

    /// Returns the line of a frame in the area, if visible.
    fn line(&self, number: usize) -> Option<u16> {
        let depth = self.flame.frames.get(number)?.depth.checked_sub(self.top)?;
        let line = u16::try_from(depth).ok()?;
        (line < self.area.height).then_some(line)
    }

    /// Returns the widest of the drawable frames directly below the selected one.
    fn widest_below(&self) -> Option<usize> {
        let selected = self.flame.frames.get(self.cursor)?;
        let range = selected.start..selected.start + selected.width;
        let frames = self.flame.frames.iter().enumerate();
        let below = frames.filter(|(number, frame)| {
            frame.depth == selected.depth + 1
                && range.contains(&frame.start)
                && self.columns(*number).is_some()
        });
        // Of equally wide frames, the first.
        below
            .max_by_key(|(number, frame)| (frame.width, usize::MAX - number))
            .map(|(number, _)| number)
    }

    fn key(&mut self, key: KeyEvent) -> InputResult<ReaderMessage> {
        let frames = &self.flame.frames;
        let Some(selected) = frames.get(self.cursor) else {
            return InputResult::Close(Reply::Cancelled);
        };
        let depth = selected.depth;
        let is_drawable_on_level = |number: &usize| {
            frames
                .get(*number)
                .is_some_and(|frame| frame.depth == depth)
                && self.columns(*number).is_some()
        };
        let next = match key.code {
            // A frame precedes all frames below it, so the frame above is the nearest preceding one of a smaller depth.
            KeyCode::Up => (0..self.cursor)
                .rev()
                .find(|number| frames.get(*number).is_some_and(|frame| frame.depth < depth)),
            KeyCode::Down => self.widest_below(),
            KeyCode::Left => (0..self.cursor).rev().find(is_drawable_on_level),
            KeyCode::Right => (self.cursor + 1..frames.len()).find(is_drawable_on_level),
            KeyCode::Enter => {
                if self.zooms.last() != Some(&self.cursor) {
                    self.zooms.push(self.cursor);
                }
                return InputResult::Changed;
            }
            KeyCode::Esc if self.zooms.len() > 1 => {
                self.zooms.pop();
                return InputResult::Changed;
            }
            KeyCode::Esc | KeyCode::Char('q') => return InputResult::Close(Reply::Cancelled),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => {
                return InputResult::Push(Box::new(Help::new("Keys", KEYS)));
            }
            _ => return InputResult::Unchanged,
        };
        match next {
            Some(next) => {
                self.cursor = next;
                InputResult::Changed
            }
            None => InputResult::Unchanged,
        }
    }

    fn mouse(&mut self, mouse: MouseEvent) -> InputResult<ReaderMessage> {
        if mouse.kind != MouseEventKind::Down(MouseButton::Left) {
            return InputResult::Unchanged;
        }
        let row = mouse.row.checked_sub(self.area.y);
        let column = mouse.column.checked_sub(self.area.x);
        let is_hit = |number: &usize| {
            let columns = self.columns(*number);
            row.is_some()
                && self.line(*number) == row
                && columns
                    .zip(column)
                    .is_some_and(|((start, end), column)| (start..end).contains(&column))
        };
        match (0..self.flame.frames.len()).find(is_hit) {
            // The second click.
            Some(number) if number == self.cursor => self.key(KeyCode::Enter.into()),
            Some(number) => {
                self.cursor = number;
                InputResult::Changed
            }
            None => InputResult::Unchanged,
        }
    }
}

impl Screen<ReaderMessage> for FlameScreen {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let mut lines = area.rows();
        let (first, last) = (lines.next(), lines.next_back());
        self.area = Rect {
            y: area.y + 1,
            height: area.height.saturating_sub(2),
            ..area
        };
        // Scrolls as little as needed to show the selected frame.
        let depth = self.flame.frames.get(self.cursor).map_or(0, |at| at.depth);
        let min_top = (depth + 1).saturating_sub(usize::from(self.area.height).max(1));
        self.top = self.top.clamp(min_top, depth);
        for number in 0..self.flame.frames.len() {
            let (Some((start, end)), Some(line)) = (self.columns(number), self.line(number)) else {
                continue;
            };
            let Some(item) = self.flame.frames.get(number) else {
                continue;
            };
            let place = Rect::new(area.x + start, self.area.y + line, end - start, 1);
            let name = match number {
                0 => self.name.as_str(),
                _ => self.flame.label(item).0,
            };
            let style = match number == self.cursor {
                true => theme.selected,
                false => theme.flame(name, number),
            };
            frame.buffer_mut().set_style(place, style);
            if place.width >= MIN_NAME_WIDTH {
                put(frame, Line::from(Span::raw(name)).style(style), place);
            }
        }
        if let Some(line) = first {
            draw_bar(
                frame,
                line,
                theme,
                Line::from(Span::raw(format!("Flame view: {}", self.name))),
            );
        }
        if let (Some(line), Some(at)) = (last, self.flame.frames.get(self.cursor)) {
            let (text, _) = share(at.total, self.flame.total());
            let name = match self.cursor {
                0 => "all",
                _ => self.flame.label(at).0,
            };
            let text = format!("{text} of this row, {}: {name}  (?: help)", at.total);
            draw_bar(frame, line, theme, Line::from(Span::raw(text)));
        }
    }

    fn input(&mut self, input: Input) -> InputResult<ReaderMessage> {
        match input {
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => self.mouse(mouse),
            // The help was closed.
            Input::Reply(_) => InputResult::Changed,
            Input::Tick => InputResult::Unchanged,
        }
    }
}

/// Adds the stacks of a branch. The frames of the branch follow those of `path`, which is the same again afterwards.
fn add(stacks: &mut Stacks, path: &mut Vec<u32>, branch: &Branch) {
    let len = path.len();
    for frame in &branch.frames {
        // The real kind is unknown, and not shown.
        path.push(stacks.label(frame, FrameKind::User));
    }
    let below: u64 = branch.branches.iter().map(|branch| branch.all.period).sum();
    // The samples that end in this branch, and those of sub-branches that are missing because they are below the threshold.
    let rest = branch.all.period.saturating_sub(below);
    // A branch without sub-branches is added even if its weight is 0: otherwise a graph of such branches would count as none.
    if rest > 0 || branch.branches.is_empty() {
        stacks.add(path, rest);
    }
    for branch in &branch.branches {
        add(stacks, path, branch);
    }
    path.truncate(len);
}
