//! All typed events: each has a tracepoint of its own, and random raw data are read without a panic.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::kernels::{of_machine, variants};
use crate::typed::EventLayout;

#[test]
fn every_listed_tracepoint_has_one_typed_event() {
    let names: Vec<&str> = EventLayout::tracepoints().collect();
    let distinct: BTreeSet<&&str> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    for name in names {
        // The formats of the tracepoint in synthetic kernels and in this machine's.
        for tracepoint in variants(name) {
            let layout = EventLayout::resolve(&tracepoint).expect(name);
            assert!(layout.is_some(), "{name}");
        }
    }
}

#[test]
fn other_tracepoints_have_no_typed_event() {
    let Some(tracepoint) = of_machine("sched:sched_process_wait") else {
        return rperf_testkit::skip(
            "other_tracepoints_have_no_typed_event",
            "no such tracepoint",
        );
    };
    assert!(
        EventLayout::resolve(&tracepoint)
            .expect("no error")
            .is_none()
    );
}

/// The layouts of all typed events for the synthetic kernels and this machine's, with the names of the tracepoints.
static ALL: LazyLock<Vec<(&str, EventLayout)>> = LazyLock::new(|| {
    let layouts = EventLayout::tracepoints().flat_map(|name| {
        variants(name).into_iter().map(move |tracepoint| {
            let layout = EventLayout::resolve(&tracepoint).expect("its fields");
            (name, layout.expect("a typed event"))
        })
    });
    layouts.collect()
});

proptest! {
    #[test]
    fn any_raw_data_are_read_without_a_panic(raw in prop::collection::vec(any::<u8>(), 0..120)) {
        for (name, layout) in ALL.iter() {
            // `None` if the raw data are too short for the layout.
            if let Some(event) = layout.read(&raw) {
                // Formatting reads every field, and names the tracepoint.
                let text = format!("{event:?}");
                prop_assert!(text.contains(name));
            }
        }
    }
}
