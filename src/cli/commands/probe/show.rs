//! `--funcs`, `--line`, `--vars`: the functions, lines and variables that can be probed.

use std::io::Write as _;

use clap::ArgMatches;
use rperf_probe::{
    Definition, Error, LineRange, ListedPoint, NameFilter, SearchOptions, Variable,
    VariableOptions, functions, lines, variables,
};

use super::{ProbeSearch, tracepoint};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::shared::probing::args::{self, ProbeSpec};
use crate::cli::shared::probing::is_on;
use crate::cli::shared::probing::place_messages::{FAILED, problem, syntax_error};
use crate::cli::shared::probing::running_kernel::RunningKernel;
use crate::cli::shared::probing::target::{OpenedObject, ProbedBinary};

/// The filter of `--filter`, otherwise the argument of `--funcs`.
fn filter(matches: &ArgMatches) -> Result<Option<NameFilter>, CliError> {
    let given = matches.get_one::<String>("filter");
    let funcs = matches.get_one::<String>("funcs");
    let text = given.or(funcs).filter(|text| !text.is_empty());
    let parsed =
        text.map(|text| NameFilter::parse(text).map_err(|fault| syntax_error(fault, text)));
    parsed.transpose()
}

/// `-F`: lists the functions, one per line.
pub(super) fn list_functions(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let filter = filter(matches)?;
    let doing = "show functions";
    let of_binary = |binary: &ProbedBinary| {
        let symbols = binary.symbols().map_err(|error| problem(&error, doing))?;
        Ok::<_, CliError>(functions(&symbols, filter.as_ref()))
    };
    let (names, object) = match OpenedObject::open(&args::target(matches), matches, context)? {
        OpenedObject::Program(binary) => (of_binary(&binary)?, binary.path().display().to_string()),
        OpenedObject::Kernel(kernel) => {
            let names = match kernel.given_image() {
                Some(image) => of_binary(image)?,
                // Names need no debug information: the running kernel's symbols suffice.
                None => kernel.with_symbols(|kernel| kernel.functions(filter.as_ref())),
            };
            (names, kernel.module().unwrap_or("the kernel").to_owned())
        }
    };
    if names.is_empty() {
        return Err(
            CliError::message(FAILED, format!("no function of {object} matches"))
                .detail("  Error: Failed to show functions."),
        );
    }
    let mut out = context.stdout();
    for name in names {
        writeln!(out, "{name}")?;
    }
    out.flush()?;
    Ok(ExitStatus::Ok)
}

/// `-L`: lists source lines, numbered where a probe can be placed.
pub(super) fn list_lines(
    text: &str,
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let range = LineRange::parse(text).map_err(|fault| syntax_error(fault, text))?;
    let options = args::search_options(matches, context)?;
    let doing = "show lines";
    let of_binary = |binary: &ProbedBinary| {
        let object = binary.object().map_err(|error| problem(&error, doing))?;
        lines(&object, &range, &options).map_err(|error| problem(&error, doing))
    };
    let source = match OpenedObject::open(&args::target(matches), matches, context)? {
        OpenedObject::Program(binary) => of_binary(&binary)?,
        OpenedObject::Kernel(kernel) => match kernel.given_image() {
            Some(image) => of_binary(image)?,
            // Without a given file, looks for the image of the running kernel.
            None => match kernel.image() {
                Some(image) => of_binary(&image)?,
                None => return Err(kernel.no_image(doing)),
            },
        },
    };
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
    Ok(ExitStatus::Ok)
}

/// `-V`: lists the variables available at the locations of definitions. Each of `specs` is a definition with its object.
pub(super) fn list_variables(
    specs: &[ProbeSpec],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let variable_options = VariableOptions {
        externs: is_on(matches, "externs"),
        ranges: is_on(matches, "range"),
        filter: filter(matches)?,
    };
    for spec in specs {
        for search in ProbeSearch::all(spec, matches, context)? {
            list_at(search, &variable_options, context)?;
        }
    }
    Ok(ExitStatus::Ok)
}

/// Lists the variables at the locations of one definition in one object.
fn list_at(
    ProbeSearch {
        definition,
        opened,
        options,
    }: ProbeSearch,
    variable_options: &VariableOptions,
    context: &Context,
) -> Result<(), CliError> {
    let doing = "show vars";
    let of_binary = |binary: &ProbedBinary| {
        let object = binary.object()?;
        variables(&object, &definition, &options, variable_options)
    };
    let locations = match &opened {
        OpenedObject::Program(binary) => {
            of_binary(binary).map_err(|error| problem(&error, doing))?
        }
        OpenedObject::Kernel(kernel) => {
            in_kernel(kernel, &definition, &options, variable_options, &of_binary)
                .map_err(|error| tracepoint::hint_similar(error, &definition, context))?
        }
    };
    let mut out = context.stdout();
    writeln!(out, "Available variables at {}", definition.point)?;
    for ListedPoint {
        place,
        variables,
        unrecordable,
    } in locations
    {
        let function = &place.function;
        writeln!(out, "\t@<{function}+{}>", place.offset)?;
        if variables.is_empty() {
            writeln!(out, "\t\t(No matched variables)")?;
        }
        let text = |variable| variable_text(variable, function, variable_options.ranges);
        let mut lines: Vec<String> = variables.iter().map(text).collect();
        // The variables are sorted, but not by the prefixes that their lines have with ranges.
        if variable_options.ranges {
            lines.sort_unstable();
        }
        for line in lines {
            writeln!(out, "\t\t{line}")?;
        }
        for (name, reason) in unrecordable {
            let offset = place.offset;
            context.note(format_args!(
                "{name} is not available at {function}+{offset}: {reason}"
            ));
        }
    }
    out.flush()?;
    if definition.point.is_return() {
        context.note("these are the variables at the entry of the function; after its return only global ones are available");
    }
    Ok(())
}

/// Returns the variables at locations in the kernel: from the image of the kernel or module, otherwise from the running
/// kernel's type information (BTF). With `--externs` or `--range`, it is an error if there is no image.
fn in_kernel(
    kernel: &RunningKernel,
    definition: &Definition,
    options: &SearchOptions,
    variable_options: &VariableOptions,
    of_binary: &dyn Fn(&ProbedBinary) -> Result<Vec<ListedPoint>, Error>,
) -> Result<Vec<ListedPoint>, CliError> {
    let doing = "show vars";
    let locations = match kernel.given_image() {
        Some(image) => of_binary(image),
        None => match kernel.image() {
            Some(image) => of_binary(&image),
            None if variable_options.externs || variable_options.ranges => {
                Err(Error::NoKernelImage)
            }
            None => {
                let filter = variable_options.filter.as_ref();
                kernel.with_symbols(|kernel| kernel.variables(definition, options, filter))
            }
        },
    };
    locations.map_err(|error| match error {
        Error::NoKernelImage => kernel.no_image(doing),
        error => problem(&error, doing),
    })
}

/// Formats a variable: `long int TAB n`. With ranges, a global variable is preceded by `[EXT]`. Other variables are preceded by
/// `[VAL]`, or by `[INV]` if they cannot be recorded at this place; their ranges follow in both cases.
fn variable_text(variable: &Variable, function: &str, with_ranges: bool) -> String {
    let Variable {
        kind,
        name,
        is_external,
        is_available,
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
    let state = if *is_available { "VAL" } else { "INV" };
    format!(
        "[{state}]\t{kind}\t{name}\t@<{function}+[{}]>",
        ranges.join(",")
    )
}
