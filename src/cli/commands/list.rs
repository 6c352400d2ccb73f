//! `rperf list`: what `-e` and `-M` can name.

mod details;
mod found;

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use clap::{Arg, ArgMatches, Command};
use rperf_events::list::{Kind, Row};
use rperf_view::list::{Told, write_json, write_metrics, write_names, write_text};

use self::details::Details;
use self::found::{Found, Machine};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::{flag, not_yet, switch, value};
use crate::cli::product::write_to;

const ABOUT: &str = "\
Lists the events that -e takes, one in a line with its kind in brackets, as this machine has them: hardware, software and \
cache events that the kernel opens, those that PMUs or the tables of vendors name, tracepoints, the probes that programs in \
the build-id cache bring along, and metrics. A word chooses a kind: hw, sw, cache, pmu, tracepoint, sdt, metric, metricgroup; \
or a tracepoint by its name, with patterns ('sched:*', 'sch*:*wake*'); or whatever has it in its name. -v tells a \
tracepoint's fields with their types, how the kernel prints it, and a filter to begin with; of a raw code (r01d2) the \
terms that it is made of. Tables are read from the folder that RPERF_EVENTS names, else from /usr/share/rperf/events.";

/// The options.
pub(super) fn command() -> Command {
    Command::new("list")
        .long_about(ABOUT)
        .arg(
            switch("desc")
                .short('d')
                .help("tell below each event what is known of it (the default); --no-desc leaves out what -v and --details tell"),
        )
        .arg(
            switch("long-desc")
                .short('v')
                .help("tell type and number of each event, and the fields of tracepoints"),
        )
        .arg(value("cputype", "core or atom").help("leave out what tables tell of other kinds of cores"))
        .arg(value("unit", "PMU").help("leave out what tables tell of other PMUs"))
        .arg(not_yet("debug", ""))
        .arg(switch("deprecated").help("list what vendors advise against, too"))
        .arg(switch("details").help("tell type, number and terms of each event"))
        .arg(
            switch("json")
                .short('j')
                .help("print an array of objects in JSON"),
        )
        .arg(
            value("output", "file")
                .short('o')
                .help("write to this file"),
        )
        .arg(switch("raw-dump").help("print bare names in one line"))
        .arg(
            Arg::new("words")
                .num_args(0..)
                .value_name("kind or pattern"),
        )
}

/// Prints the events.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let on = |name| flag(matches, name) == Some(true);
    if on("json") && on("raw-dump") {
        return Err(CliError::usage("--json and --raw-dump exclude each other"));
    }
    let machine = Machine::find(context);
    let words = matches.get_many::<String>("words").unwrap_or_default();
    let words: Vec<&str> = words.map(String::as_str).collect();
    let catalogue = machine.catalogue();
    let Found {
        mut rows,
        metrics,
        form,
        missed,
    } = machine.find_all(&words, &catalogue, context);
    let unit = unit(matches)?;
    rows.retain(|row| {
        row.described.as_ref().is_none_or(|described| {
            let of_unit = unit.as_ref().is_none_or(|unit| *unit == described.pmu);
            of_unit && (on("deprecated") || !described.deprecated)
        })
    });
    let described = flag(matches, "desc") != Some(false);
    let details = Details {
        catalogue: &catalogue,
        tracefs: &machine.tracepoints.0,
        marks: &|| machine.marks(),
        described,
        resolved: described && (on("details") || on("long-desc")),
        long: described && on("long-desc"),
        examples: described && !words.is_empty(),
    };
    let events = rows.into_iter().map(|row| details.tell(row));
    let events: Vec<Told> = events.collect();
    let write = |out: &mut dyn Write| match (on("json"), on("raw-dump")) {
        (true, _) => write_json(out, &events, &metrics),
        (_, true) => write_names(out, &events, &metrics, form),
        _ => {
            write_text(out, &events)?;
            write_metrics(out, &metrics, form, &|metric| details.of_metric(metric))
        }
    };
    match matches.get_one::<String>("output") {
        Some(path) => write_to(Path::new(path), context, write)?,
        None => print(context, on("json") || on("raw-dump"), write)?,
    }
    machine.pmus.tables.tell(context);
    Ok(match missed {
        true => Exit::Failure(1),
        false => Exit::Ok,
    })
}

/// Every event that `-e` can name on this machine.
pub(super) fn events(context: &Context) -> Vec<Row> {
    let machine = Machine::find(context);
    let mut rows = machine.find_all(&[], &machine.catalogue(), context).rows;
    rows.retain(|row| !matches!(row.kind, Kind::Raw | Kind::Breakpoint));
    rows
}

/// The names of all metrics that this machine has.
pub(super) fn metrics(context: &Context) -> Vec<String> {
    let machine = Machine::find(context);
    let found = machine.find_all(&["metric"], &machine.catalogue(), context);
    let names = found.metrics.iter().map(|metric| metric.name.clone());
    names.collect()
}

/// The PMU whose events alone of tables are wanted.
fn unit(matches: &ArgMatches) -> Result<Option<String>, CliError> {
    let kind = matches.get_one::<String>("cputype");
    let unit = matches.get_one::<String>("unit").cloned();
    match kind.map(String::as_str) {
        None => Ok(unit),
        Some(kind @ ("core" | "atom")) => Ok(Some(format!("cpu_{kind}"))),
        Some(kind) => Err(CliError::usage(format!(
            "--cputype takes core or atom, not '{kind}'"
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
    if context.output.redirected().load(Ordering::Relaxed) {
        let title = "List of pre-defined events (to be used in -e or -M):";
        writeln!(out, "\n{title}\n")?;
    }
    write(&mut out)?;
    Ok(out.flush()?)
}
