//! `--threads` and `--affinity`: the threads that drain the ring buffers, and their CPU affinity.

use clap::ArgMatches;
use rperf_session::{DrainAffinity, DrainThreads};
use rperf_sys::CpuList;

use crate::cli::error::CliError;
use crate::cli::options::is_given;

/// Options that `--threads` excludes, with the reason.
const EXCLUDED_OPTIONS: [(&str, &str); 5] = [
    ("per-thread", "ring buffers of threads belong to no CPU"),
    (
        "overwrite",
        "overwritable ring buffers are read only at the end",
    ),
    ("affinity", "the threads' masks already set their CPUs"),
    ("switch-output", "a directory cannot be split"),
    ("switch-output-event", "a directory cannot be split"),
];

/// The draining threads; `None` if not given: a single thread drains all ring buffers. `is_stream` is whether the recording is
/// written to the standard output or a FIFO.
pub(super) fn threads(
    matches: &ArgMatches,
    is_stream: bool,
) -> Result<Option<DrainThreads>, CliError> {
    let Some(word) = matches.get_one::<String>("threads") else {
        return Ok(None);
    };
    if is_stream {
        return Err(CliError::usage(
            "--threads writes a directory: name it with -o",
        ));
    }
    let excluded = EXCLUDED_OPTIONS
        .into_iter()
        .find(|(option, _)| is_given(matches, option));
    if let Some((option, why)) = excluded {
        let message = format!("--threads and --{option} exclude each other: {why}");
        return Err(CliError::usage(message));
    }
    parse(word).map(Some)
}

fn parse(word: &str) -> Result<DrainThreads, CliError> {
    Ok(match word {
        "" | "cpu" => DrainThreads::Cpu,
        "core" => DrainThreads::Core,
        "package" => DrainThreads::Package,
        "numa" => DrainThreads::Node,
        masks => DrainThreads::Masks(parse_masks(masks)?),
    })
}

/// Parses `CPUS/RUNS_ON:CPUS/RUNS_ON…`. In messages, "a mask" is such a pair, but "an empty mask" is one of its
/// lists. No CPU may be drained by two threads, and two threads may not run on the same CPU.
fn parse_masks(word: &str) -> Result<Vec<(CpuList, CpuList)>, CliError> {
    let wrong = |why: String| {
        CliError::usage(format!("--threads: {why}"))
            .hint("give cpu, core, package, numa, or masks CPUS/RUNS_ON: 0,2/0:1,3/1")
    };
    let list = |text: &str| {
        let list = CpuList::parse(text).map_err(|error| wrong(error.to_string()))?;
        match list.numbers() {
            [] => Err(wrong(format!("'{word}' contains an empty mask"))),
            _ => Ok(list),
        }
    };
    let mut masks: Vec<(CpuList, CpuList)> = Vec::new();
    for mask in word.split(':') {
        let parts = mask.split_once('/');
        let (drained, runs_on) =
            parts.ok_or_else(|| wrong(format!("'{mask}' is neither a layout nor a mask")))?;
        let (drained, runs_on) = (list(drained)?, list(runs_on)?);
        let shared = masks.iter().find_map(|(other_drained, other_runs_on)| {
            shared_cpu(&drained, other_drained).or_else(|| shared_cpu(&runs_on, other_runs_on))
        });
        if let Some(cpu) = shared {
            return Err(wrong(format!("CPU {cpu} is in two masks")));
        }
        masks.push((drained, runs_on));
    }
    Ok(masks)
}

/// Returns a CPU that is in both lists.
fn shared_cpu(list: &CpuList, other: &CpuList) -> Option<u32> {
    let mut cpus = list.numbers().iter().copied();
    cpus.find(|cpu| other.contains(*cpu))
}

/// Parses `--affinity`.
pub(super) fn affinity(matches: &ArgMatches) -> Result<DrainAffinity, CliError> {
    let word = matches.get_one::<String>("affinity").map(String::as_str);
    match word {
        None | Some("sys") => Ok(DrainAffinity::Anywhere),
        Some("node") => Ok(DrainAffinity::Node),
        Some("cpu") => Ok(DrainAffinity::Cpu),
        Some(word) => Err(
            CliError::usage(format!("--affinity: unknown value '{word}'"))
                .hint("choose from sys, node, cpu"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_a_named_layout_or_masks() {
        let parsed = |word| parse(word).map_err(|error| error.text());
        for (word, expected) in [
            ("", DrainThreads::Cpu),
            ("cpu", DrainThreads::Cpu),
            ("core", DrainThreads::Core),
            ("package", DrainThreads::Package),
            ("numa", DrainThreads::Node),
        ] {
            assert_eq!(parsed(word), Ok(expected), "{word}");
        }
        let list = |text| CpuList::parse(text).unwrap_or_default();
        assert_eq!(
            parsed("0,2-4/2-4:1,5/5"),
            Ok(DrainThreads::Masks(vec![
                (list("0,2-4"), list("2-4")),
                (list("1,5"), list("5"))
            ]))
        );
        for (bad, why) in [
            (
                "sockets",
                "--threads: 'sockets' is neither a layout nor a mask",
            ),
            ("0", "--threads: '0' is neither"),
            ("0/", "--threads: '0/' contains an empty mask"),
            ("x/0", "--threads: 'x' is neither a number nor a range"),
            ("0-1/0:1/1", "--threads: CPU 1 is in two masks"),
            ("0/0:1/0", "--threads: CPU 0 is in two masks"),
        ] {
            let text = parsed(bad).expect_err(bad);
            assert!(text.starts_with(why), "{bad}: {text}");
        }
    }
}
