//! `--threads` and `--affinity`: which threads empty the rings, and where they run.

use clap::ArgMatches;
use rperf_session::{Affinity, Threads};
use rperf_sys::CpuList;

use crate::cli::error::CliError;
use crate::cli::options::is_given;

/// Options that one thread and one file are needed for.
const ALONE: [(&str, &str); 5] = [
    ("per-thread", "rings of threads are on no CPU"),
    (
        "overwrite",
        "rings that are written over are emptied at the end alone",
    ),
    ("affinity", "the masks of the threads say where they run"),
    ("switch-output", "a directory does not go on in another"),
    (
        "switch-output-event",
        "a directory does not go on in another",
    ),
];

/// The threads; `None` for one that writes one file.
pub(super) fn threads(matches: &ArgMatches, is_stream: bool) -> Result<Option<Threads>, CliError> {
    let Some(word) = matches.get_one::<String>("threads") else {
        return Ok(None);
    };
    if is_stream {
        return Err(CliError::usage(
            "--threads writes a directory, which is not for a pipe: name it with -o",
        ));
    }
    let alone = ALONE
        .into_iter()
        .find(|(option, _)| is_given(matches, option));
    if let Some((option, why)) = alone {
        let message = format!("--threads and --{option} exclude each other: {why}");
        return Err(CliError::usage(message));
    }
    parse(word).map(Some)
}

fn parse(word: &str) -> Result<Threads, CliError> {
    Ok(match word {
        "" | "cpu" => Threads::Cpu,
        "core" => Threads::Core,
        "package" => Threads::Package,
        "numa" => Threads::Node,
        masks => Threads::Masks(parse_masks(masks)?),
    })
}

/// `CPUS/RUNS_ON:CPUS/RUNS_ON…`, none of which may meet another.
fn parse_masks(word: &str) -> Result<Vec<(CpuList, CpuList)>, CliError> {
    let wrong = |why: String| {
        CliError::usage(format!("--threads: {why}")).hint(
            "give cpu, core, package, numa, or masks of CPUs and where their thread runs: 0,2/0:1,3/1",
        )
    };
    let list = |text: &str| {
        let list = CpuList::parse(text).map_err(|error| wrong(error.to_string()))?;
        match list.numbers() {
            [] => Err(wrong(format!("'{word}' has an empty mask"))),
            _ => Ok(list),
        }
    };
    let mut masks: Vec<(CpuList, CpuList)> = Vec::new();
    for mask in word.split(':') {
        let parts = mask.split_once('/');
        let (empties, runs_on) =
            parts.ok_or_else(|| wrong(format!("'{mask}' is no layout and no mask")))?;
        let (empties, runs_on) = (list(empties)?, list(runs_on)?);
        let in_two = |cpu: &&u32| {
            let meets = |(one, other): &(CpuList, CpuList)| {
                empties.contains(**cpu) && one.contains(**cpu)
                    || runs_on.contains(**cpu) && other.contains(**cpu)
            };
            masks.iter().any(meets)
        };
        let numbers = || empties.numbers().iter().chain(runs_on.numbers());
        if let Some(cpu) = numbers().find(in_two) {
            return Err(wrong(format!("CPU {cpu} is in two masks of a kind")));
        }
        masks.push((empties, runs_on));
    }
    Ok(masks)
}

/// Where the one thread runs.
pub(super) fn affinity(matches: &ArgMatches) -> Result<Affinity, CliError> {
    let word = matches.get_one::<String>("affinity").map(String::as_str);
    match word {
        None | Some("sys") => Ok(Affinity::Anywhere),
        Some("node") => Ok(Affinity::Node),
        Some("cpu") => Ok(Affinity::Cpu),
        Some(word) => Err(CliError::usage(format!("--affinity: '{word}' is no place"))
            .hint("choose from sys, node, cpu")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_names_and_masks_come_in_pairs() {
        let parsed = |word| parse(word).map_err(|error| error.text());
        for (word, expected) in [
            ("", Threads::Cpu),
            ("cpu", Threads::Cpu),
            ("core", Threads::Core),
            ("package", Threads::Package),
            ("numa", Threads::Node),
        ] {
            assert_eq!(parsed(word), Ok(expected), "{word}");
        }
        let list = |text| CpuList::parse(text).unwrap_or_default();
        assert_eq!(
            parsed("0,2-4/2-4:1,5/5"),
            Ok(Threads::Masks(vec![
                (list("0,2-4"), list("2-4")),
                (list("1,5"), list("5"))
            ]))
        );
        for (bad, why) in [
            ("sockets", "--threads: 'sockets' is no layout and no mask"),
            ("0", "--threads: '0' is no layout"),
            ("0/", "--threads: '0/' has an empty mask"),
            ("x/0", "--threads: 'x' is no number"),
            ("0-1/0:1/1", "--threads: CPU 1 is in two masks of a kind"),
            ("0/0:1/0", "--threads: CPU 0 is in two masks of a kind"),
        ] {
            let text = parsed(bad).expect_err(bad);
            assert!(text.starts_with(why), "{bad}: {text}");
        }
    }
}
