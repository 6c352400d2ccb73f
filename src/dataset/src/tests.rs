//! Tables of a made-up recording, in both formats.

use std::collections::BTreeMap;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use rperf_export::{
    CodeKind, PeriodUnit, Process, Profile, ProfileEvent, ProfileFrame, ProfileFunction,
    ProfileObject, ProfileSample, ProfileStack, Thread, Track,
};

use crate::{
    Dataset, LossKind, LossRow, MappingRow, RecordRows, RecordingInfo, TABLES, TaskRow, ndjson,
    parquet,
};

/// Two samples of `work`, called by `main`, and one without a stack.
fn profile() -> Profile {
    let function = |name: &str| ProfileFunction {
        name: name.to_owned(),
        object: Some(0),
        kind: CodeKind::User,
        range: None,
    };
    let frame = |function, address| ProfileFrame {
        function,
        address,
        inline_depth: 0,
        place: None,
    };
    let sample = |time, stack| ProfileSample {
        time,
        period: 1000,
        stack,
        cpu: 1,
    };
    Profile {
        events: vec![ProfileEvent {
            name: "cpu-clock".to_owned(),
            unit: PeriodUnit::Nanoseconds,
        }],
        objects: vec![ProfileObject {
            name: "a.out".to_owned(),
            path: "/bin/a.out".to_owned(),
            build_id: Some(vec![0xab, 1]),
        }],
        functions: vec![function("main"), function("work")],
        frames: vec![frame(0, 0x10), frame(1, u64::MAX)],
        stacks: vec![
            ProfileStack {
                caller: None,
                frame: 0,
            },
            ProfileStack {
                caller: Some(0),
                frame: 1,
            },
        ],
        processes: vec![Process {
            pid: 7,
            name: "a\"b".to_owned(),
        }],
        threads: vec![Thread {
            pid: 7,
            tid: 8,
            name: "thread".to_owned(),
        }],
        tracks: vec![Track {
            thread: 0,
            event: 0,
            samples: vec![
                sample(100, Some(1)),
                sample(200, Some(1)),
                sample(300, None),
            ],
        }],
        ..Profile::default()
    }
}

fn records() -> RecordRows {
    RecordRows {
        mappings: vec![MappingRow {
            time: None,
            // `u32::MAX`: a mapping of the kernel, so that the row has no process.
            pid: u32::MAX,
            start: 0xffff_ffff_8000_0000,
            size: 4096,
            offset: 0,
            path: "[kernel.kallsyms]_text".to_owned(),
            build_id: None,
            is_executable: Some(true),
        }],
        tasks: vec![TaskRow {
            pid: 7,
            tid: 8,
            parent_pid: Some(1),
            comm: "thread".to_owned(),
            started: Some(90),
            ended: None,
        }],
        losses: vec![LossRow {
            time: Some(250),
            cpu: 1,
            event: Some(0),
            kind: LossKind::Records,
            count: 12,
        }],
    }
}

fn dataset(profile: &Profile) -> Dataset<'_> {
    Dataset {
        recording: RecordingInfo {
            id: "web1-100-4096".to_owned(),
            host: "web1".to_owned(),
            start: 1_000_000,
            has_clock: true,
            ..RecordingInfo::default()
        },
        profile,
        records: records(),
    }
}

#[test]
fn ndjson_has_a_line_per_row() {
    let profile = profile();
    let mut out = Vec::new();
    ndjson::write(&dataset(&profile), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let expected = r#"{"table":"recordings","recording":"web1-100-4096","schema":1,"hostname":"web1","first_time":100,"last_time":300,"wall_start":1000000,"has_clock":true}
{"table":"events","recording":"web1-100-4096","event":"cpu-clock","unit":"nanoseconds","samples":3,"period":3000}
{"table":"samples","recording":"web1-100-4096","time":100,"wall_time":1000000,"cpu":1,"pid":7,"tid":8,"process":"a\"b","comm":"thread","event":"cpu-clock","period":1000,"stack":1}
{"table":"samples","recording":"web1-100-4096","time":200,"wall_time":1000100,"cpu":1,"pid":7,"tid":8,"process":"a\"b","comm":"thread","event":"cpu-clock","period":1000,"stack":1}
{"table":"samples","recording":"web1-100-4096","time":300,"wall_time":1000200,"cpu":1,"pid":7,"tid":8,"process":"a\"b","comm":"thread","event":"cpu-clock","period":1000}
{"table":"stacks","recording":"web1-100-4096","stack":1,"depth":0,"frame":1}
{"table":"stacks","recording":"web1-100-4096","stack":1,"depth":1,"frame":0}
{"table":"frames","recording":"web1-100-4096","frame":0,"function":"main","object":"a.out","path":"/bin/a.out","build_id":"ab01","kind":"user","address":16,"inlined":false}
{"table":"frames","recording":"web1-100-4096","frame":1,"function":"work","object":"a.out","path":"/bin/a.out","build_id":"ab01","kind":"user","address":18446744073709551615,"inlined":false}
{"table":"mappings","recording":"web1-100-4096","start":18446744071562067968,"size":4096,"offset":0,"path":"[kernel.kallsyms]_text","executable":true}
{"table":"tasks","recording":"web1-100-4096","pid":7,"tid":8,"parent_pid":1,"comm":"thread","started":90}
{"table":"losses","recording":"web1-100-4096","time":250,"cpu":1,"event":"cpu-clock","kind":"records","count":12}
"#;
    assert_eq!(text, expected);
}

/// Returns the rows of a Parquet file, each as a map from column name to value in JSON, without nulls: the members of the row's
/// NDJSON object, except `table`.
fn rows_of(bytes: Vec<u8>) -> Vec<BTreeMap<String, String>> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let objects = rows.map(|row| {
        let cells = row
            .get_column_iter()
            .filter(|(_, field)| **field != Field::Null);
        let cells = cells.map(|(name, field)| {
            let value = match field {
                Field::Str(text) => serde_json::to_string(text).unwrap(),
                field => field.to_string(),
            };
            (name.clone(), value)
        });
        cells.collect()
    });
    objects.collect()
}

#[test]
fn parquet_has_the_cells_of_ndjson() {
    let profile = profile();
    let dataset = dataset(&profile);
    let mut text = Vec::new();
    ndjson::write(&dataset, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for table in &TABLES {
        let start = format!("{{\"table\":\"{}\"", table.name);
        let lines = text.lines().filter(|line| line.starts_with(&start));
        let expected = lines.map(|line| {
            let object: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(line).unwrap();
            let cells = object.into_iter().filter(|(name, _)| name != "table");
            cells
                .map(|(name, value)| (name, value.to_string()))
                .collect()
        });
        let expected: Vec<BTreeMap<String, String>> = expected.collect();
        assert!(
            !expected.is_empty(),
            "{} has no row in this test",
            table.name
        );
        let mut bytes = Vec::new();
        parquet::write(table, &dataset, &mut bytes).unwrap();
        assert_eq!(rows_of(bytes), expected, "{}", table.name);
    }
}

#[test]
fn rows_beyond_a_row_group_are_written() {
    let mut profile = profile();
    let row_count = 251;
    profile.tracks[0].samples = (0..row_count)
        .map(|time| ProfileSample {
            time,
            period: time % 7,
            stack: (time % 3 > 0).then_some(1),
            // `u32::MAX`: not recorded, so that the row has no CPU.
            cpu: if time % 5 == 0 { u32::MAX } else { 2 },
        })
        .collect();
    let samples = TABLES.iter().find(|table| table.name == "samples").unwrap();
    let mut bytes = Vec::new();
    let group_rows = 100;
    parquet::write_groups(samples, &dataset(&profile), &mut bytes, group_rows).unwrap();
    let written = rows_of(bytes);
    assert_eq!(written.len() as u64, row_count);
    for (time, row) in written.iter().enumerate() {
        assert_eq!(row["time"], time.to_string());
        assert_eq!(row["period"], (time % 7).to_string());
        assert_eq!(row.contains_key("stack"), time % 3 > 0, "{time}");
        assert_eq!(row.contains_key("cpu"), time % 5 > 0, "{time}");
    }
}
