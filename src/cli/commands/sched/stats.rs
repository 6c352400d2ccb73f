//! `sched stats`: the counters of `/proc/schedstat`, live or in recordings.

mod live;
mod reading;

use clap::{Arg, ArgMatches};
use rperf_sys::CpuList;

pub(in crate::cli::commands) use self::live::{command, record, record_command, run_live as stats};
pub(in crate::cli::commands) use self::reading::{diff, diff_command, report, report_command};
use crate::cli::error::CliError;
use crate::cli::options::{counter, value};

/// The `-C` option, which selects CPUs.
fn cpu_option() -> Arg {
    value("cpu", "cpus")
        .short('C')
        .help("only these CPUs: 0,2-3")
}

/// The `-v` option, which replaces the names of the counters by descriptions.
fn verbose_option() -> Arg {
    counter("verbose")
        .short('v')
        .help("describe the counters instead of naming them")
}

/// Returns the CPUs of `-C`; `None` without this option.
fn wanted_cpus(matches: &ArgMatches) -> Result<Option<CpuList>, CliError> {
    let cpus = matches.get_one::<String>("cpu").map(|list| {
        CpuList::parse(list).map_err(|error| CliError::usage(format!("-C {list}: {error}")))
    });
    cpus.transpose()
}
