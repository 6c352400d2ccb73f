//! `--filter` and `--exclude-perf` for events that are not tracepoints: a BPF program for each filter drops the samples that do
//! not match. If a program cannot test a compared field, or cannot be loaded, rperf drops these samples before writing them. Only
//! filters that compare user or group ids are then refused, since samples do not have these ids.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rperf_bpf::{Condition, Error, SampleFilterCounts, SampleFilterProgram, SampleTest};
use rperf_events::{BpfComparison, EventSpec, Operator, SampleFilter};
use rperf_names::counted;
use rperf_perfdata::{BuildRewriter, EventDesc, Rewriter};
use rperf_replay::EventIndex;
use rperf_rewrite::FilterRewriter;
use rperf_session::RecordRequest;
use rperf_wire::{AttrFlags, SampleRecord};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Drops samples that don't match the filters of their events, and counts them.
#[derive(Debug)]
pub(super) struct SampleFilters {
    /// By event, the filter that is applied before writing; `None` if the event has no filter, or if a program applies it.
    filters: ByEvent<SampleFilter>,
    /// The programs of the events that are filtered in the kernel.
    programs: Vec<Arc<SampleFilterProgram>>,
    counts: Arc<FilterCounts>,
}

/// Numbers of samples that were tested before writing, and of those that were dropped.
#[derive(Debug, Default)]
struct FilterCounts {
    samples: AtomicU64,
    dropped: AtomicU64,
}

impl SampleFilters {
    /// Returns the filters of the events of `request`, if any, and adds their programs to `request`. Enables the sample fields
    /// that filters without a program compare.
    pub(super) fn requested(request: &mut RecordRequest) -> Result<Option<Arc<Self>>, CliError> {
        let filters = request
            .observe
            .events
            .iter()
            .map(|event| event.sample_filter.clone());
        let filters: Vec<_> = filters.collect();
        if filters.iter().all(Option::is_none) {
            return Ok(None);
        }
        let is_trace = |event: &&EventSpec| event.trace_pmu().is_some();
        if let Some(trace) = request.observe.events.iter().find(is_trace) {
            return Err(hardware_trace_error(trace));
        }
        let (programs, filters) = load_programs(filters)?;
        request.observe.sample_filters = programs.clone();
        let sample_filters = Arc::new(Self {
            filters,
            programs: programs.into_iter().flatten().collect(),
            counts: Arc::default(),
        });
        if !sample_filters.drops_before_writing() {
            return Ok(Some(sample_filters));
        }
        let conflicts = [
            (request.observe.details.overwrite, "--overwrite"),
            (request.synthesis.at_end, "--tail-synthesize"),
            (request.rings.threads.is_some(), "--threads"),
            (request.observe.details.no_samples, "--no-samples"),
        ];
        if let Some((_, other)) = conflicts.iter().find(|(is_given, _)| *is_given) {
            let error =
                format!("filters of events other than tracepoints cannot be combined with {other}");
            return Err(CliError::usage(error).hint(format!("omit {other}")));
        }
        for filter in sample_filters.filters.iter().flatten() {
            filter.enable_fields(&mut request.observe.details);
        }
        Ok(Some(sample_filters))
    }

    /// Whether samples of an event are dropped before they are written, as its filter is not a program in the kernel.
    pub(super) fn drops_before_writing(&self) -> bool {
        self.filters.iter().any(Option::is_some)
    }

    /// Prints how many samples were dropped.
    pub(super) fn report(&self, context: &Context) {
        let [mut dropped, mut samples] =
            [&self.counts.dropped, &self.counts.samples].map(|count| count.load(Ordering::Relaxed));
        for program in &self.programs {
            match program.counts() {
                Ok(SampleFilterCounts {
                    all,
                    dropped: unmatched,
                }) => {
                    samples += all;
                    dropped += unmatched;
                }
                Err(error) => context.warn(format_args!(
                    "samples that did not match a filter were not counted: {error}"
                )),
            }
        }
        context.note(format_args!(
            "{dropped} of {} did not match the filter of their event",
            counted(samples, "sample")
        ));
    }
}

/// A value for each event, in the order of the events; `None` for events without one.
type ByEvent<T> = Vec<Option<T>>;

/// Loads a program for each filter whose fields programs can test; returns the programs, and the filters without one.
///
/// # Errors
///
/// A filter without a program compares the user or group id, which samples do not have.
fn load_programs(
    filters: ByEvent<SampleFilter>,
) -> Result<(ByEvent<Arc<SampleFilterProgram>>, ByEvent<SampleFilter>), CliError> {
    let (mut programs, mut without_program) = (Vec::new(), Vec::new());
    for filter in filters {
        let comparisons = filter.as_ref().and_then(SampleFilter::bpf_comparisons);
        let loaded = comparisons.map(|groups| SampleFilterProgram::load(&test_groups(&groups)));
        match loaded {
            Some(Ok(program)) => {
                programs.push(Some(Arc::new(program)));
                without_program.push(None);
            }
            // Also if the event has no filter: then both lists get `None`.
            not_loaded => {
                let field = filter.as_ref().and_then(SampleFilter::bpf_only_field);
                if let Some(field) = field {
                    return Err(bpf_only_field_error(
                        field,
                        not_loaded.and_then(Result::err),
                    ));
                }
                programs.push(None);
                without_program.push(filter);
            }
        }
    }
    Ok((programs, without_program))
}

/// The error for filters in a recording with this hardware trace.
fn hardware_trace_error(trace: &EventSpec) -> CliError {
    let name = &trace.name;
    CliError::usage(match trace.sample_filter.is_some() {
        true => format!("event {name} is a hardware trace: it has no samples to filter"),
        false => format!(
            "filters of events other than tracepoints cannot be combined with the hardware trace {name}"
        ),
    })
}

/// The error for a field that only programs can compare. `error` is why the program was not loaded; `None` if the filter compares
/// other fields that programs cannot test.
fn bpf_only_field_error(field: &str, error: Option<Error>) -> CliError {
    let message = format!("samples cannot be filtered by '{field}'");
    match error {
        Some(error) => CliError::message(255, message)
            .detail(error.to_string())
            .hint("record the tasks of a user with -u"),
        None => CliError::message(255, message).hint(
            "combine it with pid, tid, cpu, period, addr, uid and gid only, which the kernel compares",
        ),
    }
}

/// Converts the groups of comparisons for [`SampleFilterProgram::load`]. In each group, at least one must hold.
fn test_groups(comparisons: &[Vec<BpfComparison>]) -> Vec<Vec<SampleTest>> {
    let test = |comparison: &BpfComparison| SampleTest {
        field: comparison.field,
        condition: match comparison.operator {
            Operator::Equal => Condition::Equal,
            Operator::NotEqual => Condition::NotEqual,
            Operator::Greater => Condition::Above,
            Operator::GreaterOrEqual => Condition::AtLeast,
            Operator::Less => Condition::Below,
            Operator::LessOrEqual => Condition::AtMost,
            Operator::HasBits => Condition::HasBits,
        },
        value: comparison.value,
    };
    comparisons
        .iter()
        .map(|group| group.iter().map(test).collect())
        .collect()
}

impl BuildRewriter for SampleFilters {
    fn describe(&self, _events: &mut [EventDesc]) {}

    fn build(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        // `events` begins with the events of `filters`, in the same order. An event that only carries side-band records may
        // follow.
        let filters = self.filters.iter().zip(events);
        let filters: Vec<_> = filters
            .map(|(filter, event)| Some((filter.clone()?, fixed_period(event))))
            .collect();
        let counts = Arc::clone(&self.counts);
        let is_kept = move |event: EventIndex, sample: &SampleRecord<'_>| {
            let filter = filters.get(event.0 as usize).and_then(Option::as_ref);
            let Some((filter, period)) = filter else {
                return true;
            };
            counts.samples.fetch_add(1, Ordering::Relaxed);
            let matches = filter.matches(sample, *period);
            counts
                .dropped
                .fetch_add(u64::from(!matches), Ordering::Relaxed);
            matches
        };
        Box::new(FilterRewriter::new(events, is_kept))
    }
}

/// Returns the period of an event's samples, for samples without a recorded period. If the period varies (`-F`), returns 1,
/// which is never compared: a filter that compares periods has them recorded.
fn fixed_period(event: &EventDesc) -> u64 {
    match event.attr.flags.contains(AttrFlags::FREQ) {
        true => 1,
        false => event.attr.sample_period,
    }
}
