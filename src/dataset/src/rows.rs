//! The rows of each table. The cells of a row are in the order of the table's columns. `Cell::number` and `Cell::id`
//! make cells of `Signed` columns.

use std::collections::BTreeMap;
use std::io;

use rperf_export::{CodeKind, PeriodUnit, ProfileFrame};

use crate::records::LossKind;
use crate::schema::ColumnKind::{Flag, Signed, Text, Unsigned};
use crate::{Cell, Column, Dataset, RowSink, SCHEMA_VERSION, Table};

/// The first column of every table.
const RECORDING: Column = Column::new("recording", Text);

/// All tables. `recordings` is first; it has one row, which describes the recording.
pub const TABLES: [Table; 8] = [
    Table {
        name: "recordings",
        columns: &[
            RECORDING,
            Column::new("schema", Signed),
            Column::new("hostname", Text),
            Column::new("os_release", Text),
            Column::new("arch", Text),
            Column::new("cpu", Text),
            Column::new("command_line", Text),
            Column::new("recorder", Text),
            Column::new("first_time", Signed),
            Column::new("last_time", Signed),
            Column::new("wall_start", Signed),
            Column::new("has_clock", Flag),
        ],
        rows: recordings,
    },
    Table {
        name: "events",
        columns: &[
            RECORDING,
            Column::new("event", Text),
            Column::new("unit", Text),
            Column::new("samples", Signed),
            Column::new("period", Signed),
        ],
        rows: events,
    },
    Table {
        name: "samples",
        columns: &[
            RECORDING,
            Column::new("time", Signed),
            Column::new("wall_time", Signed),
            Column::new("cpu", Signed),
            Column::new("pid", Signed),
            Column::new("tid", Signed),
            Column::new("process", Text),
            Column::new("comm", Text),
            Column::new("event", Text),
            Column::new("period", Signed),
            Column::new("stack", Signed),
        ],
        rows: samples,
    },
    Table {
        name: "stacks",
        columns: &[
            RECORDING,
            Column::new("stack", Signed),
            Column::new("depth", Signed),
            Column::new("frame", Signed),
        ],
        rows: stacks,
    },
    Table {
        name: "frames",
        columns: &[
            RECORDING,
            Column::new("frame", Signed),
            Column::new("function", Text),
            Column::new("object", Text),
            Column::new("path", Text),
            Column::new("build_id", Text),
            Column::new("kind", Text),
            Column::new("address", Unsigned),
            Column::new("inlined", Flag),
            Column::new("source_file", Text),
            Column::new("source_line", Signed),
        ],
        rows: frames,
    },
    Table {
        name: "mappings",
        columns: &[
            RECORDING,
            Column::new("time", Signed),
            Column::new("pid", Signed),
            Column::new("start", Unsigned),
            Column::new("size", Unsigned),
            Column::new("offset", Unsigned),
            Column::new("path", Text),
            Column::new("build_id", Text),
            Column::new("executable", Flag),
        ],
        rows: mappings,
    },
    Table {
        name: "tasks",
        columns: &[
            RECORDING,
            Column::new("pid", Signed),
            Column::new("tid", Signed),
            Column::new("parent_pid", Signed),
            Column::new("comm", Text),
            Column::new("started", Signed),
            Column::new("ended", Signed),
        ],
        rows: tasks,
    },
    Table {
        name: "losses",
        columns: &[
            RECORDING,
            Column::new("time", Signed),
            Column::new("cpu", Signed),
            Column::new("event", Text),
            Column::new("kind", Text),
            Column::new("count", Signed),
        ],
        rows: losses,
    },
];

fn recordings(dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
    let info = &dataset.recording;
    let (first, last) = dataset.profile.span();
    sink(&[
        Cell::Text(&info.id),
        Cell::Signed(SCHEMA_VERSION),
        Cell::text_or_null(&info.host),
        Cell::text_or_null(&info.os_release),
        Cell::text_or_null(&info.arch),
        Cell::text_or_null(&info.cpu),
        Cell::text_or_null(&info.command_line),
        Cell::text_or_null(&info.recorder),
        Cell::number(first),
        Cell::number(last),
        Cell::Signed(info.start),
        Cell::Flag(info.has_clock),
    ])
}

fn events(dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
    for (number, event) in (0..).zip(&dataset.profile.events) {
        // A track has the samples of one event in one thread; `samples` are those of this event in all threads.
        let tracks = dataset.profile.tracks.iter();
        let samples = || {
            tracks
                .clone()
                .filter(|track| track.event == number)
                .flat_map(|track| &track.samples)
        };
        sink(&[
            Cell::Text(&dataset.recording.id),
            Cell::Text(&event.name),
            Cell::Text(match event.unit {
                PeriodUnit::Nanoseconds => "nanoseconds",
                PeriodUnit::Cycles => "cycles",
                PeriodUnit::Count => "count",
            }),
            Cell::number(samples().count() as u64),
            Cell::number(samples().fold(0, |sum: u64, sample| sum.saturating_add(sample.period))),
        ])?;
    }
    Ok(())
}

fn samples(dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
    let profile = dataset.profile;
    let processes: BTreeMap<u32, &str> = profile
        .processes
        .iter()
        .map(|process| (process.pid, process.name.as_str()))
        .collect();
    let wall_clock = dataset.wall_clock();
    for track in &profile.tracks {
        let thread = profile.threads.get(track.thread as usize);
        let Some((thread, event)) = thread.zip(profile.events.get(track.event as usize)) else {
            continue;
        };
        let process = processes.get(&thread.pid).copied().unwrap_or_default();
        for sample in &track.samples {
            sink(&[
                Cell::Text(&dataset.recording.id),
                Cell::number(sample.time),
                Cell::Signed(wall_clock(sample.time)),
                Cell::id(sample.cpu),
                Cell::id(thread.pid),
                Cell::id(thread.tid),
                Cell::text_or_null(process),
                Cell::text_or_null(&thread.name),
                Cell::Text(&event.name),
                Cell::number(sample.period),
                sample
                    .stack
                    .map_or(Cell::Null, |stack| Cell::Signed(stack.into())),
            ])?;
        }
    }
    Ok(())
}

/// The stacks that samples have, each with its frames from the innermost, depth 0, to the outermost.
fn stacks(dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
    let profile = dataset.profile;
    let mut is_used = vec![false; profile.stacks.len()];
    for sample in profile.tracks.iter().flat_map(|track| &track.samples) {
        if let Some(is_used) = sample
            .stack
            .and_then(|stack| is_used.get_mut(stack as usize))
        {
            *is_used = true;
        }
    }
    let used = (0..).zip(is_used).filter(|(_, is_used)| *is_used);
    for (stack, _) in used {
        let mut depth = 0;
        let mut written = Ok(());
        profile.walk(Some(stack), |frame| {
            if written.is_ok() {
                written = sink(&[
                    Cell::Text(&dataset.recording.id),
                    Cell::Signed(stack.into()),
                    Cell::Signed(depth),
                    Cell::Signed(frame.into()),
                ]);
                depth += 1;
            }
        });
        written?;
    }
    Ok(())
}

fn frames(dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
    for (number, frame) in (0_i64..).zip(&dataset.profile.frames) {
        sink(&frame_cells(dataset, number, frame, &mut String::new()))?;
    }
    Ok(())
}

/// The row of a frame. `build_id` is an empty buffer for the text of the build-id.
fn frame_cells<'c>(
    dataset: &'c Dataset<'_>,
    number: i64,
    frame: &ProfileFrame,
    build_id: &'c mut String,
) -> [Cell<'c>; 11] {
    let profile = dataset.profile;
    let function = profile.functions.get(frame.function as usize);
    let object = function.and_then(|function| function.object);
    let object = object.and_then(|object| profile.objects.get(object as usize));
    if let Some(bytes) = object.and_then(|object| object.build_id.as_deref()) {
        *build_id = hex(bytes);
    }
    let source = frame
        .place
        .and_then(|place| profile.files.get(place.file as usize));
    let line = frame.place.map(|place| place.line).filter(|line| *line > 0);
    [
        Cell::Text(&dataset.recording.id),
        Cell::Signed(number),
        function.map_or(Cell::Null, |function| Cell::text_or_null(&function.name)),
        object.map_or(Cell::Null, |object| Cell::text_or_null(&object.name)),
        object.map_or(Cell::Null, |object| Cell::text_or_null(&object.path)),
        Cell::text_or_null(build_id),
        Cell::Text(match function.map(|function| function.kind) {
            Some(CodeKind::Kernel) => "kernel",
            Some(CodeKind::Jit) => "jit",
            Some(CodeKind::User) | None => "user",
        }),
        Cell::Unsigned(frame.address),
        Cell::Flag(frame.inline_depth > 0),
        source.map_or(Cell::Null, |file| Cell::text_or_null(file)),
        line.map_or(Cell::Null, |line| Cell::Signed(line.into())),
    ]
}

fn mappings(dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
    for mapping in &dataset.records.mappings {
        let build_id = mapping.build_id.as_deref().map(hex).unwrap_or_default();
        sink(&[
            Cell::Text(&dataset.recording.id),
            mapping.time.map_or(Cell::Null, Cell::number),
            Cell::id(mapping.pid),
            Cell::Unsigned(mapping.start),
            Cell::Unsigned(mapping.size),
            Cell::Unsigned(mapping.offset),
            Cell::text_or_null(&mapping.path),
            Cell::text_or_null(&build_id),
            mapping.is_executable.map_or(Cell::Null, Cell::Flag),
        ])?;
    }
    Ok(())
}

fn tasks(dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
    for task in &dataset.records.tasks {
        sink(&[
            Cell::Text(&dataset.recording.id),
            Cell::id(task.pid),
            Cell::id(task.tid),
            task.parent_pid.map_or(Cell::Null, Cell::id),
            Cell::text_or_null(&task.comm),
            task.started.map_or(Cell::Null, Cell::number),
            task.ended.map_or(Cell::Null, Cell::number),
        ])?;
    }
    Ok(())
}

fn losses(dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
    for loss in &dataset.records.losses {
        let event = loss
            .event
            .and_then(|event| dataset.profile.events.get(event as usize));
        sink(&[
            Cell::Text(&dataset.recording.id),
            loss.time.map_or(Cell::Null, Cell::number),
            Cell::id(loss.cpu),
            event.map_or(Cell::Null, |event| Cell::Text(&event.name)),
            Cell::Text(match loss.kind {
                LossKind::Records => "records",
                LossKind::Samples => "samples",
            }),
            Cell::number(loss.count),
        ])?;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
