//! Random samples, counted by the crate and by a simple implementation ([`oracle`]).

use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_replay::Order;
use rperf_resolve::Level;

use super::fake::{Fake, Sample, context};
use super::oracle;
use crate::fields::{NumberField, ReportField};
use crate::keys::KEYS;
use crate::options::{CountedItems, Direction, GraphForm, GraphOptions, HistogramOptions};
use crate::rows::{self, EventInput};
use crate::stacks::{MergedStacks, StackKey, StackWeight, UniqueStacks};
use crate::{ColumnSum, Histogram, HistogramRow, Weights};

// Arguments of `count`.
const ONE_PART: usize = 1;
const ONE_THREAD: usize = 1;

fn sample() -> impl Strategy<Value = Sample> {
    let frames = prop::collection::vec(0..Fake::SITES, 0..9);
    let ids = (0u32..3, 0u32..3, 0u32..2);
    (frames, ids, 0..Fake::SITES, any::<bool>(), 0u64..50).prop_map(
        |(mut frames, (comm, tid, cpu), any_site, in_frames, period)| {
            // The sampled location is the last frame, or any site.
            let leaf = if in_frames {
                frames.last().copied()
            } else {
                None
            };
            // Recursion is the most error-prone case.
            if frames.len() > 4 {
                frames[2] = frames[0];
            }
            Sample {
                order: Order {
                    time: 0,
                    position: 0,
                },
                context: context(comm, tid, cpu),
                leaf: leaf.unwrap_or(any_site),
                level: if any_site % 2 == 0 {
                    Level::User
                } else {
                    Level::Kernel
                },
                period,
                frames,
            }
        },
    )
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    prop::collection::vec(sample(), 0..40).prop_map(|mut samples| {
        for (position, sample) in (0u64..).zip(&mut samples) {
            sample.order.position = position;
            // Times that do not correlate with the position.
            sample.order.time = position * 7 % 5;
        }
        samples
    })
}

fn options() -> impl Strategy<Value = HistogramOptions> {
    let keys = prop::sample::subsequence(KEYS.to_vec(), 0..=4).prop_shuffle();
    let form = prop::sample::select(vec![
        GraphForm::Graph,
        GraphForm::Fractal,
        GraphForm::Flat,
        GraphForm::Folded,
    ]);
    let graph = (form, prop::sample::select(vec![0.0, 0.5, 20.0]));
    let graph = prop::option::of(graph);
    (keys, any::<bool>(), graph).prop_map(|(keys, children, graph)| HistogramOptions {
        columns: keys.iter().map(|key| ReportField::Key(key)).collect(),
        order_by: [NumberField::Total, NumberField::Own]
            .map(ReportField::Number)
            .into_iter()
            .chain(keys.iter().map(|key| ReportField::Key(key)))
            .collect(),
        children,
        reference_call_graphs: false,
        direction: if children {
            Direction::Caller
        } else {
            Direction::Callee
        },
        graph: graph.map(|(form, min_percent)| GraphOptions {
            form,
            min_percent,
            by_address: false,
            by_line: false,
            annotates_branches: false,
        }),
        max_stack: 127,
        parallelism: None,
        branch_chains: false,
        hide_unresolved: false,
        parent: None,
        exclude_other: false,
        ignore_callees: None,
        symbol_filter: None,
        relative: false,
        counted: CountedItems::Samples,
        time_quantum: 1,
        nanoseconds: false,
        full_paths: false,
        addresses: false,
        sort_event: 0,
        weight_parts: Vec::new(),
    })
}

/// Counts `samples` in `parts` parts, which are then merged, on `threads` threads.
fn count(
    fake: &Fake,
    options: &HistogramOptions,
    samples: &[Sample],
    parts: usize,
    threads: usize,
) -> Histogram {
    let parts = samples.chunks(samples.len().div_ceil(parts).max(1));
    let threads = NonZeroUsize::new(threads).expect("some");
    let event = EventInput {
        index: 0,
        merged: &MergedStacks::new(parts.map(|part| fold(fake, part)).collect(), threads),
        callchains: true,
    };
    rows::histogram(&[event], options, fake, threads)
}

fn fold(fake: &Fake, samples: &[Sample]) -> UniqueStacks {
    let mut stacks = UniqueStacks::default();
    for sample in samples {
        let frames = sample.frames.iter();
        let frames: Vec<u32> = frames
            .map(|site| stacks.sites.intern(fake.site(*site)))
            .collect();
        let key = StackKey {
            context: stacks.contexts.intern(sample.context),
            leaf: stacks.sites.intern(fake.site(sample.leaf)),
            level: sample.level,
            frames: &frames,
        };
        stacks.add(
            &key,
            &StackWeight {
                period: sample.period,
                samples: 1,
                first: sample.order,
                thread: sample.context.thread,
                extras: None,
            },
        );
    }
    stacks
}

/// The rows, sorted by their debug output, since rows of equal weight may be in any order.
fn sorted(mut rows: Vec<HistogramRow>) -> Vec<HistogramRow> {
    rows.sort_by_cached_key(|row| format!("{row:?}"));
    rows
}

proptest! {
    #[test]
    fn merged_stacks_match_single_samples(samples in samples(), options in options(), parts in 1usize..4) {
        let fake = Fake::new();
        let fast = count(&fake, &options, &samples, parts, ONE_THREAD);
        let slow = oracle::rows(&fake, &options, &samples);
        prop_assert_eq!(sorted(fast.rows), sorted(slow));
        let total = ColumnSum {
            samples: samples.len() as u64,
            period: samples.iter().map(|sample| sample.period).sum(),
            latency: 0,
        };
        prop_assert_eq!(fast.totals, [total]);
    }

    #[test]
    fn filtered_samples_count_for_percentages_only(samples in samples(), mut options in options(), filtered_period in 1u64..9) {
        let fake = Fake::new();
        let mut stacks = MergedStacks::new(vec![fold(&fake, &samples)], NonZeroUsize::MIN);
        let filtered = ColumnSum { period: filtered_period, samples: 1, latency: 0 };
        stacks.filtered = filtered;
        let mut reports = [false, true].map(|relative| {
            options.relative = relative;
            // Any index of the event in the recording: the histogram's `events` returns it.
            let event = EventInput { index: 3, merged: &stacks, callchains: false };
            rows::histogram(&[event], &options, &fake, NonZeroUsize::MIN)
        });
        // `relative`: percentages relate to the samples that pass the filters, so `totals` excludes the others.
        let [absolute, relative] = &mut reports;
        prop_assert_eq!(absolute.totals[0].without(filtered), relative.totals[0]);
        prop_assert_eq!(&absolute.rows, &relative.rows);
        prop_assert_eq!((&relative.events[..], relative.all), (&[3][..], absolute.totals[0]));
    }

    #[test]
    fn a_filter_removes_rows_and_changes_none(samples in samples(), mut options in options()) {
        let fake = Fake::new();
        let all = count(&fake, &options, &samples, ONE_PART, ONE_THREAD);
        // Of the symbols, only `main` contains this.
        options.symbol_filter = Some("ai".to_owned());
        let some = count(&fake, &options, &samples, ONE_PART, ONE_THREAD);
        prop_assert_eq!(some.totals, all.totals);
        let shows_names = options.keys().iter().any(|key| key.name == "symbol");
        // A cell of the column `symbol` is the level and the name, such as `[.] main`.
        let is_other = |row: &HistogramRow| row.cells.iter().all(|cell| !cell.contains("] main"));
        let mut rest = all.rows.into_iter();
        for row in some.rows {
            prop_assert!(!shows_names || row.cells.iter().any(|cell| cell.contains("main")));
            let mut is_kept = false;
            for known in rest.by_ref() {
                is_kept = known == row;
                if is_kept {
                    break;
                }
                prop_assert!(!shows_names || is_other(&known));
            }
            prop_assert!(is_kept);
        }
        prop_assert!(!shows_names || rest.all(|row| is_other(&row)));
    }

    #[test]
    fn a_group_matches_its_single_events(samples in samples(), mut options in options(), split in 0usize..40) {
        options.graph = None;
        let fake = Fake::new();
        let parts = samples.split_at(split.min(samples.len()));
        let all_merged = [parts.0, parts.1].map(|part| MergedStacks::new(vec![fold(&fake, part)], NonZeroUsize::MIN));
        let event = |index| EventInput {
            index,
            merged: &all_merged[index],
            callchains: false,
        };
        let events = [event(0), event(1)];
        let group = rows::histogram(&events, &options, &fake, NonZeroUsize::MIN);
        for (index, event) in events.into_iter().enumerate() {
            let alone = rows::histogram(&[event], &options, &fake, NonZeroUsize::MIN);
            prop_assert_eq!(group.totals[index], alone.totals[0]);
            // The number of rows of the event alone that are not yet found in the group. A row of the group in which this event
            // has no weight may be a row of the other event only, so rows without weight are not searched, and remain missing.
            let mut missing = alone.rows.len();
            for row in &group.rows {
                let weights = if index == 0 { row.weights } else { row.others[0] };
                if weights != Weights::default() {
                    missing -= 1;
                    prop_assert!(alone.rows.iter().any(|row_alone| row_alone.weights == weights));
                }
            }
            let empty = alone.rows.iter().filter(|row| row.weights == Weights::default());
            prop_assert_eq!(missing, empty.count());
        }
        let order = |row: &HistogramRow| std::cmp::Reverse((row.weights.total, row.weights.own));
        prop_assert!(group.rows.is_sorted_by_key(order));
    }

    #[test]
    fn threads_and_parts_make_no_difference(samples in samples(), options in options(), parts in 2usize..5) {
        let fake = Fake::new();
        let one = count(&fake, &options, &samples, ONE_PART, ONE_THREAD);
        let three_threads = 3;
        let many = count(&fake, &options, &samples, parts, three_threads);
        prop_assert_eq!(one.rows, many.rows);
    }

    #[test]
    fn without_call_graphs_rows_are_in_order(samples in samples(), mut options in options()) {
        // With `children` and call graphs, rows with equal totals can be ordered by the depth of their graphs.
        options.graph = None;
        let fake = Fake::new();
        let rows = count(&fake, &options, &samples, ONE_PART, ONE_THREAD).rows;
        prop_assert!(rows.is_sorted_by_key(|row| std::cmp::Reverse((row.weights.total, row.weights.own))));
    }
}
