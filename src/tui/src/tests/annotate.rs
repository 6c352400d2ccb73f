use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rperf_disasm::{Arrow, Code, CodeSite, Goes, Hit, Instruction, Landmark};
use rperf_resolve::{Frame, Level};
use rperf_view::annotate::AnnotateOptions;

use super::*;
use crate::{AnnotateScreen, Annotated, Answer, Input, News, Reply, Request};

fn hit(samples: u64) -> Hit {
    Hit {
        samples,
        period: samples * 1000,
    }
}

/// An instruction of two bytes at its number, the samples on it, and its place in the source.
fn instruction(number: u64, words: &str, samples: u64, site: usize) -> Instruction {
    Instruction {
        address: 0x1000 + number * 2,
        bytes: vec![0x90, 0xc3],
        brief: words.to_owned(),
        full: words.to_owned(),
        arrow: None,
        goes: None,
        is_call: false,
        sources: 0,
        hits: vec![hit(samples)],
        site: Some(site),
    }
}

fn code() -> Code {
    let jump = Instruction {
        full: "jne  1002 <leaf+0x2>".to_owned(),
        arrow: Some(Arrow::Up),
        goes: Some(Goes::Within(1)),
        ..instruction(2, "jne  2", 1, 1)
    };
    let call = Instruction {
        arrow: Some(Arrow::Out),
        goes: Some(Goes::To(0x3000)),
        is_call: true,
        ..instruction(3, "call twist", 0, 1)
    };
    let target = Instruction {
        sources: 1,
        ..instruction(1, "add  $1,%rax", 3, 0)
    };
    let back = Instruction {
        arrow: Some(Arrow::Back),
        ..instruction(4, "ret", 0, 0)
    };
    let site = |function: &str, is_inlined, line| CodeSite {
        function: function.to_owned(),
        is_inlined,
        line: Some((0, line)),
    };
    Code {
        name: "leaf".to_owned(),
        object: "/opt/calc".to_owned(),
        begin: Landmark::new(Frame::unknown(0x7f00_0000, Level::User)),
        start: 0x1000,
        instructions: vec![instruction(0, "push %rbp", 0, 0), target, jump, call, back],
        sites: vec![site("leaf", false, 1), site("twist", true, 2)],
        files: vec!["/src/calc.c".to_owned()],
        sums: vec![hit(4)],
    }
}

fn annotated() -> Annotated {
    Annotated {
        code: code(),
        counted: "Samples: 8".to_owned(),
        event: 0,
        totals: vec![hit(8)],
        sources: vec![Some(Arc::from(
            ["int\tleaf;", "\ttwist();"].map(str::to_owned),
        ))],
        bottom: String::new(),
    }
}

/// The screen without lines of the source, and what it asks for.
fn screen() -> (AnnotateScreen, Receiver<Request>) {
    let (sender, requests) = channel();
    (with(sender, AnnotateOptions::default()), requests)
}

fn with(sender: Sender<Request>, options: AnnotateOptions) -> AnnotateScreen {
    let theme = Theme::new(true);
    AnnotateScreen::new(Arc::new(annotated()), (options, false), sender, theme)
}

fn press(screen: &mut AnnotateScreen, keys: &str) -> Vec<Answer<News>> {
    let press = |letter| Screen::<News>::input(screen, Input::Key(key(KeyCode::Char(letter))));
    keys.chars().map(press).collect()
}

fn shown(screen: &mut AnnotateScreen) -> Vec<String> {
    drawn::<News>(screen, 60, 12)
}

#[test]
fn instructions_have_shares_labels_and_signs() {
    let (mut screen, _requests) = screen();
    let expected = [
        "Samples: 8",
        "leaf  /opt/calc [Percent: local period]",
        "Percent│",
        "       │     push %rbp",
        " 75.00 │2:   add  $1,%rax",
        " 25.00 │   ↑ jne  2",
        "       │   → call twist",
        "       │   ← ret",
        "",
        "",
        "",
        "Press 'h' for help on key bindings",
    ];
    assert_eq!(shown(&mut screen), expected);
}

#[test]
fn lines_of_the_source_stand_where_they_change() {
    let (sender, _requests) = channel();
    let options = AnnotateOptions {
        source: true,
        lines: true,
        ..AnnotateOptions::default()
    };
    let mut screen = with(sender, options);
    let lines = shown(&mut screen);
    let expected = [
        "       │   0000000000001000 <leaf>:",
        "       │   leaf():",
        "       │   1    int     leaf;",
        "       │     push %rbp",
        " 75.00 │2:   add  $1,%rax",
        "       │   twist() (inlined):",
        "       │   2    twist();",
        " 25.00 │   ↑ jne  2",
    ];
    assert_eq!(lines[3..11], expected);
    // The cursor keeps its instruction without them.
    press(&mut screen, "s");
    assert_eq!(shown(&mut screen)[4], " 75.00 │2:   add  $1,%rax");
    press(&mut screen, "l");
    assert_eq!(shown(&mut screen)[11], "calc.c:1");
}

#[test]
fn letters_change_numbers_and_addresses() {
    let (mut screen, _requests) = screen();
    press(&mut screen, "tpo");
    let lines = shown(&mut screen);
    assert_eq!(lines[1], "leaf  /opt/calc [Percent: global period]");
    assert_eq!(lines[2], "Period      │");
    assert_eq!(lines[5], "       1000 │1004: ↑ jne  1002 <leaf+0x2>");
    press(&mut screen, "tbfJ");
    let lines = shown(&mut screen);
    assert_eq!(lines[1], "leaf  /opt/calc [Percent: global hits]");
    assert_eq!(lines[4], "     3 │1 7f000002:   add  $1,%rax");
    press(&mut screen, "toJf");
    assert_eq!(shown(&mut screen)[4], " 37.50 │2:   add  $1,%rax");
    press(&mut screen, "O");
    assert_eq!(shown(&mut screen)[6], "       │6: → call twist");
    press(&mut screen, "O");
    assert_eq!(shown(&mut screen)[3], "       │0:   push %rbp");
}

#[test]
fn the_jump_at_the_cursor_has_an_arrow() {
    let (mut screen, _requests) = screen();
    Screen::<News>::input(&mut screen, Input::Key(key(KeyCode::Down)));
    let lines = shown(&mut screen);
    assert_eq!(lines[4], " 75.00 │2:┌─→add  $1,%rax");
    assert_eq!(lines[5], " 25.00 │  └──jne  2");
    press(&mut screen, "j");
    assert_eq!(shown(&mut screen)[5], " 25.00 │   ↑ jne  2");
}

#[test]
fn enter_follows_and_tab_goes_by_heat() {
    let (mut screen, requests) = screen();
    let mut input = |code| Screen::<News>::input(&mut screen, Input::Key(key(code)));
    // From the hottest to the next, and from there to where it jumps.
    assert!(matches!(input(KeyCode::Tab), Answer::Changed));
    assert!(matches!(input(KeyCode::Enter), Answer::Changed));
    assert!(matches!(input(KeyCode::BackTab), Answer::Changed));
    input(KeyCode::Down);
    assert!(matches!(input(KeyCode::Enter), Answer::Changed));
    let seen = annotated().seen();
    assert_eq!(requests.try_recv(), Ok(Request::Follow(seen, 0x3000)));
    input(KeyCode::End);
    assert!(matches!(
        input(KeyCode::Enter),
        Answer::Leave(Reply::Cancelled)
    ));
    input(KeyCode::Home);
    input(KeyCode::Enter);
    let said = shown(&mut screen).pop();
    assert_eq!(said.as_deref(), Some("Working..."));
}

#[test]
fn another_function_comes_on_top_for_who_asked() {
    let (mut screen, requests) = screen();
    let news = News::Code(Arc::new(annotated()));
    assert!(matches!(screen.message(&news), Answer::Same));
    press(&mut screen, ">");
    let seen = annotated().seen();
    assert_eq!(requests.try_recv(), Ok(Request::Colder(seen)));
    assert!(matches!(screen.message(&news), Answer::Push(_)));
    assert!(matches!(screen.message(&news), Answer::Same));
}

#[test]
fn what_fell_meanwhile_is_taken_in() {
    let (mut screen, _requests) = screen();
    let mut later = annotated();
    later.code.sums = vec![hit(5)];
    later.code.instructions[4].hits = vec![hit(1)];
    assert!(matches!(
        screen.message(&News::Update(Arc::new(later.clone()))),
        Answer::Changed
    ));
    assert_eq!(shown(&mut screen)[7], " 20.00 │   ← ret");
    later.event = 1;
    assert!(matches!(
        screen.message(&News::Update(Arc::new(later))),
        Answer::Same
    ));
}

#[test]
fn texts_are_found_both_ways() {
    let (mut screen, _requests) = screen();
    // The last line after a search: the place of what was found.
    let mut find = |prompt: &str, text: &str| {
        press(&mut screen, prompt);
        let typed = Reply::Typed(text.to_owned());
        Screen::<News>::input(&mut screen, Input::Reply(typed));
        let said = shown(&mut screen).pop().unwrap_or_default();
        if said.contains("not found") {
            return said;
        }
        press(&mut screen, "l");
        shown(&mut screen).pop().unwrap_or_default()
    };
    assert_eq!(find("/", "call"), "calc.c:2");
    assert_eq!(find("/", "push"), "calc.c:1");
    assert_eq!(find("?", "jne"), "calc.c:2");
    assert_eq!(find("/", "nothing"), "'nothing' not found");
}

#[test]
fn source_and_instructions_stand_side_by_side() {
    let (mut screen, _requests) = screen();
    press(&mut screen, "S");
    let lines = shown(&mut screen);
    let expected = [
        "/src/calc.c                   Percent│",
        " 75.00 │1 int     leaf;              │     push %rbp",
        " 25.00 │2         twist();     75.00 │2:   add  $1,%rax",
        "                               25.00 │   ↑ jne  2",
    ];
    assert_eq!(lines[2..6], expected);
    for (width, height) in [(1, 1), (2, 3), (10, 4), (300, 2)] {
        drawn::<News>(&mut screen, width, height);
    }
}

#[test]
fn all_lines_are_printed_as_they_are_shown() {
    let (mut screen, requests) = screen();
    press(&mut screen, "P");
    let Ok(Request::SaveFunction(name, text)) = requests.try_recv() else {
        panic!("nothing is to be saved");
    };
    assert_eq!(name, "leaf");
    assert!(text.contains("\n 25.00 │   ↑ jne  2\n"), "{text}");
}
