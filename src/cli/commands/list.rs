//! `rperf list`: the events and metrics that `-e` and `-M` accept.

mod details;

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use clap::{Arg, ArgMatches, Command};
use rperf_view::list::{EventRow, write_json, write_metrics, write_names, write_text};

use self::details::ShownDetails;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{flag, switch, unsupported, value};
use crate::cli::output_file::write_to;
use crate::cli::shared::event_listing::{MachineEvents, MatchingEvents};
use crate::cli::vendor::report_problems;

const ABOUT: &str = "\
Lists the events of this machine that -e accepts, and the metrics that -M accepts, each with its kind, or its description in the vendors' event tables, in brackets: \
hardware, software and cache events, PMU events of sysfs and of the event tables, tracepoints, USDT probes of programs in \
the build-id cache. An argument selects a kind (hw, sw, cache, pmu, tracepoint, sdt, metric, metricgroup), tracepoints \
by pattern ('sched:*', 'sch*:*wake*'), or all events that contain it in their name. -v shows the fields and the print \
format of tracepoints with an example of a filter. A raw code (r01d2) is shown with its terms. Event tables are read from the \
directory that RPERF_EVENTS names, by default /usr/share/rperf/events.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("list")
        .long_about(ABOUT)
        .arg(
            switch("desc")
                .short('d')
                .help("print the description of each event (default: on); --no-desc also hides the details of -v and --details"),
        )
        .arg(
            switch("long-desc")
                .short('v')
                .help("print long description, type and config of each event, and the fields of tracepoints"),
        )
        .arg(value("cputype", "core or atom").help("of the event tables, list only events of this core type of hybrid CPUs"))
        .arg(value("unit", "PMU").help("of the event tables, list only events of this PMU"))
        .arg(unsupported("debug", ""))
        .arg(switch("deprecated").help("also list deprecated events"))
        .arg(switch("details").help("print type, config and terms of each event"))
        .arg(
            switch("json")
                .short('j')
                .help("print a JSON array of objects"),
        )
        .arg(
            value("output", "file")
                .short('o')
                .help("output file"),
        )
        .arg(switch("raw-dump").help("print only names, on one line"))
        .arg(
            Arg::new("words")
                .num_args(0..)
                .value_name("kind or pattern"),
        )
}

/// Prints the events.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let is_set = |name| flag(matches, name) == Some(true);
    if is_set("json") && is_set("raw-dump") {
        return Err(CliError::usage("--json and --raw-dump exclude each other"));
    }
    let machine = MachineEvents::find(context);
    let words = matches.get_many::<String>("words").unwrap_or_default();
    let words: Vec<&str> = words.map(String::as_str).collect();
    let catalogue = machine.catalogue();
    let MatchingEvents {
        mut rows,
        metrics,
        metric_listing,
        has_unmatched_word,
    } = machine.find_all(&words, &catalogue, context);
    let unit = unit(matches)?;
    rows.retain(|row| {
        // Only events of the event tables have a description; all others are kept.
        row.description.as_ref().is_none_or(|described| {
            let has_unit = unit.as_ref().is_none_or(|unit| *unit == described.pmu);
            has_unit && (is_set("deprecated") || !described.deprecated)
        })
    });
    let descriptions = flag(matches, "desc") != Some(false);
    let details = ShownDetails {
        catalogue: &catalogue,
        tracefs: &machine.tracepoints.tracefs,
        markers: &|| machine.markers(),
        descriptions,
        terms: descriptions && (is_set("details") || is_set("long-desc")),
        verbose: descriptions && is_set("long-desc"),
        // Terms of raw codes, and examples of -e for events with parameters. `verbose` shows them without arguments, too.
        examples: descriptions && !words.is_empty(),
    };
    let events = rows.into_iter().map(|row| details.event_row(row));
    let events: Vec<EventRow> = events.collect();
    let write = |out: &mut dyn Write| match (is_set("json"), is_set("raw-dump")) {
        (true, _) => write_json(out, &events, &metrics),
        (_, true) => write_names(out, &events, &metrics, metric_listing),
        _ => {
            write_text(out, &events)?;
            write_metrics(out, &metrics, metric_listing, &|metric| {
                details.of_metric(metric)
            })
        }
    };
    match matches.get_one::<String>("output") {
        Some(path) => write_to(Path::new(path), context, write)?,
        None => print(context, is_set("json") || is_set("raw-dump"), write)?,
    }
    report_problems(&machine.pmus.tables, context);
    Ok(match has_unmatched_word {
        true => ExitStatus::Failure(1),
        false => ExitStatus::Ok,
    })
}

/// Returns the PMU that events of the event tables are limited to. `--cputype` takes precedence over `--unit`.
fn unit(matches: &ArgMatches) -> Result<Option<String>, CliError> {
    let kind = matches.get_one::<String>("cputype");
    let unit = matches.get_one::<String>("unit").cloned();
    match kind.map(String::as_str) {
        None => Ok(unit),
        Some(kind @ ("core" | "atom")) => Ok(Some(format!("cpu_{kind}"))),
        Some(kind) => Err(CliError::usage(format!(
            "--cputype: '{kind}' is neither core nor atom"
        ))),
    }
}

fn print(
    context: &Context,
    is_for_programs: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    if !is_for_programs {
        context.paginate("list")?;
    }
    let mut out = context.stdout();
    // As in perf, the title is printed only if there is a pager: nothing else redirects stdout here.
    if context.output.redirected().load(Ordering::Relaxed) {
        let title = "List of pre-defined events (to be used in -e or -M):";
        writeln!(out, "\n{title}\n")?;
    }
    write(&mut out)?;
    Ok(out.flush()?)
}
