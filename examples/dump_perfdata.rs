//! Lists the events of a perf.data file and counts its records by type.
//!
//! `cargo run --example dump_perfdata -- perf.data`
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use rperf_perfdata::PerfData;

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).unwrap_or("perf.data".into());
    let bytes = rperf_sys::map_file(Path::new(&path)).context(path.clone())?;
    let data = PerfData::parse(&bytes).context(path)?;

    for event in data.events() {
        println!("event {} with {} ids", event.name, event.ids.len());
    }
    let mut counts = BTreeMap::new();
    for record in data.records() {
        *counts.entry(record?.raw.kind).or_insert(0_u64) += 1;
    }
    for (kind, count) in counts {
        println!("{count:>10} {kind}");
    }
    Ok(())
}
