//! The browser of `annotate`, driven through a terminal.

use std::process::Command;

use rperf_testkit::{Bytes, PerfFile, Scratch};

use super::assert_refused;
use super::generated_files::{Attr, file, record};
use super::tmux::Tmux;

/// `PERF_SAMPLE_IP`, `_TID`, `_TIME`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2;
/// The address of the program's code.
const TEXT: u64 = 0x40_1000;

/// A program for x86-64 in assembly, so that its code does not depend on a compiler.
const PROGRAM: &str = "# Two functions
	.text
	.globl	leaf
	.type	leaf, @function
leaf:
	push	%rbp
	mov	$100, %ecx
1:	add	$3, %rax	# the hottest
	imul	%rax, %rax
	dec	%rcx
	jnz	1b
	call	twist
	pop	%rbp
	ret
	.size	leaf, .-leaf
	.globl	twist
	.type	twist, @function
twist:
	lea	1(%rax), %rax
	ret
	.size	twist, .-twist
";

/// The samples: offset from the start of the code, and count. The last offset is that of `twist`.
const SAMPLES: &[(u64, usize)] = &[(6, 60), (10, 25), (14, 1), (17, 4), (26, 10)];

/// A directory with the program, its source and a recording of it.
fn recording() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("calc.s", PROGRAM).expect("a file");
    let prefix_map = format!("-Wa,--debug-prefix-map={}=/src", scratch.path().display());
    let status = Command::new("cc")
        .current_dir(scratch.path())
        .args(["-g", "-nostdlib", "-static", "-no-pie", &prefix_map])
        .args(["-Wl,-Ttext=0x401000", "-Wl,--build-id=none", "-Wl,-e,leaf"])
        .args(["-o", "calc", "calc.s"])
        .status();
    assert!(status.expect("a C compiler").success());
    let mmap = Bytes::new().u32(7).u32(7).u64(TEXT).u64(0x1000);
    let mmap = mmap.u64(0x1000).text("./calc", 8);
    let comm = Bytes::new().u32(7).u32(7).text("calc", 8);
    let mut records = vec![
        record(PerfFile::MMAP, PerfFile::USER, mmap),
        record(PerfFile::COMM, 0, comm),
    ];
    let ips = SAMPLES
        .iter()
        .flat_map(|(offset, count)| vec![TEXT + *offset; *count]);
    for (time, ip) in (1..).zip(ips) {
        let body = Bytes::new().u64(ip).u32(7).u32(7).u64(time);
        records.push(record(PerfFile::SAMPLE, PerfFile::USER, body));
    }
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        no_sample_id_all: true,
        ..Attr::default()
    };
    let bytes = file(&attr, "x86_64", &records.concat());
    scratch.write("perf.data", bytes).expect("a file");
    scratch
}

/// Starts a command on the recording in `scratch` and waits until it shows the event count.
fn browser(size: (u16, u16), scratch: &Scratch, words: &str) -> Option<Tmux> {
    let tmux = Tmux::start(size, scratch.path(), "", words)?;
    tmux.wait_for("Event count");
    Some(tmux)
}

/// The command. Its options find the source, which the debug information names `/src/calc.s`, in the working directory.
const ANNOTATE: &str = "annotate --prefix . --prefix-strip 1";

#[test]
fn code_has_arrows_addresses_and_source() {
    let scratch = recording();
    let Some(tmux) = browser((80, 24), &scratch, ANNOTATE) else {
        return;
    };
    tmux.golden("annotate", "← ret");
    // Without source (s), from the hottest instruction down to the jump of its loop; J shows numbers of jumps, o addresses, and
    // O more offsets.
    tmux.press(&["s", "Down", "Down", "Down", "J", "o", "O", "O"]);
    tmux.golden("annotate_jump", "└──");
    // J, o, O and s are undone. k shows line numbers, p selects percentages of the event's total, two t show sample counts, and
    // l shows the source line of the hottest instruction (H).
    tmux.press(&["J", "o", "O", "s", "k", "p", "t", "t", "H", "l"]);
    tmux.golden("annotate_counts", "calc.s:8");
    tmux.press(&["P"]);
    tmux.wait_for("leaf.annotation was written.");
    let text = std::fs::read_to_string(scratch.path().join("leaf.annotation"));
    assert!(text.is_ok_and(|text| text.contains("\n    60 │6:")));
    tmux.press(&["q", "q"]);
    tmux.ends_with(0);
}

#[test]
fn calls_are_followed_and_left() {
    let scratch = recording();
    let Some(tmux) = browser((80, 24), &scratch, ANNOTATE) else {
        return;
    };
    // The first match is the source line, the next one (n) the instruction.
    tmux.press(&["/", "c", "a", "l", "l", "Enter", "n", "Enter"]);
    tmux.wait_for("twist  ./calc");
    // The `ret` at the end leads back to the caller.
    tmux.press(&["End", "Enter"]);
    tmux.wait_for("leaf  ./calc");
    // To the next colder function.
    tmux.press(&[">"]);
    tmux.wait_for("twist  ./calc");
    tmux.press(&[">"]);
    tmux.wait_for("No colder function.");
    // q closes the notice, Escape the code of `twist`.
    tmux.press(&["q", "Escape"]);
    tmux.wait_for("leaf  ./calc");
    // r lists the samples of the function.
    tmux.press(&["r"]);
    tmux.wait_for("Samples of leaf");
    tmux.press(&["q", "q"]);
    tmux.ends_with(0);
}

#[test]
fn a_large_terminal_has_room_for_source_and_code() {
    let scratch = recording();
    let Some(tmux) = browser((200, 60), &scratch, ANNOTATE) else {
        return;
    };
    tmux.press(&["S"]);
    tmux.golden("annotate_split", "# Two functions");
    tmux.press(&["h"]);
    tmux.golden("annotate_help", "hottest instruction");
    tmux.press(&["q"]);
    tmux.resize(50, 12);
    tmux.wait("a small screen", |screen| {
        screen.lines().count() == 12 && screen.contains("push %rbp")
    });
    tmux.resize(80, 24);
    tmux.press(&["C-c"]);
    tmux.ends_with(0);
}

#[test]
fn report_opens_and_closes_annotate() {
    let scratch = recording();
    let Some(tmux) = browser((80, 24), &scratch, "report --no-children") else {
        return;
    };
    tmux.wait_for("Tip:");
    tmux.press(&["a"]);
    tmux.wait_for("leaf  ./calc [Percent: local period]");
    tmux.press(&["q"]);
    tmux.wait_for("Overhead");
    tmux.press(&["Down", "Enter"]);
    tmux.wait_for("Annotate twist");
    tmux.press(&["Enter"]);
    tmux.wait_for("100.00 │");
    tmux.press(&["Left"]);
    tmux.wait_for("Overhead");
    tmux.press(&["q"]);
    tmux.ends_with(0);
    // The options of annotate in report.
    let words = "report --no-children -M intel --asm-raw --no-source --percent-type global-hits";
    let Some(tmux) = browser((80, 24), &scratch, words) else {
        return;
    };
    tmux.wait_for("Tip:");
    tmux.press(&["a"]);
    tmux.wait_for("leaf  ./calc [Percent: global hits]");
    let screen = tmux.screen();
    // Registers have no `%` in Intel syntax, and the bytes of `dec` are shown.
    assert!(
        !screen.contains('%') && screen.contains("ff c9 "),
        "{screen}"
    );
}

#[test]
fn stdio2_prints_text_on_a_terminal_and_tui_needs_one() {
    let scratch = recording();
    let words = "--no-pager annotate --stdio2";
    let Some(tmux) = Tmux::start((80, 50), scratch.path(), "", words) else {
        return;
    };
    let screen = tmux.ends_with(0);
    assert!(screen.contains("leaf() ./calc"), "{screen}");
    let text = "rperf annotate: --tui needs a terminal\n\
        hint: use --stdio, or set TERM to the type of your terminal\n";
    let path = scratch.path().join("perf.data");
    let path = path.to_str().expect("a printable path");
    assert_refused(&["annotate", "--tui", "-i", path], 129, text);
}
