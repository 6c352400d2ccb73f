use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rperf_disasm::{
    Arrow, BranchTarget, CodeLocation, CodeSite, FunctionCode, HitCount, Instruction,
};
use rperf_resolve::{Frame, Level};
use rperf_view::annotate::AnnotateOptions;

use super::*;
use crate::{AnnotateScreen, Annotated, BrowserRequest, Input, InputResult, ReaderMessage, Reply};

fn hit(samples: u64) -> HitCount {
    HitCount {
        samples,
        period: samples * 1000,
    }
}

/// An instruction of two bytes. `number` is its index in the function, `site` that of its source location.
fn instruction(number: u64, text: &str, samples: u64, site: usize) -> Instruction {
    Instruction {
        address: 0x1000 + number * 2,
        bytes: vec![0x90, 0xc3],
        brief: text.to_owned(),
        full: text.to_owned(),
        arrow: None,
        target: None,
        is_call: false,
        jump_count: 0,
        hits: vec![hit(samples)],
        site: Some(site),
    }
}

fn code() -> FunctionCode {
    let jump = Instruction {
        full: "jne  1002 <leaf+0x2>".to_owned(),
        arrow: Some(Arrow::Up),
        // The index of the instruction `target` below.
        target: Some(BranchTarget::Within(1)),
        ..instruction(2, "jne  2", 1, 1)
    };
    let call = Instruction {
        arrow: Some(Arrow::Out),
        target: Some(BranchTarget::To(0x3000)),
        is_call: true,
        ..instruction(3, "call twist", 0, 1)
    };
    let target = Instruction {
        jump_count: 1,
        ..instruction(1, "add  $1,%rax", 3, 0)
    };
    let back = Instruction {
        arrow: Some(Arrow::Back),
        ..instruction(4, "ret", 0, 0)
    };
    let file_index = 0;
    let site = |function: &str, is_inlined, line| CodeSite {
        function: function.to_owned(),
        is_inlined,
        line: Some((file_index, line)),
    };
    let is_inlined = true;
    FunctionCode {
        name: "leaf".to_owned(),
        object: "/opt/calc".to_owned(),
        start_location: CodeLocation::new(Frame::unknown(0x7f00_0000, Level::User)),
        start: 0x1000,
        instructions: vec![instruction(0, "push %rbp", 0, 0), target, jump, call, back],
        sites: vec![site("leaf", !is_inlined, 1), site("twist", is_inlined, 2)],
        files: vec!["/src/calc.c".to_owned()],
        sums: vec![hit(4)],
    }
}

fn annotated() -> Annotated {
    Annotated {
        code: code(),
        title: "Samples: 8".to_owned(),
        event: 0,
        totals: vec![hit(8)],
        sources: vec![Some(Arc::from(
            ["int\tleaf;", "\ttwist();"].map(str::to_owned),
        ))],
        bottom: String::new(),
    }
}

/// The screen without source lines, and its requests.
fn screen() -> (AnnotateScreen, Receiver<BrowserRequest>) {
    let (sender, requests) = channel();
    (screen_with(sender, AnnotateOptions::default()), requests)
}

fn screen_with(sender: Sender<BrowserRequest>, options: AnnotateOptions) -> AnnotateScreen {
    let has_colors = true;
    let theme = Theme::new(has_colors);
    let is_global = false;
    AnnotateScreen::new(Arc::new(annotated()), options, is_global, sender, theme)
}

fn press(screen: &mut AnnotateScreen, keys: &str) -> Vec<InputResult<ReaderMessage>> {
    let press =
        |letter| Screen::<ReaderMessage>::input(screen, Input::Key(key(KeyCode::Char(letter))));
    keys.chars().map(press).collect()
}

fn screen_lines(screen: &mut AnnotateScreen) -> Vec<String> {
    drawn::<ReaderMessage>(screen, 60, 12)
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
    assert_eq!(screen_lines(&mut screen), expected);
}

#[test]
fn source_lines_precede_their_instructions() {
    let (sender, _requests) = channel();
    let options = AnnotateOptions {
        source: true,
        print_line: true,
        ..AnnotateOptions::default()
    };
    let mut screen = screen_with(sender, options);
    let lines = screen_lines(&mut screen);
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
    // Without source lines the cursor stays on its instruction: `l` shows the source location at the cursor.
    press(&mut screen, "s");
    assert_eq!(screen_lines(&mut screen)[4], " 75.00 │2:   add  $1,%rax");
    press(&mut screen, "l");
    assert_eq!(screen_lines(&mut screen)[11], "calc.c:1");
}

#[test]
fn letters_change_numbers_and_addresses() {
    let (mut screen, _requests) = screen();
    // t: periods instead of percentages; p: global; o: addresses and full disassembly.
    press(&mut screen, "tpo");
    let lines = screen_lines(&mut screen);
    assert_eq!(lines[1], "leaf  /opt/calc [Percent: global period]");
    assert_eq!(lines[2], "Period      │");
    assert_eq!(lines[5], "       1000 │1004: ↑ jne  1002 <leaf+0x2>");
    // t: sample counts; b: percentages of hits; f: addresses in memory; J: jump counts.
    press(&mut screen, "tbfJ");
    let lines = screen_lines(&mut screen);
    assert_eq!(lines[1], "leaf  /opt/calc [Percent: global hits]");
    assert_eq!(lines[4], "     3 │1 7f000002:   add  $1,%rax");
    // t: percentages again (3 of all 8 samples); o, J and f: as at the start.
    press(&mut screen, "toJf");
    assert_eq!(screen_lines(&mut screen)[4], " 37.50 │2:   add  $1,%rax");
    // O: labels also of calls; then of all instructions.
    press(&mut screen, "O");
    assert_eq!(screen_lines(&mut screen)[6], "       │6: → call twist");
    press(&mut screen, "O");
    assert_eq!(screen_lines(&mut screen)[3], "       │0:   push %rbp");
}

#[test]
fn the_jump_at_the_cursor_has_an_arrow() {
    let (mut screen, _requests) = screen();
    Screen::<ReaderMessage>::input(&mut screen, Input::Key(key(KeyCode::Down)));
    let lines = screen_lines(&mut screen);
    assert_eq!(lines[4], " 75.00 │2:┌─→add  $1,%rax");
    assert_eq!(lines[5], " 25.00 │  └──jne  2");
    press(&mut screen, "j");
    assert_eq!(screen_lines(&mut screen)[5], " 25.00 │   ↑ jne  2");
}

#[test]
fn enter_follows_jumps_calls_and_returns_and_tab_selects_the_next_hottest() {
    let (mut screen, requests) = screen();
    let mut input = |code| Screen::<ReaderMessage>::input(&mut screen, Input::Key(key(code)));
    // From the hottest instruction to the next hottest, a jump; to its target, the hottest; BackTab wraps around to the jump;
    // then to the call below it.
    assert!(matches!(input(KeyCode::Tab), InputResult::Changed));
    assert!(matches!(input(KeyCode::Enter), InputResult::Changed));
    assert!(matches!(input(KeyCode::BackTab), InputResult::Changed));
    input(KeyCode::Down);
    assert!(matches!(input(KeyCode::Enter), InputResult::Changed));
    let shown = annotated().key();
    assert_eq!(
        requests.try_recv(),
        Ok(BrowserRequest::Follow(shown, 0x3000))
    );
    // At the return, Enter closes the screen.
    input(KeyCode::End);
    assert!(matches!(
        input(KeyCode::Enter),
        InputResult::Close(Reply::Cancelled)
    ));
    // The pending request for the call's target hides the message that the first instruction has no target.
    input(KeyCode::Home);
    input(KeyCode::Enter);
    let message_line = screen_lines(&mut screen).pop();
    assert_eq!(message_line.as_deref(), Some("Working..."));
}

#[test]
fn a_requested_function_opens_a_new_screen() {
    let (mut screen, requests) = screen();
    let message = ReaderMessage::Code(Arc::new(annotated()));
    assert!(matches!(screen.message(&message), InputResult::Unchanged));
    press(&mut screen, ">");
    let shown = annotated().key();
    assert_eq!(requests.try_recv(), Ok(BrowserRequest::Colder(shown)));
    assert!(matches!(screen.message(&message), InputResult::Push(_)));
    assert!(matches!(screen.message(&message), InputResult::Unchanged));
}

#[test]
fn new_samples_update_the_screen() {
    let (mut screen, _requests) = screen();
    let mut later = annotated();
    later.code.sums = vec![hit(5)];
    later.code.instructions[4].hits = vec![hit(1)];
    assert!(matches!(
        screen.message(&ReaderMessage::Update(Arc::new(later.clone()))),
        InputResult::Changed
    ));
    assert_eq!(screen_lines(&mut screen)[7], " 20.00 │   ← ret");
    later.event = 1;
    assert!(matches!(
        screen.message(&ReaderMessage::Update(Arc::new(later))),
        InputResult::Unchanged
    ));
}

#[test]
fn searches_wrap_around_in_both_directions() {
    let (mut screen, _requests) = screen();
    // Returns the location of the match, or the message that there is none.
    let mut find = |search_key: &str, text: &str| {
        press(&mut screen, search_key);
        let typed = Reply::Typed(text.to_owned());
        Screen::<ReaderMessage>::input(&mut screen, Input::Reply(typed));
        let message_line = screen_lines(&mut screen).pop().unwrap_or_default();
        if message_line.contains("not found") {
            return message_line;
        }
        press(&mut screen, "l");
        screen_lines(&mut screen).pop().unwrap_or_default()
    };
    assert_eq!(find("/", "call"), "calc.c:2");
    // Past the end to the first instruction; then backwards, past the start.
    assert_eq!(find("/", "push"), "calc.c:1");
    assert_eq!(find("?", "jne"), "calc.c:2");
    assert_eq!(find("/", "nothing"), "'nothing' not found");
}

#[test]
fn source_and_instructions_are_shown_side_by_side() {
    let (mut screen, _requests) = screen();
    press(&mut screen, "S");
    let lines = screen_lines(&mut screen);
    let expected = [
        "/src/calc.c                   Percent│",
        " 75.00 │1 int     leaf;              │     push %rbp",
        " 25.00 │2         twist();     75.00 │2:   add  $1,%rax",
        "                               25.00 │   ↑ jne  2",
    ];
    assert_eq!(lines[2..6], expected);
    // Screens that are too small or very wide are drawn without a panic.
    for (width, height) in [(1, 1), (2, 3), (10, 4), (300, 2)] {
        drawn::<ReaderMessage>(&mut screen, width, height);
    }
}

#[test]
fn saved_functions_have_the_shown_lines() {
    let (mut screen, requests) = screen();
    press(&mut screen, "P");
    let Ok(BrowserRequest::SaveFunction(name, text)) = requests.try_recv() else {
        panic!("no request to save the function");
    };
    assert_eq!(name, "leaf");
    assert!(text.contains("\n 25.00 │   ↑ jne  2\n"), "{text}");
}
