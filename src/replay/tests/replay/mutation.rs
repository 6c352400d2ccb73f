//! Valid recordings that are damaged in many ways, and truncated at many places.

use std::fs;
use std::time::{Duration, Instant};

use rperf_perfdata::{FileFinding, PerfData};
use rperf_testkit::recording_candidates;
use rperf_wire::Endian;

use crate::damage::recording;
use crate::exercise::exercise;
use crate::stream::piped;

/// Number of damaged copies of each seed; the environment variable `RPERF_MUTATIONS` overrides it.
const MUTATIONS: u64 = 15;
/// The maximum size of seeds from files, in bytes.
const MAX_FILE_BYTES: u64 = 32 << 10;
/// The time limit for a damaged file of up to [`MAX_FILE_BYTES`], in an unoptimised build.
const MAX_ROUND_TIME: Duration = Duration::from_secs(10);

/// Generated recordings of both byte orders and in pipe mode, and the files of up to [`MAX_FILE_BYTES`] that
/// [`recording_candidates`] finds, each with a name. The generated ones have six samples.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for endian in [Endian::Little, Endian::Big] {
        seeds.push((format!("generated, {endian:?}"), recording(endian, 6)));
    }
    let (stream, _) = piped(&recording(Endian::Little, 6));
    seeds.push(("generated, in pipe mode".to_owned(), stream));
    for path in recording_candidates(MAX_FILE_BYTES) {
        let bytes = fs::read(&path).expect("a file that was listed");
        seeds.push((path.display().to_string(), bytes));
    }
    seeds
}

/// A pseudorandom number generator (xorshift64).
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit as u64).max(1)).expect("below a size")
    }
}

/// Numbers that are critical for sizes, counts and offsets.
const NUMBERS: [u64; 10] = [
    0,
    1,
    7,
    8,
    0x7f,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 62,
    u64::MAX,
];

fn mutate(bytes: &mut Vec<u8>, random: &mut RandomNumbers) {
    let at = random.below(bytes.len());
    let length = random.below(64).min(bytes.len() - at);
    match random.below(8) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = u8::try_from(random.below(256)).expect("a byte"),
        2..=4 => {
            let width = [1, 2, 4, 8][random.below(4)];
            let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
            let at = at / width * width;
            for (to, from) in bytes.iter_mut().skip(at).zip(&number[..width]) {
                *to = *from;
            }
        }
        5 => {
            bytes.drain(at..at + length);
        }
        6 => {
            let from = random.below(bytes.len() - length + 1);
            bytes.copy_within(from..from + length, at);
        }
        _ => bytes.truncate(at),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment sets the number of runs"
)]
fn mutations() -> u64 {
    let given = std::env::var("RPERF_MUTATIONS").ok();
    given
        .and_then(|text| text.parse().ok())
        .unwrap_or(MUTATIONS)
}

#[test]
fn damaged_recordings_are_read_or_refused_in_time() {
    for (name, seed) in seeds() {
        for round in 1..=mutations() {
            let mut random = RandomNumbers(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut bytes = seed.clone();
            for _ in 0..=random.below(6) {
                if !bytes.is_empty() {
                    mutate(&mut bytes, &mut random);
                }
            }
            let begun = Instant::now();
            let panicked = std::panic::catch_unwind(|| exercise(&bytes)).is_err();
            assert!(!panicked, "round {round} of {name} panics");
            let took = begun.elapsed();
            assert!(
                took < MAX_ROUND_TIME,
                "round {round} of {name} takes {took:?}"
            );
        }
    }
}

/// A truncated file that lost samples has a finding or an error; a pipe-mode stream may have neither, as any record may be its
/// last one.
#[test]
fn truncated_recordings_are_refused_or_reported() {
    // Larger seeds take too long. Crash inputs of fuzzers are damaged already. `parse` below refuses files without a header, such
    // as `data.0` of a directory recording.
    let is_usable =
        |(name, bytes): &(String, Vec<u8>)| bytes.len() < 10_000 && !name.contains("fuzz");
    let seeds = seeds().into_iter().filter(is_usable);
    for (name, bytes) in seeds.filter(|(_, bytes)| PerfData::parse(bytes).is_ok()) {
        let complete = exercise(&bytes).expect("a recording").samples;
        // Recordings of up to 1000 bytes are truncated at every byte, larger ones at 500 to 1000 places.
        let step = bytes.len().div_ceil(1000);
        for end in (0..bytes.len()).step_by(step) {
            let truncated = &bytes[..end];
            let Some(outcome) = exercise(truncated) else {
                let error = PerfData::parse(truncated).expect_err("no recording");
                assert!(!error.to_string().is_empty());
                continue;
            };
            assert!(outcome.samples <= complete, "{name} truncated at {end}");
            let data = PerfData::parse(truncated).expect("a recording");
            // `outcome.end` is the error that ended the replay.
            let is_reported = outcome.end.is_some() || !data.findings().is_empty();
            let lost = outcome.samples < complete;
            assert!(
                is_reported || !lost || data.header().is_pipe(),
                "{name} truncated at {end}"
            );
            if let [FileFinding::DataTruncated { need, have, .. }, ..] = data.findings() {
                assert!(have < need);
            }
        }
    }
}
