//! How long it took from one event to another.

use std::collections::HashMap;

use clap::ArgMatches;
use rperf_flame::Heat;
use rperf_perfdata::Described;
use rperf_replay::{EventIndex, Flow, Render, Sample, World};
use rperf_resolve::Filter;
use rperf_resolve::Resolver;
use rperf_tracepoint::{Error, FieldReader};

use super::{Question, text};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::sampled::find_event;

/// The events between which something takes time, and what tells one thing from another.
pub(super) struct Pair {
    from: String,
    to: String,
    /// Fields of the tracepoints; none for the thread.
    key: Vec<String>,
}

impl Pair {
    /// Reads the options; `None` where samples are to be drawn.
    pub(super) fn new(matches: &ArgMatches) -> Result<Option<Self>, CliError> {
        let (Some(from), Some(to)) = (text(matches, "from"), text(matches, "to")) else {
            let alone = ["from", "to", "key"];
            let alone = alone.into_iter().find(|id| text(matches, id).is_some());
            return match alone {
                None => Ok(None),
                Some(id) => Err(CliError::usage(format!(
                    "--{id}: what takes time has a beginning and an end, --from EVENT --to EVENT"
                ))),
            };
        };
        if text(matches, "event").is_some() {
            return Err(CliError::usage(
                "--event draws samples; --from and --to draw durations",
            ));
        }
        let key = text(matches, "key").unwrap_or_default().split(',');
        Ok(Some(Self {
            from: from.to_owned(),
            to: to.to_owned(),
            key: key
                .filter(|field| !field.is_empty())
                .map(str::to_owned)
                .collect(),
        }))
    }
}

impl Question<'_> {
    /// The time between the events of a pair, by when it was over.
    pub(super) fn durations(&self, pair: &Pair, context: &Context) -> Result<Heat, CliError> {
        let recording = self.replay.data().described();
        let end = |name: &str| {
            let event = find_event(self.replay, &self.input.path, Some(name))?;
            End::new(event, &pair.key, recording)
        };
        let ends = Ends {
            from: end(&pair.from)?,
            to: end(&pair.to)?,
            filter: &self.filter,
            resolver: self.resolver,
        };
        let mut open = HashMap::new();
        let mut durations: Vec<(u64, u64)> = Vec::new();
        self.replay
            .ordered(self.jobs, &ends, &mut |block: &mut Vec<Seen>| {
                for Seen { begins, time, key } in block.drain(..) {
                    if begins {
                        open.insert(key, time);
                    } else if let Some(begun) = open.remove(&key) {
                        durations.push((time, time.saturating_sub(begun)));
                    }
                }
                Flow::Continue
            })?;
        if !open.is_empty() {
            context.note(format_args!(
                "{} of {} have no {}: they are not drawn",
                open.len(),
                pair.from,
                pair.to
            ));
        }
        let (Some((first, _)), Some((last, _))) = (durations.first(), durations.last()) else {
            return Err(self.none_left());
        };
        let longest = durations.iter().map(|(_, duration)| *duration).max();
        let longest = self.looks.longest.or(longest).unwrap_or_default();
        let (rows, columns) = (self.looks.rows, self.looks.columns);
        let mut heat = Heat::of_durations((*first, *last), columns, longest, rows);
        for (time, duration) in &durations {
            heat.add_duration(*time, *duration);
        }
        heat.title = format!("From {} to {}", pair.from, pair.to);
        heat.unit = "times".to_owned();
        Ok(heat)
    }
}

/// One of the two events.
struct End {
    event: EventIndex,
    key: Vec<FieldReader>,
}

impl End {
    fn new(event: usize, key: &[String], recording: Described<'_>) -> Result<Self, CliError> {
        Ok(Self {
            event: EventIndex(u32::try_from(event).unwrap_or(u32::MAX)),
            key: match key {
                [] => Vec::new(),
                key => fields(event, key, recording)?,
            },
        })
    }

    /// What tells this one from others; `None` for a record that ends before it.
    fn key(&self, sample: &Sample<'_>) -> Option<Vec<u64>> {
        if self.key.is_empty() {
            return Some(vec![u64::from(sample.tid)]);
        }
        let raw = sample.wire.raw?;
        let fields = self.key.iter();
        let numbers = fields.map(|field| field.i64(raw).map(i64::cast_unsigned));
        numbers.collect()
    }
}

/// The fields of a tracepoint that have these names.
fn fields(
    event: usize,
    names: &[String],
    recording: Described<'_>,
) -> Result<Vec<FieldReader>, CliError> {
    let event = recording.events.get(event);
    let name = event.map_or("", |event| &event.name);
    let formats = recording.formats()?;
    let described = match event {
        Some(event) => formats.of_event(&event.attr),
        None => Err(&Error::NotATracepoint),
    };
    let tracepoint = match described {
        Ok(tracepoint) => tracepoint,
        Err(Error::NotATracepoint | Error::Undescribed) => {
            let message = format!("{name} is no tracepoint that the recording describes");
            return Err(
                CliError::message(255, message).hint("without --key threads are told apart")
            );
        }
        Err(error) => return Err(error.clone().into()),
    };
    let fields = names.iter().map(|field| {
        tracepoint.reader(field).ok_or_else(|| {
            CliError::message(255, format!("{name} has no field '{field}'"))
                .hint("evlist --trace-fields shows those that there are")
        })
    });
    fields.collect()
}

/// What is seen of both.
struct Ends<'e> {
    from: End,
    to: End,
    filter: &'e Filter,
    resolver: &'e Resolver<'e>,
}

/// A beginning or an end.
struct Seen {
    begins: bool,
    time: u64,
    key: Vec<u64>,
}

impl Render for Ends<'_> {
    type Out = Vec<Seen>;
    type Scratch = ();

    fn render(&self, _world: &World, sample: &Sample<'_>, _: &mut (), out: &mut Vec<Seen>) {
        let Some(time) = sample.wire.time else {
            return;
        };
        // Of one event with itself the end comes first, and a beginning follows it.
        for (end, begins) in [(&self.to, false), (&self.from, true)] {
            if sample.event == end.event
                && self.filter.accepts(sample, self.resolver)
                && let Some(key) = end.key(sample)
            {
                out.push(Seen { begins, time, key });
            }
        }
    }
}
