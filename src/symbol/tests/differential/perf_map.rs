//! Symbols of perf maps with entries in any order, gaps and overlaps, compared with perf.

use std::fmt::Write as _;
use std::path::PathBuf;

use rperf_symbol::{ObjectKind, ObjectRequest, SearchPaths, load};

use crate::perf_data::{Mapping, PID, perf_is_here};
use crate::{Disk, assert_no_differences, differences, scratch};

const CODE: u64 = 0x7f00_0000_0000;

/// The path of a perf map; the file is removed on drop.
struct MapFile(PathBuf);

impl Drop for MapFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// The pseudorandom sequence of a seed.
fn pseudorandom(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |last| {
        Some(
            last.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407),
        )
    })
    .map(|value| value >> 33)
}

#[test]
fn overlapping_and_damaged_lines_have_perfs_symbols() {
    if !perf_is_here() {
        return;
    }
    let dir = scratch("perf-map");
    let map = MapFile(PathBuf::from(format!("/tmp/perf-{PID}.map")));
    for seed in 1..6 {
        let mut numbers = pseudorandom(seed);
        let mut text = String::from(
            "7f0000000000\n7f0000000000 10\n 0x7f0000000010 0x8 with spaces in it\n7f0000000100 80 ab\n",
        );
        for line in 0..300 {
            let start = CODE + numbers.next().unwrap_or_default() % 0x2000;
            let size = numbers.next().unwrap_or_default() % 0x80;
            writeln!(text, "{start:x} {size:x} code_{line}").expect("text is written");
        }
        std::fs::write(&map.0, text).expect("the map is written");
        let request = ObjectRequest::new(&map.0, ObjectKind::PerfMap);
        let loaded = load(&Disk, &SearchPaths::new(None), &request);
        let mapping = Mapping {
            kernel: false,
            start: CODE,
            len: 0x10000,
            // The same as `start`: a perf map has the addresses of the process, not offsets in a file.
            pgoff: CODE,
            name: "//anon",
        };
        let script_options: &[&str] = &[];
        let found = differences(&loaded, &dir, &mapping, script_options);
        assert_no_differences("perf map", &found);
    }
}
