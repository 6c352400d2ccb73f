//! Writes perf.data files with one mapping and samples at given addresses, and reads perf's symbols for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use rperf_testkit::{FileAttr, PerfFile};

/// The process of all samples and user mappings: near the maximum of process ids, so that hardly any real process has it. Its
/// perf map is `/tmp/perf-4194000.map`.
pub(crate) const PID: u32 = 4_194_000;

/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_SAMPLE_IP | PERF_SAMPLE_TID`.
const SAMPLE_IP_TID: u64 = 3;

/// A mapping, as in its MMAP record.
pub(crate) struct Mapping<'a> {
    pub(crate) kernel: bool,
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) pgoff: u64,
    pub(crate) name: &'a str,
}

/// The symbol found for an address, and the offset of the address in it.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct FoundSymbol {
    pub(crate) name: String,
    pub(crate) offset: u64,
}

/// Whether perf 6.1, the reference, is available; prints why not.
pub(crate) fn perf_is_here() -> bool {
    let version = Command::new("perf").arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    match version {
        Ok(version) if version.contains("version 6.1.") => true,
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

/// Returns perf's symbol at each of `addresses`; `options` are passed to `perf script`.
pub(crate) fn perf_symbols_at(
    dir: &Path,
    mapping: &Mapping<'_>,
    addresses: &[u64],
    options: &[&str],
) -> Vec<Option<FoundSymbol>> {
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

/// Parses a line such as ` 7f00 name+0x10` or ` 7f00 [unknown]`: the address, and its symbol.
fn parse_line(line: &str) -> (u64, Option<FoundSymbol>) {
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
        Some(FoundSymbol {
            name: name.to_owned(),
            offset,
        }),
    )
}

fn write_file(dir: &Path, mapping: &Mapping<'_>, addresses: &[u64]) -> PathBuf {
    // The process and thread of the mapping; the kernel's has process -1 and thread 0, as perf writes it.
    let (misc, pid, tid) = match mapping.kernel {
        true => (PerfFile::KERNEL, u32::MAX, 0),
        false => (PerfFile::USER, PID, PID),
    };
    let mut file = PerfFile::new();
    let attr = FileAttr {
        kind: SOFTWARE,
        period: 1,
        sample_type: SAMPLE_IP_TID,
        ..FileAttr::default()
    };
    let no_ids: &[u64] = &[];
    file.event(&attr, no_ids);
    let map = file.bytes().u32(pid).u32(tid).u64(mapping.start);
    let map = map.u64(mapping.len).u64(mapping.pgoff);
    // Padded with NULs to a multiple of 8 bytes.
    let map = map.text(mapping.name, 8).done();
    file.record(PerfFile::MMAP, misc, map);
    for address in addresses {
        let sample = file.bytes().u64(*address).u32(PID).u32(PID);
        file.record(PerfFile::SAMPLE, misc, sample.done());
    }
    let path = dir.join("perf.data");
    std::fs::write(&path, file.finish()).expect("the recording is written");
    path
}
