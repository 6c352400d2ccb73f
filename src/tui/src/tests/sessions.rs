use std::sync::mpsc::{Sender, channel};

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::*;
use crate::{Answer, Error, Input, List, Menu, Page, Reply, Session};

/// A million rows, and what became of them.
struct Numbers {
    list: List,
    left: usize,
    news: u32,
    /// Told each time it is painted, with the number of rows that were made.
    painted: Sender<usize>,
    said: Vec<Reply>,
}

impl Screen<u32> for Numbers {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let page = Page {
            title: Line::from(format!("{} rows, news {}", self.list.len(), self.news)),
            headings: vec![Line::from("Number")],
            bottom: Line::from(format!("{:?}", self.said)),
        };
        let mut made = 0;
        let row = |number: usize, _| {
            made += 1;
            Line::from(format!("row {number}"))
        };
        page.draw(frame, area, theme, (&mut self.list, self.left), row);
        self.painted.send(made).expect("the test listens");
    }

    fn input(&mut self, input: Input) -> Answer<u32> {
        match input {
            Input::Key(key) if self.list.key(key) => Answer::Changed,
            Input::Key(key) => match key.code {
                KeyCode::Right => {
                    self.left += 1;
                    Answer::Changed
                }
                KeyCode::Enter => Answer::Push(Box::new(Menu::new("", vec!["one".to_owned()]))),
                KeyCode::Char('q') => Answer::Leave(Reply::Cancelled),
                _ => Answer::Same,
            },
            Input::Reply(reply) => {
                self.said.push(reply);
                Answer::Changed
            }
            _ => Answer::Same,
        }
    }

    fn message(&mut self, news: &u32) -> Answer<u32> {
        self.news = *news;
        Answer::Changed
    }
}

/// What is on a terminal of 16 columns and 6 lines after these keys, and how many rows were made for each paint.
fn after(keys: &[KeyCode], news: &[u32]) -> (Result<(), Error>, Vec<String>, Vec<usize>) {
    let (painted, paints) = channel();
    let (sender, messages) = channel();
    for news in news {
        sender.send(*news).expect("the session listens");
    }
    drop(sender);
    let numbers = Numbers {
        list: List::new(1_000_000),
        left: 0,
        news: 0,
        painted,
        said: Vec::new(),
    };
    let mut terminal = ratatui::Terminal::new(TestBackend::new(16, 6)).expect("a buffer");
    let mut session = Session::new(Box::new(numbers), messages, Theme::new(false));
    let ended = session.run(&mut terminal, &mut pressed(keys));
    drop(session);
    (ended, lines(terminal.backend()), paints.iter().collect())
}

#[test]
fn only_seen_rows_are_made_and_only_changes_are_painted() {
    use KeyCode::{Char, Down, End, PageDown};
    let (ended, lines, paints) = after(&[Char('x'), End, Char('x'), Char('q')], &[]);
    assert!(ended.is_ok());
    let expected = [
        "1000000 rows, ne",
        "Number",
        "row 999997",
        "row 999998",
        "row 999999",
        "[]",
    ];
    assert_eq!(lines, expected);
    assert_eq!(paints, [3, 3]);
    let (_, lines, _) = after(&[PageDown, Down, Char('q')], &[]);
    assert_eq!(lines[2..5], ["row 2", "row 3", "row 4"]);
}

#[test]
fn rows_shift_sideways_and_titles_with_them() {
    let keys = [KeyCode::Right, KeyCode::Right, KeyCode::Char('q')];
    let (_, lines, _) = after(&keys, &[]);
    assert_eq!(lines[1..3], ["mber", "w 0"]);
}

#[test]
fn a_popup_lies_over_the_screen_and_replies_to_it() {
    let (ended, lines, _) = after(&[KeyCode::Enter], &[]);
    assert!(ended.is_err_and(|error| error.to_string() == "failed to read the terminal"));
    assert_eq!(lines[1..4], ["Numb┌─────┐", "row │ one │", "row └─────┘"]);
    let keys = [KeyCode::Enter, KeyCode::Enter, KeyCode::Char('q')];
    let (ended, lines, _) = after(&keys, &[]);
    assert!(ended.is_ok());
    assert_eq!(lines[5], "[Chosen(0)]");
}

/// Opens another of its kind by each key, but `q`.
struct Opening {
    is_drawn: bool,
}

impl Screen<u32> for Opening {
    fn draw(&mut self, _: &mut Frame<'_>, _: Rect, _: &Theme) {
        self.is_drawn = true;
    }

    fn input(&mut self, input: Input) -> Answer<u32> {
        assert!(self.is_drawn, "{input:?} comes before it knows its size");
        match input {
            Input::Key(key) if key.code == KeyCode::Char('q') => Answer::Leave(Reply::Cancelled),
            Input::Key(key) if key.code == KeyCode::Char('r') => {
                Answer::Replace(Box::new(Self { is_drawn: false }))
            }
            Input::Key(_) => Answer::Push(Box::new(Self { is_drawn: false })),
            _ => Answer::Same,
        }
    }
}

#[test]
fn keys_that_came_together_reach_a_new_screen_when_it_was_drawn() {
    let (_, messages) = channel();
    let mut terminal = ratatui::Terminal::new(TestBackend::new(16, 6)).expect("a buffer");
    let first = Opening { is_drawn: false };
    let mut session = Session::new(Box::new(first), messages, Theme::new(false));
    let keys = ['o', 'o', 'r', 'o', 'q', 'q', 'q', 'q'].map(KeyCode::Char);
    assert!(session.run(&mut terminal, &mut pressed(&keys)).is_ok());
}

#[test]
fn news_reach_screens_below_popups_and_are_painted_together() {
    let (_, lines, paints) = after(&[KeyCode::Char('q')], &[1, 2, 3]);
    assert_eq!(lines[0], "1000000 rows, ne");
    assert_eq!(paints, [3, 3]);
}

#[test]
fn control_c_ends_everything() {
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let (painted, _paints) = channel();
    let numbers = Numbers {
        list: List::new(5),
        left: 0,
        news: 0,
        painted,
        said: Vec::new(),
    };
    let (_, messages) = channel();
    let mut terminal = ratatui::Terminal::new(TestBackend::new(16, 6)).expect("a buffer");
    let mut session = Session::new(Box::new(numbers), messages, Theme::new(false));
    let keys = VecDeque::from([Event::Key(KeyCode::Enter.into()), Event::Key(control_c)]);
    assert!(session.run(&mut terminal, &mut Pressed(keys)).is_ok());
}

#[test]
fn a_list_keeps_its_cursor_in_sight() {
    let mut list = List::new(100);
    let area = Rect::new(0, 2, 10, 10);
    assert_eq!(list.lay_out(area), 0..10);
    list.go_to(50);
    assert_eq!(list.lay_out(area), 41..51);
    // A smaller terminal.
    assert_eq!(list.lay_out(Rect::new(0, 2, 10, 4)), 47..51);
    list.set_len(20);
    assert_eq!((list.cursor(), list.lay_out(area)), (Some(19), 10..20));
    list.center(12);
    assert_eq!(list.lay_out(area), 7..17);
    // Two rows came above it.
    list.follow(14);
    assert_eq!(list.lay_out(area), 9..19);
    list.set_len(0);
    assert_eq!((list.cursor(), list.lay_out(area)), (None, 0..0));
    assert_eq!(list.lay_out(Rect::default()), 0..0);
}

#[test]
fn a_search_goes_round() {
    let mut list = List::new(10);
    list.go_to(5);
    let even = |row: usize| row.is_multiple_of(4);
    assert_eq!(list.find(false, even), Some(8));
    assert_eq!(list.find(true, even), Some(4));
    list.go_to(8);
    assert_eq!(list.find(false, even), Some(0));
    list.go_to(0);
    assert_eq!(list.find(true, even), Some(8));
    assert_eq!(list.find(false, |_| false), None);
}
