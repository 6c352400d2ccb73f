//! `bench numa`.

mod suite;
mod text;

use std::time::Duration;

use clap::{ArgMatches, Command};
use rperf_bench::Value;
use rperf_bench::numa::{InitialMemory, MemoryAccess, MemorySizes, NumaMem, NumaResult, PassOrder};
use rperf_sys::{CpuState, Sysfs, parallelism};

use super::args::{BenchOptions, lettered_switch, numeric};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, not_applicable};
use crate::cli::error::CliError;
use crate::cli::options::{is_given, options, unsupported, value};

/// The benchmarks of the collection.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "mem",
    summary: "Benchmark for NUMA workloads",
    build: command,
    run: mem,
}];

/// Megabytes of global memory, if neither `--mb_global`, `--mb_proc` nor `--mb_thread` is given.
const GLOBAL_MB: u64 = 1;
/// The maximum of each size option, in megabytes: 1 TiB.
const MAX_MB: u64 = 1 << 20;

fn command() -> Command {
    let command = Command::new("numa")
        .arg(lettered_switch("init_cpu0", '0', "initialize memory on CPU 0"))
        .arg(lettered_switch(
            "all",
            'a',
            "measure local and remote memory with one and two processes",
        ))
        .arg(lettered_switch(
            "data_backwards",
            'B',
            "pass over memory forwards and backwards in turn",
        ))
        .arg(
            value("cpus", "cpu,cpu-cpu,cpuxN")
                .short('C')
                .help("CPUs of the first tasks, one for each; others run on any CPU"),
        )
        .arg(unsupported("show_convergence", CONVERGENCE).short('c'))
        .arg(unsupported("show_details", CONVERGENCE).short('d'))
        .arg(numeric(
            "mb_global",
            'G',
            "megabytes shared by all processes (default: 1 if no other size is given)",
        ))
        .arg(
            value("thp", "n")
                .short('H')
                .allow_hyphen_values(true)
                .help("transparent huge pages: a number above 0 requests them, a number below 0 prevents them"),
        )
        .arg(lettered_switch(
            "init_random",
            'I',
            "initialize memory with random numbers",
        ));
    command.args(options_from_l())
}

/// Why options that concern the convergence of tasks on nodes are not supported.
const CONVERGENCE: &str = "it needs automatic NUMA balancing between nodes";

/// The options from `-L` on; all options are in the order of their letters.
fn options_from_l() -> Vec<clap::Arg> {
    vec![
        numeric(
            "mb_proc_locked",
            'L',
            "megabytes of the process's memory that one thread at a time passes over",
        ),
        numeric(
            "nr_loops",
            'l',
            "passes of each thread (default: unlimited)",
        ),
        unsupported("measure_convergence", CONVERGENCE).short('m'),
        value("memnodes", "node,node-node,nodexN")
            .short('M')
            .help("nodes with the memory of the first tasks, one for each"),
        numeric(
            "mb_proc",
            'P',
            "megabytes of each process, shared by its threads",
        ),
        numeric("nr_proc", 'p', "number of processes (default: 1)"),
        lettered_switch("quiet", 'q', "print the results only"),
        lettered_switch(
            "data_rand_walk",
            'r',
            "access words of the memory at random",
        ),
        lettered_switch("data_reads", 'R', "read memory (default: read and write)"),
        numeric(
            "nr_secs",
            's',
            "seconds to run (default: 5, with -a 20 for each test)",
        ),
        unsupported("serialize-startup", "tasks start at the same time").short('S'),
        numeric("mb_thread", 'T', "megabytes of each thread"),
        numeric(
            "nr_threads",
            't',
            "number of threads of each process (default: number of CPUs)",
        ),
        numeric(
            "usleep",
            'u',
            "microseconds that each thread sleeps after a pass",
        ),
        lettered_switch("data_writes", 'W', "write memory (default: read and write)"),
        unsupported("perturb_secs", "tasks are not moved between CPUs").short('x'),
        lettered_switch("data_zero_memset", 'Z', "write zeros only"),
        lettered_switch("init_zero", 'z', "initialize memory with zeros"),
    ]
}

fn mem(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let machine = NumaMachine::read()?;
    if options.is_on("all") {
        refuse_with_all(matches)?;
        return suite::run(options, &machine, runner);
    }
    let bench = read(options)?;
    machine.check(&bench)?;
    let quiet = options.is_on("quiet");
    runner.print_unless_json(&format!(
        "\n # Running main, \"{} bench numa mem{}\"\n",
        runner.context().program,
        runner.options()
    ))?;
    if !quiet {
        runner.print_unless_json(&text::introduction(&bench, &machine))?;
    }
    let no_name = "";
    measure(&bench, no_name, quiet, runner)
}

/// Refuses options that the tests of `-a` would ignore.
fn refuse_with_all(matches: &ArgMatches) -> Result<(), CliError> {
    let command = command();
    // Here, `options` is the imported function that lists the options of a command.
    let ids = options(&command).map(|arg| arg.get_id().as_str());
    let mut ignored = ids.filter(|id| !["all", "nr_secs", "quiet"].contains(id));
    match ignored.find(|id| is_given(matches, id)) {
        Some(id) => Err(CliError::usage(format!(
            "--all and --{id} exclude each other: --all has tests of its own"
        ))),
        None => Ok(()),
    }
}

/// Runs one test and prints its results. `name` is the name of a test of `-a`, otherwise empty.
fn measure(
    bench: &NumaMem,
    name: &str,
    quiet: bool,
    runner: &mut Runner<'_>,
) -> Result<(), CliError> {
    runner.measure(
        || bench.run(),
        |result| RunOutput {
            text: match quiet {
                true => text::summary(result),
                false => text::startup(result) + &text::table("main", result),
            },
            // The text is printed for `-f simple`, too.
            simple: None,
            values: values(name, result),
        },
    )
}

fn values(name: &str, result: &NumaResult) -> Vec<Value> {
    let speeds = text::Speeds::of(result);
    let named = |part: &str| format!("{name} {part}").trim_start().to_owned();
    let result_value =
        |speed, part| Value::higher_is_better("GB/sec", speed).with_variant(named(part));
    vec![
        result_value(speeds.total, "total"),
        result_value(speeds.thread, "thread"),
    ]
}

/// Reads the options of a test without `-a`.
fn read(options: BenchOptions<'_>) -> Result<NumaMem, CliError> {
    Ok(NumaMem {
        processes: options.positive_count("nr_proc", 1)?,
        threads: options.positive_count("nr_threads", u32::try_from(parallelism()).unwrap_or(1))?,
        sizes: sizes(options)?,
        // The default of 1 is never used: without the option there is no limit.
        loops: options
            .number("nr_loops")
            .map(|_| options.positive("nr_loops", 1))
            .transpose()?,
        duration: Duration::from_secs(options.positive_count("nr_secs", 5)?.into()),
        pause: Duration::from_micros(options.number("usleep").unwrap_or(0)),
        access: access(options),
        initial: InitialMemory {
            zero: options.is_on("init_zero"),
            random: options.is_on("init_random"),
            on_cpu0: options.is_on("init_cpu0"),
        },
        huge_pages: huge_pages(options)?,
        cpus: numbers(options, "cpus")?,
        nodes: numbers(options, "memnodes")?,
    })
}

fn sizes(options: BenchOptions<'_>) -> Result<MemorySizes, CliError> {
    let bytes = |id: &str, default_mb: u64| match options.number(id).unwrap_or(default_mb) {
        megabytes if megabytes <= MAX_MB => Ok((megabytes << 20) as usize),
        _ => Err(CliError::usage(format!(
            " Error: option `{id}' expects at most {MAX_MB} megabytes"
        ))),
    };
    let has_other_size = ["mb_proc", "mb_thread"]
        .iter()
        .any(|id| options.number(id).is_some());
    let sizes = MemorySizes {
        global: bytes("mb_global", if has_other_size { 0 } else { GLOBAL_MB })?,
        process: bytes("mb_proc", 0)?,
        locked: bytes("mb_proc_locked", 0)?,
        thread: bytes("mb_thread", 0)?,
    };
    if sizes.locked > sizes.process {
        let message = "--mb_proc_locked is a part of --mb_proc and cannot be larger";
        return Err(CliError::usage(message));
    }
    if sizes.global + sizes.process + sizes.thread == 0 {
        let message = "there is no memory to access: give -G, -P or -T";
        return Err(CliError::usage(message));
    }
    Ok(sizes)
}

fn access(options: BenchOptions<'_>) -> MemoryAccess {
    let [reads, writes] = ["data_reads", "data_writes"].map(|id| options.is_on(id));
    let is_default = !reads && !writes;
    MemoryAccess {
        reads: reads || is_default,
        writes: writes || is_default,
        zeros: options.is_on("data_zero_memset"),
        order: if options.is_on("data_rand_walk") {
            PassOrder::Random
        } else if options.is_on("data_backwards") {
            PassOrder::Alternating
        } else {
            PassOrder::Forward
        },
    }
}

/// Returns `Some(true)` if `--thp` requests transparent huge pages, `Some(false)` if it prevents them; `None` for the kernel's
/// default.
fn huge_pages(options: BenchOptions<'_>) -> Result<Option<bool>, CliError> {
    let Some(word) = options.word("thp") else {
        return Ok(None);
    };
    match word.trim().parse::<i32>() {
        Ok(0) => Ok(None),
        Ok(number) => Ok(Some(number > 0)),
        Err(_) => Err(CliError::usage(format!(
            " Error: option `thp' expects a numerical value: '{word}'"
        ))),
    }
}

/// The maximum number of CPUs or nodes in a list.
const MAX_PLACES: usize = 1 << 16;

/// Parses a list of CPUs or nodes: numbers and ranges. `xN` after an item repeats each of its numbers N times in succession. The
/// list is empty if the option is not given.
fn numbers(options: BenchOptions<'_>, id: &str) -> Result<Vec<u32>, CliError> {
    let Some(word) = options.word(id) else {
        return Ok(Vec::new());
    };
    let invalid = || {
        CliError::usage(format!(" Error: option `{id}' expects a list: '{word}'"))
            .hint("give numbers or ranges, and their repetition: 0,2-3,1x2")
    };
    let mut places = Vec::new();
    for item in word.split(',') {
        let (range, repetitions) = item.split_once('x').unwrap_or((item, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |word: &str| word.trim().parse::<u32>().map_err(|_| invalid());
        let (first, last, repetitions) = (number(first)?, number(last)?, number(repetitions)?);
        let total = (u64::from(last.saturating_sub(first)) + 1) * u64::from(repetitions);
        if last < first || repetitions == 0 || total as usize + places.len() > MAX_PLACES {
            return Err(invalid());
        }
        places.extend(
            (first..=last).flat_map(|place| std::iter::repeat_n(place, repetitions as usize)),
        );
    }
    Ok(places)
}

/// The CPUs and nodes of this machine.
struct NumaMachine {
    /// Online CPUs.
    cpus: Vec<u32>,
    /// Online nodes; only node 0 if the kernel does not list them.
    nodes: Vec<u32>,
}

impl NumaMachine {
    fn read() -> Result<Self, CliError> {
        let sysfs = Sysfs::new("/sys");
        let nodes = sysfs.nodes().unwrap_or_default();
        let nodes: Vec<u32> = nodes.iter().map(|node| node.number).collect();
        Ok(Self {
            cpus: sysfs.cpus(CpuState::Online)?.numbers().to_vec(),
            nodes: if nodes.is_empty() { vec![0] } else { nodes },
        })
    }

    /// Checks that the CPUs and nodes of a test exist.
    fn check(&self, bench: &NumaMem) -> Result<(), CliError> {
        for (requested, known, noun) in [
            (&bench.cpus, &self.cpus, "CPUs"),
            (&bench.nodes, &self.nodes, "nodes"),
        ] {
            if requested.iter().any(|number| !known.contains(number)) {
                let count = known.len();
                return Err(not_applicable(format!(
                    "Test not applicable, system has only {count} {noun}."
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_ranges_and_repetitions() {
        let parsed = |word: &str| {
            let words = ["-C", word];
            let matches = command().no_binary_name(true).get_matches_from(words);
            numbers(BenchOptions(&matches), "cpus").ok()
        };
        assert_eq!(parsed("0,2-3,1x2"), Some(vec![0, 2, 3, 1, 1]));
        for word in [
            "",
            "a",
            "3-1",
            "1x0",
            // Not hexadecimal: CPU 0, more than `MAX_PLACES` times.
            "0x4294967295",
            "0-4294967295x9",
            "1-",
        ] {
            assert_eq!(parsed(word), None, "{word}");
        }
    }
}
