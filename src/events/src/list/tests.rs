use rperf_wire::EventType;

use super::*;
use crate::parse::tests::{Listed, catalogue};

/// The rows of a machine that opens everything and has no PMU.
fn listed(word: &str) -> Vec<Row> {
    listed_in(&Catalogue::default(), word)
}

fn listed_in(catalogue: &Catalogue<'_>, word: &str) -> Vec<Row> {
    let sources = Sources {
        catalogue,
        opens: &|_| true,
        marks: &|| {
            let marks = ["sdt_kitchen:cook", "sdt_kitchen:eat@/bin/a(12)"];
            marks.map(str::to_owned).into()
        },
    };
    Listing::new(&Wanted::new(word), sources).rows
}

fn names(rows: &[Row]) -> Vec<String> {
    let shown = rows.iter().map(|row| match &row.alias {
        Some(alias) => format!("{} OR {alias}", row.name),
        None => row.name.clone(),
    });
    shown.collect()
}

#[test]
fn hardware_events_stand_under_both_names() {
    let rows = listed("hw");
    let expected = [
        "branch-instructions OR branches",
        "branch-misses",
        "bus-cycles",
        "cache-misses",
        "cache-references",
        "cpu-cycles OR cycles",
        "instructions",
        "ref-cycles",
        "stalled-cycles-backend OR idle-cycles-backend",
        "stalled-cycles-frontend OR idle-cycles-frontend",
    ];
    assert_eq!(names(&rows), expected);
    // They are found by either.
    for word in ["branches", "branch-instr"] {
        let config = listed(word).first().and_then(|row| row.config);
        assert_eq!(config, Some((EventType::HARDWARE, 4)), "{word}");
    }
}

#[test]
fn cache_events_are_what_parsing_takes() {
    let rows = listed("cache");
    assert!(rows.is_sorted_by(|left, right| left.name < right.name));
    let tlb: Vec<String> = names(&listed("iTLB"));
    assert_eq!(tlb, ["iTLB-load-misses", "iTLB-loads"]);
    let misses = rows.iter().find(|row| row.name == "LLC-store-misses");
    let config = misses.and_then(|row| row.config);
    assert_eq!(config, Some((EventType::HW_CACHE, 0x1_0102)));
}

#[test]
fn marks_are_found_by_their_own_name() {
    let all = ["sdt_kitchen:cook", "sdt_kitchen:eat@/bin/a(12)"];
    assert_eq!(names(&listed("sdt")), all);
    assert_eq!(names(&listed("sdt_*:eat")), all[1..]);
    assert_eq!(names(&listed("sdt_*:bin")), [""; 0]);
    assert_eq!(names(&listed("COOK")), [""; 0]);
    let lower = Wanted::new("COOK").in_any_case().expect("a name");
    assert!(lower.takes_name("cook"));
    assert_eq!(Wanted::new("sw").in_any_case(), None);
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_there() {
    let catalogue = Catalogue::default();
    let sources = Sources {
        catalogue: &catalogue,
        opens: &|attr| attr.kind == EventType::SOFTWARE,
        marks: &Vec::new,
    };
    let listing = Listing::new(&Wanted::All, sources);
    let kinds: Vec<Kind> = listing.rows.iter().map(|row| row.kind).collect();
    assert!(!kinds.contains(&Kind::Hardware) && !kinds.contains(&Kind::Cache));
    assert_eq!(kinds.last(), Some(&Kind::Breakpoint));
    let why = listing.untraced.expect("there is no tracefs");
    assert_eq!(why.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_system_that_is_taken_away_meanwhile_takes_no_other_with_it() {
    let rows = listed_in(&catalogue(&Listed), "tracepoint");
    let systems = rows.iter().filter_map(|row| row.name.split(':').next());
    let systems: std::collections::BTreeSet<&str> = systems.collect();
    assert_eq!(Vec::from_iter(systems), ["sched", "syscalls"]);
}
