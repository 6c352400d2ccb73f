//! `rperf help [COMMAND | examples]`.

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::help;

/// Ready one-liners; `{p}` is the name of the program.
const EXAMPLES: &str = "\
EXAMPLES

Where does the whole machine spend its time? Ten seconds, with call graphs, then the report:
       {p} record -ag -- sleep 10
       {p} report --stdio

The same for one program, or for one that already runs:
       {p} record -g ./program
       {p} record -g -p 1234 sleep 10

At 99 samples a second, in user space only:
       {p} record -F 99 -e cpu-clock:u -g ./program

Who causes context switches, who causes page faults?
       {p} record -e context-switches -ag -- sleep 5
       {p} record -e page-faults -g ./program

Flat, by program and library, with sample counts:
       {p} report --stdio -g none -n -s comm,dso

Callers below callees, without what the callees cost:
       {p} report --stdio --no-children

Every sample as text; then only a few columns of it:
       {p} script
       {p} script -F comm,tid,time,event

What machine was this file recorded on, and how?
       {p} report --header-only
";

/// The options: one word.
pub(super) fn command() -> Command {
    Command::new("help")
        .long_about(
            "Prints the list of commands, the manual of one command, or a page of examples.",
        )
        .arg(Arg::new("topic").num_args(0..=1))
}

/// Prints what was asked for; without a topic the list of commands.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let Some(topic) = matches.get_one::<String>("topic") else {
        help::overview(context)?;
        return Ok(Exit::Ok);
    };
    if topic == "examples" {
        help::page(
            context,
            "help",
            &EXAMPLES.replace("{p}", &context.program.to_string()),
        )?;
        return Ok(Exit::Ok);
    }
    let entry = super::find(context, topic)?;
    help::manual(context, entry, &(entry.build)())?;
    Ok(Exit::Ok)
}
