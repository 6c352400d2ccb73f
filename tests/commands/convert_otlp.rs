//! `rperf data convert --to-otlp` and `--otlp`: profiles as an independent decoder reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::read::GzDecoder;
use rperf_testkit::protobuf::{messages, number, packed, packed_fixed, text};
use rperf_testkit::{HttpResponse, HttpServer, Scratch};

use super::convert::{convert, converted, recorded};
use super::folded_parser::{Folded, parse};

/// The profiles of a request or a file. Literal arguments of the functions of `protobuf` and of [`Otlp::entry`] are field numbers
/// of the OTLP messages.
struct Otlp<'d> {
    data: &'d [u8],
    strings: Vec<&'d [u8]>,
}

impl<'d> Otlp<'d> {
    fn new(data: &'d [u8]) -> Self {
        let dictionary = messages(data, 2)[0];
        let strings = messages(dictionary, 5);
        Self { data, strings }
    }

    fn string(&self, index: u64) -> String {
        String::from_utf8_lossy(self.strings[at(index)]).into_owned()
    }

    /// The entry at `index` of a table of the dictionary; `table` is the table's field number.
    fn entry(&self, table: u64, index: u64) -> &'d [u8] {
        messages(messages(self.data, 2)[0], table)[at(index)]
    }

    fn profiles(&self) -> Vec<&'d [u8]> {
        let resource_profiles = messages(self.data, 1)[0];
        messages(messages(resource_profiles, 2)[0], 2)
    }

    /// Attributes of a sample by name.
    fn attributes(&self, sample: &[u8]) -> BTreeMap<String, String> {
        let numbers = packed(sample, 2).into_iter();
        let attributes = numbers.map(|index| {
            let attribute = self.entry(6, index);
            let value = messages(attribute, 2)[0];
            let value_text = match messages(value, 1).is_empty() {
                true => number(value, 3).to_string(),
                false => text(value, 1),
            };
            (self.string(number(attribute, 1)), value_text)
        });
        attributes.collect()
    }

    /// Function names of a sample's stack, innermost first.
    fn stack(&self, sample: &[u8]) -> Vec<String> {
        let locations = packed(self.entry(7, number(sample, 1)), 1).into_iter();
        let lines = locations.flat_map(|location| messages(self.entry(2, location), 3));
        lines
            .map(|line| {
                let function = self.entry(3, number(line, 1));
                self.string(number(function, 1))
            })
            .collect()
    }

    /// The stacks of a profile and the number of samples of each, as `--to-folded` writes them. An OTLP sample contains several
    /// samples of the recording: it has a time and a period for each.
    fn folded(&self, profile: &[u8]) -> Folded {
        let mut folded = Folded::new();
        for sample in messages(profile, 2) {
            let thread = self.attributes(sample)["thread.name"].replace(' ', "_");
            let mut frames = self.stack(sample);
            frames.push(thread);
            frames.reverse();
            let count = packed_fixed(sample, 5).len();
            assert_eq!(packed(sample, 4).len(), count);
            *folded.entry(frames.join(";")).or_default() += count as u64;
        }
        folded
    }
}

fn at(index: u64) -> usize {
    usize::try_from(index).expect("an index")
}

#[test]
fn profiles_have_the_stacks_of_folded_output() {
    for chains in [&["-g"][..], &["--call-graph", "dwarf"], &[]] {
        let scratch = Scratch::new();
        let event = ["-F", "1999", "-e", "cpu-clock:u", "-k", "mono"];
        recorded(&scratch, &[&event, chains].concat());
        let folded = converted(&scratch, "folded", &[]);
        let expected = parse(&String::from_utf8_lossy(&folded));
        let data = converted(&scratch, "otlp", &[]);
        let otlp = Otlp::new(&data);
        let [profile] = otlp.profiles()[..] else {
            panic!("one event, one profile");
        };
        assert_eq!(otlp.folded(profile), expected, "{chains:?}");
        // The type of the profile's samples is the event.
        assert_eq!(
            otlp.string(number(messages(profile, 1)[0], 1)),
            "cpu-clock:u"
        );
        // The start is the time of the first sample in ns since 1970, and the duration ends at the last one. The times in the
        // recording are since boot (`-k mono`): a start after 2019 shows that they were converted.
        let (start, duration) = (number(profile, 3), number(profile, 4));
        let samples = messages(profile, 2);
        let times = samples.iter().flat_map(|sample| packed_fixed(sample, 5));
        assert_eq!(times.clone().min(), Some(start));
        assert_eq!(times.max(), Some(start + duration));
        assert!(start > 1_577_836_800_000_000_000, "{start}");
    }
}

#[test]
fn samples_have_threads_and_files_have_build_ids() {
    let scratch = Scratch::new();
    recorded(
        &scratch,
        &["-e", "cpu-clock:u,page-faults:u", "--sample-cpu"],
    );
    let ndjson = String::from_utf8(converted(&scratch, "ndjson", &[])).expect("text");
    let data = converted(&scratch, "otlp", &[]);
    let otlp = Otlp::new(&data);
    let profiles = otlp.profiles();
    assert_eq!(profiles.len(), 2);
    // The sum of periods by event, process, thread and CPU: in the `samples` table of the NDJSON, and in the profiles.
    let mut expected: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for line in ndjson.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        if row["table"] == "samples" {
            let names =
                ["event", "process", "comm"].map(|key| row[key].as_str().expect("text").to_owned());
            let ids = ["pid", "tid", "cpu"].map(|key| row[key].to_string());
            let period = row["period"].as_u64().expect("a number");
            *expected.entry([names, ids].concat()).or_default() += period;
        }
    }
    let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for profile in &profiles {
        let event = otlp.string(number(messages(profile, 1)[0], 1));
        for sample in messages(profile, 2) {
            let attributes = otlp.attributes(sample);
            let keys = [
                "process.executable.name",
                "thread.name",
                "process.pid",
                "thread.id",
                "cpu.logical_number",
            ];
            let values = keys.map(|key| attributes[key].clone());
            let key = [std::slice::from_ref(&event), &values[..]].concat();
            *sums.entry(key).or_default() += packed(sample, 4).iter().sum::<u64>();
        }
    }
    assert_eq!(sums, expected);
    let key = b"process.executable.build_id.gnu";
    assert!(otlp.strings.iter().any(|text| text == key));
}

#[test]
fn a_collector_that_is_busy_is_asked_again() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-g", "-e", "cpu-clock:u"]);
    let attempts = AtomicUsize::new(0);
    let collector = HttpServer::start(move |_| match attempts.fetch_add(1, Ordering::Relaxed) {
        0 => HttpResponse::Status(503),
        _ => HttpResponse::content(Vec::new()),
    });
    let collector = collector.expect("a server");
    let url = collector.url();
    let outcome = convert(&scratch, &["--otlp", &url]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let service = "/v1development/profiles";
    let warning =
        format!("{url}{service}: answered with status 503 in 1 attempt; trying again in 0.5 s\n");
    assert!(outcome.stderr.contains(&warning), "{outcome:?}");
    assert!(
        outcome
            .stderr
            .contains(&format!("into OTLP data '{url}' ]")),
        "{outcome:?}"
    );
    assert_eq!(collector.requested_paths(), [service, service]);
    let bodies = collector.request_bodies();
    assert_eq!(bodies[0], bodies[1]);
    let mut sent = Vec::new();
    GzDecoder::new(&bodies[1][..])
        .read_to_end(&mut sent)
        .expect("gzip");
    assert_eq!(convert(&scratch, &["--to-otlp", "file"]).status, 0);
    let file = fs::read(scratch.path().join("file")).expect("a file");
    assert!(
        sent == file,
        "the request and the file have the same message"
    );
}

#[test]
fn refusals_by_a_collector_and_invalid_urls_are_reported() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-e", "cpu-clock:u"]);
    let collector = HttpServer::start(|path| match path {
        // `partial_success` with `rejected_profiles` 2 and `error_message` "full".
        "/full/v1development/profiles" => {
            HttpResponse::content(vec![0x0a, 8, 8, 2, 0x12, 4, b'f', b'u', b'l', b'l'])
        }
        _ => HttpResponse::Status(404),
    });
    let collector = collector.expect("a server");
    let url = collector.url();
    let outcome = convert(&scratch, &["--otlp", &url]);
    let message = format!(
        "{url}/v1development/profiles: answered with status 404\nhint: the server has no profiles service"
    );
    assert_eq!(outcome.status, 255, "{outcome:?}");
    assert!(outcome.stderr.contains(&message), "{outcome:?}");
    let outcome = convert(&scratch, &["--otlp", &format!("{url}/full")]);
    assert_eq!(outcome.status, 255, "{outcome:?}");
    assert!(
        outcome.stderr.contains("2 profiles rejected: full"),
        "{outcome:?}"
    );
    let outcome = convert(&scratch, &["--otlp", "localhost:4318"]);
    let message = "--otlp: 'localhost:4318' is not an http:// or https:// address\n";
    assert_eq!(outcome.status, 129);
    assert!(outcome.stderr.starts_with(message), "{outcome:?}");
}
