//! `-a`, `-C`, `-p`, `-t`, `-u` and `--pid-ns`: the target.

use clap::ArgMatches;
use rperf_session::Target;
use rperf_sys::CpuList;

use super::{pid_namespace, user};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::{flag, given_value};

/// Returns the target: the first that is given of `-p`, `-t`, `-u`, `-C`, `-a` and the workload. If none is given, the target is
/// the whole system, and a note is printed. `doing` is the activity in that note, such as `recording`.
pub(crate) fn target(
    matches: &ArgMatches,
    context: &Context,
    doing: &str,
) -> Result<Target, CliError> {
    let text = |id: &str| given_value::<String>(matches, id).map(String::as_str);
    let all = flag(matches, "all-cpus") == Some(true);
    let cpus = text("cpu").map(CpuList::parse).transpose();
    let cpus = cpus.map_err(|error| CliError::usage(format!("-C: {error}")))?;
    let (pids, tids) = (text("pid"), text("tid"));
    let user = text("uid");
    // The options for CPUs, as the warnings name them, and whether each is given.
    let of_cpus = [("CPU", cpus.is_some()), ("SYSTEM", all)];
    if let Some(list) = pids.or(tids) {
        let overridden = of_cpus.into_iter().chain([("UID", user.is_some())]);
        for (name, _) in overridden.filter(|(_, given)| *given) {
            context.warn(format_args!("PID/TID switch overriding {name}"));
        }
        if pids.is_some() && tids.is_some() {
            context.warn("PID switch overriding TID");
        }
        let ids = ids(list)?;
        let ids = match given_value::<u64>(matches, "pid-ns") {
            // The given ids are those in the PID namespace of the process `member`.
            Some(member) => pid_namespace::own_ids(&ids, *member)?,
            None => ids,
        };
        return Ok(if pids.is_some() {
            Target::Processes(ids)
        } else {
            Target::Threads(ids)
        });
    }
    if given_value::<u64>(matches, "pid-ns").is_some() {
        return Err(CliError::usage("--pid-ns requires -p or -t"));
    }
    if let Some(user) = user {
        for (name, _) in of_cpus.iter().filter(|(_, given)| *given) {
            context.warn(format_args!("UID switch overriding {name}"));
        }
        return Ok(Target::User(user::user(user)?));
    }
    if all || cpus.is_some() {
        return Ok(Target::Cpus(cpus));
    }
    if matches.contains_id("workload") {
        return Ok(Target::Workload);
    }
    context.note(format_args!(
        "no workload and no target: {doing} the whole system until Ctrl-C"
    ));
    let all_cpus = None;
    Ok(Target::Cpus(all_cpus))
}

/// Parses process or thread ids separated by commas.
fn ids(list: &str) -> Result<Vec<u32>, CliError> {
    let id = |word: &str| {
        let number = word.trim().parse::<u32>().ok();
        number
            .filter(|id| i32::try_from(*id).is_ok_and(|id| id > 0))
            .ok_or_else(|| CliError::usage(format!("'{word}' is not a process or thread id")))
    };
    list.split(',').map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_positive_numbers_with_blanks_around() {
        assert_eq!(ids("1, 2,3").ok(), Some(vec![1, 2, 3]));
        for bad in ["", "0", "-1", "1,,2", "x", "4294967295"] {
            assert!(ids(bad).is_err(), "{bad}");
        }
    }
}
