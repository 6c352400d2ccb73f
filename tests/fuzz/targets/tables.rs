//! Vendor event tables: any bytes are parsed or reported, and any formula is evaluated or refused with a position in it.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use rperf_events::metric::{Expr, MetricCounts, MetricError};
use rperf_events::vendor::{TableFolder, load};

/// A folder with one table, and a mapfile whose first line maps every processor to it. The input is both the table and the rest
/// of the mapfile.
#[derive(Debug)]
struct TestFolder<'a>(&'a str);

impl TableFolder for TestFolder<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        match path {
            "mapfile.csv" => Ok(format!(".*,1,table.json,core\n{}", self.0)),
            "table.json" => Ok(self.0.to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(&self, path: &str) -> Vec<String> {
        match path {
            "" => vec!["mapfile.csv".to_owned(), "table.json".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// Every event has a count of one.
struct Ones;

impl MetricCounts for Ones {
    fn value(&self, _name: &str) -> Option<f64> {
        Some(1.0)
    }

    fn source_count(&self, _name: &str) -> Option<u32> {
        Some(1)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for cpuid in ["GenuineIntel-6-55-4", "0x00000000410fd0c0"] {
        let loaded = load(&TestFolder(&text), cpuid);
        for metric in loaded.tables.metrics() {
            let _parsed = Expr::parse(&metric.formula);
        }
    }
    match Expr::parse(&text) {
        Ok(formula) => {
            let mut missing = Vec::new();
            let _value = formula.value(&Ones, &mut missing);
        }
        Err(MetricError::Syntax { position, .. }) => {
            assert!(text.get(position.clone()).is_some(), "{position:?}");
        }
        Err(error) => panic!("{error}"),
    }
});
