//! `rperf bench`: benchmarks of the kernel, the machine and this program.

mod args;
mod baseline;
mod breakpoint;
mod catalogue;
mod epoll;
mod futex;
mod internals;
mod mem;
mod runner;
mod sched;
mod syscall;
mod text;

use std::ffi::OsString;
use std::io::Write as _;

use clap::ArgMatches;

use self::args::Settings;
pub(super) use self::args::command;
use self::catalogue::{ALL, Benchmark, COLLECTIONS, Collection, NOT_BUILT};
use self::runner::Runner;
use crate::cli::commands::CommandTitle;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::parsing::{self, Parsed};

/// Runs a benchmark, those of a collection or all of them; lists them if none is named.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let settings = Settings::new(matches, context)?;
    let words = matches.get_many::<OsString>("words").unwrap_or_default();
    let words: Vec<OsString> = words.cloned().collect();
    let Some((collection, words)) = words.split_first() else {
        return list_collections(context);
    };
    let mut runner = Runner::new(settings, context)?;
    if collection == ALL {
        refuse_words(words, "all", context)?;
        for collection in COLLECTIONS {
            run_all(collection, &mut runner)?;
        }
        return runner.finish();
    }
    let known = COLLECTIONS.iter().find(|known| *collection == *known.name);
    refuse_missing(collection, words, context)?;
    let Some(known) = known else {
        let name = collection.to_string_lossy();
        return Err(
            CliError::message(1, format!("Unknown collection: '{name}'"))
                .hint(format!("'{} bench' lists the collections", context.program)),
        );
    };
    let Some((name, words)) = words.split_first() else {
        return list_benchmarks(known, context);
    };
    if name == ALL {
        refuse_words(words, &format!("{} all", known.name), context)?;
        run_all(known, &mut runner)?;
        return runner.finish();
    }
    let found = known.benchmarks.iter().find(|one| *name == *one.name);
    let Some(benchmark) = found else {
        let message = format!(
            "Unknown benchmark: '{}' for collection '{}'",
            name.to_string_lossy(),
            known.name
        );
        let list = format!(
            "'{} bench {}' lists its benchmarks",
            context.program, known.name
        );
        return Err(CliError::message(1, message).hint(list));
    };
    match run_one(known, benchmark, words, &mut runner)? {
        ExitStatus::Ok => runner.finish(),
        answered => Ok(answered),
    }
}

/// Refuses the benchmarks of perf that are not built.
fn refuse_missing(
    collection: &OsString,
    words: &[OsString],
    context: &Context,
) -> Result<(), CliError> {
    let named = |(wanted, benchmark, _): &&(&str, &str, &str)| {
        *collection == **wanted
            && (benchmark.is_empty() || words.first().is_some_and(|word| *word == **benchmark))
    };
    let Some((wanted, benchmark, instead)) = NOT_BUILT.iter().find(named) else {
        return Ok(());
    };
    let name = [*wanted, *benchmark].join(" ");
    Err(CliError::usage(format!(
        "{} bench {}: not supported yet; {instead}",
        context.program,
        name.trim_end()
    )))
}

/// Refuses words that would be ignored.
fn refuse_words(words: &[OsString], name: &str, context: &Context) -> Result<(), CliError> {
    let Some(word) = words.first() else {
        return Ok(());
    };
    let message = format!(
        "{} bench {name}: unexpected word '{}': benchmarks have options only when they are run alone",
        context.program,
        word.to_string_lossy()
    );
    Err(CliError::usage(message))
}

/// Parses the words of a benchmark and runs it.
fn run_one(
    collection: &Collection,
    benchmark: &Benchmark,
    words: &[OsString],
    runner: &mut Runner<'_>,
) -> Result<ExitStatus, CliError> {
    let name = format!("bench {} {}", collection.name, benchmark.name);
    let title = CommandTitle {
        name: &name,
        summary: benchmark.summary,
        usage: &["[<options>]"],
    };
    let command = (benchmark.build)();
    let matches = match parsing::parse(runner.context(), title, command, words)? {
        Parsed::Matches(matches) => matches,
        Parsed::Answered(exit) => return Ok(exit),
    };
    let full = format!("{}/{}", collection.name, benchmark.name);
    runner.begin(&full, words)?;
    runner.print(&format!("# Running '{full}' benchmark:\n"))?;
    let result = (benchmark.run)(&matches, runner);
    if let Err(error) = &result {
        runner.fail(error);
    }
    result.map(|()| ExitStatus::Ok)
}

/// Runs the benchmarks of a collection with their default options. The failure of one is reported and does not stop the others.
fn run_all(collection: &Collection, runner: &mut Runner<'_>) -> Result<(), CliError> {
    for benchmark in collection.benchmarks {
        let full = format!("{}/{}", collection.name, benchmark.name);
        runner.begin(&full, &[])?;
        runner.print(&format!("# Running {full} benchmark...\n"))?;
        let parser = (benchmark.build)().no_binary_name(true);
        let matches = parser
            .try_get_matches_from(Vec::<OsString>::new())
            .map_err(|error| CliError::failure(1, error))?;
        if let Err(error) = (benchmark.run)(&matches, runner) {
            runner.fail(&error);
            runner.report_failure(&full, &error)?;
        }
        runner.print("\n")?;
    }
    Ok(())
}

fn list_collections(context: &Context) -> Result<ExitStatus, CliError> {
    let mut text = format!(
        "Usage: \n\t{} bench [<common options>] <collection> <benchmark> [<options>]\n\n",
        context.program
    );
    text.push_str("        # List of all available benchmark collections:\n\n");
    for collection in COLLECTIONS {
        text.push_str(&text::listed(collection.name, collection.summary));
    }
    text.push_str(&text::listed(ALL, "All benchmarks"));
    text.push('\n');
    context.stdout().write_all(text.as_bytes())?;
    Ok(ExitStatus::Ok)
}

fn list_benchmarks(collection: &Collection, context: &Context) -> Result<ExitStatus, CliError> {
    let mut text = format!(
        "\n        # List of available benchmarks for collection '{}':\n\n",
        collection.name
    );
    for benchmark in collection.benchmarks {
        text.push_str(&text::listed(benchmark.name, benchmark.summary));
    }
    text.push_str(&text::listed(ALL, collection.all));
    text.push('\n');
    context.stdout().write_all(text.as_bytes())?;
    Ok(ExitStatus::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::{OptionShape, options};

    #[test]
    fn every_benchmark_has_options_with_help() {
        for collection in COLLECTIONS {
            for benchmark in collection.benchmarks {
                let command = (benchmark.build)();
                command.clone().debug_assert();
                for arg in options(&command) {
                    let is_explained = arg.get_help().is_some();
                    let is_refused = OptionShape::of(arg) == OptionShape::NotYet;
                    assert!(is_explained || is_refused, "{}: {arg:?}", benchmark.name);
                }
            }
        }
    }
}
