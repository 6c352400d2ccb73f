//! `completion`: the scripts run in their shells, and the candidates they get.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rperf_testkit::{Run, Scratch, may_trace, skip, write_program};

use super::tmux::Tmux;
use super::{assert_refused, commands, outcome, visible_options};

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// The folder of the binary.
fn folder() -> &'static Path {
    let binary = Path::new(env!("CARGO_BIN_EXE_rperf"));
    binary.parent().expect("the binary is in a folder")
}

/// A `PATH` that begins with `first`.
#[expect(
    clippy::disallowed_methods,
    reason = "the shells need the caller's environment"
)]
fn path(first: &Path) -> String {
    let usual = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    format!("{}:{usual}", first.display())
}

/// The words of a line as bash splits them: at blanks, `=` and `:`. Each `=` and `:` is a word, too.
fn bash_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in line.split(' ') {
        let is_break = |c: char| matches!(c, '=' | ':');
        let mut rest = word;
        while let Some(at) = rest.find(is_break) {
            words.extend((at > 0).then(|| rest[..at].to_owned()));
            words.push(rest[at..=at].to_owned());
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() || word.is_empty() {
            words.push(rest.to_owned());
        }
    }
    words
}

/// The candidates at the end of a line, from `_rperf`, the function that the script defines for bash.
fn bash(line: &str) -> Vec<String> {
    let script = outcome(&["completion", "bash"]).stdout;
    let ask = r#"
COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_rperf "${COMP_WORDS[0]}"
printf '%s\n' "${COMPREPLY[@]}""#;
    let words = ["-c", &format!("{script}{ask}"), "bash", line].map(str::to_owned);
    let run = Run::new("bash").args(words).args(bash_words(line));
    let answer = run
        .env("PATH", path(folder()))
        .finish()
        .expect("bash starts");
    let mut candidates: Vec<String> = answer.stdout.lines().map(str::to_owned).collect();
    candidates.retain(|word| !word.is_empty());
    candidates
}

#[test]
fn every_visible_option_is_offered_by_bash() {
    for command in commands() {
        let offered = bash(&format!("rperf {command} -"));
        for option in visible_options(&command) {
            assert!(offered.contains(&option), "{command} {option}: {offered:?}");
        }
        // perf's options that are recognised but not supported are not offered. The help lists them, up to a full stop.
        let help = outcome(&["help", &command]).stdout;
        let refused = help
            .split_once("refused by name:")
            .map_or("", |(_, list)| list);
        let refused = refused.split("\n\n").next().unwrap_or_default();
        for option in refused.split_whitespace() {
            let option = option.trim_end_matches('.').to_owned();
            assert!(!offered.contains(&option), "{command} {option}");
        }
    }
    let listed = outcome(&["--list-opts"]).stdout;
    let offered = bash("rperf -");
    for option in listed.split_whitespace() {
        assert!(
            offered.contains(&option.to_owned()),
            "{option}: {offered:?}"
        );
    }
    let listed = outcome(&["--list-cmds"]).stdout;
    assert_eq!(
        bash("rperf "),
        listed.split_whitespace().collect::<Vec<_>>()
    );
}

#[test]
fn words_are_completed_by_perfs_option_grammar() {
    for (line, expected) in [
        ("rperf reco", &["record"] as &[&str]),
        ("rperf --no-pager --buildid-dir x hea", &["heatmap"]),
        ("rperf help exam", &["examples"]),
        ("rperf data c", &["convert", "check"]),
        ("rperf data -f con", &["convert"]),
        ("rperf config report.ch", &["report.children"]),
        ("rperf script stackc", &["stackcollapse"]),
        ("rperf completion z", &["zsh"]),
        ("rperf record --unw", &["--unwind"]),
        ("rperf record -a --unwind l", &["later", "live"]),
        ("rperf record --unwind=l", &["later", "live"]),
        ("rperf test -w th", &["thloop"]),
        ("rperf record --unw=liv", &["live"]),
        ("rperf record --no-all-cp", &["--no-all-cpus"]),
        ("rperf record --inh", &["--inherit"]),
        ("rperf record -age cpu-cl", &["cpu-clock"]),
        ("rperf record -ecpu-cl", &["-ecpu-clock"]),
        ("rperf stat -e cs,cpu-cl", &["cs,cpu-clock"]),
        ("rperf stat record -e {cs,cpu-cl", &["{cs,cpu-clock"]),
        ("rperf report --sort comm,dso_f", &["comm,dso_from"]),
        ("rperf report --sort=comm,dso_f", &["comm,dso_from"]),
        ("rperf report -s +dso_f", &["+dso_from"]),
        ("rperf report -g cal", &["caller", "callee"]),
        ("rperf script -F comm,brstacks", &["comm,brstacksym"]),
        ("rperf flamegraph --format=j", &["json"]),
        // No candidates: values of unknown options, numbers, options of workloads and of unknown commands, and negatives of
        // options that have none.
        ("rperf record --nosuch=l", &[]),
        ("rperf record -c ", &[]),
        ("rperf record -a ls --all-c", &[]),
        ("rperf record -- --all-c", &[]),
        ("rperf nosuch --all-c", &[]),
        ("rperf --no-exec", &[]),
    ] {
        assert_eq!(bash(line), expected, "{line:?}");
    }
}

#[test]
fn tracepoints_are_completed_system_by_system() {
    if !may_trace("tracepoints_are_completed_system_by_system") {
        return;
    }
    assert_eq!(bash("rperf record -e sche"), ["sched:"]);
    // Without the system: for bash, `:` ends a word.
    assert_eq!(bash("rperf record -e sched:sched_switc"), ["sched_switch"]);
    assert_eq!(
        bash("rperf record --event=cs,sched:sched_switc"),
        ["sched_switch"]
    );
}

/// The first line of `completion words` says which candidates the shell itself adds to those on the other lines: names of
/// `files` or `directories`, those for the command line of another program (`command`), or `none`. After `files` and
/// `directories` follows the part of the typed word before the name; after `command`, the index of that program's name among the
/// words.
#[test]
fn completions_name_the_kind_of_word_to_complete() {
    let first_line = |line: &str| {
        let words: Vec<&str> = ["completion", "words", "--"]
            .into_iter()
            .chain(line.split(' '))
            .collect();
        let answer = outcome(&words);
        assert_eq!((answer.status, answer.stderr.as_str()), (0, ""), "{line:?}");
        answer.stdout.lines().next().unwrap_or_default().to_owned()
    };
    for (line, expected) in [
        ("rperf record -o pe", "files "),
        ("rperf record -ope", "files -o"),
        ("rperf record --output=pe", "files --output="),
        ("rperf buildid-cache -a x,y", "files x,"),
        ("rperf --buildid-dir ", "directories "),
        ("rperf report --symfs=", "directories --symfs="),
        ("rperf record ls", "command 2"),
        ("rperf record -a -- ls -", "command 4"),
        ("rperf stat -a record -e cs ls -", "command 6"),
        ("rperf --no-pager stat record ls ", "command 4"),
        ("rperf record -p ", "none"),
        ("rperf", "none"),
    ] {
        assert_eq!(first_line(line), expected, "{line:?}");
    }
}

/// A folder with files, a program to record, and a link to the binary.
fn workplace() -> std::io::Result<Scratch> {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir_all(at("folder"))?;
    fs::create_dir_all(at("bin"))?;
    symlink(env!("CARGO_BIN_EXE_rperf"), at("bin/rperf"))?;
    fs::write(at("alpha.data"), "")?;
    fs::write(at("with blank.data"), "")?;
    write_program(at("bin/workload-of-the-test"), "#!/bin/sh\n");
    Ok(scratch)
}

/// Typed text, and the command line after TAB.
const TYPED: &[(&str, &str)] = &[
    ("rperf heatm", "rperf heatmap"),
    ("rperf record --all-cg", "rperf record --all-cgroups"),
    ("rperf record -o al", "rperf record -o alpha.data"),
    ("rperf report -i wi", r"rperf report -i with\ blank.data"),
    ("rperf stat --output=al", "rperf stat --output=alpha.data"),
    ("rperf script -ial", "rperf script -ialpha.data"),
    ("rperf --buildid-dir fo", "rperf --buildid-dir folder/"),
    ("rperf top -ge cpu-cl", "rperf top -ge cpu-clock"),
    (
        "rperf report --sort=comm,dso_t",
        "rperf report --sort=comm,dso_to",
    ),
    (
        "rperf record -a workload-of",
        "rperf record -a workload-of-the-test",
    ),
    ("rperf stat -- cat al", "rperf stat -- cat alpha.data"),
];

/// Types each text of `TYPED` into an interactive shell, which `command` starts, and completes it. Before that, the shell runs
/// `prepare`.
fn type_at(shell: &str, command: &str, prepare: &str) -> std::io::Result<()> {
    let work = workplace()?;
    if Run::new(shell).args(["-c", "exit"]).finish().is_err() {
        skip(
            &format!("{shell}_completes_words"),
            &format!("there is no {shell}"),
        );
        return Ok(());
    }
    let search_path = path(&work.path().join("bin"));
    let line = format!("PATH='{search_path}' PS1='READY> ' {command}");
    let Some(terminal) = Tmux::start_line((100, 24), work.path(), &line) else {
        return Ok(());
    };
    terminal.wait_for("READY>");
    // The quotes keep the typed line from matching the text that is waited for.
    terminal.press(&[prepare, "Enter", "echo pre''pared", "Enter"]);
    terminal.wait_for("prepared\n");
    for (typed, expected) in TYPED {
        terminal.press(&[typed, "Tab"]);
        terminal.wait(expected, |screen| {
            screen
                .lines()
                .any(|line| line.trim_end() == format!("READY> {expected}"))
        });
        terminal.press(&["C-u"]);
    }
    Ok(())
}

#[test]
fn bash_completes_words() -> std::io::Result<()> {
    type_at(
        "bash",
        "bash --norc --noprofile -i",
        "source <(rperf completion bash)",
    )
}

#[test]
fn zsh_completes_words() -> std::io::Result<()> {
    let prepare = "autoload -U compinit && compinit -u -D && source <(rperf completion zsh)";
    type_at("zsh", "zsh -f -i", prepare)
}

#[test]
fn fish_completes_words() -> std::io::Result<()> {
    let work = workplace()?;
    for (typed, expected) in TYPED {
        let line = "rperf completion fish | source; complete -C $argv[1]";
        let fish = Run::new("fish")
            .args(["-c", line, typed])
            .within(work.path());
        let fish = fish.env("PATH", path(&work.path().join("bin")));
        let Ok(answer) = fish.env("HOME", work.path()).finish() else {
            skip("fish_completes_words", "there is no fish");
            return Ok(());
        };
        let words = answer
            .stdout
            .lines()
            .filter_map(|line| line.split('\t').next());
        let words: Vec<&str> = words.collect();
        // Candidates are listed without the escapes of the command line.
        let expected = expected.replace('\\', "");
        let is_end = |word: &&str| !word.is_empty() && expected.ends_with(&format!(" {word}"));
        assert!(words.iter().any(is_end), "{typed}: {answer:?}");
    }
    Ok(())
}

#[test]
fn scripts_are_for_the_name_that_is_given() -> std::io::Result<()> {
    for (shell, line) in [
        ("bash", "complete -F _perf perf\n"),
        ("zsh", "#compdef perf\n"),
        ("fish", "complete -c perf -f "),
    ] {
        let named = outcome(&["completion", shell, "--name", "perf"]);
        assert!(named.stdout.contains(line), "{}", named.stdout);
        let linked = super::rperf(&["completion", shell]).arg0("perf").finish()?;
        assert_eq!(linked, named);
        // `-n`: the shell checks the syntax of the script, but does not run it.
        let script = outcome(&["completion", "--name=my.perf-6.1", shell]).stdout;
        let Ok(checked) = Run::new(shell).args(["-n"]).stdin(script).finish() else {
            skip(
                "scripts_are_for_the_name_that_is_given",
                &format!("there is no {shell}"),
            );
            continue;
        };
        assert_eq!(
            (checked.status, checked.stderr.as_str()),
            (0, ""),
            "{shell}"
        );
    }
    Ok(())
}

#[test]
fn unknown_shells_and_invalid_names_are_refused() {
    let known = "choose from bash, zsh, fish\n";
    assert_refused(
        &["completion"],
        129,
        &format!("rperf completion: no shell given: {known}"),
    );
    let unknown = format!("rperf completion: unknown shell 'tcsh': {known}");
    assert_refused(&["completion", "tcsh"], 129, &unknown);
    let more = "rperf completion: unexpected word 'zsh' after the shell\n";
    assert_refused(&["completion", "bash", "zsh"], 129, more);
    for name in ["", "-x", "a/b", "$(x)", "a b"] {
        let refused = outcome(&["completion", "bash", &format!("--name={name}")]);
        assert_eq!(
            (refused.status, refused.stdout.as_str()),
            (129, ""),
            "{name}"
        );
        let start = format!("--name '{name}': not a program name\nhint: ");
        assert!(refused.stderr.starts_with(&start), "{}", refused.stderr);
    }
    for shell in SHELLS {
        assert_eq!(outcome(&["completion", shell]).status, 0);
    }
}
