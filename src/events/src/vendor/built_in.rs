//! Built-in tables for machines without vendor tables: events and metrics that all processors of a vendor have (Intel, AMD
//! since Zen, 64-bit Arm). Skylake and its successors with the same core also have events of loads, stores and uops, and
//! level 1 of the top-down method.

use std::io;

use super::document::Document;
use super::metric::DEFAULT_TOPIC;
use super::{TableFolder, VendorMetric};

/// The files by path, sorted: [`BuiltIn::names`] needs the files of a folder to follow each other.
const FILES: [(&str, &str); 6] = [
    (
        "arm64/architectural/pipeline.json",
        include_str!("../../tables/arm64/architectural/pipeline.json"),
    ),
    (
        "arm64/mapfile.csv",
        include_str!("../../tables/arm64/mapfile.csv"),
    ),
    (
        "x86/amd/pipeline.json",
        include_str!("../../tables/x86/amd/pipeline.json"),
    ),
    (
        "x86/architectural/pipeline.json",
        include_str!("../../tables/x86/architectural/pipeline.json"),
    ),
    (
        "x86/mapfile.csv",
        include_str!("../../tables/x86/mapfile.csv"),
    ),
    (
        "x86/skylake/pipeline.json",
        include_str!("../../tables/x86/skylake/pipeline.json"),
    ),
];

/// Metrics of generic events, named as in perf's tables for all architectures (`common/metrics.json`).
const DEFAULT_METRICS: &str = include_str!("../../tables/common/metrics.json");

/// The PMU given to all default metrics, also to those of hardware events: every machine has it, so they are listed on every
/// machine.
const SOFTWARE: &str = "software";

/// Returns the metrics that do not need vendor tables: rates of software events and generic hardware
/// events, in the groups `Default` to `Default4`.
#[must_use]
pub fn default_metrics() -> Vec<VendorMetric> {
    // The file is part of the program, and a test parses it.
    let rows = Document::parse(DEFAULT_METRICS).unwrap_or_default().rows;
    let metrics = rows
        .iter()
        .filter_map(|row| VendorMetric::of_row(row, DEFAULT_TOPIC, Some(SOFTWARE)));
    metrics.collect()
}

/// The folder of built-in tables.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn;

impl TableFolder for BuiltIn {
    fn read(&self, path: &str) -> io::Result<String> {
        let found = FILES.iter().find(|(name, _)| *name == path);
        let (_, text) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok((*text).to_owned())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let mut names = Vec::new();
        for (file, _) in FILES {
            let inside = match path {
                "" => Some(file),
                folder => file
                    .strip_prefix(folder)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            let Some(inside) = inside else { continue };
            names.push(match inside.split_once('/') {
                Some((subfolder, _)) => format!("{subfolder}/"),
                None => inside.to_owned(),
            });
        }
        names.dedup();
        names
    }
}
