//! The options that choose samples: `--time`, `--cpu`, `--comms`, `--pid`, `--tid`, `--dsos`, `--symbols`.

pub(crate) mod args;

use clap::ArgMatches;
use rperf_perfdata::Described;
use rperf_resolve::{Filter, IntervalError, Intervals, SymbolNames};
use rperf_sys::CpuList;
use rperf_wire::SampleType;

use super::error::CliError;

/// How samples come to have a CPU.
pub(crate) const CPU_HINT: &str = "record with 'record --sample-cpu' or 'record -a'";

/// What the options ask for of samples.
pub(crate) struct Wanted {
    /// All but their time.
    filter: Filter,
    /// `--time`: in percent it depends on the recording.
    time: Option<String>,
}

impl Wanted {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Lists that can't be read.
    pub(crate) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let symbols = words(matches, "symbols");
        let range = matches.try_get_one::<u64>("addr-range").ok().flatten();
        if range.is_some() && symbols.is_none() {
            let message = "--addr-range needs the addresses that it counts from: -S ADDRESS";
            return Err(CliError::usage(message));
        }
        let range = range.copied().unwrap_or_default();
        let filter = Filter {
            intervals: None,
            cpus: cpus(matches)?,
            comms: words(matches, "comms"),
            pids: ids(matches, "pid")?,
            tids: ids(matches, "tid")?,
            dsos: words(matches, "dsos"),
            symbols: symbols
                .map(|words| SymbolNames::new(words.iter().map(String::as_str)).with_range(range)),
        };
        let time = matches.get_one::<String>("time").cloned();
        Ok(Self { filter, time })
    }

    /// The stretches of time, as they were given.
    pub(crate) fn time(&self) -> Option<&str> {
        self.time.as_deref()
    }

    /// Which samples of `recording` are wanted; with `relative` moments count from the first sample.
    ///
    /// # Errors
    ///
    /// Times that can't be read, and what is asked for that the recording does not tell.
    pub(crate) fn filter(
        &self,
        recording: Described<'_>,
        relative: bool,
    ) -> Result<Filter, CliError> {
        let mut filter = self.filter.clone();
        if let Some(text) = &self.time {
            let boundaries = recording.features.sample_time();
            let intervals = Intervals::parse(text, boundaries, relative);
            filter.intervals = Some(intervals.map_err(untimely)?);
        }
        let mut events = recording.events.iter();
        let has_cpus = |sample_type: SampleType| sample_type.contains(SampleType::CPU);
        if filter.cpus.is_some() && !events.all(|event| has_cpus(event.attr.sample_type)) {
            let message = "File does not contain CPU events. Remove -C option to proceed.";
            return Err(CliError::message(255, message).hint(CPU_HINT));
        }
        Ok(filter)
    }
}

/// A list of words between commas.
pub(crate) fn words(matches: &ArgMatches, id: &str) -> Option<Vec<String>> {
    let list = matches.get_one::<String>(id)?;
    let words = list.split(',').filter(|word| !word.is_empty());
    Some(words.map(str::to_owned).collect())
}

fn ids(matches: &ArgMatches, id: &str) -> Result<Option<Vec<u32>>, CliError> {
    let Some(words) = words(matches, id) else {
        return Ok(None);
    };
    let ids = words.iter().map(|word| {
        // -1 is how a sample without ids shows them.
        let number = word
            .parse()
            .or_else(|_| word.parse::<i32>().map(i32::cast_unsigned));
        number.map_err(|_| {
            CliError::usage(format!("problems parsing {id} list: '{word}' is no number"))
        })
    });
    ids.collect::<Result<_, _>>().map(Some)
}

fn cpus(matches: &ArgMatches) -> Result<Option<Vec<u32>>, CliError> {
    let Some(list) = matches.get_one::<String>("cpu") else {
        return Ok(None);
    };
    let cpus = CpuList::parse(list).map_err(|error| {
        CliError::message(255, "Invalid cpu_list").detail(format!("{list}: {error}"))
    })?;
    Ok(Some(cpus.numbers().to_vec()))
}

fn untimely(error: IntervalError) -> CliError {
    let cli = CliError::message(234, error.to_string());
    match error {
        IntervalError::NoBoundaries => {
            cli.hint("name the times in seconds, as START,END; script shows them")
        }
        _ => cli.hint(
            "START,END in seconds, either of which may be left out; several with blanks between; 10%/2 is the second tenth; \
             10%-20%,40%-50%",
        ),
    }
}
