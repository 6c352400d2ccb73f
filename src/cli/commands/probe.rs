//! `rperf probe`: events at places of programs that nobody marked.

mod add;
mod apart;
mod args;
mod blacklist;
mod cached;
mod delete;
mod list;
mod own;
mod problem;
mod running;
mod show;
mod tables;
mod target;
mod targets;
mod tracepoint;

pub(super) use args::command;
pub(in crate::cli) use own::{OwnProbes, Wanted};

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use clap::ArgMatches;
use rperf_probe::{
    Definition, Error, Event, KERNEL_GROUP, Options, Probe, Target, base_name, find, group_of,
    group_of_provider, parse,
};

use self::args::Given;
use self::cached::Home;
use self::problem::{faulty, problem};
use self::running::Places;
use self::tables::Tables;
use self::target::{Binary, Opened};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::flag;

/// The status of perf where something is not found (ENOENT).
const NOT_FOUND: u8 = 254;

/// What is asked for.
struct Asked<'m> {
    list: Option<&'m String>,
    deleted: Vec<&'m String>,
    added: Vec<Given>,
    shown: Vec<Given>,
    line: Option<&'m String>,
    variables: Vec<Given>,
    functions: bool,
}

impl<'m> Asked<'m> {
    fn new(matches: &'m ArgMatches) -> Result<Self, CliError> {
        Ok(Self {
            list: matches.get_one("list"),
            deleted: matches.get_many("del").unwrap_or_default().collect(),
            added: args::definitions(matches, "add")?,
            shown: args::definitions(matches, "definition")?,
            line: matches.get_one("line"),
            variables: args::definitions(matches, "vars")?,
            functions: matches.contains_id("funcs"),
        })
    }

    /// One thing must be asked for, and no option that belongs to another.
    fn check(&self, matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
        let modes = [
            self.line.is_some(),
            !self.variables.is_empty(),
            self.functions,
            self.list.is_some(),
            !self.deleted.is_empty() || !self.added.is_empty(),
            !self.shown.is_empty(),
        ];
        match modes.iter().filter(|asked| **asked).count() {
            1 => {}
            0 => return Err(args::nothing(context)),
            _ => {
                return Err(CliError::usage(
                    "--list, --definition, --line, --vars, --funcs, --add with --del: one of them at a time",
                ));
            }
        }
        let variables = !self.variables.is_empty();
        let changes = self.line.is_none() && !variables && !self.functions;
        for (name, with, is_there) in [
            ("externs", "vars", variables),
            ("range", "vars", variables),
            ("filter", "vars or --funcs", variables || self.functions),
            ("bootconfig", "definition", !self.shown.is_empty()),
            ("cache", "add, --del, --definition or --list", changes),
        ] {
            if matches.contains_id(name) && !is_there && (name != "cache" || on(matches, name)) {
                return Err(CliError::usage(format!("--{name} goes with --{with}")));
            }
        }
        Ok(())
    }
}

/// Does the one thing that is asked for; events are deleted before others are added.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let asked = Asked::new(matches)?;
    asked.check(matches, context)?;
    if asked.functions {
        return show::list_functions(matches, context);
    }
    if let Some(line) = asked.line {
        return show::list_lines(line, matches, context);
    }
    if !asked.variables.is_empty() {
        return show::list_variables(&asked.variables, matches, context);
    }
    if let Some(pattern) = asked.list {
        return list::run(pattern, matches, context);
    }
    if !asked.shown.is_empty() {
        return define(&asked.shown, matches, context);
    }
    if !asked.deleted.is_empty() {
        delete::run(&asked.deleted, matches, context)?;
    }
    if !asked.added.is_empty() {
        add::run(&asked.added, matches, context)?;
    }
    Ok(Exit::Ok)
}

/// `-D`: the text that would create the events.
fn define(shown: &[Given], matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let mut out = context.stdout();
    let for_boot = on(matches, "bootconfig");
    for given in shown {
        for (event, _) in events(given, matches, context)?.events {
            if !for_boot {
                writeln!(out, "{event}")?;
                continue;
            }
            let line = event.boot_line().ok_or_else(|| {
                CliError::usage("--bootconfig: a booting kernel has no programs to probe")
            })?;
            if event.group != KERNEL_GROUP {
                context.warn(format_args!("Group name {} is ignored", event.group));
            }
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// A definition that was read, the object that it is about, and what bounds the search there.
struct Sought {
    definition: Definition,
    opened: Opened,
    options: Options,
}

impl Sought {
    /// One for each object that a definition is about.
    fn all(given: &Given, matches: &ArgMatches, context: &Context) -> Result<Vec<Self>, CliError> {
        let text = &given.definition;
        let definition = parse(text).map_err(|fault| faulty(fault, text))?;
        let targets = targets::of(given, &definition, context)?;
        let sought = targets.iter().map(|target| {
            Ok(Self {
                definition: definition.clone(),
                opened: Opened::open(target, matches, context)?,
                options: args::search_options(matches, context)?,
            })
        });
        sought.collect()
    }
}

/// What one definition leads to.
struct Defined {
    definition: Definition,
    /// What the cache would keep them with.
    home: Option<Home>,
    /// The events, with the place of each where there are several.
    events: Vec<(Event, Option<String>)>,
}

/// Finds the places of a definition. The names of the events are those before they are made distinct.
fn events(given: &Given, matches: &ArgMatches, context: &Context) -> Result<Defined, CliError> {
    let text = &given.definition;
    let definition = parse(text).map_err(|fault| faulty(fault, text))?;
    let mut events = Vec::new();
    let mut home = None;
    for target in targets::of(given, &definition, context)? {
        let opened = Opened::open(&target, matches, context)?;
        home = Home::of(&opened);
        let cached = home.as_ref();
        let recalled =
            cached.and_then(|home| recalled(home, &opened, &definition, matches, context));
        if let Some(recalled) = recalled {
            events.extend(recalled.into_iter().map(|event| (event, None)));
            continue;
        }
        let kept = cached.map(|home| home.named(&definition.point, context));
        let kept = kept.unwrap_or_default();
        match found(&opened, &definition, matches, context) {
            Ok(places) => events.extend(events_at(places, &definition, context)),
            // Such a name stands for either.
            Err(_) if !kept.is_empty() => {}
            Err(error) => return Err(error),
        }
        events.extend(cached::under_own_names(kept, &definition)?);
    }
    Ok(Defined {
        definition,
        home,
        events,
    })
}

/// The places of a definition in one object.
fn found(
    opened: &Opened,
    definition: &Definition,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Places, CliError> {
    let options = args::search_options(matches, context)?;
    match opened {
        Opened::Kernel(kernel) => kernel.find(definition, &options),
        Opened::Program(binary) => in_program(binary, definition, &options).map_err(|error| {
            let told = problem(&error, "add events");
            match inlined(binary, definition, &options) {
                Some(places) => told.hint(format!(
                    "it is inlined at {places}, which is probed without --no-inlines"
                )),
                None => told,
            }
        }),
    }
}

/// Where the copies are that `--no-inlines` leaves out.
fn inlined(binary: &Binary, definition: &Definition, options: &Options) -> Option<String> {
    if options.inlines {
        return None;
    }
    let options = Options {
        inlines: true,
        ..options.clone()
    };
    let places = in_program(binary, definition, &options).ok()?;
    let places: Vec<String> = places.found.probes.iter().map(place).collect();
    Some(places.join(", "))
}

/// With `--cache`, what was kept under the same definition: also when debug information is gone by now. What bounds the search anew
/// is no question to the cache.
fn recalled(
    home: &Home,
    opened: &Opened,
    definition: &Definition,
    matches: &ArgMatches,
    context: &Context,
) -> Option<Vec<Event>> {
    let is_bounded = matches.contains_id("max-probes") || matches.contains_id("inlines");
    if !on(matches, "cache") || is_bounded {
        return None;
    }
    home.recalled(definition, &opened.group(), context)
}

/// Those at the places in one object.
fn events_at(
    places: Places,
    definition: &Definition,
    context: &Context,
) -> Vec<(Event, Option<String>)> {
    let Places { found, targets } = places;
    for note in &found.notes {
        for line in problem::note(note) {
            context.note(line);
        }
    }
    let group = |probe: &Probe, target: &Target| match (&definition.group, &probe.provider, target)
    {
        (Some(group), ..) => group.clone(),
        (None, Some(provider), _) => group_of_provider(provider),
        (None, None, target) => usual_group(target),
    };
    let several = found.probes.len() > 1;
    let events = found.probes.iter().zip(targets).map(|(probe, target)| {
        let event = Event {
            group: group(probe, &target),
            name: base_name(definition, probe),
            target,
            is_return: probe.is_return,
            fields: probe.fields.clone(),
        };
        (event, several.then(|| place(probe)))
    });
    events.collect()
}

/// The group of events whose group nobody chose.
fn usual_group(target: &Target) -> String {
    match target {
        Target::Program { object, .. } => group_of(Path::new(object)),
        Target::Kernel { .. } => KERNEL_GROUP.to_owned(),
    }
}

/// The places in a program or library.
fn in_program(
    binary: &Binary,
    definition: &Definition,
    options: &Options,
) -> Result<Places, Error> {
    let found = find(&binary.object()?, definition, options)?;
    let object = binary.path().to_string_lossy();
    let targets = found.probes.iter().map(|probe| Target::Program {
        object: object.clone().into_owned(),
        file_offset: probe.file_offset,
        semaphore: probe.semaphore,
    });
    let targets = targets.collect();
    Ok(Places { found, targets })
}

/// `middle+12 (inlined)`.
fn place(probe: &Probe) -> String {
    let inlined = if probe.is_inlined { " (inlined)" } else { "" };
    match probe.offset {
        0 => format!("{}{inlined}", probe.symbol),
        offset => format!("{}+{offset}{inlined}", probe.symbol),
    }
}

/// The names of the probe events that exist (`GROUP:EVENT`); none where their lists cannot be read.
pub(in crate::cli) fn names(context: &Context) -> BTreeSet<String> {
    let existing = Tables::find(context).existing().unwrap_or_default();
    existing
        .iter()
        .map(|(event, _)| event.full_name())
        .collect()
}

/// Whether a switch is on.
fn on(matches: &ArgMatches, name: &str) -> bool {
    flag(matches, name) == Some(true)
}
