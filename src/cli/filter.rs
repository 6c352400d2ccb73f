//! The options that select samples: `--time`, `--cpu`, `--comms`, `--pid`, `--tid`, `--dsos`, `--symbols`, `--addr-range`.

pub(crate) mod args;

use clap::ArgMatches;
use rperf_perfdata::Metadata;
use rperf_resolve::{IntervalError, SampleCriteria, SymbolNames, TimeIntervals};
use rperf_sys::CpuList;
use rperf_wire::SampleType;

use super::error::CliError;
use super::options::given_value;

/// How to record the CPU of samples.
pub(crate) const CPU_HINT: &str = "record with 'record --sample-cpu' or 'record -a'";

/// The requested filters.
pub(crate) struct RequestedFilters {
    /// All filters except the time.
    filter: SampleCriteria,
    /// `--time` as given: it is parsed for each recording, since percentages depend on the recording.
    time: Option<String>,
}

impl RequestedFilters {
    /// Parses the options.
    ///
    /// # Errors
    ///
    /// Invalid lists, and `--addr-range` without `-S`.
    pub(crate) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let symbols = words(matches, "symbols");
        let range = given_value::<u64>(matches, "addr-range");
        if range.is_some() && symbols.is_none() {
            let message = "--addr-range needs -S ADDRESS";
            return Err(CliError::usage(message));
        }
        let range = range.copied().unwrap_or_default();
        let filter = SampleCriteria {
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

    /// Returns the same filters with other time ranges, for another file.
    pub(crate) fn with_time(&self, time: Option<&str>) -> Self {
        Self {
            filter: self.filter.clone(),
            time: time.map(str::to_owned),
        }
    }

    /// Returns the time ranges as given.
    pub(crate) fn time(&self) -> Option<&str> {
        self.time.as_deref()
    }

    /// Returns the filter for `recording`; with `relative`, times count from the first sample.
    ///
    /// # Errors
    ///
    /// Invalid times, and `--cpu` if an event's samples have no CPU.
    pub(crate) fn filter(
        &self,
        recording: Metadata<'_>,
        relative: bool,
    ) -> Result<SampleCriteria, CliError> {
        let mut filter = self.filter.clone();
        if let Some(text) = &self.time {
            let boundaries = recording.features.sample_time();
            let intervals = TimeIntervals::parse(text, boundaries, relative);
            filter.intervals = Some(intervals.map_err(invalid_interval)?);
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

/// Returns the nonempty words of an option's comma-separated value; `None` without the option.
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
        // -1 is the pid shown for samples without one.
        let number = word
            .parse()
            .or_else(|_| word.parse::<i32>().map(i32::cast_unsigned));
        number.map_err(|_| {
            CliError::usage(format!(
                "problems parsing {id} list: '{word}' is not a number"
            ))
        })
    });
    ids.collect::<Result<_, _>>().map(Some)
}

/// Returns the CPUs of `--cpu`.
///
/// # Errors
///
/// Status 255: an invalid list.
pub(crate) fn cpus(matches: &ArgMatches) -> Result<Option<Vec<u32>>, CliError> {
    let Some(list) = matches.get_one::<String>("cpu") else {
        return Ok(None);
    };
    let cpus = CpuList::parse(list).map_err(|error| {
        CliError::message(255, "Invalid cpu_list").detail(format!("{list}: {error}"))
    })?;
    Ok(Some(cpus.numbers().to_vec()))
}

/// Parses seconds with up to nine decimals into nanoseconds; the part before or after the point, or both, may be missing.
/// `None` for other text, and for times that do not fit.
pub(crate) fn parse_seconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds = match seconds {
        "" => 0,
        digits => digits.parse::<u64>().ok()?,
    };
    let fraction = format!("{fraction:0<9}").parse::<u64>().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

fn invalid_interval(error: IntervalError) -> CliError {
    // 234 is the exit status of perf: -EINVAL.
    let cli = CliError::message(234, error.to_string());
    match error {
        IntervalError::NoBoundaries => {
            cli.hint("give START,END in seconds, as printed by 'script'")
        }
        _ => cli.hint(
            "give START,END in seconds (either may be omitted), several separated by spaces, or percentages: 10%/2 (the second \
tenth), 10%-20%,40%-50%",
        ),
    }
}
