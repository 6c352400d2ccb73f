//! A thread in the processed profile format of the Firefox Profiler.

use serde::Serialize;

use super::ProfileView;
use super::meta::{MARKER, OTHER};
use super::tables::{FrameTable, FuncTable, NativeSymbols, ResourceTable, StackTable, Tables};
use crate::lazy_seq::LazySeq;
use crate::profile::{self, PeriodUnit, ProfileSample, Track};

/// The tracks of one thread: its samples, by event.
pub(super) struct Tracks<'p> {
    /// The whole profile, with its main event and the time of its first sample.
    view: &'p ProfileView<'p>,
    /// Samples of the main event.
    main: &'p [ProfileSample],
    /// Samples of the other events.
    others: Vec<&'p Track>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thread<'p, S> {
    process_type: &'static str,
    process_name: &'p str,
    process_startup_time: f64,
    process_shutdown_time: Option<f64>,
    register_time: f64,
    unregister_time: Option<f64>,
    paused_ranges: [(); 0],
    name: &'p str,
    is_main_thread: bool,
    pid: String,
    tid: i32,
    samples: S,
    markers: Markers,
    stack_table: StackTable,
    frame_table: FrameTable,
    func_table: FuncTable,
    native_symbols: NativeSymbols,
    resource_table: ResourceTable,
    string_array: Vec<&'p str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples<T, W, D> {
    length: usize,
    stack: Vec<Option<usize>>,
    time: T,
    /// `None`: each sample counts as one.
    weight: Option<W>,
    /// `tracing-ms` if weights are milliseconds, otherwise `samples`.
    weight_type: &'static str,
    /// CPU time since the previous sample of the thread, in the unit of the metadata: nanoseconds or CPU cycles.
    #[serde(rename = "threadCPUDelta", skip_serializing_if = "Option::is_none")]
    thread_cpu_delta: Option<D>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Markers {
    length: usize,
    category: Vec<usize>,
    data: Vec<Payload>,
    end_time: Vec<Option<f64>>,
    name: Vec<u32>,
    /// 0: an instant, without a duration.
    phase: Vec<u8>,
    start_time: Vec<f64>,
}

#[derive(Serialize)]
struct Payload {
    #[serde(rename = "type")]
    kind: &'static str,
    period: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
}

#[derive(Serialize)]
struct Cause {
    stack: usize,
}

impl<'p> Tracks<'p> {
    /// The tracks of the thread with this index.
    pub(super) fn of(view: &'p ProfileView<'p>, thread: u32) -> Self {
        let tracks = &view.profile.tracks;
        // Tracks are sorted by thread.
        let from = tracks.partition_point(|track| track.thread < thread);
        let tracks = tracks.get(from..).unwrap_or_default().iter();
        let of_thread = tracks.take_while(|track| track.thread == thread);
        let (main, others): (Vec<_>, Vec<_>) =
            of_thread.partition(|track| Some(track.event) == view.main);
        Self {
            view,
            main: main.first().map_or(&[], |track| &track.samples),
            others,
        }
    }

    /// The serialized thread.
    pub(super) fn thread(self, thread: &'p profile::Thread) -> impl Serialize {
        let Self { view, main, others } = self;
        let mut tables = Tables::new(view.profile);
        let stacks = main.iter().map(|sample| tables.stack(sample.stack?));
        let stack = stacks.collect();
        let markers = markers(view, &others, &mut tables);
        let all_samples = others.iter().flat_map(|track| &track.samples).chain(main);
        let times = all_samples.map(|sample| sample.time);
        let unit = view.unit();
        let is_time = unit == PeriodUnit::Nanoseconds;
        // Off-CPU time is in nanoseconds, too, but is not CPU time.
        let is_cpu_time = unit != PeriodUnit::Count && !view.is_off_cpu();
        let (first, last) = (times.clone().min(), times.max());
        Thread {
            process_type: "default",
            process_name: view.profile.process_name(thread.pid),
            process_startup_time: first.map_or(0.0, |time| view.milliseconds(time)),
            process_shutdown_time: last.map(|time| view.milliseconds(time)),
            register_time: first.map_or(0.0, |time| view.milliseconds(time)),
            unregister_time: last.map(|time| view.milliseconds(time)),
            paused_ranges: [],
            name: &thread.name,
            is_main_thread: thread.pid == thread.tid,
            pid: thread.pid.cast_signed().to_string(),
            tid: thread.tid.cast_signed(),
            samples: Samples {
                length: main.len(),
                stack,
                time: LazySeq(move || {
                    main.iter()
                        .map(move |sample| view.milliseconds(sample.time))
                }),
                weight: is_time.then_some(LazySeq(move || {
                    main.iter().map(|sample| sample.period as f64 / 1e6)
                })),
                weight_type: match is_time {
                    true => "tracing-ms",
                    false => "samples",
                },
                thread_cpu_delta: is_cpu_time
                    .then_some(LazySeq(move || main.iter().map(|sample| sample.period))),
            },
            markers,
            string_array: tables.strings().to_vec(),
            stack_table: tables.stack_table,
            frame_table: tables.frame_table,
            func_table: tables.func_table,
            native_symbols: tables.native_symbols,
            resource_table: tables.resource_table,
        }
    }
}

/// The markers for samples of the other events, in order of time.
fn markers<'p>(
    view: &'p ProfileView<'p>,
    tracks: &[&'p Track],
    tables: &mut Tables<'p>,
) -> Markers {
    let named = tracks.iter().flat_map(|track| {
        let name = view.event(track.event).map_or("", |event| &event.name);
        track.samples.iter().map(move |sample| (name, sample))
    });
    let mut named: Vec<(&str, &ProfileSample)> = named.collect();
    named.sort_by_key(|(_, sample)| sample.time);
    let mut markers = Markers::default();
    for (name, sample) in named {
        markers.length += 1;
        markers.category.push(OTHER);
        markers.name.push(tables.string(name));
        markers.phase.push(0);
        markers.start_time.push(view.milliseconds(sample.time));
        markers.end_time.push(None);
        let stack = sample.stack.and_then(|stack| tables.stack(stack));
        markers.data.push(Payload {
            kind: MARKER,
            period: sample.period,
            cause: stack.map(|stack| Cause { stack }),
        });
    }
    markers
}
