//! Synthetic tables in the layouts of the three publishers (perf's tree, Intel and Arm), and the built-in tables.

use std::collections::BTreeMap;
use std::io;

use proptest::prelude::*;

use super::{BuiltIn, LoadedTables, TableFolder, load, metric_groups};

/// Files by path.
#[derive(Debug, Default)]
struct MemoryFolder(BTreeMap<String, String>);

impl MemoryFolder {
    fn new(files: &[(&str, &str)]) -> Self {
        let files = files.iter();
        Self(
            files
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
        )
    }
}

impl TableFolder for MemoryFolder {
    fn read(&self, path: &str) -> io::Result<String> {
        let text = self.0.get(path).cloned();
        text.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let prefix = match path {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let inside = self.0.keys().filter_map(|name| name.strip_prefix(&prefix));
        let mut names: Vec<String> = inside
            .map(|name| match name.split_once('/') {
                Some((folder, _)) => format!("{folder}/"),
                None => name.to_owned(),
            })
            .collect();
        names.dedup();
        names
    }
}

fn event_names(loaded: &LoadedTables) -> Vec<&str> {
    let events = loaded.tables.events().iter();
    events.map(|event| event.name.as_str()).collect()
}

const HEADING: &str = "Family-model,Version,Filename,EventType\n";

#[test]
fn perfs_tree_is_read_with_its_common_files() {
    let map = format!("{HEADING}0x00000000410fd0c0,v1,arm/neoverse-n1,core\n");
    let folder = MemoryFolder::new(&[
        ("arch/arm64/mapfile.csv", &map),
        (
            "arch/arm64/common.json",
            r#"[{"EventName": "CPU_CYCLES", "EventCode": "0x11", "BriefDescription": "Cycle."}]"#,
        ),
        (
            "arch/arm64/arm/neoverse-n1/floating-point.json",
            r#"[{"ArchStdEvent": "CPU_CYCLES"}, {"ArchStdEvent": "NOSUCH"},
                {"EventName": "OWN", "EventCode": "0x80", "Unit": "CHA", "PerPkg": "1", "ScaleUnit": "64Bytes"}]"#,
        ),
        (
            "arch/arm64/arm/neoverse-n1/metrics.json",
            r#"[{"MetricName": "ipc", "MetricExpr": "a / b", "MetricGroup": "One;Two", "ScaleUnit": "100%"}]"#,
        ),
        ("arch/x86/mapfile.csv", HEADING),
    ]);
    let loaded = load(&folder, "0x00000000410fd0c0");
    assert_eq!(event_names(&loaded), ["cpu_cycles", "own"]);
    let [cycles] = loaded.tables.events_named("CPU_CYCLES") else {
        panic!("one of this name");
    };
    assert_eq!(
        (cycles.terms.as_str(), cycles.topic.as_str()),
        ("event=0x11", "floating point")
    );
    assert_eq!(
        (cycles.brief.as_deref(), &cycles.pmu),
        (Some("Cycle"), &None)
    );
    let [own] = loaded.tables.events_named("own") else {
        panic!("one of this name");
    };
    assert_eq!(
        (own.pmu.as_deref(), own.per_package),
        (Some("uncore_cha"), true)
    );
    assert_eq!(own.scale.as_ref().map(|scale| scale.factor), Some(64.0));
    let groups: Vec<&str> = metric_groups(loaded.tables.metrics()).into_keys().collect();
    assert_eq!(groups, ["One", "Two"]);
    assert_eq!(loaded.tables.metrics_for("two").len(), 1);
    let findings: Vec<String> = loaded.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        findings,
        [
            "arch/arm64/arm/neoverse-n1/floating-point.json: NOSUCH: no file of the architecture defines this ArchStdEvent"
        ]
    );
    assert!(load(&folder, "0x00000000410fd070").tables.is_empty());
}

#[test]
fn intels_tree_is_read_file_by_file() {
    let map = format!(
        "{HEADING}GenuineIntel-6-97,V1,/ADL/events/core.json,hybridcore,0x40,0x1,Core\n\
         GenuineIntel-6-97,V1,/ADL/events/atom.json,hybridcore,0x20,0x1,Atom\n\
         GenuineIntel-6-97,V1,/ADL/metrics/adl.json,metrics,0x40,0x1,Core\n\
         GenuineIntel-6-97,V1,/ADL/metrics/adl_retire_latency.json,retire latency,,,\n"
    );
    let folder = MemoryFolder::new(&[
        ("mapfile.csv", &map),
        (
            "ADL/events/core.json",
            r#"{"Header": {}, "Events": [{"EventName": "X.Y", "EventCode": "0x1"}]}"#,
        ),
        (
            "ADL/events/atom.json",
            r#"{"Header": {}, "Events": [{"EventName": "X.Y", "EventCode": "0x2"}]}"#,
        ),
        // Not read: the same metrics are next to it in perf's format. Files of type `retire latency` are not read either, so
        // `adl_retire_latency.json` need not exist.
        ("ADL/metrics/adl.json", r#"{"Metrics": []}"#),
        (
            "ADL/metrics/perf/adl_perf.json",
            r#"[{"MetricName": "m", "MetricExpr": "X.Y"}]"#,
        ),
    ]);
    let loaded = load(&folder, "GenuineIntel-6-97-2");
    assert_eq!(loaded.findings, []);
    let both = loaded.tables.events_named("x.y");
    let both: Vec<_> = both
        .iter()
        .map(|event| (event.pmu.as_deref(), event.terms.as_str()))
        .collect();
    assert_eq!(
        both,
        [
            (Some("cpu_atom"), "event=0x2"),
            (Some("cpu_core"), "event=0x1")
        ]
    );
    assert_eq!(
        loaded.tables.metric("M").unwrap().pmu.as_deref(),
        Some("cpu_core")
    );
}

#[test]
fn arm_files_are_selected_by_the_cpuid_in_them() {
    let folder = MemoryFolder::new(&[
        (
            "pmu/neoverse-n1.json",
            r#"{"cpuid": "0x41d0c", "events": [{"code": 8, "name": "INST_RETIRED", "description": "All"},
                {"code": 30, "name": "CHAIN", "for_driver": true}, {"name": "NOCODE"}]}"#,
        ),
        (
            "pmu/other.json",
            r#"{"cpuid": "0x41d0d", "events": [{"code": 1, "name": "X"}]}"#,
        ),
    ]);
    // Variant and revision don't matter.
    let loaded = load(&folder, "0x00000000413fd0c1");
    // CHAIN is reserved for the driver and omitted; NOCODE is the finding.
    assert_eq!(event_names(&loaded), ["inst_retired"]);
    assert_eq!(loaded.findings.len(), 1);
    assert!(load(&folder, "GenuineIntel-6-55-4").tables.is_empty());
}

#[test]
fn unusable_tables_are_named_and_the_rest_is_read() {
    let map =
        format!("{HEADING}GenuineIntel-6-1,V1,one,core\nGenuineIntel-6-1,V1,gone.json,core\n");
    let folder = MemoryFolder::new(&[
        ("mapfile.csv", &map),
        ("one/broken.json", "[\n{\"EventName\": \"A\",]"),
        (
            "one/odd.json",
            r#"[{"EventName": "A", "EventCode": "twelve"}, {"EventName": "B/C"}, {"EventName": "D", "EventCode": "0x2"}]"#,
        ),
    ]);
    let loaded = load(&folder, "GenuineIntel-6-1-0");
    assert_eq!(event_names(&loaded), ["d"]);
    let messages: Vec<String> = loaded.findings.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 4, "{messages:#?}");
    assert!(messages[0].starts_with("one/broken.json: ") && messages[0].contains("line 2 column"));
    assert_eq!(
        messages[1],
        "one/odd.json: a: `EventCode' is `twelve', which is not a number"
    );
    assert!(messages[2].starts_with("one/odd.json: b/c: the name contains a comma, slash, "));
    assert!(messages[3].starts_with("gone.json: "));
}

#[test]
fn built_in_tables_have_events_and_described_metrics() {
    // `min_events` is only a lower bound, as built-in files may gain events: for x86, their present number; for Arm, less.
    for (cpuid, event, min_events) in [
        ("GenuineIntel-6-55-4", "mem_load_retired.l3_hit", 24),
        ("GenuineIntel-6-97-2", "inst_retired.any", 9),
        ("AuthenticAMD-25-1-1", "ex_ret_instr", 5),
        ("0x00000000410fd0c0", "inst_retired", 24),
    ] {
        let loaded = load(&BuiltIn, cpuid);
        assert_eq!(loaded.findings, [], "{cpuid}");
        assert_eq!(loaded.tables.events_named(event).len(), 1, "{cpuid}");
        assert!(loaded.tables.metrics().len() >= 2, "{cpuid}");
        let event_count = loaded.tables.events().len();
        assert!(event_count >= min_events, "{cpuid}: {event_count}");
        assert!(
            loaded
                .tables
                .metrics()
                .iter()
                .all(|metric| metric.brief.is_some())
        );
    }
    assert!(load(&BuiltIn, "None-0-0").tables.is_empty());
}

/// Objects with fields of tables and arbitrary values.
fn row() -> impl Strategy<Value = serde_json::Value> {
    let key = prop::sample::select(vec![
        "EventName",
        "EventCode",
        "UMask",
        "UMaskExt",
        "Filter",
        "MSRIndex",
        "MSRValue",
        "Unit",
        "ExtSel",
        "MetricName",
        "MetricExpr",
        "ScaleUnit",
        "BriefDescription",
        "ArchStdEvent",
        "PEBS",
        "code",
        "name",
    ]);
    let value = prop_oneof![
        "[ -~é]{0,8}".prop_map(serde_json::Value::from),
        "0x[0-9a-f]{0,17}".prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
        Just(serde_json::json!([{}, 1])),
    ];
    prop::collection::btree_map(key, value, 0..8).prop_map(|pairs| serde_json::json!(pairs))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_table_is_read_or_reported(
        rows in prop::collection::vec(row(), 0..6),
        length in 0_usize..400,
        cpuid in "0x[0-9a-f]{16}|GenuineIntel-6-[0-9A-F]-1",
    ) {
        let complete = serde_json::Value::from(rows).to_string();
        let truncated: String = complete.chars().take(length).collect();
        // The truncated table also serves as lines of the mapfile.
        let map = format!("{HEADING}.*,1,t,core\n.*,1,complete.json,core\n{truncated}\n");
        let arm = format!("{{\"cpuid\": \"{cpuid}\", \"events\": {complete}}}");
        let mapped = MemoryFolder::new(&[
            ("mapfile.csv", &map),
            ("complete.json", &complete),
            ("t/truncated.json", &truncated),
            // Not a table of its own, as the mapfile does not list it: next to the mapfile, it defines the events to which
            // `ArchStdEvent` in the other tables refers.
            ("x.json", &complete),
        ]);
        let loaded = load(&mapped, &cpuid);
        let is_truncated = truncated.len() < complete.len();
        prop_assert!(!is_truncated || loaded.findings.iter().any(|finding| finding.file == "t/truncated.json"));
        for event in loaded.tables.events() {
            prop_assert!(loaded.tables.events_named(&event.name).contains(event));
        }
        // Loading the same rows in Arm's layout does not panic either.
        let _ = load(&MemoryFolder::new(&[("pmu/a.json", &arm)]), &cpuid);
    }
}
