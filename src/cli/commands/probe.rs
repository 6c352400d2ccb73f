//! `rperf probe`: dynamic tracepoints in programs and the kernel.

mod add;
mod blacklist;
mod delete;
mod list;
mod show;
mod tracepoint;

use std::io::Write as _;

use clap::ArgMatches;
use rperf_probe::{Definition, KERNEL_GROUP, SearchOptions, parse};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::is_given;
pub(super) use crate::cli::shared::probing::args::command;
use crate::cli::shared::probing::args::{self, ProbeSpec};
use crate::cli::shared::probing::place_messages::syntax_error;
use crate::cli::shared::probing::target::OpenedObject;
use crate::cli::shared::probing::{events, is_on, targets_of};

/// The requested actions.
struct ProbeActions<'m> {
    list: Option<&'m String>,
    deleted: Vec<&'m String>,
    added: Vec<ProbeSpec>,
    /// The definitions of `--definition`, whose events are only printed.
    printed: Vec<ProbeSpec>,
    /// The lines to list (`--line`).
    line: Option<&'m String>,
    /// The places whose variables are listed (`--vars`).
    variables: Vec<ProbeSpec>,
    /// Whether functions are listed (`--funcs`).
    functions: bool,
}

impl<'m> ProbeActions<'m> {
    fn new(matches: &'m ArgMatches) -> Self {
        Self {
            list: matches.get_one("list"),
            deleted: matches.get_many("del").unwrap_or_default().collect(),
            added: args::definitions(matches, "add"),
            printed: args::definitions(matches, "definition"),
            line: matches.get_one("line"),
            variables: args::definitions(matches, "vars"),
            functions: matches.contains_id("funcs"),
        }
    }

    /// Checks that exactly one action is requested (`--add` and `--del` count as one), and that each option that only some
    /// actions accept is given with one of them.
    fn check(&self, matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
        let requested = [
            self.line.is_some(),
            !self.variables.is_empty(),
            self.functions,
            self.list.is_some(),
            !self.deleted.is_empty() || !self.added.is_empty(),
            !self.printed.is_empty(),
        ];
        match requested
            .iter()
            .filter(|is_requested| **is_requested)
            .count()
        {
            1 => {}
            0 => return Err(args::no_action(context)),
            _ => {
                return Err(CliError::usage(
                    "give only one of --list, --definition, --line, --vars and --funcs, or --add and --del, which can be combined",
                ));
            }
        }
        let lists_variables = !self.variables.is_empty();
        let may_use_cache = self.line.is_none() && !lists_variables && !self.functions;
        // An option, the actions that accept it (the message adds the first `--`), and whether one of these is requested.
        for (name, actions, is_accepted) in [
            ("externs", "vars", lists_variables),
            ("range", "vars", lists_variables),
            (
                "filter",
                "vars or --funcs",
                lists_variables || self.functions,
            ),
            ("bootconfig", "definition", !self.printed.is_empty()),
            ("cache", "add, --del, --definition or --list", may_use_cache),
        ] {
            if is_given(matches, name) && !is_accepted {
                return Err(CliError::usage(format!("--{name} needs --{actions}")));
            }
        }
        Ok(())
    }
}

/// Runs the action; events are deleted before others are added.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let actions = ProbeActions::new(matches);
    actions.check(matches, context)?;
    if actions.functions {
        return show::list_functions(matches, context);
    }
    if let Some(line) = actions.line {
        return show::list_lines(line, matches, context);
    }
    if !actions.variables.is_empty() {
        return show::list_variables(&actions.variables, matches, context);
    }
    if let Some(pattern) = actions.list {
        return list::run(pattern, matches, context);
    }
    if !actions.printed.is_empty() {
        return print_definitions(&actions.printed, matches, context);
    }
    if !actions.deleted.is_empty() {
        delete::run(&actions.deleted, matches, context)?;
    }
    if !actions.added.is_empty() {
        add::run(&actions.added, matches, context)?;
    }
    Ok(ExitStatus::Ok)
}

/// `-D`: prints the lines that would create the events if written to `kprobe_events` or `uprobe_events`, or, with `--bootconfig`,
/// their bootconfig entries.
fn print_definitions(
    definitions: &[ProbeSpec],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let mut out = context.stdout();
    let for_boot = is_on(matches, "bootconfig");
    for given in definitions {
        for (event, _place) in events(given, matches, context)?.events {
            if !for_boot {
                writeln!(out, "{event}")?;
                continue;
            }
            let entry = event.bootconfig_entry().ok_or_else(|| {
                CliError::usage(
                    "--bootconfig: probes of programs cannot be set while the kernel boots",
                )
            })?;
            // Such entries have no group: the kernel puts their events into the group `kprobes`.
            if event.group != KERNEL_GROUP {
                context.warn(format_args!("Group name {} is ignored", event.group));
            }
            writeln!(out, "{entry}")?;
        }
    }
    out.flush()?;
    Ok(ExitStatus::Ok)
}

/// A parsed definition, an object that it applies to, and the options of the search in this object.
struct ProbeSearch {
    definition: Definition,
    opened: OpenedObject,
    options: SearchOptions,
}

impl ProbeSearch {
    /// Returns a search for each object of a definition.
    fn all(
        given: &ProbeSpec,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Vec<Self>, CliError> {
        let text = &given.definition;
        let definition = parse(text).map_err(|fault| syntax_error(fault, text))?;
        let targets = targets_of(given, &definition, context)?;
        let searches = targets.iter().map(|target| {
            Ok(Self {
                definition: definition.clone(),
                opened: OpenedObject::open(target, matches, context)?,
                options: args::search_options(matches, context)?,
            })
        });
        searches.collect()
    }
}
