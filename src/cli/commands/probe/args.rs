//! The options of `probe`, in perf's order.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_probe::Options;

use super::target::Subject;
use crate::cli::context::Context;
use crate::cli::debuginfod;
use crate::cli::error::CliError;
use crate::cli::jobs;
use crate::cli::options::{counter, list, number, optional, switch, value};

const ABOUT: &str = "\
Makes events at functions and lines of the kernel, a program (-x) or library, with values of its variables, which record, stat and script \
then know by name. Nothing runs slower until an event is recorded.

A definition is [[GROUP:]EVENT=]PLACE [[NAME=]ARGUMENT[:TYPE]]... \
A PLACE is FUNCTION, FUNCTION+OFFSET, FUNCTION%return, FUNCTION:LINE (counted from the function's first), FUNCTION;PATTERN, \
each with @FILE behind it where several files have such a function; FILE:LINE, FILE;PATTERN; 0xADDRESS; %sdt_PROVIDER:NAME, which the program's author marked, \
or %[GROUP:]EVENT, which --cache kept. In names of functions \
* and ? are wildcards.
An ARGUMENT is a variable or parameter (size, it->name, a.b[2]), $params, $vars, $retval, a register (%di), \
memory (@SYMBOL, +8(%di)), $stack0, $comm or \\NUMBER. TYPE is u8 to u64, s8 to s64, x8 to x64, string, an array of these.

Debug information (-g) is needed for variables and lines, and for nothing else. Of the running kernel, parameters at the entry of \
functions, with their members, are known without it.";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("probe")
        .long_about(ABOUT)
        .args(changes())
        .args(looks())
        .args(bounds())
        .arg(
            Arg::new("words")
                .num_args(0..)
                .value_name("[program] definition"),
        )
}

/// Which events come and go.
fn changes() -> Vec<Arg> {
    let definition = "definition";
    vec![
        counter("verbose").short('v').help("say what is done"),
        switch("quiet").short('q').help("say nothing but errors"),
        optional("list", "[group:]event", "*:*")
            .short('l')
            .help("list the events that exist, those of this pattern"),
        list("del", "[group:]event")
            .short('d')
            .help("delete events, by name or pattern"),
        list("add", definition).short('a').help("add events"),
        list("definition", definition)
            .short('D')
            .help("print the text that makes the kernel add events"),
        switch("force")
            .short('f')
            .help("add events whose names exist, with numbers behind them"),
    ]
}

/// What is shown of an object, and of which.
fn looks() -> Vec<Arg> {
    vec![
        value("line", "function or file[:first[-last]]")
            .short('L')
            .help("show source text with numbers at the lines that can be probed"),
        value("vars", "place")
            .short('V')
            .help("list the variables that can be recorded at a place"),
        switch("externs").help("with --vars: list global variables too"),
        switch("range")
            .help("with --vars: tell where each variable is, and list those that are elsewhere in the function"),
        value("vmlinux", "file")
            .short('k')
            .help("the kernel's image with debug information, also of another kernel than the one that runs"),
        value("source", "folder")
            .short('s')
            .help("look for source files below this folder"),
        list("module", "module or its file")
            .short('m')
            .help("the module of the kernel that the places of the definitions behind it are in"),
    ]
}

/// What bounds a search, and where files are.
fn bounds() -> Vec<Arg> {
    vec![
        switch("inlines").help(
            "probe the copies of inlined functions too (the default; --no-inlines leaves them out)",
        ),
        switch("dry-run")
            .short('n')
            .help("say what would be added, and add nothing"),
        value("max-probes", "number")
            .value_parser(number)
            .help("the most places of one definition (128)"),
        optional("funcs", "pattern", "")
            .short('F')
            .help("list the functions that can be probed, those of this pattern"),
        value("filter", "condition")
            .help("with --vars and --funcs: list names that match, patterns joined by &, | and ! ('!__k* & *')"),
        list("exec", "program or library")
            .short('x')
            .help("where the places of the definitions behind it are"),
        switch("demangle").help("names of C++ and Rust in readable form (the default)"),
        switch("demangle-kernel").help("names of the kernel in readable form, too"),
        switch("cache").help(
            "keep events in the build-id cache, beside the object (with --dry-run, only there); list or delete those; later %[group:]event adds them",
        ),
        value("symfs", "folder")
            .help("look for files with symbols and debug information below this folder"),
        value("target-ns", "pid")
            .value_parser(number)
            .help("paths are those that this process sees, in its mount namespace"),
        switch("bootconfig").help("with --definition: print lines for the kernel's boot configuration"),
        jobs::option(),
        debuginfod::option(),
    ]
}

/// A definition and what it is about.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) target: Subject,
    pub(super) definition: String,
}

/// The definitions of an option, each with the `-x` or `-m` that stands before it, else with the first; those of `--add` may stand
/// without it, in words.
pub(super) fn definitions(matches: &ArgMatches, option: &str) -> Result<Vec<Given>, CliError> {
    let given = matches.get_many::<String>(option).unwrap_or_default();
    let places = matches.indices_of(option).unwrap_or_default();
    let mut found: Vec<(usize, String)> = places.zip(given.cloned()).collect();
    let mut own = None;
    if option == "add" {
        let words = matches.get_many::<String>("words").unwrap_or_default();
        let mut words: Vec<&str> = words.map(String::as_str).collect();
        // A path before the definition names the object.
        if let Some(first) = words.first().filter(|word| word.starts_with('/')) {
            own = Some(Subject::Program(PathBuf::from(*first)));
            words.remove(0);
        }
        if !words.is_empty() {
            found.push((usize::MAX, words.join(" ")));
        }
    }
    let subjects = subjects(matches);
    let target = |place: usize| {
        let before = subjects.iter().rev().find(|(at, _)| *at < place);
        let subject = before.or(subjects.first()).map(|(_, subject)| subject);
        own.clone().or(subject.cloned()).unwrap_or(Subject::Kernel)
    };
    let given = found.into_iter().map(|(place, definition)| Given {
        target: target(place),
        definition,
    });
    Ok(given.collect())
}

/// What `-x` and `-m` name, with their places among the words.
fn subjects(matches: &ArgMatches) -> Vec<(usize, Subject)> {
    let named = |option: &str| {
        let values = matches.get_many::<String>(option).unwrap_or_default();
        let places = matches.indices_of(option).unwrap_or_default();
        let named: Vec<(usize, String)> = places.zip(values.cloned()).collect();
        named.into_iter()
    };
    let programs = named("exec").map(|(at, path)| (at, Subject::Program(path.into())));
    let modules = named("module").map(|(at, module)| (at, Subject::Module(module)));
    let mut found: Vec<_> = programs.chain(modules).collect();
    found.sort_by_key(|(at, _)| *at);
    found
}

/// The last that `-x` or `-m` names, for what is no definition; else the kernel.
pub(super) fn target(matches: &ArgMatches) -> Subject {
    let last = subjects(matches).pop();
    last.map_or(Subject::Kernel, |(_, subject)| subject)
}

/// What is said where nothing is asked for.
pub(super) fn nothing(context: &Context) -> CliError {
    let program = context.program;
    CliError::usage(format!("{program} probe: nothing to do")).hint(format!(
        "'{program} probe FUNCTION' adds an event in the kernel, '{program} probe -x PROGRAM FUNCTION' in a program, '{program} probe -l' lists those that exist"
    ))
}

/// What bounds a search.
pub(super) fn search_options(matches: &ArgMatches, context: &Context) -> Result<Options, CliError> {
    let mut options = Options {
        threads: jobs::jobs(matches, context)?,
        ..Options::default()
    };
    if let Some(most) = matches.get_one::<u64>("max-probes") {
        options.max_probes = usize::try_from(*most)?;
    }
    options.inlines = crate::cli::options::flag(matches, "inlines") != Some(false);
    let root = matches.get_one::<String>("source").map(Path::new);
    options.source_root = root.map(Path::to_owned);
    Ok(options)
}
