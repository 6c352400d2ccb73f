//! Control characters in names: escaped on terminals; unchanged in pipes, except line ends in messages.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rperf_testkit::{Bytes, PerfFile, Scratch, skip};

use super::generated_files::{Attr, file, kcore, record};
use crate::kernel::Running;
use crate::tidy::root;

/// `PERF_SAMPLE_IP`, `_TID`, `_TIME`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2;
/// Where a fake kernel begins.
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const BUILD_ID: [u8; 20] = [0x5a; 20];
/// Where a program is mapped.
const USER: u64 = 0x40_0000;

/// The columns of a terminal on which no line is truncated.
const WIDE: Option<usize> = Some(200);

/// A name with escape sequences, control characters and a bidirectional override.
const NAME: &str = "a\x1b]0;pwned\x07\r\u{9b}5m\u{202e}\x1b[31mz";
/// The escaped form of the name.
const ESCAPED_NAME: &str = "a\\x1b]0;pwned\\x07\\x0d\\u{9b}5m\\u{202e}\\x1b[31mz";

/// A recording in which [`NAME`] is the name of a thread and of a kernel function, whose code is in the build-id cache, and is
/// part of the path of a mapped file that is missing.
fn recording() -> Scratch {
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    // Adds the sample_id trailer: pid, tid and time.
    let with_trailer = |bytes: Bytes, time| bytes.u32(7).u32(7).u64(time);
    let kernel = Bytes::new().u32(u32::MAX).u32(0).u64(KERNEL).u64(0x20_0000);
    let kernel = kernel.u64(KERNEL).raw([20, 0, 0, 0]).raw(BUILD_ID);
    let kernel = kernel.u32(5).u32(2).text("[kernel.kallsyms]_text", 8);
    let program = Bytes::new().u32(7).u32(7).u64(USER).u64(0x1000).u64(0);
    let program = program.text(&format!("/no\nhint:{NAME}"), 8);
    let comm = Bytes::new().u32(7).u32(7).text(NAME, 8);
    let sample = |ip: u64, time| Bytes::new().u64(ip).u32(7).u32(7).u64(time);
    /// `PERF_RECORD_MISC_MMAP_BUILD_ID` of a kernel mapping.
    const BUILD_ID_KERNEL: u16 = 1 << 14 | PerfFile::KERNEL;
    let records = [
        record(PerfFile::MMAP2, BUILD_ID_KERNEL, with_trailer(kernel, 1)),
        record(PerfFile::COMM, 0, with_trailer(comm, 1)),
        record(PerfFile::MMAP, PerfFile::USER, with_trailer(program, 1)),
        record(PerfFile::SAMPLE, PerfFile::KERNEL, sample(KERNEL + 4, 2)),
        record(PerfFile::SAMPLE, PerfFile::USER, sample(USER + 4, 3)),
    ];
    let scratch = Scratch::new();
    let bytes = file(&attr, "x86_64", &records.concat());
    scratch.write("perf.data", bytes).expect("a file");
    let id: String = BUILD_ID.iter().map(|byte| format!("{byte:02x}")).collect();
    let kcore_copy = scratch.path().join(".debug/[kernel.kcore]").join(id);
    let kcore_copy = kcore_copy.join("2026010100000000");
    fs::create_dir_all(&kcore_copy).expect("a folder in the cache");
    // The end of the function; any address after that of the sample.
    let end = KERNEL + 11;
    let listing =
        format!("{KERNEL:x} T _text\n{KERNEL:x} T {NAME}\n{end:x} T next\n{end:x} T _etext\n");
    fs::write(kcore_copy.join("kallsyms"), listing).expect("a listing");
    fs::write(kcore_copy.join("modules"), "").expect("no modules");
    // `nop` instructions.
    let memory = vec![0x90; 0x1000];
    fs::write(kcore_copy.join("kcore"), kcore(&[(KERNEL, memory)])).expect("the kernel's code");
    scratch
}

/// A recording of a probe whose event name, string and object contain control characters.
fn probe_recording() -> Scratch {
    let fixture = root().join("tests/fixtures/x86_64/kprobe.data");
    let mut bytes = fs::read(fixture).expect("a fixture");
    // The byte 0x9b is a control sequence introducer if the terminal does not decode UTF-8.
    let replaced: [(&[u8], &[u8]); 3] = [
        (
            b"/proc/self/status",
            b"\x1b]0;A\x07\r\x9b5m\xe2\x80\xaezzzz",
        ),
        (b"kprobes:opened\0", b"kprobes:\x1b[5m\x07\r\0"),
        (b"[vdso]\0", b"\x1b[5m\x07\r\0"),
    ];
    for (old, new) in replaced {
        assert_eq!(old.len(), new.len());
        let places: Vec<usize> = (0..bytes.len() - old.len())
            .filter(|place| bytes[*place..].starts_with(old))
            .collect();
        assert!(!places.is_empty());
        for place in places {
            bytes[place..place + new.len()].copy_from_slice(new);
        }
    }
    let scratch = Scratch::new();
    scratch.write("perf.data", bytes).expect("a file");
    scratch
}

/// A command without colours and with `cat` as the pager, on a terminal with this many columns; without a terminal if `None`.
fn command(folder: &Path, words: &str, columns: Option<usize>) -> Command {
    let mut line = format!("{} {words}", env!("CARGO_BIN_EXE_rperf"));
    // script(1) runs the line on a terminal.
    let mut command = Command::new(match columns {
        Some(_) => "script",
        None => "sh",
    });
    match columns {
        Some(columns) => {
            line = format!("stty cols {columns} rows 50; {line}");
            command.args(["-qefc", &line, "/dev/null"]);
        }
        None => drop(command.args(["-c", &line])),
    }
    for name in ["PERF_PAGER", "LESS", "COLUMNS"] {
        command.env_remove(name);
    }
    command
        .envs([
            ("LC_ALL", "C.UTF-8"),
            ("TZ", "UTC"),
            ("TERM", "xterm"),
            ("NO_COLOR", "1"),
            ("PAGER", "cat"),
            ("PERF_CONFIG", "/dev/null"),
        ])
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

/// The output of a command on a terminal. If there is no script(1), prints that the test is skipped and returns `None`.
fn on_terminal(test: &str, command: &mut Command) -> Option<Vec<u8>> {
    match command.output() {
        Ok(output) => Some(output.stdout),
        Err(error) => {
            skip(test, &format!("there is no script: {error}"));
            None
        }
    }
}

/// Checks that terminal output contains no control character except line ends and tabs, and no bidirectional control;
/// returns the output as text.
#[track_caller]
fn assert_clean(words: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let is_raw = |letter: char| {
        let is_bidirectional = ('\u{202a}'..='\u{202e}').contains(&letter)
            || ('\u{2066}'..='\u{2069}').contains(&letter);
        is_bidirectional || (letter.is_control() && letter != '\n' && letter != '\t')
    };
    assert!(!text.chars().any(is_raw), "{words}: {text:?}");
    // C1 controls as single bytes, which are not valid UTF-8.
    let invalid_bytes = bytes.utf8_chunks().flat_map(|chunk| chunk.invalid());
    let c1: Vec<&u8> = invalid_bytes
        .filter(|byte| (0x80..=0x9f).contains(*byte))
        .collect();
    assert!(c1.is_empty(), "{words}: {text:?}");
    text
}

/// Runs a command on a terminal and in a pipe: control characters are escaped on the terminal and unchanged in the pipe.
#[track_caller]
fn assert_escaped(test: &str, scratch: &Scratch, words: &str, expected: &str, raw: &[u8]) {
    let Some(bytes) = on_terminal(test, &mut command(scratch.path(), words, WIDE)) else {
        return;
    };
    let text = assert_clean(words, &bytes);
    assert!(text.contains(expected), "{words}: {text}");
    let piped = command(scratch.path(), words, None).output();
    let Output { stdout, stderr, .. } = piped.expect("sh starts");
    let has_raw = |bytes: &[u8]| bytes.windows(raw.len()).any(|window| window == raw);
    let output = [stdout, stderr].concat();
    assert!(
        has_raw(&output),
        "{words}: {}",
        String::from_utf8_lossy(&output)
    );
}

#[test]
fn names_of_threads_functions_and_files_are_escaped() {
    let test = "names_of_threads_functions_and_files_are_escaped";
    let scratch = recording();
    for words in [
        "report --stdio",
        "report --stdio -s comm",
        "report --stdio -s sym --hierarchy",
        "report --stdio -t , -s sym",
        "report --stdio --tasks",
        "report --stdio --mmaps",
        "report -D",
        "script",
        "script -D",
        "script --show-mmap-events -F comm,ip,sym,dso",
        "annotate --stdio",
        "annotate --stdio2",
    ] {
        assert_escaped(test, &scratch, words, ESCAPED_NAME, NAME.as_bytes());
    }
}

#[test]
fn strings_and_names_of_tracepoints_are_escaped() {
    let test = "strings_and_names_of_tracepoints_are_escaped";
    let scratch = probe_recording();
    let string = b"\x1b]0;A\x07\r\x9b5m\xe2\x80\xaez";
    let expected = "\\x1b]0;A\\x07\\x0d\\x9b5m\\u{202e}z";
    assert_escaped(test, &scratch, "script", expected, string);
    for words in [
        "evlist",
        "evlist -v",
        "script",
        "report --stdio -s comm",
        "report -D",
    ] {
        let expected = "kprobes:\\x1b[5m\\x07";
        assert_escaped(test, &scratch, words, expected, b"kprobes:\x1b[5m\x07");
    }
    let (expected, mapped) = ("r-xp \\x1b[5m\\x07\\x0d", b"r-xp \x1b[5m\x07\r");
    assert_escaped(test, &scratch, "report -D", expected, mapped);
    let object = b" \x1b[5m\x07\r\n";
    assert_escaped(
        test,
        &scratch,
        "buildid-list",
        " \\x1b[5m\\x07\\x0d\n",
        object,
    );
}

/// The colours of percentages are kept; escape sequences in names are escaped.
#[test]
fn own_colours_are_kept() {
    let scratch = recording();
    for words in ["report --stdio -s comm", "annotate --stdio"] {
        let mut coloured = command(scratch.path(), words, WIDE);
        coloured.env_remove("NO_COLOR");
        let Some(bytes) = on_terminal("own_colours_are_kept", &mut coloured) else {
            return;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.contains("\x1b[31m"), "{words}: {text:?}");
        let colour_sequences = ["\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[35m", "\x1b[m"];
        let rest = colour_sequences
            .iter()
            .fold(text, |text, colour| text.replace(colour, ""));
        let rest = assert_clean(words, rest.as_bytes());
        assert!(rest.contains(ESCAPED_NAME), "{words}: {rest}");
    }
}

/// The pager's input is a pipe, but the pager writes it to a terminal.
#[test]
fn a_pager_gets_escaped_names() {
    let scratch = recording();
    let mut paged = command(scratch.path(), "report --stdio", WIDE);
    paged.env("PAGER", "tee paged");
    if on_terminal("a_pager_gets_escaped_names", &mut paged).is_none() {
        return;
    }
    let bytes = fs::read(scratch.path().join("paged")).expect("the pager's input");
    let text = assert_clean("report", &bytes);
    assert!(text.contains(ESCAPED_NAME), "{text}");
}

/// Control characters of names in messages are escaped on a terminal. In a pipe, only line ends are escaped, so that no name can
/// imitate a hint.
#[test]
fn control_characters_in_messages_are_escaped() {
    let test = "control_characters_in_messages_are_escaped";
    let scratch = recording();
    let complete = fs::read(scratch.path().join("perf.data")).expect("a recording");
    let missing = format!("no\nhint:{NAME}");
    // The name of a truncated recording; from "no" on, it equals `missing`.
    let truncated = format!("is {missing}");
    scratch
        .write(&truncated, &complete[..complete.len() - 100])
        .expect("a file");
    let shell_word = |name: &str| format!("\"$(printf '%b' '{}')\"", octal(name));
    for words in [
        // An error that names a mapped file with samples, one that names a missing recording, and a warning that names the
        // truncated recording.
        format!("annotate --stdio --dsos {}", shell_word(&missing)),
        format!("script -i {}", shell_word(&missing)),
        format!("script -i {}", shell_word(&truncated)),
    ] {
        let Some(bytes) = on_terminal(test, &mut command(scratch.path(), &words, WIDE)) else {
            return;
        };
        let text = assert_clean(&words, &bytes);
        // In the message of `annotate`, no colon follows the name.
        let end = match words.starts_with("annotate") {
            true => "",
            false => ": ",
        };
        let expected = format!("no\\x0ahint:{ESCAPED_NAME}{end}");
        assert!(text.contains(&expected), "{words}: {text}");
        let piped = command(scratch.path(), &words, None).output();
        let message = String::from_utf8_lossy(&piped.expect("sh starts").stderr).into_owned();
        let raw = format!("no\\x0ahint:{NAME}");
        assert!(message.contains(&raw), "{words}: {message}");
        let forged = |text: &str| text.lines().any(|line| line.starts_with("hint:a"));
        assert!(
            !forged(&text) && !forged(&message),
            "{words}: {text} {message}"
        );
    }
}

/// The bytes as octal escape sequences for the shell's `printf`.
fn octal(text: &str) -> String {
    text.bytes().map(|byte| format!("\\0{byte:o}")).collect()
}

/// `stat` prints its title, with the name, to stderr.
#[test]
fn stat_escapes_the_name_of_its_workload() {
    let test = "stat_escapes_the_name_of_its_workload";
    let scratch = Scratch::new();
    symlink("/bin/true", scratch.path().join(NAME)).expect("a link");
    let words = format!(
        "stat -e duration_time \"$(printf './%b' '{}')\"",
        octal(NAME)
    );
    assert_escaped(test, &scratch, &words, ESCAPED_NAME, NAME.as_bytes());
}

/// The output of a command on a terminal until it exits. Each step is a text and the keys that are pressed when the text has
/// appeared. If there is no script(1), prints that the test is skipped and returns `None`.
fn driven(mut command: Command, steps: &[(&str, &str)]) -> Option<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        skip("commands::terminal_escapes", "there is no script");
        return None;
    };
    let mut keys = child.stdin.take().expect("a pipe");
    let mut output = child.stdout.take().expect("a pipe");
    let (mut seen, mut bytes) = (Vec::new(), [0; 4096]);
    let mut steps = steps.iter().peekable();
    while let Ok(count @ 1..) = output.read(&mut bytes) {
        seen.extend_from_slice(&bytes[..count]);
        let is_there = |text: &str| String::from_utf8_lossy(&seen).contains(text);
        if let Some((_, pressed)) = steps.next_if(|(text, _)| is_there(text)) {
            let written = keys.write_all(pressed.as_bytes());
            written.expect("a terminal that reads");
        }
    }
    child.wait().expect("a child");
    Some(String::from_utf8_lossy(&seen).into_owned())
}

/// The browser of `report`, which draws with control sequences.
#[test]
fn the_browser_escapes_names() {
    let scratch = recording();
    let browser = command(scratch.path(), "report -s comm,dso,sym", WIDE);
    let steps = [("Tip:", "\r"), ("Annotate ", "qq")];
    let Some(text) = driven(browser, &steps) else {
        return;
    };
    for expected in [
        ESCAPED_NAME,
        &format!("no\\x0ahint:{ESCAPED_NAME}"),
        &format!("Annotate {ESCAPED_NAME}"),
    ] {
        assert!(text.contains(expected), "{text:?}");
    }
    // The column is as wide as the escaped name.
    let row = format!("{ESCAPED_NAME}  [kernel.kallsyms]");
    assert!(text.contains(&row), "{text:?}");
    // None of these is needed for drawing.
    for raw in ["\x1b]", "\x07", "\u{9b}", "\u{202e}", "\x1b[31mz"] {
        assert!(!text.contains(raw), "{raw:?}: {text:?}");
    }
}

/// `top --stdio` clears the screen and truncates lines that are too long for it.
#[test]
fn top_escapes_and_truncates_names() {
    const COMM: &str = "a\x1b[5m\x07\r\u{9b}5mz";
    const ESCAPED_COMM: &str = "a\\x1b[5m\\x07\\x0d\\u{9b}5mz";
    let scratch = Scratch::new();
    let program = scratch.path().join(COMM);
    symlink("/bin/sh", &program).expect("a link");
    let spinning = Command::new(program)
        .args(["-c", "while :; do :; done"])
        .spawn();
    let target = Running(spinning.expect("a shell"));
    // A terminal of 37 columns ends within the escaped name.
    for (columns, expected) in [(200, ESCAPED_COMM), (37, "  a\\x1b[5m\\x\n")] {
        // `-ns comm` is `-n -s comm`.
        let words = format!(
            "top --stdio -e cpu-clock -F 499 -d 0.3 -ns comm -p {}",
            target.0.id()
        );
        let top = command(scratch.path(), &words, Some(columns));
        let Some(text) = driven(top, &[("100.00%", "q")]) else {
            return;
        };
        let clear_screen = "\x1b[H\x1b[2J";
        assert!(text.contains(clear_screen), "{text:?}");
        let rest = assert_clean(&words, text.replace(clear_screen, "").as_bytes());
        assert!(rest.contains(expected), "{rest}");
        let is_short = |line: &str| line.chars().count() <= columns;
        assert!(rest.lines().all(is_short), "{rest}");
    }
}
