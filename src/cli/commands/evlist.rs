//! `rperf evlist`: the events of a recording.

use std::io::Write as _;

use clap::{ArgMatches, Command};
use rperf_view::evlist::{Detail, EvlistOptions, TraceFields, write_events};
use rperf_wire::EventType;

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::input::{self, Input};
use crate::cli::options::{counter, flag, switch};

const ABOUT: &str = "\
Prints the events of a recording, one on a line, in the order of the file: their names alone, or with how often they were \
sampled, all that was asked of the kernel, or the fields that tracepoints tell.";

/// The options.
pub(super) fn command() -> Command {
    Command::new("evlist")
        .long_about(ABOUT)
        .arg(input::option())
        .arg(
            switch("freq")
                .short('F')
                .help("show the frequency of every event, or its period"),
        )
        .arg(
            counter("verbose")
                .short('v')
                .help("show everything that was asked of the kernel"),
        )
        .arg(
            switch("group")
                .short('g')
                .help("show the members of a group in braces, on one line"),
        )
        .arg(input::force())
        .arg(switch("trace-fields").help("show the fields of tracepoints"))
}

/// Prints the events.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let on = |name| flag(matches, name) == Some(true);
    let detail = match (context.verbosity(matches), on("freq")) {
        (1.., _) => Detail::Attr,
        (0, true) => Detail::Frequency,
        (0, false) => Detail::Name,
    };
    if on("group") && detail != Detail::Name {
        let message = "  Error: --group option is not compatible with other options";
        return Err(
            CliError::usage(message).hint("-g alone shows the groups, -F and -v the events")
        );
    }
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let trace_fields = match on("trace-fields") {
        true => Some(TraceFields::new(data.described())?),
        false => None,
    };
    for name in trace_fields.iter().flat_map(TraceFields::undescribed) {
        context.warn(format_args!(
            "the recording has no description of {name}: its fields are not shown"
        ));
    }
    let out = &mut context.stdout();
    let options = EvlistOptions {
        detail,
        groups: on("group"),
        trace_fields: trace_fields.as_ref(),
    };
    write_events(out, &data, &input.bytes, &options)?;
    let mut kinds = data.events().iter().map(|event| event.attr.kind);
    if trace_fields.is_none() && kinds.any(|kind| kind == EventType::TRACEPOINT) {
        let program = context.program;
        writeln!(
            out,
            "# Tip: use '{program} evlist --trace-fields' to show fields for tracepoint events"
        )?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}
