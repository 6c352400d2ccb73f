//! The options of `probe`, in perf's order.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_probe::SearchOptions;

use super::target::ProbedObject;
use crate::cli::context::Context;
use crate::cli::debuginfod;
use crate::cli::error::CliError;
use crate::cli::jobs;
use crate::cli::options::{counter, flag, list, number, optional, switch, value};

const ABOUT: &str = "\
Adds dynamic tracepoints (probe events) at functions and source lines of the kernel (kprobes) or of a program or library \
(-x, uprobes), with variables as fields. record, stat and script use them by name. A probe has no cost until its event \
is enabled.

A definition is [[GROUP:]EVENT=]PLACE [[NAME=]ARGUMENT[:TYPE]]... A PLACE is FUNCTION, FUNCTION+OFFSET, FUNCTION%return, \
FUNCTION:LINE (relative to the function's first line) or FUNCTION;PATTERN, each followed by @FILE if several files \
define the function; FILE:LINE or FILE;PATTERN; 0xADDRESS; %sdt_PROVIDER:NAME (a USDT probe of the program), or \
%[GROUP:]EVENT (an event stored with --cache). In function names * and ? are wildcards.
An ARGUMENT is a variable or parameter (size, it->name, a.b[2]), $params, $vars, $retval, a register (%di), \
memory (@SYMBOL, +8(%di)), $stack0, $comm or \\NUMBER. TYPE is u8 to u64, s8 to s64, x8 to x64, u, s, x, char, \
string, ustring, symbol, b<WIDTH>@<OFFSET>/<SIZE> (a bit-field), or an array of these, such as u8[16].

Variables and lines need debug information (-g). For the running kernel, parameters of functions and their members are \
known from BTF.";

/// Returns the command with its options.
pub(crate) fn command() -> Command {
    Command::new("probe")
        .long_about(ABOUT)
        .args(first_options())
        .args(middle_options())
        .args(last_options())
        .arg(
            Arg::new("words")
                .num_args(0..)
                .value_name("[program] definition"),
        )
}

fn first_options() -> Vec<Arg> {
    // What the help shows for the value of these options; unrelated to the option `--definition`.
    let value_name = "definition";
    vec![
        counter("verbose").short('v').help("be verbose"),
        switch("quiet").short('q').help("print only errors"),
        optional("list", "[group:]event", "*:*")
            .short('l')
            .help("list probe events, or those that match"),
        list("del", "[group:]event")
            .short('d')
            .help("delete probe events by name or pattern"),
        list("add", value_name).short('a').help("add a probe event"),
        list("definition", value_name)
            .short('D')
            .help("print the definition in the syntax of kprobe_events or uprobe_events"),
        switch("force")
            .short('f')
            .help("allow existing event names: append a number"),
    ]
}

fn middle_options() -> Vec<Arg> {
    vec![
        value("line", "function or file[:first[-last]]")
            .short('L')
            .help("show source code, with numbers at lines that can be probed"),
        value("vars", "place")
            .short('V')
            .help("list the variables available at a probe point"),
        switch("externs").help("with --vars: include global variables"),
        switch("range")
            .help("with --vars: show where each variable is valid; include variables that are valid only at other places of the function"),
        value("vmlinux", "file")
            .short('k')
            .help("kernel image with debug information; may be that of another kernel"),
        value("source", "folder")
            .short('s')
            .help("look up source files below this directory"),
        list("module", "module or its file")
            .short('m')
            .help("kernel module that the following definitions refer to"),
    ]
}

fn last_options() -> Vec<Arg> {
    vec![
        switch("inlines").help(
            "also probe inlined copies of functions (default: on)",
        ),
        switch("dry-run")
            .short('n')
            .help("print what would be added or deleted, change nothing"),
        value("max-probes", "number")
            .value_parser(number)
            .help("maximum number of probe points of one definition (default: 128)"),
        optional("funcs", "pattern", "")
            .short('F')
            .help("list functions that can be probed, or those that match"),
        value("filter", "condition")
            .help("with --vars and --funcs: only names that match these patterns, combined with &, | and ! ('!__k* & *')"),
        list("exec", "program or library")
            .short('x')
            .help("program or library that the following definitions refer to"),
        switch("demangle").help("demangle C++, Rust and OCaml symbols (default: on)"),
        switch("demangle-kernel").help("also demangle kernel symbols"),
        switch("cache").help(
            "also store events in the build-id cache (with --dry-run: only there), or list or delete stored ones; %[group:]event adds a stored event",
        ),
        value("symfs", "folder")
            .help("look up files with symbols and debug information below this directory"),
        value("target-ns", "pid")
            .value_parser(number)
            .help("look up files in the mount namespace of this process"),
        switch("bootconfig").help("with --definition: print lines for the kernel's boot configuration (bootconfig)"),
        jobs::option(),
        debuginfod::option(),
    ]
}

/// A definition and its target: the object (kernel, module, program or library) that it refers to.
#[derive(Debug, Clone)]
pub(crate) struct ProbeSpec {
    pub(crate) target: ProbedObject,
    pub(crate) definition: String,
}

/// Returns the definitions that an option gives, each with its object: the last `-x` or `-m` before the definition, otherwise
/// the first one after it, otherwise the kernel. For `--add`, positional words are a definition, too; an absolute path
/// before them is the object of all definitions.
pub(crate) fn definitions(matches: &ArgMatches, option: &str) -> Vec<ProbeSpec> {
    let values = matches.get_many::<String>(option).unwrap_or_default();
    let indices = matches.indices_of(option).unwrap_or_default();
    let mut definitions: Vec<(usize, String)> = indices.zip(values.cloned()).collect();
    let mut leading_path = None;
    if option == "add" {
        let words = matches.get_many::<String>("words").unwrap_or_default();
        let mut words: Vec<&str> = words.map(String::as_str).collect();
        if let Some(first) = words.first().filter(|word| word.starts_with('/')) {
            leading_path = Some(ProbedObject::Program(PathBuf::from(*first)));
            words.remove(0);
        }
        if !words.is_empty() {
            // They count as given after all options: the last `-x` or `-m` applies.
            definitions.push((usize::MAX, words.join(" ")));
        }
    }
    let objects = objects(matches);
    let target_at = |index: usize| {
        let before = objects.iter().rev().find(|(at, _)| *at < index);
        let object = before.or(objects.first()).map(|(_, object)| object);
        leading_path
            .clone()
            .or(object.cloned())
            .unwrap_or(ProbedObject::Kernel)
    };
    let specs = definitions
        .into_iter()
        .map(|(index, definition)| ProbeSpec {
            target: target_at(index),
            definition,
        });
    specs.collect()
}

/// Returns the values of `-x` and `-m` with their indices in the command line, in order.
fn objects(matches: &ArgMatches) -> Vec<(usize, ProbedObject)> {
    let values_of = |option: &str| {
        let values = matches.get_many::<String>(option).unwrap_or_default();
        let indices = matches.indices_of(option).unwrap_or_default();
        let indexed: Vec<(usize, String)> = indices.zip(values.cloned()).collect();
        indexed.into_iter()
    };
    let programs = values_of("exec").map(|(at, path)| (at, ProbedObject::Program(path.into())));
    let modules = values_of("module").map(|(at, module)| (at, ProbedObject::Module(module)));
    let mut objects: Vec<_> = programs.chain(modules).collect();
    objects.sort_by_key(|(at, _)| *at);
    objects
}

/// Returns the last value of `-x` or `-m`; by default the kernel. For actions without definitions.
pub(crate) fn target(matches: &ArgMatches) -> ProbedObject {
    let last = objects(matches).pop();
    last.map_or(ProbedObject::Kernel, |(_, object)| object)
}

/// The error if no action is given.
pub(crate) fn no_action(context: &Context) -> CliError {
    let program = context.program;
    CliError::usage(format!("{program} probe: nothing to do")).hint(format!(
        "'{program} probe FUNCTION' adds an event in the kernel, '{program} probe -x PROGRAM FUNCTION' in a program, '{program} probe -l' lists probe events"
    ))
}

/// Returns the options of the search for probe points.
pub(crate) fn search_options(
    matches: &ArgMatches,
    context: &Context,
) -> Result<SearchOptions, CliError> {
    let mut options = SearchOptions {
        threads: jobs::jobs(matches, context)?,
        ..SearchOptions::default()
    };
    if let Some(max) = matches.get_one::<u64>("max-probes") {
        options.max_probes = usize::try_from(*max)?;
    }
    options.inlines = flag(matches, "inlines") != Some(false);
    let root = matches.get_one::<String>("source").map(Path::new);
    options.source_root = root.map(Path::to_owned);
    Ok(options)
}
