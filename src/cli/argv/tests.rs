//! The option grammar, tested with a small command; and the abbreviated options of every command, compared with perf's rule.

use super::*;
use crate::cli::commands::COMMANDS;
use crate::cli::options::{
    counter, list, number, optional, short_switch, switch, unsupported, value,
};

/// The words of the example command are a workload.
const WORKLOAD: bool = true;
/// The words of the example command are not a workload: options may follow them.
const NO_WORKLOAD: bool = false;

/// A command with options of each kind.
fn example_command(has_workload: bool) -> Command {
    let words = Arg::new("words").num_args(0..);
    let words = if has_workload {
        words.trailing_var_arg(true).allow_hyphen_values(true)
    } else {
        words
    };
    Command::new("example")
        .arg(switch("all-cpus").short('a'))
        .arg(switch("all-user"))
        .arg(switch("all-kernel"))
        .arg(switch("no-inherit").short('i'))
        .arg(short_switch("g").short('g'))
        .arg(counter("verbose").short('v'))
        .arg(value("freq", "n").short('F'))
        .arg(value("count", "n").short('c').value_parser(number))
        .arg(value("field-separator", "sep").short('x'))
        .arg(list("event", "event").short('e'))
        .arg(
            value("level", "n")
                .short('z')
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("1"),
        )
        .arg(optional("mode", "mode", "graph").short('m'))
        .arg(unsupported("off-cpu", "use another").short('o'))
        .arg(words)
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Returns the rewritten words joined by blanks, or in debug format a result other than `Run`.
fn rewritten(has_workload: bool, line: &str) -> String {
    match normalise(
        &example_command(has_workload),
        &words(&line.split(' ').collect::<Vec<_>>()),
    ) {
        Ok(ParsedCommand::Run(out)) => out.join(OsStr::new(" ")).to_string_lossy().into_owned(),
        other => format!("{other:?}"),
    }
}

fn usage_error(line: &str) -> Option<UsageError> {
    normalise(
        &example_command(WORKLOAD),
        &words(&line.split(' ').collect::<Vec<_>>()),
    )
    .err()
}

#[test]
fn values_are_attached_or_the_next_word() {
    for line in [
        "-F99",
        "-F 99",
        "--freq=99",
        "--freq 99",
        "--fr 99",
        "--fr=99",
    ] {
        assert_eq!(rewritten(WORKLOAD, line), "--freq=99", "{line}");
    }
    assert_eq!(
        rewritten(WORKLOAD, "-x, -x: -x="),
        "--field-separator=, --field-separator=: --field-separator=="
    );
    assert_eq!(
        rewritten(WORKLOAD, "-x = -F -1"),
        "--field-separator== --freq=-1"
    );
    assert_eq!(rewritten(WORKLOAD, "--freq="), "--freq=");
}

#[test]
fn bundled_short_options_end_at_one_with_a_value() {
    assert_eq!(rewritten(WORKLOAD, "-ag"), "--all-cpus -g");
    assert_eq!(
        rewritten(WORKLOAD, "-agF99 sleep 1"),
        "--all-cpus -g --freq=99 -- sleep 1"
    );
    assert_eq!(
        rewritten(WORKLOAD, "-aF 99 sleep"),
        "--all-cpus --freq=99 -- sleep"
    );
    assert_eq!(rewritten(WORKLOAD, "-vvv"), "--verbose --verbose --verbose");
}

#[test]
fn optional_values_are_recognised() {
    // `level` takes only an attached value, `mode` also the next word.
    assert_eq!(
        rewritten(NO_WORKLOAD, "-z3 -z --level=5 -z 3"),
        "--level=3 --level --level=5 --level -- 3"
    );
    assert_eq!(
        rewritten(NO_WORKLOAD, "-m caller -m -a -mflat"),
        "--mode=caller --mode --all-cpus --mode=flat"
    );
    assert_eq!(
        rewritten(NO_WORKLOAD, "-am caller"),
        "--all-cpus --mode=caller"
    );
}

#[test]
fn the_prefix_no_unsets_flags_and_values() {
    assert_eq!(rewritten(WORKLOAD, "--no-all-cpus"), "--all-cpus=false");
    assert_eq!(rewritten(WORKLOAD, "--no-inherit"), "--no-inherit");
    assert_eq!(rewritten(WORKLOAD, "--no-no-inherit"), "--no-inherit=false");
    assert_eq!(rewritten(WORKLOAD, "--inherit"), "--no-inherit=false");
    assert_eq!(
        rewritten(
            WORKLOAD,
            "-F 99 -a --no-freq -e x --no-event -e y -vv --no-verbose"
        ),
        "--all-cpus --event=y"
    );
}

#[test]
fn the_workload_keeps_its_own_options() {
    assert_eq!(
        rewritten(WORKLOAD, "-a sleep -a --freq"),
        "--all-cpus -- sleep -a --freq"
    );
    assert_eq!(rewritten(WORKLOAD, "-a -- -h"), "--all-cpus -- -h");
    assert_eq!(rewritten(WORKLOAD, "-a --"), "--all-cpus");
    assert_eq!(
        rewritten(NO_WORKLOAD, "one -a two -F 9"),
        "--all-cpus --freq=9 -- one two"
    );
    assert_eq!(rewritten(NO_WORKLOAD, "-a -"), "--all-cpus -- -");
}

#[test]
fn help_is_requested_only_outside_the_workload_and_values() {
    assert_eq!(
        rewritten(WORKLOAD, "-a -h freq cpu"),
        r#"Ok(Summary(["freq", "cpu"]))"#
    );
    assert_eq!(rewritten(WORKLOAD, "-ah"), "Ok(Summary([]))");
    assert_eq!(rewritten(WORKLOAD, "--help"), "Ok(Manual)");
    assert_eq!(rewritten(WORKLOAD, "sleep --help"), "-- sleep --help");
    assert_eq!(rewritten(WORKLOAD, "-F -h"), "--freq=-h");
}

#[test]
fn invalid_options_are_named_in_the_error() {
    // The last two candidates, and the ids of all.
    let pair = ["--all-user".to_owned(), "--all-kernel".to_owned()];
    let ids = ["all-cpus", "all-user", "all-kernel"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(
        usage_error("--all"),
        Some(UsageError::Ambiguous {
            given: "all".to_owned(),
            pair,
            ids
        })
    );
    let nearest = Some("--event".to_owned());
    assert_eq!(
        usage_error("--evnet x"),
        Some(UsageError::UnknownOption("evnet".to_owned(), nearest))
    );
    assert_eq!(
        usage_error("-aQ"),
        Some(UsageError::UnknownSwitch("Q".to_owned(), None))
    );
    let with_two_dashes = Some("--level".to_owned());
    assert_eq!(
        usage_error("-level"),
        Some(UsageError::UnknownSwitch("l".to_owned(), with_two_dashes))
    );
    assert_eq!(
        usage_error("-F"),
        Some(UsageError::NeedsValue("switch `F'".to_owned()))
    );
    assert_eq!(
        usage_error("--freq"),
        Some(UsageError::NeedsValue("option `freq'".to_owned()))
    );
    assert_eq!(
        usage_error("--all-cpus=1"),
        Some(UsageError::TakesNoValue("option `all-cpus'".to_owned()))
    );
    let not_yet = Some(UsageError::NotYet(
        "--off-cpu".to_owned(),
        "use another".to_owned(),
    ));
    assert_eq!(usage_error("--off"), not_yet);
    assert_eq!(usage_error("-ao5"), not_yet);
}

#[test]
fn underscores_of_old_scripts_are_dashes() {
    assert_eq!(rewritten(WORKLOAD, "--all_cpus"), "--all-cpus");
    assert_eq!(rewritten(WORKLOAD, "--no_inherit"), "--no-inherit");
}

#[test]
fn only_option_names_must_be_utf8() {
    let bytes = OsString::from_vec(b"-F\xff\xfe".to_vec());
    let name = OsString::from_vec(b"\xff".to_vec());
    let out = normalise(&example_command(WORKLOAD), &[bytes, name.clone()]);
    assert_eq!(
        out,
        Ok(ParsedCommand::Run(vec![
            OsString::from_vec(b"--freq=\xff\xfe".to_vec()),
            "--".into(),
            name
        ]))
    );
    assert!(
        normalise(
            &example_command(WORKLOAD),
            &[OsString::from_vec(b"--\xff".to_vec())]
        )
        .is_err()
    );
    assert!(
        normalise(
            &example_command(WORKLOAD),
            &[OsString::from_vec(b"-\xff".to_vec())]
        )
        .is_err()
    );
}

/// perf's rule for abbreviated long options, written independently of [`resolve`]. Returns the options that `name` may mean, each
/// with whether `name` means the negative of the option. An option occurs at most once.
fn perf_candidates<'a>(longs: &[&'a str], name: &str) -> Vec<(&'a str, bool)> {
    let exact = |long: &&'a str| {
        let negative = format!("no-{long}");
        if *long == name {
            Some((*long, false))
        } else {
            (negative == name || *long == format!("no-{name}")).then_some((*long, true))
        }
    };
    if let Some(found) = longs.iter().find_map(exact) {
        return vec![found];
    }
    let abbreviated = |long: &&'a str| {
        if long.starts_with(name) {
            return Some((*long, false));
        }
        let negative = format!("no-{long}").starts_with(name)
            || long.starts_with("no-") && long[3..].starts_with(name);
        negative.then_some((*long, true))
    };
    longs.iter().filter_map(abbreviated).collect()
}

#[test]
fn option_prefixes_match_perf() {
    let mut tried = 0;
    for entry in COMMANDS {
        let command = (entry.build)();
        let longs: Vec<&str> = options(&command).filter_map(Arg::get_long).collect();
        for long in &longs {
            for full in [(*long).to_owned(), format!("no-{long}")] {
                for end in 1..=full.len() {
                    let prefix = &full[..end];
                    let [(meant, negative)] = perf_candidates(&longs, prefix)[..] else {
                        // Ambiguous in perf: not compared.
                        continue;
                    };
                    if negative && "no".starts_with(prefix) {
                        // In rperf, the prefixes `n` and `no` do not match negatives: docs/compatibility.md.
                        continue;
                    }
                    let found = resolve(&command, prefix)
                        .map(|found| (found.arg.get_long(), found.negative));
                    assert_eq!(
                        found,
                        Ok((Some(meant), negative)),
                        "{} --{prefix}",
                        entry.name
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn normalised_options_reach_clap_in_order() -> Result<(), clap::Error> {
    let line = [
        "-ve",
        "a",
        "--no-all-cpus",
        "-ex,y",
        "-z",
        "-c0x10",
        "-aa",
        "--",
        "ls",
        "-l",
    ];
    let Ok(ParsedCommand::Run(out)) = normalise(&example_command(WORKLOAD), &words(&line)) else {
        unreachable!("the line is well formed");
    };
    let matches = example_command(WORKLOAD)
        .no_binary_name(true)
        .args_override_self(true)
        .try_get_matches_from(out)?;
    let events: Vec<&String> = matches.get_many("event").into_iter().flatten().collect();
    assert_eq!(events, ["a", "x,y"]);
    assert_eq!(matches.get_one::<bool>("all-cpus"), Some(&true));
    assert_eq!(matches.get_one::<u64>("count"), Some(&16));
    assert_eq!(
        matches.get_one::<String>("level").map(String::as_str),
        Some("1")
    );
    assert_eq!(
        matches.get_many::<String>("words").map(Iterator::count),
        Some(2)
    );
    Ok(())
}

#[test]
fn the_declarations_of_every_command_are_sound() {
    for entry in COMMANDS {
        let command = (entry.build)();
        assert_eq!(command.get_name(), entry.name);
        for arg in options(&command) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let is_unsupported = OptionShape::of(arg) == OptionShape::NotYet;
            assert!(
                is_unsupported || !help.is_empty(),
                "{} {} has no help",
                entry.name,
                spelling(arg)
            );
        }
        command
            .disable_help_flag(true)
            .disable_version_flag(true)
            .debug_assert();
    }
}

proptest::proptest! {
    #[test]
    fn any_rewritten_words_are_valid_for_clap(line in proptest::collection::vec("(-{0,2}[aFgvxmzo=,hn_]{0,4}|.{0,6})", 0..6)) {
        let line: Vec<OsString> = line.into_iter().map(OsString::from).collect();
        for has_workload in [WORKLOAD, NO_WORKLOAD] {
            if let Ok(ParsedCommand::Run(out)) = normalise(&example_command(has_workload), &line) {
                // Rewritten words never contain an option unknown to clap; at most a value is invalid.
                let parsed = example_command(has_workload).no_binary_name(true).disable_help_flag(true).args_override_self(true)
                    .try_get_matches_from(out);
                let accepted = parsed.as_ref().err().is_none_or(|error| error.kind() == clap::error::ErrorKind::ValueValidation);
                proptest::prop_assert!(accepted, "{:?}", parsed);
            }
        }
    }
}
