//! `--weight FIELD`: the value of a tracepoint's field as the weight of a sample.

use std::sync::atomic::{AtomicU64, Ordering};

use rperf_names::{counted, is_or_are};
use rperf_perfdata::Metadata;
use rperf_replay::Sample;
use rperf_tracepoint::{FieldReader, Value};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::shared::numeric_field::numeric_field;
use crate::cli::stack_folding::WeighSamples;

/// A numeric field of a tracepoint.
pub(super) struct FieldWeight<'n> {
    name: &'n str,
    reader: FieldReader,
    /// Number of samples with a negative value, such as an error code; their weight is 0. Incremented by several threads.
    negative: AtomicU64,
}

impl<'n> FieldWeight<'n> {
    /// Finds the field `name` of the event with index `event`.
    ///
    /// # Errors
    ///
    /// Status 129: the event is not a tracepoint, its format is missing or damaged, or it has no numeric field of this name.
    pub(super) fn new(
        recording: Metadata<'_>,
        event: usize,
        name: &'n str,
    ) -> Result<Self, CliError> {
        let reader = numeric_field(recording, event, name).map_err(|error| {
            let event = recording.events.get(event);
            let event = event.map_or("", |event| &event.name);
            let message = format!("--weight: {event} has no field '{name}' with a number");
            CliError::usage(message)
                .hint(error.hint("use samples or period, or select a tracepoint with -e"))
        })?;
        Ok(Self {
            name,
            reader,
            negative: AtomicU64::new(0),
        })
    }

    /// Prints a note if samples had negative values.
    pub(super) fn report_negatives(&self, context: &Context) {
        let negative = self.negative.load(Ordering::Relaxed);
        if negative > 0 {
            let name = self.name;
            context.note(format_args!(
                "{} with a negative {name} {} not drawn",
                counted(negative, "sample"),
                is_or_are(negative)
            ));
        }
    }
}

impl WeighSamples for FieldWeight<'_> {
    fn weight(&self, sample: &Sample<'_>) -> u64 {
        match sample.wire.raw.and_then(|raw| self.reader.value(raw)) {
            Some(Value::Unsigned(number)) => number,
            Some(Value::Signed(number)) => u64::try_from(number).unwrap_or_else(|_| {
                self.negative.fetch_add(1, Ordering::Relaxed);
                0
            }),
            // The sample has no raw data, or too few bytes for the field.
            _ => 0,
        }
    }
}
