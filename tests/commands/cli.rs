//! The top level of the command line.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use rperf_testkit::{Run, Scratch, skip, write_program};

use super::{PRIVATE_WORDS, assert_refused, commands, outcome, rperf};

#[test]
fn without_a_command_the_list_is_printed_and_the_status_is_1() {
    let bare = outcome(&[]);
    assert_eq!((bare.status, bare.stderr.as_str()), (1, ""));
    let lines: Vec<&str> = bare.stdout.lines().collect();
    assert_eq!(
        lines[1],
        " usage: rperf [--version] [--help] [OPTIONS] COMMAND [ARGS]"
    );
    assert_eq!(lines[3], " The most commonly used rperf commands are:");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("   record          Sample")),
        "{lines:?}"
    );
    assert!(
        bare.stdout.ends_with(
            "\n See 'rperf help COMMAND' for more information on a specific command.\n\n"
        )
    );
    for line in lines {
        assert!(line.len() <= 80, "{line}");
    }
    for words in [&["help"], &["-h"], &["--help"]] {
        let help = outcome(words);
        assert_eq!((help.status, &help.stdout), (0, &bare.stdout), "{words:?}");
    }
}

#[test]
fn a_link_named_perf_prints_the_name_perf() {
    let run = |words| {
        rperf(words)
            .arg0("/usr/local/bin/perf")
            .finish()
            .expect("the binary starts")
    };
    assert!(run(&["help"]).stdout.contains(" usage: perf [--version]"));
    assert!(run(&["--version"]).stdout.starts_with("perf version "));
    assert_eq!(
        run(&["recrod"]).stderr.lines().next(),
        Some("perf: 'recrod' is not a perf-command. See 'perf --help'.")
    );
    assert!(
        run(&["record", "-h"])
            .stderr
            .starts_with("\n Usage: perf record [<options>] [<command>]\n    or: perf record")
    );
}

#[test]
fn manual_texts_are_built_in() {
    for command in outcome(&["--list-cmds"]).stdout.split_whitespace() {
        let help = outcome(&["help", command]);
        assert_eq!((help.status, help.stderr.as_str()), (0, ""), "{command}");
        assert!(
            help.stdout
                .starts_with(&format!("NAME\n       rperf-{command} - ")),
            "{}",
            help.stdout
        );
        assert!(help.stdout.contains("\nSYNOPSIS\n"), "{}", help.stdout);
        assert!(
            help.stdout.lines().all(|line| line.chars().count() <= 80),
            "{}",
            help.stdout
        );
        assert_eq!(outcome(&[command, "--help"]), help);
        assert_eq!(outcome(&["--help", command]), help);
    }
    let examples = outcome(&["help", "examples"]);
    assert!(
        examples
            .stdout
            .contains("\n       rperf record -ag -- sleep 10\n"),
        "{}",
        examples.stdout
    );
}

#[test]
fn the_summary_goes_to_stderr_with_status_129_and_its_options_are_sorted() {
    for command in ["record", "report", "script"] {
        let help = outcome(&[command, "-h"]);
        assert_eq!((help.status, help.stdout.as_str()), (129, ""));
        let groups: Vec<&str> = help.stderr.split("\n\n ").skip(1).collect();
        assert!(groups.len() > 4, "{}", help.stderr);
        for group in groups {
            let options = group.lines().filter(|line| line.starts_with("    -"));
            let letters = options.filter_map(|line| line[5..].chars().next());
            let letters: Vec<String> = letters.map(|c| c.to_lowercase().to_string()).collect();
            assert!(letters.is_sorted(), "{command}: {letters:?}");
            let first_long = group.find("\n        --").unwrap_or(group.len());
            assert!(
                !group[first_long..].contains("\n    -"),
                "options with a letter come first: {group}"
            );
        }
    }
}

#[test]
fn summaries_fit_80_columns_and_end_with_examples() {
    for command in commands() {
        let words: Vec<&str> = command.split(' ').chain(["-h"]).collect();
        let help = outcome(&words).stderr;
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
        let (_, examples) = help.split_once("\n Examples:\n").expect("examples");
        let line = format!("    rperf {command}");
        let lines = examples.lines().filter(|one| one.starts_with(&line));
        assert!(lines.count() >= 2, "{command}: {examples}");
    }
}

/// Help and manuals use standard terms instead of [`PRIVATE_WORDS`].
#[test]
fn help_has_no_private_words() {
    for command in commands() {
        let words: Vec<&str> = command.split(' ').collect();
        let help = outcome(&[words.as_slice(), &["-h"]].concat()).stderr;
        let manual = outcome(&[words.as_slice(), &["--help"]].concat()).stdout;
        for text in [help, manual] {
            for line in text.lines() {
                let mut words = line.split(|c: char| !c.is_alphabetic());
                assert!(
                    !words.any(|word| PRIVATE_WORDS.contains(&word)),
                    "{command}: {line}"
                );
            }
        }
    }
}

#[test]
fn a_keyword_narrows_the_summary() {
    let help = outcome(&["record", "-h", "freq"]).stderr;
    assert!(help.contains("\n    -F, --freq <n|max>    "), "{help}");
    assert!(!help.contains("--output"), "{help}");
    let by_letter = outcome(&["record", "-h", "F"]).stderr;
    assert!(by_letter.contains("\n    -F, --freq "), "{by_letter}");
    assert!(!by_letter.contains("--filter"), "{by_letter}");
    let by_text = outcome(&["record", "-h", "frame"]).stderr;
    assert!(
        by_text.contains("\n    -g                    "),
        "{by_text}"
    );
}

#[test]
fn a_help_option_in_the_workload_belongs_to_it() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for words in [
        &["record", "--", "-h"] as &[&str],
        &["record", "nosuchprogram", "-h"],
    ] {
        let outcome = rperf(words).within(scratch.path()).finish()?;
        assert!(!outcome.stderr.contains("Usage:"), "{words:?}");
    }
    Ok(())
}

#[test]
fn every_spelling_prints_the_version() {
    let line = format!("rperf version {}\n", env!("CARGO_PKG_VERSION"));
    for words in [&["--version"] as &[&str], &["-v"], &["version"]] {
        let version = outcome(words);
        assert_eq!(
            (version.status, version.stdout.as_str()),
            (0, line.as_str()),
            "{words:?}"
        );
    }
    let full = outcome(&["-vv"]);
    assert_eq!(outcome(&["version", "--build-options"]), full);
    let features: Vec<&str> = full.stdout.lines().skip(1).collect();
    assert!(
        features
            .iter()
            .any(|line| line.contains("libelf: [ on  ]  # ")),
        "{features:?}"
    );
    assert!(
        features
            .iter()
            .all(|line| line.contains(": [ on  ]  # ") || line.contains(": [ OFF ]  # ")),
        "{features:?}"
    );
}

#[test]
fn build_options_match_the_build() {
    let listed = outcome(&["version", "--build-options"]).stdout;
    let line = |name: &str| {
        let feature = listed
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{name}: ")));
        feature.unwrap_or_else(|| panic!("{name} is missing: {listed}"))
    };
    for name in [
        "debuginfod",
        "dwarf",
        "dwarf-unwind",
        "libelf",
        "libslang",
        "libtraceevent",
        "lzma",
        "zlib",
        "zstd",
    ] {
        assert!(line(name).contains("[ on  ]"), "{}", line(name));
    }
    // A command or option that needs a feature is refused exactly if the feature is off.
    for (name, words) in [
        ("aio", &["record", "--aio", "--dry-run", "true"][..]),
        (
            "babeltrace2-ctf-writer",
            &["data", "convert", "--to-ctf", "x", "-i", "nosuch.data"],
        ),
        ("bpf_skeletons", &["stat", "--bpf-counters", "true"]),
        ("libnuma", &["bench", "numa", "mem", "--nosuch"]),
        ("libperl", &["script", "-s", "nosuch.pl"]),
        ("libpython", &["script", "-s", "nosuch.py"]),
        ("rust", &["test", "-w", "code_with_type", "0.01"]),
        ("syscall_table", &["trace", "-i", "nosuch.data"]),
    ] {
        let used = outcome(words);
        let refusals = [
            " not supported",
            " not a perf-command",
            "No workload found",
            "Unknown collection",
        ];
        let is_refused = refusals.iter().any(|text| used.stderr.contains(text));
        assert_eq!(
            line(name).contains("[ OFF ]"),
            is_refused,
            "{}: {}",
            line(name),
            used.stderr
        );
    }
}

#[test]
fn check_succeeds_only_if_every_feature_is_on() {
    let check = |words: &[&str]| {
        let checked = outcome(&[&["check"], words].concat());
        (checked.status, checked.stdout, checked.stderr)
    };
    let (status, zstd, errors) = check(&["feature", "zstd"]);
    assert_eq!((status, errors.as_str()), (0, ""));
    assert!(
        zstd.starts_with("                  zstd: [ on  ]  # "),
        "{zstd}"
    );
    let (status, several, _) = check(&["feature", "ZSTD,libbfd"]);
    assert_eq!((status, several.lines().count()), (1, 2), "{several}");
    let (status, known, errors) = check(&["feature", "nosuch,zstd"]);
    assert_eq!((status, known), (1, zstd));
    assert!(errors.starts_with("Unknown feature 'nosuch', "), "{errors}");
    for (words, status) in [
        (&["-q", "feature", "zstd,dwarf"][..], 0),
        (&["feature", "-q", "libbfd"], 1),
        (&["feature", "-q", "nosuch"], 1),
    ] {
        assert_eq!(
            check(words),
            (status, String::new(), String::new()),
            "{words:?}"
        );
    }
    for words in [
        &[][..],
        &["feature"],
        &["nosuch"],
        &["feature", "zstd", "dwarf"],
    ] {
        assert_eq!(check(words).0, 129, "{words:?}");
    }
    let (_, _, errors) = check(&["dwarf"]);
    let hint = "hint: 'rperf check feature dwarf' checks a feature\n";
    assert!(errors.ends_with(hint), "{errors}");
}

#[test]
fn lists_for_completion_are_one_line() {
    let commands = outcome(&["--list-cmds"]).stdout;
    assert_eq!(commands.lines().count(), 1);
    for command in ["record", "report", "script", "help", "version"] {
        assert!(
            commands.split_whitespace().any(|word| word == command),
            "{commands}"
        );
    }
    let options = outcome(&["--list-opts"]).stdout;
    assert_eq!(options.lines().count(), 1);
    assert!(
        options
            .split_whitespace()
            .any(|word| word == "--buildid-dir"),
        "{options}"
    );
    let options = outcome(&["record", "--list-opts"]).stdout;
    assert_eq!(options.lines().count(), 1);
    assert!(
        options
            .split_whitespace()
            .any(|word| word == "--mmap-pages"),
        "{options}"
    );
    assert!(
        !options.contains("--clang-path"),
        "refused options are not offered: {options}"
    );
}

#[test]
fn unknown_commands_name_the_nearest() {
    assert_refused(
        &["recrod"],
        1,
        "rperf: 'recrod' is not a perf-command. See 'rperf --help'.\nhint: did you mean 'record'?\n",
    );
    assert_refused(
        &["xyzzyx"],
        1,
        "rperf: 'xyzzyx' is not a perf-command. See 'rperf --help'.\n",
    );
    assert_refused(
        &["help", "xyzzyx"],
        1,
        "rperf: 'xyzzyx' is not a perf-command. See 'rperf --help'.\n",
    );
}

#[test]
fn commands_of_perf_that_are_not_implemented_print_one_line() {
    for command in ["mem", "kvm", "c2c"] {
        let answer = outcome(&[command, "-a", "--nosuch"]);
        assert_eq!(
            (answer.status, answer.stdout.as_str()),
            (129, ""),
            "{command}"
        );
        assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
        assert!(
            answer
                .stderr
                .starts_with(&format!("rperf: '{command}' is not implemented; use ")),
            "{}",
            answer.stderr
        );
    }
}

#[test]
fn unknown_commands_are_run_from_the_exec_path() -> Result<(), Box<dyn std::error::Error>> {
    let scratch = Scratch::new();
    let program = scratch.path().join("perf-hello");
    write_program(&program, "#!/bin/sh\necho \"hello $*\"; exit 7\n");
    let directory = format!("--exec-path={}", scratch.path().display());
    let hello = outcome(&[&directory, "hello", "-a", "b"]);
    assert_eq!((hello.status, hello.stdout.as_str()), (7, "hello -a b\n"));
    let by_variable = rperf(&["hello"])
        .env("PERF_EXEC_PATH", scratch.path())
        .finish()?;
    assert_eq!(by_variable.status, 7, "{by_variable:?}");
    assert_eq!(outcome(&[&directory, "nosuch"]).status, 1);
    assert_eq!(
        outcome(&[&directory, "--exec-path"]).stdout,
        format!("{}\n", scratch.path().display())
    );
    Ok(())
}

#[test]
fn options_before_the_command_are_accepted_or_refused_by_name() {
    for words in [
        &["--buildid-dir", "/tmp", "version"] as &[&str],
        &["--buildid-dir=/tmp", "--no-pager", "version"],
        &["--debugfs-dir", "/", "-p", "version"],
        &["--debug", "verbose=2", "version"],
        &["--debug", "perf-event-open=1", "version"],
        &["--exec-path=/", "version"],
    ] {
        assert_eq!(outcome(words).status, 0, "{words:?}");
    }
    let path = outcome(&["--exec-path"]).stdout;
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_rperf"));
    assert_eq!(
        binary.parent(),
        Some(std::path::Path::new(path.trim_end())),
        "the folder of the binary"
    );
    for words in [
        &["--nosuch"] as &[&str],
        &["-x", "version"],
        &["--buildid-dir"],
        &["--debugfs-dir", "/nonexistent/debugfs", "version"],
        &["--debug", "kmaps=1", "version"],
        &["--exec-path=/nonexistent/programs", "version"],
        &["--html-path"],
    ] {
        let refused = outcome(words);
        assert_eq!(
            (refused.status, refused.stdout.as_str()),
            (129, ""),
            "{words:?}"
        );
        assert!(
            refused
                .stderr
                .lines()
                .next()
                .is_some_and(|line| line.contains(words[0].split('=').next().unwrap_or_default())),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn a_closed_pipe_ends_the_command_silently_as_the_signal_does() -> std::io::Result<()> {
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let mut child = Command::new(env!("CARGO_BIN_EXE_rperf"))
        .args(["help", "record"])
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_string(&mut stderr)?;
    }
    let status = child.wait()?;
    assert_eq!(stderr, "");
    // A shell shows 141 (128 + SIGPIPE) both for this exit status and for an end by SIGPIPE.
    assert_eq!(
        status.code().or(status.signal().map(|signal| 128 + signal)),
        Some(141)
    );
    Ok(())
}

#[test]
fn text_for_a_terminal_goes_through_the_pager() -> std::io::Result<()> {
    // script(1) runs the command on a terminal.
    let run = |words: &str, pager: &str| {
        let line = format!("{} {words}", env!("CARGO_BIN_EXE_rperf"));
        Run::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("PERF_PAGER", pager)
            .finish()
    };
    let Ok(paged) = run("help record", "sed s/^/PAGED:/") else {
        skip(
            "text_for_a_terminal_goes_through_the_pager",
            "there is no script(1)",
        );
        return Ok(());
    };
    assert!(paged.stdout.starts_with("PAGED:NAME"), "{}", paged.stdout);
    assert_eq!(paged.status, 0);
    assert!(
        run("--no-pager help record", "sed s/^/PAGED:/")?
            .stdout
            .starts_with("NAME")
    );
    assert!(run("help record", "cat")?.stdout.starts_with("NAME"));
    // `true` ends without reading, like a pager that the user leaves at once.
    assert_eq!(
        run("help record", "true")?.stdout,
        "",
        "the user may leave before the end"
    );
    let piped = rperf(&["help", "record"])
        .env("PERF_PAGER", "sed s/^/PAGED:/")
        .finish()?;
    assert!(
        piped.stdout.starts_with("NAME"),
        "no pager where stdout is no terminal"
    );
    Ok(())
}

#[test]
fn a_full_disk_is_an_error() -> std::io::Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_rperf"))
        .args(["help", "record"])
        .stdout(std::fs::OpenOptions::new().write(true).open("/dev/full")?)
        .output()?;
    assert_eq!(output.status.code(), Some(255));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("failed to write to the standard output: No space left on device"),
        "{stderr}"
    );
    Ok(())
}
