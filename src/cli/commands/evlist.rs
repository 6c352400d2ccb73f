//! `rperf evlist`: the events of a recording.

use std::io::Write as _;

use clap::{ArgMatches, Command};
use rperf_view::evlist::{EvlistDetail, EvlistOptions, TraceFields, write_events};
use rperf_wire::EventType;

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::{self, Input};
use crate::cli::options::{counter, flag, switch};

const ABOUT: &str = "\
Lists the events of a recording in file order: their names, sampling rates (-F), complete attributes (-v), groups (-g), \
or the fields of tracepoints.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("evlist")
        .long_about(ABOUT)
        .arg(input::option())
        .arg(
            switch("freq")
                .short('F')
                .help("show the sampling frequency or period of each event"),
        )
        .arg(
            counter("verbose")
                .short('v')
                .help("show the attributes of each event (perf_event_attr)"),
        )
        .arg(
            switch("group")
                .short('g')
                .help("show each event group on one line, in braces"),
        )
        .arg(input::force())
        .arg(switch("trace-fields").help("show the fields of each tracepoint"))
}

/// Prints the events.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let on = |name| flag(matches, name) == Some(true);
    let detail = match (context.verbosity(matches), on("freq")) {
        (1.., _) => EvlistDetail::Attr,
        (0, true) => EvlistDetail::Frequency,
        (0, false) => EvlistDetail::Name,
    };
    if on("group") && detail != EvlistDetail::Name {
        let message = "  Error: --group option is not compatible with other options";
        return Err(CliError::usage(message).hint("use -g without -F and -v"));
    }
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let trace_fields = match on("trace-fields") {
        true => Some(TraceFields::new(data.metadata())?),
        false => None,
    };
    for name in trace_fields.iter().flat_map(TraceFields::undescribed) {
        context.warn(format_args!(
            "the recording has no format of {name}: its fields are not shown"
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
    Ok(ExitStatus::Ok)
}
