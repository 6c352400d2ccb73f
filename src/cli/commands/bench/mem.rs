//! `bench mem`.

use clap::{Arg, ArgMatches, Command};
use rperf_bench::Value;
use rperf_bench::mem::{
    Block, BlockFunction, BlockOperation, Clock, Cost, FindBit, Mmap, MmapCosts, MmapFunction,
};
use rperf_sys::PageOptions;

use super::args::{BenchOptions, lettered_switch, numeric};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, Simple, failed};
use crate::cli::error::CliError;
use crate::cli::options::value;

/// The benchmarks of the collection.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "memcpy",
        summary: "Benchmark for memcpy() functions",
        build: block_command,
        run: |matches, runner| block(BlockOperation::Copy, matches, runner),
    },
    Benchmark {
        name: "memset",
        summary: "Benchmark for memset() functions",
        build: block_command,
        run: |matches, runner| block(BlockOperation::Fill, matches, runner),
    },
    Benchmark {
        name: "find_bit",
        summary: "Benchmark for find_bit() functions",
        build: find_bit_command,
        run: find_bit,
    },
    Benchmark {
        name: "mmap",
        summary: "Benchmark for mmap() mappings",
        build: mmap_command,
        run: mmap,
    },
];

/// The factor between successive units of speed.
const KILO: f64 = 1024.0;

/// The options of all benchmarks but `find_bit`. The second argument of [`value`] is only what the help shows in place of the
/// value: here the default, as in perf.
fn common() -> [Arg; 5] {
    [
        lettered_switch("cycles", 'c', "count processor cycles instead of time"),
        value("function", "all")
            .short('f')
            .help("function to run: a name, all, or help for a list (default: all)"),
        numeric("nr_loops", 'l', "number of repetitions (default: 1)"),
        value("page", "4KB")
            .short('p')
            .help("size of the memory's pages: 4KB, 2MB or 1GB (default: 4KB)"),
        value("size", "1MB")
            .short('s')
            .help("size of the memory, with a unit: B, KB, MB, GB, TB (default: 1MB)"),
    ]
}

fn block_command() -> Command {
    Command::new("mem").args(common()).arg(
        value("chunk", "size")
            .short('k')
            .help("bytes per call, with a unit (default: all of the memory)"),
    )
}

fn block(
    operation: BlockOperation,
    matches: &ArgMatches,
    runner: &mut Runner<'_>,
) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let functions = operation.functions().iter();
    let names: Vec<_> = functions
        .clone()
        .map(|function| (function.name, function.description))
        .collect();
    let chosen = choose(&names, options)?;
    let size_text = options.word("size").unwrap_or("1MB");
    let bytes = size(size_text)?;
    let bench = Block {
        operation,
        size: bytes,
        chunk: match options.word("chunk") {
            // As in perf, 0 is all of the memory.
            Some("0") | None => bytes,
            Some(word) => size(word)?,
        },
        loops: options.positive("nr_loops", 1)?,
        pages: PageOptions {
            huge_bits: huge_bits(options)?,
            // `Block` faults in all pages before it measures.
            populate: false,
        },
    };
    let clock = match options.is_on("cycles") {
        true => Clock::cycles().map_err(failed)?,
        false => Clock::Time,
    };
    let is_chosen = |function: &&BlockFunction| chosen.contains(&function.name);
    for function in functions.filter(is_chosen) {
        announce(function.name, function.description, size_text, runner)?;
        runner.measure(
            || bench.run(*function, &clock),
            |cost| speed(function.name, *cost, bench.bytes()),
        )?;
    }
    Ok(())
}

/// Prints the lines above the result of a function. The word "Copying" is perf's for every function.
fn announce(
    name: &str,
    description: &str,
    size: &str,
    runner: &mut Runner<'_>,
) -> Result<(), CliError> {
    runner.print_unless_json(&format!("# function '{name}' ({description})\n"))?;
    runner.print_in_default_format(&format!("# Copying {size} bytes ...\n\n"))
}

/// Returns the names of the functions to run. `functions` are the names and descriptions of all.
///
/// # Errors
///
/// Status 1, with a list of the functions: `help` or an unknown name is given.
fn choose(
    functions: &[(&'static str, &'static str)],
    options: BenchOptions<'_>,
) -> Result<Vec<&'static str>, CliError> {
    let word = options.word("function").unwrap_or("all");
    let all = functions.iter().map(|(name, _)| *name);
    if word == "all" {
        return Ok(all.collect());
    }
    let chosen: Vec<_> = all.filter(|name| *name == word).collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let mut lines = String::new();
    if word != "help" {
        lines.push_str("Available functions:\n");
    }
    for (name, description) in functions {
        lines.push_str(&format!("\t{name} ... {description}\n"));
    }
    let message = match word {
        "help" => "Available functions:".to_owned(),
        word => format!("Unknown function: {word}"),
    };
    Err(CliError::message(1, message).details(&lines))
}

/// Parses a size above 0 with an optional unit, `B`, `KB` to `TB` or `K` to `T` in any case; returns it in bytes.
fn size(word: &str) -> Result<usize, CliError> {
    let upper = word.to_ascii_uppercase();
    let unit_start = upper.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = upper.split_at(unit_start.unwrap_or(upper.len()));
    let shift = match unit {
        "" | "B" => Some(0),
        "KB" | "K" => Some(10),
        "MB" | "M" => Some(20),
        "GB" | "G" => Some(30),
        "TB" | "T" => Some(40),
        _ => None,
    };
    let bytes = number.parse::<usize>().ok().zip(shift);
    let bytes = bytes.and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        CliError::message(1, format!("Invalid size:{word}"))
            .hint("give a number above 0 with a unit: B, KB, MB, GB or TB")
    })
}

/// Returns the base-2 logarithm of the size in bytes of the huge pages that `-p` selects; `None` for ordinary pages.
fn huge_bits(options: BenchOptions<'_>) -> Result<Option<u32>, CliError> {
    match options.word("page").map(str::to_ascii_uppercase).as_deref() {
        None | Some("4KB") => Ok(None),
        Some("2MB") => Ok(Some(21)),
        Some("1GB") => Ok(Some(30)),
        Some(other) => {
            Err(CliError::message(1, format!("Invalid page-size:{other}"))
                .hint("give 4KB, 2MB or 1GB"))
        }
    }
}

/// Returns the result of a function for output; `bytes` is the number of bytes it handled.
fn speed(function: &str, cost: Cost, bytes: f64) -> RunOutput {
    let (text, value) = match cost {
        Cost::Time(_) => {
            let rate = cost.rate(bytes).unwrap_or_default();
            (format!("{}\n", scaled(rate)), rate)
        }
        Cost::Cycles(cycles) => {
            let each = cycles as f64 / bytes;
            (format!(" {each:>14.6} cycles/byte\n"), each)
        }
    };
    RunOutput {
        text,
        simple: Some(Simple { value, decimals: 6 }),
        values: vec![speed_value(function, cost, value)],
    }
}

/// Returns `number`, the speed of a function, as a value for JSON and the baseline. `cost` only selects the unit: for a time,
/// `number` is in bytes per second, and the value in GB/sec whatever its size, unlike that of [`scaled`]; otherwise both are in
/// cycles per byte.
fn speed_value(function: &str, cost: Cost, number: f64) -> Value {
    let value = match cost {
        Cost::Time(_) => Value::higher_is_better("GB/sec", number / KILO.powi(3)),
        Cost::Cycles(_) => Value::lower_is_better("cycles/byte", number),
    };
    value.with_variant(function)
}

/// Formats a rate in bytes per second with a unit up to GB/sec.
fn scaled(rate: f64) -> String {
    let (value, unit) = if rate < KILO {
        (rate, "bytes/sec")
    } else if rate < KILO.powi(2) {
        (rate / KILO, "KB/sec")
    } else if rate < KILO.powi(3) {
        (rate / KILO.powi(2), "MB/sec")
    } else {
        (rate / KILO.powi(3), "GB/sec")
    };
    format!(" {value:>14.6} {unit}")
}

fn mmap_command() -> Command {
    Command::new("mem")
        .args(common())
        .arg(numeric(
            "randomize",
            'r',
            "access pages chosen at random, with this seed",
        ))
        .arg(numeric("threads", 't', "number of threads (default: 1)"))
}

fn mmap(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let chosen = choose(
        &MmapFunction::ALL.map(MmapFunction::name_and_description),
        options,
    )?;
    let size_text = options.word("size").unwrap_or("1MB");
    let bench = Mmap {
        size: size(size_text)?,
        loops: options.positive("nr_loops", 1)?,
        threads: options.positive_count("threads", 1)?,
        seed: options.number("randomize"),
        huge_bits: huge_bits(options)?,
    };
    let count_cycles = options.is_on("cycles");
    if count_cycles {
        // Each thread opens a counter of its own; fail before the first text if that is impossible.
        Clock::cycles().map_err(failed)?;
    }
    for function in MmapFunction::ALL {
        let (name, description) = function.name_and_description();
        if !chosen.contains(&name) {
            continue;
        }
        announce(name, description, size_text, runner)?;
        runner.measure(
            || bench.run(function, count_cycles),
            |costs| threads_speed(name, costs, &bench),
        )?;
    }
    Ok(())
}

/// Returns the result of a function in several threads for output.
fn threads_speed(function: &str, costs: &MmapCosts, bench: &Mmap) -> RunOutput {
    let spread = costs.speed(bench.bytes());
    // Only selects the unit: the costs of all threads are times, or all are cycles.
    let cost = costs.0.first().copied().unwrap_or(Cost::Cycles(0));
    let mut text = match cost {
        Cost::Time(_) => scaled(spread.mean()),
        Cost::Cycles(_) => format!(" {:>14.6} cycles/byte", spread.mean()),
    };
    if bench.threads > 1 {
        text.push_str(&format!("/thread\t( +- {:6.2}% )", spread.error_percent()));
    }
    text.push('\n');
    RunOutput {
        text,
        simple: Some(Simple {
            value: spread.mean(),
            decimals: 6,
        }),
        values: vec![speed_value(function, cost, spread.mean())],
    }
}

fn find_bit_command() -> Command {
    Command::new("mem")
        .arg(numeric(
            "outer-iterations",
            'i',
            "number of measurements (default: 5)",
        ))
        .arg(numeric(
            "inner-iterations",
            'j',
            "number of searches in each measurement (default: 100000)",
        ))
}

fn find_bit(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let bench = FindBit {
        outer: options.positive("outer-iterations", 5)?,
        inner: options.positive("inner-iterations", 100_000)?,
    };
    let powers = || std::iter::successors(Some(1), |bits| Some(bits * 2));
    for bits in powers().take_while(|bits| *bits <= FindBit::LARGEST) {
        for set in powers().take_while(|set| *set <= bits) {
            runner.measure(
                || Ok(bench.run(bits, set)),
                |times| {
                    let value = |name: &str, mean| {
                        Value::lower_is_better("usec", mean)
                            .with_variant(format!("{name} {set}/{bits}"))
                    };
                    RunOutput {
                        text: format!(
                            "{} operations {set} bits set of {bits} bits\n  \
                             Average for_each_set_bit took: {:.3} usec (+- {:.3} usec)\n  \
                             Average test_bit loop took:    {:.3} usec (+- {:.3} usec)\n",
                            bench.inner,
                            times.by_words.mean(),
                            times.by_words.standard_error(),
                            times.by_bits.mean(),
                            times.by_bits.standard_error()
                        ),
                        // As in perf, `bench -f simple` prints the text of this benchmark.
                        simple: None,
                        values: vec![
                            value("for_each_set_bit", times.by_words.mean()),
                            value("test_bit", times.by_bits.mean()),
                        ],
                    }
                },
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (word, bytes) in [
            ("12", 12),
            ("3B", 3),
            ("1kb", 1024),
            ("2Mb", 2 << 20),
            ("1TB", 1 << 40),
        ] {
            assert_eq!(size(word).ok(), Some(bytes), "{word}");
        }
        for word in ["", "0", "KB", "12XB", "-1", "99999999999TB"] {
            assert!(size(word).is_err(), "{word}");
        }
    }

    #[test]
    fn rates_have_perfs_units() {
        assert_eq!(scaled(1000.0), "    1000.000000 bytes/sec");
        assert_eq!(scaled(2048.0), "       2.000000 KB/sec");
        assert_eq!(scaled(1.5 * 1024.0 * 1024.0), "       1.500000 MB/sec");
        assert_eq!(scaled(16.0 * 1024.0_f64.powi(3)), "      16.000000 GB/sec");
    }
}
