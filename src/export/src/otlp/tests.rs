//! The encoded messages, as an independent decoder reads them. Numbers of fields are the tags in `proto.rs`.

use rperf_testkit::protobuf::{messages, number, packed, packed_fixed};

use super::*;
use crate::profile::{
    Process, ProfileFrame, ProfileFunction, ProfileLocation, ProfileObject, ProfileSample,
    ProfileStack, Thread, Track,
};

/// The only message of this field.
fn only(message: &[u8], field: u64) -> &[u8] {
    let values = messages(message, field);
    assert_eq!(values.len(), 1, "field {field} of {message:?}");
    values[0]
}

/// Two samples with the stack `main`, `work` and `inner` (inlined into `work`), and one sample without a stack. The id of the
/// thread is not recorded (`u32::MAX`). The event `page-faults` has no samples, and the function `schedule` no frames.
fn profile() -> Profile {
    let function = |name: &str, kind| ProfileFunction {
        name: name.to_owned(),
        object: (kind == CodeKind::User).then_some(0),
        kind,
        range: None,
    };
    let frame = |function, address, inline_depth| ProfileFrame {
        function,
        address,
        inline_depth,
        place: (inline_depth > 0).then_some(ProfileLocation { file: 0, line: 12 }),
    };
    let sample = |time, stack| ProfileSample {
        time,
        period: 1000 + time,
        stack,
        cpu: 1,
    };
    let called = |caller, frame| ProfileStack { caller, frame };
    Profile {
        events: vec![
            ProfileEvent {
                name: "page-faults".to_owned(),
                unit: PeriodUnit::Count,
            },
            ProfileEvent {
                name: "cpu-clock".to_owned(),
                unit: PeriodUnit::Nanoseconds,
            },
        ],
        objects: vec![ProfileObject {
            name: "a.out".to_owned(),
            path: "/bin/a.out".to_owned(),
            build_id: Some(vec![0xab, 1]),
        }],
        files: vec!["a.c".to_owned()],
        functions: vec![
            function("main", CodeKind::User),
            function("work", CodeKind::User),
            function("inner", CodeKind::User),
            function("schedule", CodeKind::Kernel),
        ],
        frames: vec![frame(0, 0x10, 0), frame(1, 0x30, 0), frame(2, 0x30, 1)],
        stacks: vec![called(None, 0), called(Some(0), 1), called(Some(1), 2)],
        processes: vec![Process {
            pid: 7,
            name: "a.out".to_owned(),
        }],
        threads: vec![Thread {
            pid: 7,
            tid: u32::MAX,
            name: "worker".to_owned(),
        }],
        tracks: vec![Track {
            thread: 0,
            event: 1,
            samples: vec![
                sample(100, Some(2)),
                sample(150, None),
                sample(220, Some(2)),
            ],
        }],
    }
}

fn encoded() -> Vec<u8> {
    encode(
        &profile(),
        &OtlpRecording {
            id: "web1-100-4096",
            start: 5_000_000_000,
            resource: vec![("host.name", "web1".to_owned())],
            exporter: ("rperf", "0.1"),
        },
    )
}

/// Key and value of the attributes with these indices.
fn attributes(data: &[u8], indices: &[u64]) -> Vec<String> {
    let dictionary = only(data, 2);
    let strings = messages(dictionary, 5);
    let table = messages(dictionary, 6);
    let index = |number: u64| usize::try_from(number).expect("an index");
    let pairs = indices.iter().map(|attribute| {
        let attribute = table[index(*attribute)];
        let key = String::from_utf8_lossy(strings[index(number(attribute, 1))]);
        let value = only(attribute, 2);
        match messages(value, 1).first() {
            Some(text) => format!("{key}={}", String::from_utf8_lossy(text)),
            None => format!("{key}={}", number(value, 3)),
        }
    });
    pairs.collect()
}

#[test]
fn each_event_with_samples_is_a_profile() {
    let data = encoded();
    let resource_profiles = only(&data, 1);
    let host = only(only(resource_profiles, 1), 1);
    assert_eq!(
        (only(host, 1), only(only(host, 2), 1)),
        (&b"host.name"[..], &b"web1"[..])
    );
    let scope_profiles = only(resource_profiles, 2);
    let scope = only(scope_profiles, 1);
    assert_eq!(
        (only(scope, 1), only(scope, 2)),
        (&b"rperf"[..], &b"0.1"[..])
    );
    let profile = only(scope_profiles, 2);
    let strings = messages(only(&data, 2), 5);
    let string = |number: u64| strings[usize::try_from(number).expect("an index")];
    let kind = only(profile, 1);
    assert_eq!(string(number(kind, 1)), b"cpu-clock");
    assert_eq!(string(number(kind, 2)), b"nanoseconds");
    // The time of the first sample, and the time from it to the last one.
    assert_eq!(
        (number(profile, 3), number(profile, 4)),
        (5_000_000_000, 120)
    );
    // The mean of the samples' periods.
    assert_eq!(number(profile, 6), (1100 + 1150 + 1220) / 3);
    assert_eq!(only(profile, 7).len(), 16);
    // A second encoding has the same profile id.
    assert_eq!(
        only(profile, 7),
        only(only(only(only(&encoded(), 1), 2), 2), 7)
    );
    // The two recorded samples with the same stack are one message with two times.
    let samples = messages(profile, 2);
    assert_eq!(samples.len(), 2);
    // The sample without a stack refers to stack 0.
    assert_eq!(
        (number(samples[0], 1), packed(samples[0], 4)),
        (0, vec![1150])
    );
    assert_eq!(packed(samples[1], 4), [1100, 1220]);
    assert_eq!(packed_fixed(samples[1], 5), [5_000_000_000, 5_000_000_120]);
    assert_eq!(
        attributes(&data, &packed(samples[1], 2)),
        [
            "process.pid=7",
            "process.executable.name=a.out",
            "thread.name=worker",
            "cpu.logical_number=1"
        ]
    );
}

#[test]
fn a_stack_leads_to_functions_files_and_lines() {
    let data = encoded();
    let dictionary = only(&data, 2);
    let index = |number: u64| usize::try_from(number).expect("an index");
    let strings = messages(dictionary, 5);
    let string = |number: u64| String::from_utf8_lossy(strings[index(number)]).into_owned();
    // Entry 0 of each table is empty.
    for table in 1..=7 {
        assert_eq!(messages(dictionary, table)[0], b"", "table {table}");
    }
    let stack = messages(dictionary, 7)[1];
    let locations = messages(dictionary, 2);
    let printed: Vec<String> = packed(stack, 1)
        .into_iter()
        .map(|location| {
            let location = locations[index(location)];
            let lines = messages(location, 3).into_iter().map(|line| {
                let function = messages(dictionary, 3)[index(number(line, 1))];
                format!(
                    "{} {}:{}",
                    string(number(function, 1)),
                    string(number(function, 3)),
                    number(line, 2)
                )
            });
            format!(
                "{:x} {}",
                number(location, 2),
                lines.collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    assert_eq!(printed, ["30 inner a.c:12, work :0", "10 main :0"]);
    let location = locations[1];
    assert_eq!(
        attributes(&data, &packed(location, 4)),
        ["profile.frame.type=native"]
    );
    let mapping = messages(dictionary, 1)[index(number(location, 1))];
    assert_eq!(string(number(mapping, 4)), "/bin/a.out");
    // The end of the mapping is not known here; it is taken to be just above the highest address of the object's frames.
    assert_eq!(number(mapping, 2), 0x31);
    assert_eq!(
        attributes(&data, &packed(mapping, 5)),
        ["process.executable.build_id.gnu=ab01"]
    );
}

#[test]
fn rejections_and_warnings_are_read_from_the_answer() {
    assert_eq!(rejection(b""), None);
    // An empty `partial_success`.
    assert_eq!(rejection(&[0x0a, 0]), None);
    // 2 rejected profiles, and the message "full".
    let answer = [0x0a, 8, 8, 2, 0x12, 4, b'f', b'u', b'l', b'l'];
    let expected = "2 profiles rejected: full".to_owned();
    assert_eq!(rejection(&answer), Some(expected));
    // Cannot be decoded.
    assert_eq!(rejection(b"no message"), None);
    // The message of a rejection is not a warning.
    assert_eq!(warning(&answer), None);
    // No rejected profiles, only the message "slow".
    let accepted = [0x0a, 6, 0x12, 4, b's', b'l', b'o', b'w'];
    assert_eq!(rejection(&accepted), None);
    assert_eq!(warning(&accepted), Some("slow".to_owned()));
}
