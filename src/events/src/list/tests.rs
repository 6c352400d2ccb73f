use rperf_wire::EventType;

use super::*;
use crate::parse::tests::{FakeTracefs, catalogue};

fn listed(word: &str) -> Vec<ListedEvent> {
    listed_in(&Catalogue::default(), word)
}

fn listed_in(catalogue: &Catalogue<'_>, word: &str) -> Vec<ListedEvent> {
    let kernel_opens_all = |_: &Attr| true;
    let sources = ListSources {
        catalogue,
        opens: &kernel_opens_all,
        // Statically defined tracing (SDT) markers.
        markers: &|| {
            let markers = ["sdt_kitchen:cook", "sdt_kitchen:eat@/bin/a(12)"];
            markers.map(str::to_owned).into()
        },
    };
    EventList::new(&EventSelection::new(word), sources).rows
}

fn names(rows: &[ListedEvent]) -> Vec<String> {
    let names = rows.iter().map(|row| match &row.alias {
        Some(alias) => format!("{} OR {alias}", row.name),
        None => row.name.clone(),
    });
    names.collect()
}

#[test]
fn hardware_events_are_listed_under_both_names() {
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
    // Both names match: 4 is PERF_COUNT_HW_BRANCH_INSTRUCTIONS.
    for word in ["branches", "branch-instr"] {
        let config = listed(word).first().and_then(|row| row.config);
        assert_eq!(config, Some((EventType::HARDWARE, 4)), "{word}");
    }
}

#[test]
fn words_without_digits_are_parts_of_names_before_they_are_codes() {
    for word in ["read", "ref", "race", "rcb"] {
        let selection = EventSelection::new(word);
        assert!(
            matches!(selection, EventSelection::Named { .. }),
            "{word}: {selection:?}"
        );
    }
    assert!(names(&listed("ref")).contains(&"ref-cycles".to_owned()));
    // The interpretations of a word are tried in order: the code is the last one, if the word can be a code.
    let last = |word| EventSelection::interpretations(word).pop();
    assert_eq!(last("rcb"), Some(EventSelection::Code(0xcb)));
    assert!(matches!(
        last("reader"),
        Some(EventSelection::Named {
            case_sensitive: false,
            ..
        })
    ));
    assert_eq!(EventSelection::new("r01d2"), EventSelection::Code(0x1d2));
}

#[test]
fn cache_events_are_listed_in_order_with_their_config() {
    let rows = listed("cache");
    assert!(rows.is_sorted_by(|left, right| left.name < right.name));
    let tlb: Vec<String> = names(&listed("iTLB"));
    assert_eq!(tlb, ["iTLB-load-misses", "iTLB-loads"]);
    let misses = rows.iter().find(|row| row.name == "LLC-store-misses");
    let config = misses.and_then(|row| row.config);
    // Result: miss (1); operation: write (1); cache: LLC (2).
    assert_eq!(config, Some((EventType::HW_CACHE, 0x1_0102)));
}

#[test]
fn markers_are_found_by_their_own_name() {
    let all = ["sdt_kitchen:cook", "sdt_kitchen:eat@/bin/a(12)"];
    // This word selects the kind of events; the following ones are patterns for the system and the name.
    assert_eq!(names(&listed("sdt")), all);
    assert_eq!(names(&listed("sdt_*:eat")), all[1..]);
    let none: [&str; 0] = [];
    // The path is not part of the name.
    assert_eq!(names(&listed("sdt_*:bin")), none);
    assert_eq!(names(&listed("COOK")), none);
    let case_insensitive = EventSelection::new("COOK")
        .case_insensitive()
        .expect("a name");
    assert!(case_insensitive.takes_name("cook"));
    // `sw` selects a kind of events, not names.
    assert_eq!(EventSelection::new("sw").case_insensitive(), None);
}

#[test]
fn events_that_cannot_be_opened_are_left_out_and_a_missing_tracefs_is_reported() {
    let catalogue = Catalogue::default();
    let sources = ListSources {
        catalogue: &catalogue,
        opens: &|attr| attr.kind == EventType::SOFTWARE,
        markers: &Vec::new,
    };
    let listing = EventList::new(&EventSelection::All, sources);
    let kinds: Vec<EventKind> = listing.rows.iter().map(|row| row.kind).collect();
    assert!(!kinds.contains(&EventKind::Hardware) && !kinds.contains(&EventKind::Cache));
    // The row of breakpoints only shows their syntax, so it is listed without a test. Only tracepoints and markers would
    // follow it, and there are none.
    assert_eq!(kinds.last(), Some(&EventKind::Breakpoint));
    let error = listing.tracepoint_error.expect("there is no tracefs");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_system_removed_while_listing_does_not_hide_others() {
    // The system `gone` has no folder. The events of `ftrace` have no id, so they are not listed either.
    let rows = listed_in(&catalogue(&FakeTracefs), "tracepoint");
    let systems = rows.iter().filter_map(|row| row.name.split(':').next());
    let systems: std::collections::BTreeSet<&str> = systems.collect();
    assert_eq!(Vec::from_iter(systems), ["sched", "syscalls"]);
}
