//! The options of `diff`: first those that perf 6.1 does not have, then those of perf in its order.

use clap::{Arg, Command};

use crate::cli::filter::args as filter_args;
use crate::cli::input;
use crate::cli::options::{counter, number, switch, value};
use crate::cli::symbol_options::args as symbol_args;
use crate::cli::{debuginfod, jobs};

const ABOUT: &str = "\
Compares the profiles of two or more recordings: one row per object and function, with its share of the first recording \
(the baseline) and the difference for every other recording. Without files it compares perf.data.old with perf.data.

Functions are paired by the names of object and function, so recordings of different builds can be compared. Events are \
paired by type and configuration, otherwise by name; a row without a baseline is new, one without a difference is gone.

With --runs it compares two groups of recordings, OLD... -- NEW...: mean shares of the runs, and the 95% confidence \
interval of their difference by Welch's t-test. Rows with an interval that contains 0 are left out; if nothing has changed, about one row \
in 20 is still shown.

Files of 'stat record' can be compared, too: their totals; with --runs, the mean totals of each group; without --runs, if both files were \
recorded with intervals (-I), mean rates per second. Recordings of 'sched record' are compared by 'sched diff'.";

const COMPUTE: &str = "\
How files are compared with the baseline:
  delta         difference of the shares, in percentage points
  delta-abs     the same, sorted by absolute value (default)
  ratio         quotient of the periods
  wdiff:W1,W2   difference of the periods: new * W2 - baseline * W1
  cycles        difference of the average cycles of each basic block of the sampled functions, from branch stacks";

const PERCENT_HELP: &str =
    "percentages of filtered samples: relative to them, or absolute (of all samples, the default)";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    let command = Command::new("diff").long_about(ABOUT);
    let files = Arg::new("files").num_args(0..).value_name("file");
    let new_files = Arg::new("new-files").num_args(0..).value_name("file");
    command
        .args(first_options())
        .args(middle_options())
        .args(last_options())
        .arg(files)
        .arg(new_files.last(true))
}

/// All options that perf 6.1 does not have, and the first ones that it has.
fn first_options() -> Vec<Arg> {
    vec![
        // Options that perf 6.1 does not have come first: the error for an ambiguous prefix names the last two matches,
        // which are then those of perf.
        debuginfod::option(),
        jobs::option(),
        symbol_args::vmlinux(),
        symbol_args::ignore_vmlinux(),
        symbol_args::demangle(),
        symbol_args::demangle_kernel(),
        switch("runs").help(
            "compare two groups of runs (OLD... -- NEW...): mean shares, and 95% confidence intervals of their differences (Welch's t); only rows with an interval that excludes 0",
        ),
        switch("all").help("with --runs: also rows without a significant difference"),
        switch("json").help("print the comparison as JSON"),
        value("fail-above", "percent").help(
            "exit with status 1 if the share of a row grew by more than this many percentage points, or a count of 'stat record' by more than this many percent, such as 5%",
        ),
        // From here on, the options of perf 6.1.
        counter("verbose")
            .short('v')
            .help("show symbol addresses, symbol sources and full object paths, and the list of files; report problems with symbols"),
        switch("quiet")
            .short('q')
            .help("print only the rows, no headings and no warnings"),
        switch("baseline-only")
            .short('b')
            .help("only rows of the baseline that another file has, too"),
        value("compute", "method")
            .short('c')
            .help("delta, delta-abs (default), ratio, wdiff:W1,W2 or cycles (see --help)")
            .long_help(COMPUTE),
        switch("period")
            .short('p')
            .help("show the periods in each file"),
        switch("formula")
            .short('F')
            .help("show the calculation of each value"),
        switch("cycles-hist").help(
            "with -c cycles: also the cycle differences of each block's first executions as bars, and their relative standard error",
        ),
        switch("dump-raw-trace")
            .short('D')
            .help("first dump all records of the files"),
        input::force(),
        symbol_args::kallsyms(),
        symbol_args::modules(),
    ]
}

fn middle_options() -> Vec<Arg> {
    vec![
        filter_args::dsos().short('d'),
        filter_args::comms().short('C'),
        filter_args::symbols(),
        value("sort", "key[,key...]")
            .short('s')
            .help("sort keys, as for report (default: dso,symbol)"),
        value("field-separator", "separator")
            .short('t')
            .help("column separator; columns are not padded"),
        symbol_args::symfs(),
    ]
}

fn last_options() -> Vec<Arg> {
    vec![
        value("order", "number")
            .short('o')
            .value_parser(number)
            .help("number of the file that rows are sorted by, 0 for the baseline (default: 1)"),
        value("percentage", "relative|absolute").help(PERCENT_HELP),
        value("time", "start,end[:start,end...]").help(
            "only samples of this time range, in seconds or percent of the recording (0%-10%): one range for all files, or one per file, separated by colons",
        ),
        // No short form: `-C` is `--comms`.
        filter_args::cpu().short(None),
        filter_args::pid(),
        filter_args::tid(),
        switch("stream").help("compare the most frequent streams of branches of two recordings"),
    ]
}
