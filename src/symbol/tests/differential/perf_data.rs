//! Writes perf.data files that hold nothing but one mapping and samples at chosen addresses, and asks perf for
//! the symbols of these.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The process that all mappings and samples belong to. perf maps of it are `/tmp/perf-4194000.map`.
pub(crate) const PID: u32 = 4_194_000;

const RECORD_MMAP: u32 = 1;
const RECORD_SAMPLE: u32 = 9;
const MISC_KERNEL: u16 = 1;
const MISC_USER: u16 = 2;
const HEADER_SIZE: u64 = 104;
const ATTR_SIZE: u32 = 112;
const SAMPLE_IP_TID: u64 = 3;

/// One mapping, as its MMAP record says.
pub(crate) struct Mapping<'a> {
    pub(crate) kernel: bool,
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) pgoff: u64,
    pub(crate) name: &'a str,
}

/// What perf says of one address: name and offset in it.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Answer {
    pub(crate) name: String,
    pub(crate) offset: u64,
}

/// Whether perf 6.1, the reference, is here; the reason is printed where it isn't.
pub(crate) fn perf_is_here() -> bool {
    let version = Command::new("perf").arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    match version {
        Ok(version) if version.contains("version 6.1") => true,
        Ok(version) => {
            eprintln!(
                "skipped: the reference is perf 6.1, this is {}",
                version.trim()
            );
            false
        }
        Err(error) => {
            eprintln!("skipped: perf can't be run: {error}");
            false
        }
    }
}

/// Asks perf for the symbol at each of `addresses`; `options` go to `perf script`.
pub(crate) fn ask_perf(
    dir: &Path,
    mapping: &Mapping<'_>,
    addresses: &[u64],
    options: &[&str],
) -> Vec<Option<Answer>> {
    let path = write_file(dir, mapping, addresses);
    let output = Command::new("perf")
        .arg("--buildid-dir")
        .arg(dir.join("cache"))
        .args(["script", "-f", "-F", "ip,sym,symoff", "-i"])
        .arg(&path)
        .args(options)
        .output()
        .expect("perf runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let answers: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(parse_line)
        .collect();
    assert_eq!(
        answers.len(),
        addresses.len(),
        "perf: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    for ((ip, _), address) in answers.iter().zip(addresses) {
        assert_eq!(ip, address);
    }
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// ` 7f00 name+0x10` or ` 7f00 [unknown]`.
fn parse_line(line: &str) -> (u64, Option<Answer>) {
    let (ip, rest) = line
        .trim_start()
        .split_once(' ')
        .unwrap_or((line.trim(), ""));
    let ip = u64::from_str_radix(ip, 16).expect("an address");
    let rest = rest.trim_end();
    if rest.is_empty() || rest == "[unknown]" {
        return (ip, None);
    }
    let (name, offset) = rest.rsplit_once("+0x").expect("an offset");
    let offset = u64::from_str_radix(offset, 16).expect("an offset");
    (
        ip,
        Some(Answer {
            name: name.to_owned(),
            offset,
        }),
    )
}

fn write_file(dir: &Path, mapping: &Mapping<'_>, addresses: &[u64]) -> PathBuf {
    let misc = if mapping.kernel {
        MISC_KERNEL
    } else {
        MISC_USER
    };
    let owner = if mapping.kernel { u32::MAX } else { PID };
    let mut map = Vec::new();
    map.extend(owner.to_le_bytes());
    map.extend(if mapping.kernel { 0 } else { PID }.to_le_bytes());
    map.extend(words(&[mapping.start, mapping.len, mapping.pgoff]));
    map.extend(mapping.name.as_bytes());
    map.push(0);
    map.resize(map.len().next_multiple_of(8), 0);

    let mut data = record(RECORD_MMAP, misc, &map);
    for address in addresses {
        let mut sample = address.to_le_bytes().to_vec();
        sample.extend(PID.to_le_bytes());
        sample.extend(PID.to_le_bytes());
        data.extend(record(RECORD_SAMPLE, misc, &sample));
    }

    let mut file = b"PERFILE2".to_vec();
    let attrs = u64::from(ATTR_SIZE) + 16;
    let data_start = HEADER_SIZE + attrs;
    let header = [
        HEADER_SIZE,
        attrs,
        HEADER_SIZE,
        attrs,
        data_start,
        data.len() as u64,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    file.extend(words(&header));
    let mut attr = 1u32.to_le_bytes().to_vec();
    attr.extend(ATTR_SIZE.to_le_bytes());
    attr.extend(words(&[0, 1, SAMPLE_IP_TID]));
    attr.resize(attrs as usize, 0);
    file.extend(attr);
    file.extend(data);
    let path = dir.join("perf.data");
    std::fs::write(&path, file).expect("the recording is written");
    path
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(body.len() + 8).expect("a short record");
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(body);
    bytes
}

fn words(fields: &[u64]) -> impl Iterator<Item = u8> {
    fields.iter().flat_map(|field| field.to_le_bytes())
}
