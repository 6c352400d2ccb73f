//! `rperf completion SHELL`: the completion script of a shell, and the candidates that the script asks for.

mod candidates;
mod options;
mod values;
mod words;

use std::ffi::OsString;
use std::io::Write as _;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::value;

const ABOUT: &str = "\
Prints the completion script of a shell: it completes commands, options, their values (such as files, event names and sort \
keys) and workloads. Load it with 'source <(rperf completion bash)', in zsh after compinit with 'source <(rperf completion \
zsh)', in fish with 'rperf completion fish | source'. Installed as a file it belongs in \
share/bash-completion/completions/rperf, share/zsh/site-functions/_rperf or share/fish/vendor_completions.d/rperf.fish.

The scripts call 'completion words -- WORD...' with the words of the command line up to the cursor. It prints the candidates \
for the last WORD. The first line of its output names the candidates that the shell adds: none, files PREFIX or directories \
PREFIX (PREFIX is the part of the last WORD before the file name, as --output=), or command N (the words from index N on are \
the command line of another program; index 0 is the program's name). Every other line is a candidate, a tab and its description.";

/// The scripts; @NAME@ is replaced by the name of the program.
const SCRIPTS: [(&str, &str); 3] = [
    ("bash", include_str!("completion/script.bash")),
    ("zsh", include_str!("completion/script.zsh")),
    ("fish", include_str!("completion/script.fish")),
];

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("completion")
        .long_about(ABOUT)
        .arg(
            value("name", "name")
                .help("program name to complete (default: the name of this program)"),
        )
        // The shell; or the word `words`, and the words of a command line to complete.
        .arg(
            Arg::new("words")
                .num_args(0..)
                .value_name("shell or word")
                .value_parser(clap::value_parser!(OsString)),
        )
}

/// Prints the completion script of a shell; or, if the first argument is the word `words`, the candidates for the last of the
/// words after it.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let words = matches.get_many::<OsString>("words").unwrap_or_default();
    let words: Vec<OsString> = words.cloned().collect();
    let program = context.program;
    let choices = "choose from bash, zsh, fish";
    let Some((first, rest)) = words.split_first() else {
        return Err(CliError::usage(format!(
            "{program} completion: no shell given: {choices}"
        )));
    };
    if first == "words" {
        return print(&candidates::answer(rest, context).to_string(), context);
    }
    let script = SCRIPTS.iter().find(|(shell, _)| first == *shell);
    let (_, script) = script.ok_or_else(|| {
        let shell = first.display();
        CliError::usage(format!(
            "{program} completion: unknown shell '{shell}': {choices}"
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
            CliError::usage(format!("--name '{name}': not a program name"))
                .hint("use letters, digits, '_', '-', '+' and '.', without a directory"),
        );
    }
    Ok(name.clone())
}

fn print(text: &str, context: &Context) -> Result<ExitStatus, CliError> {
    context.stdout().write_all(text.as_bytes())?;
    Ok(ExitStatus::Ok)
}
