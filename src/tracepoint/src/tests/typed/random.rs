//! Robustness of all typed events.

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

/// The layouts of all typed events for all kernels, with the names of the tracepoints.
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
    fn any_raw_data_are_read_or_too_short(raw in prop::collection::vec(any::<u8>(), 0..120)) {
        for (name, layout) in ALL.iter() {
            if let Some(event) = layout.read(&raw) {
                // Formatting reads every field.
                let text = format!("{event:?}");
                prop_assert!(text.contains(name));
            }
        }
    }
}
