//! Every tracepoint of this machine, compared with the installed perf.

use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use rperf_testkit::{Scratch, real_perf, skip};

use super::perf_file::{Sample, build, pad};
use crate::{Abi, Format, NoSymbols, PrintContext, PrintFmt, PrintkFormats};

/// Maximum number of events in a file: perf is slow if there are many.
const BATCH: usize = 100;

/// A tracepoint listed by tracefs.
struct TracefsEvent {
    system: String,
    format_text: String,
    format: Format,
}

impl TracefsEvent {
    fn name(&self) -> String {
        format!("{}:{}", self.system, self.format.name)
    }
}

/// Content of the fields of a record, with two exceptions: dynamic data are always random; and numbers with `len` in their name,
/// which may be lengths, are random below 32, unless they get one of the numbers of [`Fill::Small`] or [`Fill::Addresses`].
#[derive(Debug, Clone, Copy)]
enum Fill {
    Zeros,
    /// Bytes with all bits set.
    Ones,
    /// Random bytes, from a seed.
    Random(u64),
    /// Random numbers below 48, from a seed.
    Small(u64),
    /// Addresses of strings in `printk_formats` in fields of 8 bytes, zeros in the others.
    Addresses,
}

/// A deterministic generator of pseudorandom numbers (`xorshift64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Reads a file of tracefs. `header_page` returns everything to the first read and nothing to later
/// ones, so the small first read of `fs::read` would truncate it.
fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    let mut bytes = vec![0; 1 << 16];
    let mut length = 0;
    loop {
        let count = file.read(bytes.get_mut(length..)?).ok()?;
        if count == 0 {
            bytes.truncate(length);
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        length += count;
        bytes.resize(length + (1 << 16), 0);
    }
}

fn tracefs() -> Option<PathBuf> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let mut places = places.into_iter().map(PathBuf::from);
    places.find(|place| place.join("events/sched").exists())
}

/// All tracepoints that perf can record: those with an id.
fn tracepoints(tracefs: &Path) -> Vec<TracefsEvent> {
    let mut tracepoints = Vec::new();
    for system in fs::read_dir(tracefs.join("events"))
        .expect("events")
        .flatten()
    {
        let Ok(events) = fs::read_dir(system.path()) else {
            continue;
        };
        for event in events.flatten() {
            if !event.path().join("id").exists() {
                continue;
            }
            let text = read(event.path().join("format")).expect("format");
            let long_size = 8;
            let format =
                Format::parse(&text, long_size).unwrap_or_else(|error| panic!("{error}:\n{text}"));
            let system = system.file_name().to_string_lossy().into_owned();
            tracepoints.push(TracefsEvent {
                system,
                format_text: text,
                format,
            });
        }
    }
    tracepoints.sort_by_key(TracefsEvent::name);
    tracepoints
}

/// Number of zero bytes after each record: perf prints as many bytes as a length field specifies, even
/// beyond the end of the record.
const TAIL: usize = 64;

fn raw_record(format: &Format, fill: Fill, addresses: &[u64]) -> Vec<u8> {
    let fields = || format.common_fields.iter().chain(&format.fields);
    let size = fields().map(|field| field.offset + field.size).max();
    let mut raw = vec![0; size.unwrap_or(8).next_multiple_of(8)];
    let mut random = match fill {
        Fill::Random(seed) | Fill::Small(seed) => Random(seed ^ format.id << 20),
        // A seed of 0 would give only zeros.
        Fill::Zeros | Fill::Ones | Fill::Addresses => Random(format.id << 7 | 1),
    };
    for byte in raw.iter_mut() {
        match fill {
            Fill::Random(_) => *byte = random.next() as u8,
            Fill::Ones => *byte = 0xff,
            Fill::Zeros | Fill::Small(_) | Fill::Addresses => {}
        }
    }
    // The common fields are 0, except `common_type`.
    raw[..8].fill(0);
    raw[..2].copy_from_slice(&(format.id as u16).to_ne_bytes());
    for field in &format.fields {
        if field.is_dynamic {
            let length = match fill {
                Fill::Small(_) => random.next() as usize % 4 * 8,
                _ => 16,
            };
            let mut start = raw.len();
            for index in 0..length {
                let is_end = field.is_string && index + 1 == length;
                raw.push(match (field.is_string, is_end) {
                    (true, true) => 0,
                    (true, false) => b'a' + (random.next() % 26) as u8,
                    _ => random.next() as u8,
                });
            }
            if field.is_relative {
                start -= field.offset + field.size;
            }
            let word = (length << 16 | start) as u32;
            raw[field.offset..field.offset + 4].copy_from_slice(&word.to_ne_bytes());
        } else if matches!(field.size, 1 | 2 | 4 | 8) {
            let value = match fill {
                Fill::Small(_) => random.next() % 48,
                Fill::Addresses if field.size == 8 && !addresses.is_empty() => {
                    addresses[random.next() as usize % addresses.len()]
                }
                // Probably a length: perf prints as many bytes as it specifies.
                _ if field.name.contains("len") => random.next() % 32,
                _ => continue,
            };
            let mut bytes = value.to_le_bytes();
            if cfg!(target_endian = "big") {
                bytes[..field.size].reverse();
            }
            raw[field.offset..field.offset + field.size].copy_from_slice(&bytes[..field.size]);
        }
    }
    raw.resize(raw.len() + TAIL, 0);
    pad(&mut raw);
    raw
}

/// Compares the text of records of the machine's tracepoints with perf's.
struct Comparison {
    perf: PathBuf,
    scratch: Scratch,
    tracepoints: Vec<TracefsEvent>,
    /// `header_page`, `header_event` and `printk_formats`.
    tracefs_files: [String; 3],
}

impl Comparison {
    fn new(perf: PathBuf, tracefs: &Path) -> Self {
        let names = [
            "events/header_page",
            "events/header_event",
            "printk_formats",
        ];
        Self {
            perf,
            scratch: Scratch::new(),
            tracepoints: tracepoints(tracefs),
            tracefs_files: names.map(|name| read(tracefs.join(name)).unwrap_or_default()),
        }
    }

    /// Addresses of the strings in `printk_formats`.
    fn addresses(&self) -> Vec<u64> {
        let [_, _, printk] = &self.tracefs_files;
        let lines = printk.lines();
        lines
            .filter_map(|line| u64::from_str_radix(line.split_once(" : ")?.0.get(2..)?, 16).ok())
            .collect()
    }

    fn samples(&self, fill: Fill) -> Vec<Sample> {
        let addresses = self.addresses();
        let samples = self.tracepoints.iter().map(|tracepoint| Sample {
            system: tracepoint.system.clone(),
            format_text: tracepoint.format_text.clone(),
            tracepoint_id: tracepoint.format.id,
            raw: raw_record(&tracepoint.format, fill, &addresses),
        });
        samples.collect()
    }

    /// The text that perf prints for each sample; `None` if perf fails.
    fn perf_texts(&self, samples: &[Sample]) -> Vec<Option<Vec<u8>>> {
        let mut texts = Vec::new();
        for start in (0..samples.len()).step_by(BATCH) {
            let end = samples.len().min(start + BATCH);
            match self.perf_batch(samples, start..end) {
                Some(batch) => texts.extend(batch.into_iter().map(Some)),
                // If perf fails on one record, the texts of the others in the batch are missing too: print each by itself.
                None => {
                    texts.extend((start..end).map(|at| self.perf_batch(samples, at..at + 1)?.pop()))
                }
            }
        }
        texts
    }

    /// The texts that perf prints for a file of the samples in `range`, which is also the range of their tracepoints; `None` if
    /// perf fails or does not print all events.
    fn perf_batch(&self, samples: &[Sample], range: Range<usize>) -> Option<Vec<Vec<u8>>> {
        let [page, event, printk] = &self.tracefs_files;
        let file = build(&samples[range.clone()], [page, event, printk]);
        let file = self.scratch.write("perf.data", file).expect("scratch file");
        let mut perf = Command::new(&self.perf);
        perf.args(["script", "-f", "-F", "event,trace", "-i"])
            .arg(file);
        let output = perf.env("PERF_CONFIG", "/dev/null").output();
        let output = output.expect("perf script");
        let names = self.tracepoints[range].iter().map(TracefsEvent::name);
        let is_success = output.status.success();
        is_success.then(|| split(&output.stdout, names)).flatten()
    }

    /// The records whose text differs from perf's, unless only by signs ([`differs_only_in_sign`]), with both texts.
    fn differences(&self, fill: Fill) -> Vec<String> {
        let [_, _, printk] = &self.tracefs_files;
        let printk = PrintkFormats::parse(printk);
        let context = PrintContext {
            symbols: &NoSymbols,
            printk: &printk,
        };
        let samples = self.samples(fill);
        let texts = self.perf_texts(&samples);
        let mut differences = Vec::new();
        for ((tracepoint, sample), text) in self.tracepoints.iter().zip(&samples).zip(texts) {
            let mut ours = Vec::new();
            PrintFmt::compile(&tracepoint.format, Abi::NATIVE).write(
                &sample.raw,
                &context,
                &mut ours,
            );
            let ours = ours.trim_ascii_end();
            let perf = text.unwrap_or_else(|| b"(perf died)".to_vec());
            if ours != perf {
                let (perf, ours) = (
                    String::from_utf8_lossy(&perf),
                    String::from_utf8_lossy(ours),
                );
                if differs_only_in_sign(&perf, &ours) {
                    continue;
                }
                let name = tracepoint.name();
                differences.push(format!("{name} {fill:?}\n  perf: {perf}\n  ours: {ours}"));
            }
        }
        differences
    }
}

/// Whether the only differences are negative numbers of 8 or 16 bits, which perf prints as
/// unsigned.
fn differs_only_in_sign(perf: &str, ours: &str) -> bool {
    let (perf, ours) = (perf.split(' '), ours.split(' '));
    let number = |word: &str| word.trim_end_matches(',').parse::<i32>().ok();
    let is_same_but_sign = |theirs: &str, own: &str| match (number(theirs), number(own)) {
        (Some(theirs), Some(own)) => own < 0 && [256, 65536].contains(&(theirs - own)),
        _ => false,
    };
    perf.clone().count() == ours.clone().count()
        && perf
            .zip(ours)
            .all(|(theirs, own)| theirs == own || is_same_but_sign(theirs, own))
}

/// Splits perf's output at the events' names. Texts may contain newlines, so a record ends at the
/// next name.
fn split(output: &[u8], names: impl Iterator<Item = String>) -> Option<Vec<Vec<u8>>> {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut text_start = 0;
    for (index, name) in names.enumerate() {
        let heading = format!("{name}: ").into_bytes();
        let rest = output.get(text_start..)?;
        let heading_start = text_start
            + rest
                .windows(heading.len())
                .position(|bytes| bytes == heading)?;
        if index > 0 {
            let text = output.get(text_start..heading_start)?;
            texts.push(text.trim_ascii_end().to_vec());
        }
        text_start = heading_start + heading.len();
    }
    texts.push(output.get(text_start..)?.trim_ascii_end().to_vec());
    Some(texts)
}

#[test]
fn all_tracepoints_read_as_in_perf() {
    let test = "all_tracepoints_read_as_in_perf";
    let Some(perf) = real_perf() else {
        return skip(test, "no perf");
    };
    let Some(tracefs) = tracefs() else {
        return skip(test, "tracefs is not mounted or cannot be read");
    };
    let comparison = Comparison::new(perf, &tracefs);
    let fills = [
        Fill::Zeros,
        Fill::Ones,
        Fill::Random(0x9e37_79b9_7f4a_7c15),
        Fill::Random(0xbf58_476d_1ce4_e5b9),
        Fill::Small(0x94d0_49bb_1331_11eb),
        Fill::Small(0x2545_f491_4f6c_dd1d),
        Fill::Addresses,
    ];
    let differences = fills
        .into_iter()
        .flat_map(|fill| comparison.differences(fill));
    let differences: Vec<_> = differences.collect();
    assert!(
        differences.is_empty(),
        "{} differences over {} tracepoints:\n{}",
        differences.len(),
        comparison.tracepoints.len(),
        differences.join("\n")
    );
    // A kernel has many hundreds: if there are at most 100, not all were found.
    assert!(comparison.tracepoints.len() > 100, "few tracepoints here");
}
