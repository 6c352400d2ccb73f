//! Loads a processor's tables from a folder.

use std::collections::HashMap;

use super::document::Document;
use super::folder::join;
use super::mapfile::{Entry, entries};
use super::row::Row;
use super::topic::topic;
use super::{TableFinding, TableFolder, VendorEvent, VendorMetric, VendorTables, arm};

const MAPFILE: &str = "mapfile.csv";
/// The maximum depth of folders searched for a mapfile: enough for `arch/x86` of perf's tree.
const DEPTH: usize = 2;
/// The maximum depth of folders inside the folder of a processor.
const NESTING: usize = 4;

/// Result of loading.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadedTables {
    /// Events and metrics; empty if there are none for this processor.
    pub tables: VendorTables,
    /// Unusable parts.
    pub findings: Vec<TableFinding>,
}

/// Loads the tables of the processor with this CPUID string (`GenuineIntel-6-55-4`, `0x00000000410fd0c0`). Errors
/// become findings. Arm's layout is only tried if no mapfile leads to events.
#[must_use]
pub fn load(folder: &dyn TableFolder, cpuid: &str) -> LoadedTables {
    let mut loader = Loader {
        folder,
        standard: HashMap::new(),
        events: Vec::new(),
        metrics: Vec::new(),
        findings: Vec::new(),
    };
    for subfolder in loader.mapfile_folders() {
        loader.load_mapfile(&subfolder, cpuid);
    }
    if let Some(processor) = arm::processor(cpuid).filter(|_| loader.events.is_empty()) {
        loader.load_arm(processor);
    }
    LoadedTables {
        tables: VendorTables::new(loader.events, loader.metrics),
        findings: loader.findings,
    }
}

struct Loader<'a> {
    folder: &'a dyn TableFolder,
    /// Events that the files of an architecture refer to (`ArchStdEvent`), by lower-case name.
    standard: HashMap<String, Row>,
    events: Vec<VendorEvent>,
    metrics: Vec<VendorMetric>,
    findings: Vec<TableFinding>,
}

impl Loader<'_> {
    /// Returns the folders with a mapfile, in breadth-first order; their subfolders are not searched.
    fn mapfile_folders(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut level = vec![String::new()];
        for _ in 0..=DEPTH {
            let mut next = Vec::new();
            for subfolder in level {
                let names = self.folder.names(&subfolder);
                if names.iter().any(|name| name == MAPFILE) {
                    found.push(subfolder);
                } else {
                    let folders = names.iter().filter(|name| name.ends_with('/'));
                    next.extend(folders.map(|name| join(&subfolder, name)));
                }
            }
            level = next;
        }
        found
    }

    /// Loads the files and folders that a mapfile lists for the processor.
    fn load_mapfile(&mut self, subfolder: &str, cpuid: &str) {
        let path = join(subfolder, MAPFILE);
        let Some(text) = self.read(&path) else {
            return;
        };
        let entries = entries(&path, &text, cpuid, &mut self.findings);
        if !entries.is_empty() {
            self.load_standard_events(subfolder);
        }
        for entry in entries {
            self.load_entry(subfolder, &entry);
        }
    }

    /// Loads the file or folder that an entry of a mapfile names.
    fn load_entry(&mut self, subfolder: &str, entry: &Entry) {
        let pmu = match entry.role.as_deref() {
            Some("Core") => Some("cpu_core"),
            Some("Atom") => Some("cpu_atom"),
            _ => None,
        };
        let path = join(subfolder, &entry.path);
        // In perf's layout an entry names a folder, in Intel's a file.
        if !entry.path.ends_with(".json") {
            self.load_folder(&path, pmu, NESTING);
            return;
        }
        match entry.contents.as_str() {
            // Retire latencies of events (`:R` in metrics): the file defines no events.
            "retire latency" => {}
            "metrics" => self.load_file(&perf_metrics(&path), "metrics", pmu),
            // Other contents, such as `core`, are the topic of the file's events.
            contents => self.load_file(&path, contents, pmu),
        }
    }

    /// Loads the JSON files of a folder and of its subfolders, up to `nesting` levels deep.
    fn load_folder(&mut self, path: &str, pmu: Option<&str>, nesting: usize) {
        for name in self.folder.names(path) {
            let inner = join(path, &name);
            if name.ends_with('/') && nesting > 0 {
                self.load_folder(&inner, pmu, nesting - 1);
            } else if name.ends_with(".json") {
                self.load_file(&inner, &topic(&name), pmu);
            }
        }
    }

    /// Loads a JSON file; `pmu` is used for rows without a unit, or with the unit `cpu`.
    fn load_file(&mut self, path: &str, topic: &str, pmu: Option<&str>) {
        let Some(document) = self.document(path) else {
            return;
        };
        if document.has_intel_metrics {
            let reason = "metrics in Intel's own format are not supported; the folder 'metrics/perf' of Intel's tables has them in perf's format";
            self.findings.push(TableFinding::new(path, None, reason));
        }
        for row in &document.rows {
            let row = self.completed(row, path);
            match VendorEvent::of_row(&row, topic, pmu) {
                Ok(event) => self.events.extend(event),
                Err(unusable) => self.findings.push(unusable.at(path)),
            }
            self.metrics.extend(VendorMetric::of_row(&row, topic, pmu));
        }
    }

    /// Completes a row with the fields of the standard event it refers to. An undefined standard event becomes a finding.
    fn completed<'r>(&mut self, row: &'r Row, path: &str) -> std::borrow::Cow<'r, Row> {
        let Some(name) = row.text("ArchStdEvent") else {
            return std::borrow::Cow::Borrowed(row);
        };
        match self.standard.get(&name.to_lowercase()) {
            Some(base) => std::borrow::Cow::Owned(row.over(base)),
            None => {
                let reason = "no file of the architecture defines this ArchStdEvent";
                self.findings
                    .push(TableFinding::new(path, Some(name.to_owned()), reason));
                std::borrow::Cow::Borrowed(row)
            }
        }
    }

    /// Replaces the standard events with those in the files next to a mapfile.
    fn load_standard_events(&mut self, subfolder: &str) {
        self.standard.clear();
        for name in self.folder.names(subfolder) {
            if !name.ends_with(".json") {
                continue;
            }
            let document = self.document(&join(subfolder, &name)).unwrap_or_default();
            for row in document.rows {
                let name = row.text("EventName").map(str::to_lowercase);
                self.standard.extend(name.map(|name| (name, row)));
            }
        }
    }

    /// Loads the files of a processor in Arm's layout: from the folder itself, its `pmu`, and the `pmu` of its other subfolders.
    fn load_arm(&mut self, processor: u64) {
        let mut subfolders = vec![String::new(), "pmu".to_owned()];
        let folders = self.folder.names("").into_iter();
        let folders = folders.filter(|name| name.ends_with('/') && name != "pmu/");
        // The inner `join` removes the slash at the end of the name.
        subfolders.extend(folders.map(|name| join(&join("", &name), "pmu")));
        for subfolder in subfolders {
            for name in self.folder.names(&subfolder) {
                if !name.ends_with(".json") {
                    continue;
                }
                let path = join(&subfolder, &name);
                let document = self.document(&path).unwrap_or_default();
                let cpuid = document.cpuid.as_deref();
                if cpuid.is_some_and(|cpuid| arm::is_of(cpuid, processor)) {
                    // Arm's files have no topics: all events get the topic `core`.
                    let events = arm::events(&path, &document.rows, "core", &mut self.findings);
                    self.events.extend(events);
                }
            }
        }
    }

    fn document(&mut self, path: &str) -> Option<Document> {
        let text = self.read(path)?;
        let parsed = Document::parse(&text);
        let parsed = parsed.map_err(|error| TableFinding::new(path, None, error.to_string()));
        parsed.map_err(|finding| self.findings.push(finding)).ok()
    }

    fn read(&mut self, path: &str) -> Option<String> {
        let text = self.folder.read(path);
        let text = text.map_err(|error| TableFinding::new(path, None, error.to_string()));
        text.map_err(|finding| self.findings.push(finding)).ok()
    }
}

/// Returns the path of the file that has the metrics of `path` in perf's format: in Intel's tables
/// `X/metrics/perf/NAME_perf.json` for `X/metrics/NAME.json`. A path of such a file is returned unchanged.
fn perf_metrics(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = name.strip_suffix(".json").unwrap_or(name);
    match name.ends_with("_perf") {
        true => path.to_owned(),
        false => join(folder, &format!("perf/{name}_perf.json")),
    }
}
