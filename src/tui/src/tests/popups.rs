use super::*;
use crate::{Help, Input, InputResult, Menu, Notice, Prompt, Question, Reply, TextScreen};

/// The reply of a popup at the first of these keys that closes it. As in a session, the popup is drawn before it gets input.
fn reply(mut popup: impl Screen<()>, keys: &[KeyCode]) -> Option<Reply> {
    drawn(&mut popup, 40, 10);
    keys.iter()
        .find_map(|code| match popup.input(Input::Key(key(*code))) {
            InputResult::Close(reply) => Some(reply),
            _ => None,
        })
}

fn menu() -> Menu {
    Menu::new("Do", ["Annotate leaf", "Exit"].map(str::to_owned).to_vec())
}

#[test]
fn a_menu_is_a_box_in_the_middle() {
    let lines = drawn::<()>(&mut menu(), 21, 6);
    let expected = [
        "",
        "  ┌ Do ───────────┐",
        "  │ Annotate leaf │",
        "  │ Exit          │",
        "  └───────────────┘",
        "",
    ];
    assert_eq!(lines, expected);
}

/// ratatui itself drops ESC, BEL and newlines, but passes on bidirectional control characters.
#[test]
fn control_characters_are_escaped_and_widen_the_menu() {
    let choices = ["a\x1b[31mb\u{9b}", "c\u{202e}\nd"];
    let choices = choices.map(str::to_owned).to_vec();
    let lines = drawn::<()>(&mut Menu::new("e\x07", choices), 24, 4);
    let expected = [
        "  ┌ e\\x07 ───────────┐",
        "  │ a\\x1b[31mb\\u{9b} │",
        "  │ c\\u{202e}\\x0ad   │",
        "  └──────────────────┘",
    ];
    assert_eq!(lines, expected);
    let mut text = TextScreen::new("a\x1b", vec!["b\u{2066}\r\u{9b}\nc".to_owned()]);
    let lines = drawn::<()>(&mut text, 40, 3);
    assert_eq!(lines[..2], ["a\\x1b", "b\\u{2066}\\x0d\\u{9b}\\x0ac"]);
}

#[test]
fn popups_do_not_panic_in_small_terminals() {
    for (width, height) in [(1, 1), (2, 2), (5, 3), (3, 40)] {
        drawn::<()>(&mut menu(), width, height);
        drawn::<()>(
            &mut Prompt::new("Filter", "Name of a function", "le"),
            width,
            height,
        );
        drawn::<()>(&mut Help::new("Keys", &[("q", "leaves")]), width, height);
        drawn::<()>(&mut Notice::new("", "two\nlines"), width, height);
        drawn::<()>(&mut Question::new("Leave?"), width, height);
    }
}

#[test]
fn menus_accept_keys_and_clicks() {
    use KeyCode::{Down, Enter, Esc};
    assert_eq!(reply(menu(), &[Enter]), Some(Reply::Chosen(0)));
    assert_eq!(reply(menu(), &[Down, Enter]), Some(Reply::Chosen(1)));
    assert_eq!(reply(menu().at(1), &[Enter]), Some(Reply::Chosen(1)));
    assert_eq!(reply(menu(), &[Esc]), Some(Reply::Cancelled));
    let empty = Menu::new("", Vec::new());
    assert_eq!(reply(empty, &[Down, Enter]), Some(Reply::Cancelled));
    let mut menu = menu();
    drawn::<()>(&mut menu, 21, 6);
    let mut click_row = |row| Screen::<()>::input(&mut menu, Input::Mouse(click(5, row)));
    // Line 0 is outside the menu. Line 3 is the menu's second choice: a first click selects it, another one closes the menu.
    assert!(matches!(click_row(0), InputResult::Unchanged));
    assert!(matches!(click_row(3), InputResult::Changed));
    assert!(matches!(click_row(3), InputResult::Close(Reply::Chosen(1))));
}

#[test]
fn text_is_typed_and_corrected() {
    use KeyCode::{Backspace, Char, Enter, Esc};
    let prompt = || Prompt::new("Filter", "Name", "le");
    let typed = [Char('x'), Backspace, Char('a'), Char('f'), Enter];
    assert_eq!(reply(prompt(), &typed), Some(Reply::Typed("leaf".into())));
    assert_eq!(reply(prompt(), &[Char('q'), Esc]), Some(Reply::Cancelled));
}

#[test]
fn questions_have_two_answers() {
    use KeyCode::{Char, Enter, Esc};
    let question = || Question::new("Leave?");
    for (key, agreed) in [
        (Enter, true),
        (Char('y'), true),
        (Char('n'), false),
        (Esc, false),
    ] {
        assert_eq!(reply(question(), &[key]), Some(Reply::Confirmed(agreed)));
    }
    assert_eq!(reply(question(), &[Char('x')]), None);
}

#[test]
fn long_help_is_scrolled_and_any_other_key_closes_it() {
    let letters: Vec<String> = ('a'..='z').map(String::from).collect();
    let keys: Vec<(&str, &str)> = letters.iter().map(|key| (&**key, "does it")).collect();
    let mut help = Help::new("Keys", &keys);
    let lines = drawn::<()>(&mut help, 20, 6);
    assert_eq!(lines[1], "   │ a  does it │");
    let scrolled = Screen::<()>::input(&mut help, Input::Key(key(KeyCode::End)));
    assert!(matches!(scrolled, InputResult::Changed));
    let lines = drawn::<()>(&mut help, 20, 6);
    assert_eq!(lines[4], "   │ z  does it │");
    let closed = Screen::<()>::input(&mut help, Input::Key(key(KeyCode::Char('x'))));
    assert!(matches!(closed, InputResult::Close(_)));
}

#[test]
fn the_cursor_of_a_prompt_is_after_wide_and_escaped_characters() {
    let cursor_and_row = |typed: &str| {
        let mut prompt = Prompt::new("Filter", "Name", typed);
        let mut terminal = ratatui::Terminal::new(TestBackend::new(50, 10)).expect("a buffer");
        let theme = Theme::new(true);
        let draw = |frame: &mut ratatui::Frame<'_>| {
            Screen::<()>::draw(&mut prompt, frame, frame.area(), &theme);
        };
        terminal.draw(draw).expect("writing to memory succeeds");
        let cursor = terminal.get_cursor_position().expect("a cursor");
        let row = lines(terminal.backend()).swap_remove(usize::from(cursor.y));
        (cursor.x, row)
    };
    let (start, _) = cursor_and_row("");
    for (typed, width) in [("le", 2), ("日本", 4), ("\u{202e}", 8), ("\u{7}a", 5)] {
        let (column, row) = cursor_and_row(typed);
        assert_eq!(column - start, width, "{row}");
    }
    // Of long text, the end is shown.
    let (column, row) = cursor_and_row(&"日".repeat(60));
    assert!(column - start <= 40 && row.contains('日'), "{row}");
    let (_, row) = cursor_and_row(&("日".repeat(60) + "z"));
    assert!(row.contains("日 z") || row.contains("日z"), "{row}");
}
