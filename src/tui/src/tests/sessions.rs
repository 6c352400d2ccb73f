use std::sync::mpsc::{Receiver, Sender, channel};

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::*;
use crate::list::{BACKWARDS, FORWARDS};
use crate::{Error, Input, InputResult, List, Menu, Page, Reply, ScrolledList, Session};

/// Whether the screens of these tests have colours.
const HAS_COLORS: bool = false;

/// A list of numbered rows that counts the rows it builds.
struct Numbers {
    list: List,
    /// Number of columns that are scrolled out of view on the left.
    left: usize,
    last_message: u32,
    /// Where the number of rows built is sent at each paint.
    painted: Sender<usize>,
    replies: Vec<Reply>,
}

impl Screen<u32> for Numbers {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let page = Page {
            title: Line::from(format!(
                "message {}, {} rows",
                self.last_message,
                self.list.len()
            )),
            headings: vec![Line::from("Number")],
            bottom: Line::from(format!("{:?}", self.replies)),
        };
        let mut built = 0;
        let row = |number: usize, _| {
            built += 1;
            Line::from(format!("row {number}"))
        };
        let scrolled = ScrolledList {
            list: &mut self.list,
            left: self.left,
        };
        page.draw(frame, area, theme, scrolled, row);
        self.painted.send(built).expect("the test listens");
    }

    fn input(&mut self, input: Input) -> InputResult<u32> {
        match input {
            Input::Key(key) if self.list.key(key) => InputResult::Changed,
            Input::Key(key) => match key.code {
                KeyCode::Right => {
                    self.left += 1;
                    InputResult::Changed
                }
                KeyCode::Enter => {
                    InputResult::Push(Box::new(Menu::new("", vec!["one".to_owned()])))
                }
                KeyCode::Char('q') => InputResult::Close(Reply::Cancelled),
                _ => InputResult::Unchanged,
            },
            Input::Reply(reply) => {
                self.replies.push(reply);
                InputResult::Changed
            }
            _ => InputResult::Unchanged,
        }
    }

    fn message(&mut self, message: &u32) -> InputResult<u32> {
        self.last_message = *message;
        InputResult::Changed
    }
}

/// The result of a session with these keys and messages, the contents of its terminal of 16 columns and 6 lines, and the number
/// of rows built for each paint.
fn run_session(keys: &[KeyCode], sent: &[u32]) -> (Result<(), Error>, Vec<String>, Vec<usize>) {
    let (painted, paints) = channel();
    let (sender, messages) = channel();
    for message in sent {
        sender.send(*message).expect("the session listens");
    }
    drop(sender);
    let numbers = Numbers {
        list: List::new(1_000_000),
        left: 0,
        last_message: 0,
        painted,
        replies: Vec::new(),
    };
    let mut terminal = ratatui::Terminal::new(TestBackend::new(16, 6)).expect("a buffer");
    let mut session = Session::new(Box::new(numbers), messages, Theme::new(HAS_COLORS));
    let ended = session.run(&mut terminal, &mut pressed(keys));
    drop(session);
    (ended, lines(terminal.backend()), paints.iter().collect())
}

#[test]
fn only_visible_rows_are_built_and_only_changes_painted() {
    use KeyCode::{Char, Down, End, PageDown};
    let (ended, lines, paints) = run_session(&[Char('x'), End, Char('x'), Char('q')], &[]);
    assert!(ended.is_ok());
    // The title is truncated to the 16 columns of the terminal.
    let expected = [
        "message 0, 10000",
        "Number",
        "row 999997",
        "row 999998",
        "row 999999",
        "[]",
    ];
    assert_eq!(lines, expected);
    // At the start, and after `End`; `x` changes nothing.
    assert_eq!(paints, [3, 3]);
    let (_, lines, _) = run_session(&[PageDown, Down, Char('q')], &[]);
    assert_eq!(lines[2..5], ["row 2", "row 3", "row 4"]);
}

#[test]
fn rows_and_headings_scroll_sideways() {
    let keys = [KeyCode::Right, KeyCode::Right, KeyCode::Char('q')];
    let (_, lines, _) = run_session(&keys, &[]);
    assert_eq!(lines[1..3], ["mber", "w 0"]);
}

#[test]
fn a_popup_covers_the_screen_and_replies_to_it() {
    // Without `q`, the session fails when there are no more keys; the menu is still open.
    let (ended, lines, _) = run_session(&[KeyCode::Enter], &[]);
    assert!(ended.is_err_and(|error| error.to_string() == "failed to read the terminal"));
    assert_eq!(lines[1..4], ["Numb┌─────┐", "row │ one │", "row └─────┘"]);
    let keys = [KeyCode::Enter, KeyCode::Enter, KeyCode::Char('q')];
    let (ended, lines, _) = run_session(&keys, &[]);
    assert!(ended.is_ok());
    assert_eq!(lines[5], "[Chosen(0)]");
}

/// A screen that checks that it is drawn before its first input. `q` closes it, `r` replaces it by a new one; other keys, and
/// messages, open a new one.
struct OpeningScreen {
    is_drawn: bool,
}

impl Screen<u32> for OpeningScreen {
    fn draw(&mut self, _: &mut Frame<'_>, _: Rect, _: &Theme) {
        self.is_drawn = true;
    }

    fn input(&mut self, input: Input) -> InputResult<u32> {
        assert!(
            self.is_drawn,
            "{input:?} arrived before the screen was drawn"
        );
        match input {
            Input::Key(key) if key.code == KeyCode::Char('q') => {
                InputResult::Close(Reply::Cancelled)
            }
            Input::Key(key) if key.code == KeyCode::Char('r') => {
                InputResult::Replace(Box::new(Self { is_drawn: false }))
            }
            Input::Key(_) => InputResult::Push(Box::new(Self { is_drawn: false })),
            _ => InputResult::Unchanged,
        }
    }

    fn message(&mut self, _: &u32) -> InputResult<u32> {
        InputResult::Push(Box::new(Self { is_drawn: false }))
    }
}

/// Keys that are all pending from the start.
struct QueuedKeys(VecDeque<KeyCode>);

impl InputSource for QueuedKeys {
    fn next(&mut self, _: Duration) -> io::Result<Option<Event>> {
        Ok(self.0.pop_front().map(|code| Event::Key(code.into())))
    }
}

/// Whether a session that starts with an [`OpeningScreen`] ends without an error.
fn opening_session_ends(messages: Receiver<u32>, keys: &str) -> bool {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(16, 6)).expect("a buffer");
    let first = OpeningScreen { is_drawn: false };
    let mut session = Session::new(Box::new(first), messages, Theme::new(HAS_COLORS));
    let mut source = QueuedKeys(keys.chars().map(KeyCode::Char).collect());
    session.run(&mut terminal, &mut source).is_ok()
}

#[test]
fn queued_keys_reach_a_new_screen_after_it_was_drawn() {
    let (_, messages) = channel();
    // Opens two screens over the first, replaces the top one, opens one more, and closes all four.
    assert!(opening_session_ends(messages, "ooroqqqq"));
}

#[test]
fn queued_keys_reach_a_screen_opened_by_a_message_after_it_was_drawn() {
    let (sender, messages) = channel();
    sender.send(1).expect("the session listens");
    assert!(opening_session_ends(messages, "qq"));
}

#[test]
fn queued_messages_are_painted_together() {
    let (_, lines, paints) = run_session(&[KeyCode::Char('q')], &[1, 2, 3]);
    assert_eq!(lines[0], "message 3, 10000");
    // At the start, and once for the three messages.
    assert_eq!(paints, [3, 3]);
}

#[test]
fn control_c_ends_the_session_with_a_menu_open() {
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let (painted, _paints) = channel();
    let numbers = Numbers {
        list: List::new(5),
        left: 0,
        last_message: 0,
        painted,
        replies: Vec::new(),
    };
    let (_, messages) = channel();
    let mut terminal = ratatui::Terminal::new(TestBackend::new(16, 6)).expect("a buffer");
    let mut session = Session::new(Box::new(numbers), messages, Theme::new(HAS_COLORS));
    let keys = VecDeque::from([Event::Key(KeyCode::Enter.into()), Event::Key(control_c)]);
    assert!(session.run(&mut terminal, &mut PressedKeys(keys)).is_ok());
}

#[test]
fn a_list_scrolls_to_its_cursor() {
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
    // Two rows were inserted above the cursor.
    list.follow(14);
    assert_eq!(list.lay_out(area), 9..19);
    list.set_len(0);
    assert_eq!((list.cursor(), list.lay_out(area)), (None, 0..0));
    assert_eq!(list.lay_out(Rect::default()), 0..0);
}

#[test]
fn a_search_wraps_around() {
    let mut list = List::new(10);
    list.go_to(5);
    let matches = |row: usize| row.is_multiple_of(4);
    let matches_nothing = |_: usize| false;
    assert_eq!(list.find(FORWARDS, matches), Some(8));
    assert_eq!(list.find(BACKWARDS, matches), Some(4));
    list.go_to(8);
    assert_eq!(list.find(FORWARDS, matches), Some(0));
    list.go_to(0);
    assert_eq!(list.find(BACKWARDS, matches), Some(8));
    assert_eq!(list.find(FORWARDS, matches_nothing), None);
}
