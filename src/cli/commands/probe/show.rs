//! `--funcs`, `--line`, `--vars`: what can be probed.

use std::io::Write as _;

use clap::ArgMatches;
use rperf_probe::{
    LineRange, Listed, NameFilter, Variable, VariableOptions, functions, lines, variables,
};

use super::args::{self, Given};
use super::problem::{faulty, problem};
use super::target::Binary;
use super::{NOT_FOUND, Sought, on};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};

/// The condition of `--filter`, else of what stands behind `--funcs`.
fn filter(matches: &ArgMatches) -> Result<Option<NameFilter>, CliError> {
    let given = matches.get_one::<String>("filter");
    let behind = matches.get_one::<String>("funcs");
    let text = given.or(behind).filter(|text| !text.is_empty());
    let parsed = text.map(|text| NameFilter::parse(text).map_err(|fault| faulty(fault, text)));
    parsed.transpose()
}

/// `-F`: the functions, one in a line.
pub(super) fn list_functions(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let filter = filter(matches)?;
    let binary = Binary::open(&args::target(matches)?, matches, context)?;
    let object = binary
        .object()
        .map_err(|error| problem(&error, "show functions"))?;
    let found = functions(&object, filter.as_ref());
    if found.is_empty() {
        let path = binary.path().display();
        return Err(
            CliError::message(NOT_FOUND, format!("no function of {path} is wanted"))
                .detail("  Error: Failed to show functions."),
        );
    }
    let mut out = context.stdout();
    for name in found {
        writeln!(out, "{name}")?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// `-L`: source text, numbers at the lines that can be probed.
pub(super) fn list_lines(
    wanted: &str,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Exit, CliError> {
    let range = LineRange::parse(wanted).map_err(|fault| faulty(fault, wanted))?;
    let binary = Binary::open(&args::target(matches)?, matches, context)?;
    let options = args::search_options(matches)?;
    let object = binary
        .object()
        .map_err(|error| problem(&error, "show lines"))?;
    let source = lines(&object, &range, &options).map_err(|error| problem(&error, "show lines"))?;
    let mut out = context.stdout();
    match &source.function {
        Some(function) => writeln!(out, "<{function}@{}:{}>", source.file, source.first)?,
        None => writeln!(out, "<{}:{}>", source.file, source.first)?,
    }
    for line in source.lines {
        match line.number {
            Some(number) => writeln!(out, "{number:>7}  {}", line.text)?,
            None => writeln!(out, "         {}", line.text)?,
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// `-V`: the variables at the places of a definition.
pub(super) fn list_variables(
    given: &Given,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Exit, CliError> {
    let Sought {
        definition,
        binary,
        options,
    } = Sought::open(given, matches, context)?;
    let object = binary
        .object()
        .map_err(|error| problem(&error, "show vars"))?;
    let wanted = VariableOptions {
        externs: on(matches, "externs"),
        ranges: on(matches, "range"),
        filter: filter(matches)?,
    };
    let listed = variables(&object, &definition, &options, &wanted)
        .map_err(|error| problem(&error, "show vars"))?;
    let mut out = context.stdout();
    writeln!(out, "Available variables at {}", definition.point)?;
    for Listed { place, variables } in listed {
        let function = &place.function;
        writeln!(out, "\t@<{function}+{}>", place.offset)?;
        if variables.is_empty() {
            writeln!(out, "\t\t(No matched variables)")?;
        }
        for variable in &variables {
            writeln!(out, "\t\t{}", shown(variable, function, wanted.ranges))?;
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// `long int TAB n`, between `[VAL]` and the ranges where these are asked for.
fn shown(variable: &Variable, function: &str, with_ranges: bool) -> String {
    let Variable {
        kind,
        name,
        is_external,
        ranges,
    } = variable;
    if !with_ranges {
        return format!("{kind}\t{name}");
    }
    if *is_external {
        return format!("[EXT]\t{kind}\t{name}");
    }
    let ranges: Vec<String> = ranges
        .iter()
        .map(|(start, end)| format!("{start}-{end}"))
        .collect();
    format!(
        "[VAL]\t{kind}\t{name}\t@<{function}+[{}]>",
        ranges.join(",")
    )
}
