//! `rperf bench`: benchmarks of the kernel, the machine and this program.

mod args;
mod baseline;
mod breakpoint;
mod catalogue;
mod epoll;
mod futex;
mod internals;
mod mem;
mod numa;
mod runner;
mod sched;
mod syscall;
mod text;
mod uprobe;

use std::ffi::OsString;
use std::io::Write as _;
use std::slice;

use clap::{ArgMatches, Command};

pub(super) use self::args::command;
use self::args::{GivenSettings, own_options, with_common};
use self::catalogue::{ALL, ALL_SUMMARY, Benchmark, COLLECTIONS, Collection};
use self::runner::Runner;
use crate::cli::commands::CommandTitle;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::parsing::{self, Parsed};

/// Returns the commands of all benchmarks, with their options.
#[cfg(test)]
pub(crate) fn benchmark_commands() -> impl Iterator<Item = Command> {
    let benchmarks = COLLECTIONS
        .iter()
        .flat_map(|collection| collection.benchmarks);
    benchmarks.map(|benchmark| (benchmark.build)())
}

/// Runs a benchmark, all of a collection, or all. Without the name of a collection or a benchmark, lists the names.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    // The common options before the name of the collection. Those after the name of the benchmark are parsed later.
    let given = GivenSettings::new(matches);
    let words = matches.get_many::<OsString>("words").unwrap_or_default();
    let words: Vec<OsString> = words.cloned().collect();
    let Some((collection_name, words)) = words.split_first() else {
        given.check(context)?;
        return list_collections(context);
    };
    if collection_name == ALL {
        return run_all(COLLECTIONS, ALL, ALL_SUMMARY, words, given, context);
    }
    let found = COLLECTIONS
        .iter()
        .find(|collection| *collection_name == *collection.name);
    let Some(collection) = found else {
        let name = collection_name.to_string_lossy();
        return Err(
            CliError::message(1, format!("Unknown collection: '{name}'"))
                .hint(format!("'{} bench' lists the collections", context.program)),
        );
    };
    let Some((name, words)) = words.split_first() else {
        given.check(context)?;
        return list_benchmarks(collection, context);
    };
    if name == "-h" || name == "--help" {
        return list_benchmarks(collection, context);
    }
    if name == ALL {
        let name = format!("{} {ALL}", collection.name);
        let summary = collection.all_summary;
        let collections = slice::from_ref(collection);
        return run_all(collections, &name, summary, words, given, context);
    }
    let mut benchmarks = collection.benchmarks.iter();
    let Some(benchmark) = benchmarks.find(|benchmark| *name == *benchmark.name) else {
        let message = format!(
            "Unknown benchmark: '{}' for collection '{}'",
            name.to_string_lossy(),
            collection.name
        );
        let list = format!(
            "'{} bench {}' lists its benchmarks",
            context.program, collection.name
        );
        return Err(CliError::message(1, message).hint(list));
    };
    run_one(collection, benchmark, words, given, context)
}

/// Parses the words after the name of a benchmark and runs it. Common options among these words override `given`.
fn run_one(
    collection: &Collection,
    benchmark: &Benchmark,
    words: &[OsString],
    given: GivenSettings,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let name = format!("{} {}", collection.name, benchmark.name);
    let own_command = (benchmark.build)();
    let matches = match parse(
        &name,
        benchmark.summary,
        own_command.clone(),
        words,
        context,
    )? {
        Parsed::Matches(matches) => matches,
        Parsed::Answered(exit) => return Ok(exit),
    };
    let settings = GivenSettings::new(&matches).or(given).check(context)?;
    let mut runner = Runner::new(settings, context)?;
    let full_name = format!("{}/{}", collection.name, benchmark.name);
    runner.begin(&full_name, own_options(&own_command, &matches));
    runner.print_in_default_format(&format!("# Running '{full_name}' benchmark:\n"))?;
    if let Err(error) = (benchmark.run)(&matches, &mut runner) {
        runner.store_error(&error);
        return Err(error);
    }
    runner.finish()
}

/// Runs the benchmarks of collections with their default options. The failure of one is reported and does not stop the others.
fn run_all(
    collections: &[Collection],
    name: &str,
    summary: &str,
    words: &[OsString],
    given: GivenSettings,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let matches = match parse(name, summary, Command::new(ALL), words, context)? {
        Parsed::Matches(matches) => matches,
        Parsed::Answered(exit) => return Ok(exit),
    };
    let settings = GivenSettings::new(&matches).or(given).check(context)?;
    let mut runner = Runner::new(settings, context)?;
    for collection in collections {
        for benchmark in collection.benchmarks {
            let full_name = format!("{}/{}", collection.name, benchmark.name);
            run_with_defaults(benchmark, &full_name, &mut runner)?;
        }
    }
    runner.finish()
}

fn run_with_defaults(
    benchmark: &Benchmark,
    full_name: &str,
    runner: &mut Runner<'_>,
) -> Result<(), CliError> {
    runner.begin(full_name, Vec::new());
    runner.print_in_default_format(&format!("# Running {full_name} benchmark...\n"))?;
    let parser = (benchmark.build)().no_binary_name(true);
    let matches = parser
        .try_get_matches_from(Vec::<OsString>::new())
        .map_err(|error| CliError::failure(1, error))?;
    if let Err(error) = (benchmark.run)(&matches, runner) {
        runner.store_error(&error);
        runner.report_failure(full_name, &error)?;
    }
    runner.print_in_default_format("\n")
}

/// Parses the words after the name of a benchmark or `all`: its own options, which `own_command` declares, and the common ones.
/// `name` is what follows `bench` on the command line: the collection, and the benchmark or `all`.
fn parse(
    name: &str,
    summary: &str,
    own_command: Command,
    words: &[OsString],
    context: &Context,
) -> Result<Parsed, CliError> {
    let name = format!("bench {name}");
    let title = CommandTitle {
        name: &name,
        summary,
        usage: &["[<options>]"],
    };
    parsing::parse(context, title, with_common(own_command), words)
}

fn list_collections(context: &Context) -> Result<ExitStatus, CliError> {
    let mut text = format!(
        "Usage: \n\t{} bench [<common options>] <collection> <benchmark> [<options>]\n\n",
        context.program
    );
    text.push_str("        # List of all available benchmark collections:\n\n");
    for collection in COLLECTIONS {
        text.push_str(&text::list_line(collection.name, collection.summary));
    }
    text.push_str(&text::list_line(ALL, ALL_SUMMARY));
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
        text.push_str(&text::list_line(benchmark.name, benchmark.summary));
    }
    text.push_str(&text::list_line(ALL, collection.all_summary));
    text.push('\n');
    context.stdout().write_all(text.as_bytes())?;
    Ok(ExitStatus::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::{OptionShape, options};

    fn benchmarks() -> impl Iterator<Item = &'static Benchmark> {
        COLLECTIONS
            .iter()
            .flat_map(|collection| collection.benchmarks)
    }

    #[test]
    fn every_option_of_a_benchmark_has_help_or_is_refused() {
        for benchmark in benchmarks() {
            let command = with_common((benchmark.build)());
            // clap checks that names and letters are unique.
            command.clone().debug_assert();
            for arg in options(&command) {
                let is_explained = arg.get_help().is_some();
                let is_refused = OptionShape::of(arg) == OptionShape::NotYet;
                assert!(is_explained || is_refused, "{}: {arg:?}", benchmark.name);
            }
        }
    }

    #[test]
    fn a_common_option_has_no_letter_if_the_benchmark_uses_it() {
        let letter = |name: &str, long: &str| {
            let benchmark = benchmarks()
                .find(|benchmark| benchmark.name == name)
                .unwrap();
            let command = with_common((benchmark.build)());
            options(&command)
                .find(|arg| arg.get_long() == Some(long))
                .and_then(clap::Arg::get_short)
        };
        // `-r` is `--runtime` in `hash`, so `--repeat` has no letter; `-f` is `--function` in `memcpy`, so `--format` has none.
        assert_eq!(letter("hash", "runtime"), Some('r'));
        assert_eq!(letter("hash", "repeat"), None);
        assert_eq!(letter("memcpy", "function"), Some('f'));
        assert_eq!(letter("memcpy", "format"), None);
        assert_eq!(letter("memcpy", "repeat"), Some('r'));
    }
}
