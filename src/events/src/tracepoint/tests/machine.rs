//! Every tracepoint of this machine, printed by the perf that is installed and by us.

use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use rperf_wire::Endian;

use super::perf_file::{Sample, build, pad};
use crate::tracepoint::{Context, Format, Machine, NoSymbols, PrintFmt, PrintkFormats};

const HERE: Machine = Machine {
    endian: Endian::NATIVE,
    long_size: size_of::<usize>() as u8,
};
/// Events in one file: perf slows down with many.
const BATCH: usize = 100;

/// A tracepoint as tracefs lists it.
struct Tracepoint {
    system: String,
    text: String,
    format: Format,
}

impl Tracepoint {
    fn name(&self) -> String {
        format!("{}:{}", self.system, self.format.name)
    }
}

/// What the fields of a record are filled with.
#[derive(Debug, Clone, Copy)]
enum Fill {
    Zeros,
    Ones,
    Random(u64),
    Small(u64),
    /// Pointers to strings that the kernel exports.
    Addresses,
}

/// A small generator of numbers that are the same in every run (`xorshift64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Reads a file of tracefs. `header_page` gives everything to the first read and nothing to a
/// second one, so a small first read, as `fs::read` does, would cut it.
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

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

fn tracefs() -> Option<PathBuf> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let mut places = places.into_iter().map(PathBuf::from);
    places.find(|place| place.join("events/sched").exists())
}

fn has_perf() -> bool {
    let version = Command::new("perf").arg("--version").output();
    version.is_ok_and(|version| version.stdout.starts_with(b"perf version 6.1"))
}

/// All tracepoints that perf can record: those with an id.
fn tracepoints(tracefs: &Path) -> Vec<Tracepoint> {
    let mut found = Vec::new();
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
            let format = Format::parse(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
            let system = system.file_name().to_string_lossy().into_owned();
            found.push(Tracepoint {
                system,
                text,
                format,
            });
        }
    }
    found.sort_by_key(Tracepoint::name);
    found
}

/// Zeros behind each record: perf shows as many bytes as a length field says, even from behind.
const TAIL: usize = 64;

fn raw_record(format: &Format, fill: Fill, addresses: &[u64]) -> Vec<u8> {
    let fields = || format.common_fields.iter().chain(&format.fields);
    let size = fields().map(|field| field.offset + field.size).max();
    let mut raw = vec![0; size.unwrap_or(8).next_multiple_of(8)];
    let mut random = match fill {
        Fill::Random(seed) | Fill::Small(seed) => Random(seed ^ format.id << 20),
        Fill::Zeros | Fill::Ones | Fill::Addresses => Random(format.id << 7 | 1),
    };
    for byte in raw.iter_mut() {
        match fill {
            Fill::Random(_) => *byte = random.next() as u8,
            Fill::Ones => *byte = 0xff,
            Fill::Zeros | Fill::Small(_) | Fill::Addresses => {}
        }
    }
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

/// What perf prints for each sample, in order. `None` if it dies over the file.
fn perf_output(file: &Path, names: &[String]) -> Option<Vec<Vec<u8>>> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-f", "-F", "event,trace", "-i"])
        .arg(file);
    let output = perf.env("PERF_CONFIG", "/dev/null").output();
    let output = output.expect("perf script");
    if !output.status.success() {
        return None;
    }
    let output = output.stdout;
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut from = 0;
    for (index, name) in names.iter().enumerate() {
        // A text may hold newlines, so the next event's name is what ends it.
        let wanted = format!("{name}: ").into_bytes();
        let rest = output.get(from..)?;
        let found = from
            + rest
                .windows(wanted.len())
                .position(|bytes| bytes == wanted)?;
        if index > 0 {
            texts.push(output.get(from..found)?.trim_ascii_end().to_vec());
        }
        from = found + wanted.len();
    }
    texts.push(output.get(from..)?.trim_ascii_end().to_vec());
    Some(texts)
}

#[test]
fn all_tracepoints_read_as_in_perf() {
    let Some(tracefs) = tracefs().filter(|_| has_perf()) else {
        return skip("needs tracefs and perf 6.1");
    };
    let tracepoints = tracepoints(&tracefs);
    let texts = [
        "events/header_page",
        "events/header_event",
        "printk_formats",
    ];
    let texts = texts.map(|name| read(tracefs.join(name)).unwrap_or_default());
    let printk = PrintkFormats::parse(&texts[2]);
    let addresses: Vec<_> = texts[2]
        .lines()
        .filter_map(|line| u64::from_str_radix(line.split_once(" : ")?.0.get(2..)?, 16).ok())
        .collect();
    let context = Context {
        symbols: &NoSymbols,
        printk: &printk,
    };
    let file = std::env::temp_dir().join(format!("rperf-tracepoints-{}", std::process::id()));
    let fills = [
        Fill::Zeros,
        Fill::Ones,
        Fill::Random(0x9e37_79b9_7f4a_7c15),
        Fill::Random(0xbf58_476d_1ce4_e5b9),
        Fill::Small(0x94d0_49bb_1331_11eb),
        Fill::Small(0x2545_f491_4f6c_dd1d),
        Fill::Addresses,
    ];
    let mut differences = Vec::new();
    let mut deaths = Vec::new();
    for fill in fills {
        let samples: Vec<_> = tracepoints
            .iter()
            .map(|tracepoint| Sample {
                system: tracepoint.system.clone(),
                format_text: tracepoint.text.clone(),
                id: tracepoint.format.id,
                raw: raw_record(&tracepoint.format, fill, &addresses),
            })
            .collect();
        let names: Vec<_> = tracepoints.iter().map(Tracepoint::name).collect();
        let perf = |range: Range<usize>| {
            let bytes = build(&samples[range.clone()], [&texts[0], &texts[1], &texts[2]]);
            fs::write(&file, bytes).expect("temporary file");
            perf_output(&file, &names[range])
        };
        let mut expected = Vec::new();
        for start in (0..samples.len()).step_by(BATCH) {
            let end = samples.len().min(start + BATCH);
            match perf(start..end) {
                Some(texts) => expected.extend(texts.into_iter().map(Some)),
                // One record that kills perf hides the others.
                None => expected.extend((start..end).map(|at| perf(at..at + 1)?.pop())),
            }
        }
        for ((tracepoint, sample), expected) in tracepoints.iter().zip(&samples).zip(expected) {
            let mut ours = Vec::new();
            PrintFmt::compile(&tracepoint.format, HERE).write(&sample.raw, &context, &mut ours);
            let ours = ours.trim_ascii_end();
            match expected {
                None => deaths.push(format!("{} {fill:?}", tracepoint.name())),
                Some(expected) if expected == ours => {}
                Some(expected) => differences.push(format!(
                    "{} {fill:?}\n  perf: {}\n  ours: {}",
                    tracepoint.name(),
                    String::from_utf8_lossy(&expected),
                    String::from_utf8_lossy(ours),
                )),
            }
        }
    }
    fs::remove_file(&file).ok();
    assert!(
        differences.is_empty() && deaths.is_empty(),
        "{} differences over {} tracepoints:\n{}\ndeaths {}",
        differences.len(),
        tracepoints.len(),
        differences.join("\n"),
        deaths.join("\n")
    );
}
