//! `rperf completion SHELL`: the script by which a shell completes command lines, and the answers that it asks for.

mod answer;
mod options;
mod values;
mod words;

use std::ffi::OsString;
use std::io::Write as _;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::value;

const ABOUT: &str = "\
Prints the script by which a shell completes command lines of this program: commands, options, files, names of events, sort \
keys and the command lines of programs to run. Bash reads it with 'source <(rperf completion bash)', zsh the same way after \
compinit, fish with 'rperf completion fish | source'. As a file it belongs into share/bash-completion/completions/rperf, \
share/zsh/site-functions/_rperf or share/fish/vendor_completions.d/rperf.fish.

The scripts ask the program itself: 'completion words' prints what may take the place of the last of these words. The first \
line of its output says what the shell adds (none, files PREFIX, directories PREFIX, or command N: the words from the N-th on \
are the command line of another program); each other line has a word, a tab and its meaning.";

/// The scripts; @NAME@ is the name of the program.
const SCRIPTS: [(&str, &str); 3] = [
    ("bash", include_str!("completion/script.bash")),
    ("zsh", include_str!("completion/script.zsh")),
    ("fish", include_str!("completion/script.fish")),
];

/// The options.
pub(super) fn command() -> Command {
    Command::new("completion")
        .long_about(ABOUT)
        .arg(value("name", "name").help(
            "complete command lines of the program of this name (default: this program's own)",
        ))
        .arg(
            Arg::new("words")
                .num_args(0..)
                .value_name("shell or word")
                .value_parser(clap::value_parser!(OsString)),
        )
}

/// Prints a script, or an answer.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let words = matches.get_many::<OsString>("words").unwrap_or_default();
    let words: Vec<OsString> = words.cloned().collect();
    let program = context.program;
    let known = "'bash', 'zsh' and 'fish' are supported";
    let Some((first, rest)) = words.split_first() else {
        return Err(CliError::usage(format!(
            "{program} completion: no shell given; {known}"
        )));
    };
    if first == "words" {
        return print(&answer::answer(rest, context).to_string(), context);
    }
    let script = SCRIPTS.iter().find(|(shell, _)| first == *shell);
    let (_, script) = script.ok_or_else(|| {
        let shell = first.display();
        CliError::usage(format!(
            "{program} completion: unknown shell '{shell}'; {known}"
        ))
    })?;
    if let Some(more) = rest.first() {
        let more = more.display();
        return Err(CliError::usage(format!(
            "{program} completion: unexpected word '{more}' after the shell"
        )));
    }
    print(&script.replace("@NAME@", &name(matches, context)?), context)
}

/// The name of the program that the script is for.
fn name(matches: &ArgMatches, context: &Context) -> Result<String, CliError> {
    let Some(name) = matches.get_one::<String>("name") else {
        return Ok(context.program.to_string());
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(is_plain) {
        return Err(
            CliError::usage(format!("--name '{name}': not the name of a program"))
                .hint("a name has letters, digits, '_', '-', '+' and '.', and no directory"),
        );
    }
    Ok(name.clone())
}

fn print(text: &str, context: &Context) -> Result<Exit, CliError> {
    context.stdout().write_all(text.as_bytes())?;
    Ok(Exit::Ok)
}
