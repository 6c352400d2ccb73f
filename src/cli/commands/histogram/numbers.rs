//! The values that are counted: the period or a field of each sample, or latencies between two events.

use std::path::PathBuf;

use clap::ArgMatches;
use rperf_analysis::{Durations, FilteredSamples, SampleValue, ValueFold, ValueHistogram};
use rperf_replay::EventIndex;
use rperf_resolve::{Resolver, SampleCriteria};

use super::text;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::event_lookup::find_event;
use crate::cli::filter::RequestedFilters;
use crate::cli::input::{Input, OpenedInput};
use crate::cli::jobs::jobs;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::event_pair::event_pair;
use crate::cli::shared::numeric_field::numeric_field;
use crate::cli::symbol_options::SymbolSources;

/// The name that selects the periods of samples instead of a field.
const PERIOD: &str = "period";

/// Units of latencies, in nanoseconds.
const UNITS: [(&str, u64); 3] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000)];

/// The values to count, according to the command line.
pub(super) enum NumberSource {
    Samples {
        event: String,
        /// The name of the field to count, or [`PERIOD`].
        value_name: String,
        seconds: Option<String>,
    },
    Latencies {
        from: String,
        to: String,
        /// The fields by which the samples of the two events are paired; if empty, they are paired by thread.
        key: Vec<String>,
        /// The unit's name and its length in nanoseconds; see [`UNITS`].
        unit: (&'static str, u64),
        seconds: Option<String>,
    },
}

/// The histogram of a recording.
pub(super) struct CountedNumbers {
    pub(super) histogram: ValueHistogram,
    /// The error if not all records could be read, reported after printing.
    pub(super) damage: Result<(), CliError>,
}

impl NumberSource {
    /// Parses words and options.
    ///
    /// # Errors
    ///
    /// Status 129: the words and options do not specify the values to count.
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let words = matches.get_many::<String>("words").unwrap_or_default();
        let words: Vec<&str> = words.map(String::as_str).collect();
        let is_given = |id: &&str| text(matches, id).is_some();
        let pair_option = ["from", "to", "key", "unit"].into_iter().find(is_given);
        match (text(matches, "from"), text(matches, "to"), pair_option) {
            (Some(from), Some(to), _) => Self::latencies([from, to], &words, matches),
            (_, _, Some(id)) => Err(CliError::usage(format!(
                "--{id}: needs a start and an end event: --from EVENT --to EVENT"
            ))),
            _ => Self::samples(&words),
        }
    }

    fn samples(words: &[&str]) -> Result<Self, CliError> {
        let (event, value_name, seconds) = match words {
            [] => {
                return Err(CliError::usage("histogram needs an event").hint(
                    "name it with a field: histogram syscalls:sys_exit_read ret; 'evlist --trace-fields' lists the fields of a recording",
                ));
            }
            [event] => (event, &PERIOD, None),
            // A field's name does not begin with a digit, so the second word is a number of seconds.
            [event, seconds] if seconds.starts_with(|letter: char| letter.is_ascii_digit()) => {
                (event, &PERIOD, Some(*seconds))
            }
            [event, value_name] => (event, value_name, None),
            [event, value_name, seconds] => (event, value_name, Some(*seconds)),
            [_, _, _, surplus, ..] => {
                return Err(surplus_word(surplus));
            }
        };
        Ok(Self::Samples {
            event: (*event).to_owned(),
            value_name: (*value_name).to_owned(),
            seconds: seconds.map(seconds_of).transpose()?,
        })
    }

    fn latencies(
        [from, to]: [&str; 2],
        words: &[&str],
        matches: &ArgMatches,
    ) -> Result<Self, CliError> {
        let unit = text(matches, "unit").unwrap_or("us");
        let unit = UNITS.into_iter().find(|(name, _)| *name == unit);
        let unit = unit.ok_or_else(|| CliError::usage("--unit takes ns, us or ms"))?;
        let key = text(matches, "key").unwrap_or_default().split(',');
        let seconds = match words {
            [] => None,
            [seconds] => Some(seconds_of(seconds)?),
            [_, surplus, ..] => return Err(surplus_word(surplus)),
        };
        Ok(Self::Latencies {
            from: from.to_owned(),
            to: to.to_owned(),
            key: key
                .filter(|field| !field.is_empty())
                .map(str::to_owned)
                .collect(),
            unit,
            seconds,
        })
    }

    /// Returns the number of seconds to record, if given.
    pub(super) fn seconds(&self) -> Option<&str> {
        match self {
            Self::Samples { seconds, .. } | Self::Latencies { seconds, .. } => seconds.as_deref(),
        }
    }

    /// Returns the events to record, each once.
    pub(super) fn events(&self) -> Vec<&str> {
        match self {
            Self::Samples { event, .. } => vec![event],
            Self::Latencies { from, to, .. } if from == to => vec![from],
            Self::Latencies { from, to, .. } => vec![from, to],
        }
    }

    /// Returns the names of the event and the value, and the unit of the value.
    pub(super) fn names(&self) -> (String, &str, &str) {
        match self {
            Self::Samples {
                event, value_name, ..
            } => (event.clone(), value_name, ""),
            Self::Latencies { from, to, unit, .. } => {
                (format!("{from} to {to}"), "latency", unit.0)
            }
        }
    }

    /// Counts the values of the temporary recording at `temporary`, if given, otherwise of the recording of `-i`. `empty` is a
    /// histogram with the requested ranges.
    ///
    /// # Errors
    ///
    /// Status 129: a filter is invalid. Status 255: the recording cannot be read, lacks the event or the field, or has no value
    /// to count.
    pub(super) fn count(
        &self,
        temporary: Option<PathBuf>,
        empty: ValueHistogram,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<CountedNumbers, CliError> {
        let filters = RequestedFilters::new(matches)?;
        let symbols = SymbolSources::for_recording(matches, context)?;
        let input = match temporary {
            Some(path) => {
                let ignore_owner = false;
                OpenedInput::named(Some(path), ignore_owner, context)?.complete(context)?
            }
            None => Input::open(matches, context)?,
        };
        let data = input.parse(context)?;
        let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
        let relative_times = false;
        let pass = CountingPass {
            analysis: &analysis,
            resolver: &analysis.resolver(&symbols),
            filter: &filters.filter(data.metadata(), relative_times)?,
        };
        let histogram = match self {
            Self::Samples {
                event, value_name, ..
            } => pass.samples(event, value_name, &empty)?,
            Self::Latencies {
                from,
                to,
                key,
                unit,
                ..
            } => pass.latencies([from, to], key, unit.1, empty)?,
        };
        if histogram.count() == 0 {
            let message = format!("{}: no values to count", input.path.display());
            let error = CliError::message(255, message);
            return Err(error.hint(
                "no sample of the event matches the filters (--time, --cpu, --comms, ...), or no start event has an end event",
            ));
        }
        let damage = analysis.conclude();
        Ok(CountedNumbers { histogram, damage })
    }
}

/// A recording, and the filter of its samples.
struct CountingPass<'q> {
    analysis: &'q Analysis<'q>,
    resolver: &'q Resolver<'q>,
    filter: &'q SampleCriteria,
}

impl CountingPass<'_> {
    fn filtered(&self) -> FilteredSamples<'_> {
        FilteredSamples {
            filter: self.filter,
            resolver: self.resolver,
        }
    }

    /// Counts the periods or a field of an event's samples.
    fn samples(
        &self,
        event: &str,
        value_name: &str,
        empty: &ValueHistogram,
    ) -> Result<ValueHistogram, CliError> {
        let replay = &self.analysis.replay;
        let index = find_event(replay, &self.analysis.input.path, event)?;
        let sample_value = match value_name {
            PERIOD => SampleValue::Period,
            field => self.field(index, event, field)?,
        };
        let filter = self.filtered();
        let counted = replay.fold(self.analysis.jobs, || ValueFold {
            event: EventIndex(u32::try_from(index).unwrap_or(u32::MAX)),
            value: sample_value,
            filter,
            histogram: empty.clone(),
            without_value: 0,
        });
        if counted.without_value > 0 {
            self.analysis.context.warn(format_args!(
                "{} of {event} without {value_name}: the raw data are missing or truncated",
                rperf_names::counted(counted.without_value, "sample")
            ));
        }
        Ok(counted.histogram)
    }

    fn field(&self, index: usize, event: &str, field: &str) -> Result<SampleValue, CliError> {
        let reader = numeric_field(self.analysis.metadata(), index, field);
        reader.map(SampleValue::Field).map_err(|error| {
            let message = format!("{event} has no field '{field}' with a number");
            CliError::message(255, message)
                .hint(error.hint("only the periods of its samples can be counted (period)"))
        })
    }

    /// Counts the latencies between two events, in units of `unit` nanoseconds.
    fn latencies(
        &self,
        names: [&str; 2],
        key: &[String],
        unit: u64,
        mut histogram: ValueHistogram,
    ) -> Result<ValueHistogram, CliError> {
        let Analysis {
            replay,
            input,
            jobs,
            context,
            ..
        } = self.analysis;
        let events = event_pair(replay, &input.path, names, key)?;
        let Durations { spans, counts } =
            Durations::measure(replay, &events, self.filtered(), *jobs)?;
        // `open` counts start events without an end event up to the end of the recording, `repeated` those that were followed by
        // another one with the same key before an end event.
        let without_end = counts.open + counts.repeated;
        if without_end > 0 {
            context.note(format_args!(
                "{without_end} of {} have no {} and are not counted",
                names[0], names[1]
            ));
        }
        for span in spans {
            histogram.add((span.nanos / unit).into());
        }
        Ok(histogram)
    }
}

/// Returns `word` if it is a positive number of seconds.
fn seconds_of(word: &str) -> Result<String, CliError> {
    let number = word.parse::<f64>().ok();
    match number.filter(|number| number.is_finite() && *number > 0.0) {
        Some(_) => Ok(word.to_owned()),
        None => Err(CliError::usage(format!(
            "'{word}' is not a number of seconds"
        ))),
    }
}

fn surplus_word(word: &str) -> CliError {
    CliError::usage(format!("histogram: unexpected word '{word}'"))
        .hint("a command to record follows --: histogram EVENT FIELD -- COMMAND")
}
