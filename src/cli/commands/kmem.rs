//! `rperf kmem`: records allocations of kernel memory, and analyses them.

mod details;
mod diff;
mod fragmentation;
mod leaks;
mod needed_events;
mod record;
mod stat;
mod tables;
mod usage;
mod usage_keys;

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::EventLayouts;
use rperf_analysis::kmem::{Allocator, PAGE_EVENTS, SLAB_EVENTS};

pub(super) use self::diff::{command as diff_command, run as diff};
pub(super) use self::fragmentation::{command as fragmentation_command, run as fragmentation};
pub(super) use self::leaks::{command as leaks_command, run as leaks};
pub(super) use self::stat::{command as stat_command, run as stat};
pub(super) use self::usage::{command as usage_command, run as usage};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input;
use crate::cli::jobs;
use crate::cli::options::{counter, flag, list, number, switch, value};
use crate::cli::shared::subcommands::{self, split_words, words_option};
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
'kmem record' records allocations and frees of the slab allocator (--slab, the default) and of pages (--page) on the whole system. 'kmem stat' \
shows their sums, on request by caller and by address, 'kmem usage' both allocators in one table by stack, cache or cgroup, 'kmem leaks' what was not freed, \
'kmem fragmentation' how memory is fragmented, 'kmem diff' how two recordings differ. Options may precede the subcommand.";

/// The number of frames of a stack that `kmem usage` and `kmem leaks` show by default.
const FRAMES: u64 = 8;

const SUBCOMMANDS: &str = "use 'kmem record', 'kmem stat', 'kmem usage', 'kmem leaks', 'kmem fragmentation' or 'kmem diff'";

/// The subcommands that may be abbreviated, to at least three letters, as in perf.
const ABBREVIATED: &[&str] = &["record", "stat", "usage", "leaks", "fragmentation", "diff"];

/// `--page` and `--slab` of `kmem record` and `kmem stat`; see [`Allocators::or_default`].
fn allocators() -> [Arg; 2] {
    [
        switch("page").help("select the page allocator"),
        switch("slab").help("select the slab allocator (default)"),
    ]
}

/// `--page` and `--slab` of the other subcommands; see [`Allocators::given_or_recorded`].
fn recorded_allocators() -> [Arg; 2] {
    let [page, slab] = allocators();
    [
        page.help("select the page allocator (default: the allocators in the recording)"),
        slab.help("select the slab allocator (default: the allocators in the recording)"),
    ]
}

/// The options of the subcommands that read a recording, except those of `kmem diff`. `page` and `slab` select allocators.
fn reading_options([page, slab]: [Arg; 2]) -> Vec<Arg> {
    vec![
        input::force(),
        input::option(),
        counter("verbose")
            .short('v')
            .help("list all stretches of time in which records were lost"),
        page,
        switch("raw-ip").help("show addresses of callers instead of symbols"),
        slab,
        value("time", "start,end").help(
            "only events of this time range: seconds, or percent of the recording: 10%/2, 10%-20%",
        ),
        // kmem has no -k, as in perf.
        symbol_args::vmlinux().short(None),
        symbol_args::kallsyms(),
        symbol_args::symfs(),
    ]
}

/// The options of `kmem`, all of which `kmem stat` has, too.
fn options() -> Vec<Arg> {
    let mut all = reading_options(allocators());
    all.extend([
        list("line", "n").short('l').value_parser(number).help(
            "show only the first n rows of the table of the preceding --caller or --alloc",
        ),
        list("sort", "key[,key...]").short('s').help(
            "sort keys, highest first: ptr, callsite, bytes, hit, pingpong, frag for --slab (default: frag,hit,bytes); \
            page, callsite, bytes, hit, order, migtype, gfp for --page (default: bytes,hit)",
        ),
        switch("alloc").help("show a table by address"),
        switch("caller").help("show a table by caller"),
        switch("live").help("tables show only memory that has not been freed"),
        switch("histogram").help("also show distributions of sizes and life times, and rates over time"),
        switch("json").help("print sums and the requested tables as JSON, sizes in bytes"),
    ]);
    all
}

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("kmem")
        .long_about(ABOUT)
        .args(options())
        .arg(words_option())
}

/// The options of `kmem stat`: also `--jobs`.
fn stat_options() -> Vec<Arg> {
    let mut all = options();
    all.push(jobs::option());
    all
}

/// Returns the complete name of an abbreviated subcommand, and any other word unchanged.
pub(super) fn full_name(word: &str) -> &str {
    subcommands::full_name(word, ABBREVIATED)
}

/// Runs `kmem record`; refuses unknown subcommands. The other subcommands have a `command` and a `run` of their own, and do not
/// get here.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let (name, rest) = split_words("kmem", SUBCOMMANDS, matches, context)?;
    match full_name(&name) {
        "record" => record::run(&rest, matches, context),
        _ => Err(subcommands::unknown_subcommand(
            "kmem",
            &name,
            SUBCOMMANDS,
            context,
        )),
    }
}

/// The allocators to record or to analyse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allocators {
    slab: bool,
    page: bool,
}

impl Allocators {
    /// Returns the allocators of `--slab` and `--page`.
    fn given(matches: &ArgMatches) -> Self {
        let [slab, page] = ["slab", "page"].map(|id| flag(matches, id) == Some(true));
        Self { slab, page }
    }

    /// Returns the selected allocators.
    fn each(self) -> impl Iterator<Item = Allocator> {
        let all = [(self.slab, Allocator::Slab), (self.page, Allocator::Page)];
        let selected = all.into_iter().filter(|(is_selected, _)| *is_selected);
        selected.map(|(_, allocator)| allocator)
    }

    /// Returns the allocators whose events are read: those of `--slab` and `--page`; if none is given, all that were recorded; if
    /// none was recorded either, the slab allocator. `layouts` has the tracepoints of the recording.
    fn given_or_recorded(matches: &ArgMatches, layouts: &EventLayouts) -> Self {
        let has = |events: &[&str]| events.iter().any(|event| layouts.has(event));
        match Self::given(matches) {
            Self {
                slab: false,
                page: false,
            } => Self {
                slab: has(&SLAB_EVENTS) || !has(&PAGE_EVENTS),
                page: has(&PAGE_EVENTS),
            },
            given => given,
        }
    }

    /// Returns these allocators; if there are none, the one that the setting `kmem.default` names, by default the slab allocator.
    fn or_default(self, context: &Context) -> Self {
        if self.slab || self.page {
            return self;
        }
        let page = context.config.text("kmem.default") == Some("page");
        Self { slab: !page, page }
    }
}
