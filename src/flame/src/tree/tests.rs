//! Flame graphs compared with a simple oracle: a path's total is the weight of all stacks that start with it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::FrameKind;

type WeightedPaths = Vec<(Vec<u8>, u64)>;

fn stacks(given: &WeightedPaths) -> Stacks {
    let mut stacks = Stacks::default();
    for (path, weight) in given {
        let frames: Vec<u32> = path
            .iter()
            .map(|name| stacks.label(&name.to_string(), FrameKind::User))
            .collect();
        stacks.add(&frames, *weight);
    }
    stacks
}

/// The flame graph of these paths, merged from the outermost frame.
fn flame(given: &WeightedPaths) -> Flame {
    let reverse = false;
    Flame::new(&stacks(given), reverse)
}

/// Every path with its total and own weight.
fn oracle(given: &WeightedPaths) -> BTreeMap<Vec<String>, (u64, u64)> {
    let mut sums: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
    for (path, weight) in given {
        let names: Vec<String> = path.iter().map(u8::to_string).collect();
        for end in 0..=names.len() {
            let sum = sums.entry(names[..end].to_vec()).or_default();
            sum.0 += weight;
            if end == names.len() {
                sum.1 += weight;
            }
        }
    }
    sums.entry(Vec::new()).or_default();
    sums
}

/// Every frame with its path; the root's is empty.
fn paths(flame: &Flame) -> Vec<(Vec<String>, &FlameFrame)> {
    let mut path: Vec<String> = Vec::new();
    let frames = flame.frames.iter().map(|frame| {
        path.truncate(frame.depth.saturating_sub(1));
        if frame.depth > 0 {
            path.push(flame.label(frame).0.to_owned());
        }
        (path.clone(), frame)
    });
    frames.collect()
}

fn given() -> impl Strategy<Value = WeightedPaths> {
    vec((vec(0..4_u8, 0..6), 0..1000_u64), 0..30)
}

proptest! {
    #[test]
    fn frames_are_all_paths_with_their_totals(given in given()) {
        let flame = flame(&given);
        let found: BTreeMap<_, _> = paths(&flame).into_iter().map(|(path, frame)| (path, frame.total)).collect();
        let expected: BTreeMap<_, _> = oracle(&given).into_iter().map(|(path, (total, _))| (path, total)).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(flame.frames.len(), oracle(&given).len());
    }

    #[test]
    fn children_adjoin_each_other_within_their_parents(given in given()) {
        let flame = flame(&given);
        // For each ancestor of a frame: where its next child must start, and its end.
        let mut open: Vec<(u64, u64)> = Vec::new();
        for frame in &flame.frames {
            open.truncate(frame.depth);
            if let Some((next, end)) = open.last_mut() {
                prop_assert_eq!(frame.start, *next);
                *next += frame.width;
                prop_assert!(*next <= *end);
            }
            open.push((frame.start, frame.start + frame.width));
        }
    }

    #[test]
    fn the_order_of_stacks_makes_no_difference(given in given()) {
        let mut reversed = given.clone();
        reversed.reverse();
        prop_assert_eq!(flame(&given).frames, flame(&reversed).frames);
    }

    #[test]
    fn growth_is_the_difference_of_own_weights(before in given(), after in given()) {
        let (normalize, reverse) = (false, false);
        let flame = Flame::compare(&stacks(&before), &stacks(&after), FrameWidths::After, normalize, reverse);
        let (was, is) = (oracle(&before), oracle(&after));
        let all: BTreeSet<_> = was.keys().chain(is.keys()).collect();
        prop_assert_eq!(flame.frames.len(), all.len());
        for (path, frame) in paths(&flame) {
            let (was, is) = (was.get(&path).copied().unwrap_or_default(), is.get(&path).copied().unwrap_or_default());
            prop_assert_eq!((frame.before, frame.total), (was.0, is.0));
            prop_assert_eq!(frame.own_growth, is.1 as i64 - was.1 as i64);
        }
    }
}

#[test]
fn reverse_merges_from_the_innermost() {
    let given = stacks(&vec![(vec![1, 2], 3), (vec![3, 2], 4)]);
    let reverse = true;
    let flame = Flame::new(&given, reverse);
    let shown: Vec<_> = paths(&flame)
        .into_iter()
        .map(|(path, frame)| (path.join(";"), frame.total))
        .collect();
    let expected = [("", 7), ("2", 7), ("2;1", 3), ("2;3", 4)];
    assert_eq!(
        shown,
        expected.map(|(path, total)| (path.to_owned(), total))
    );
}

#[test]
fn normalized_recordings_weigh_the_same() {
    let before = stacks(&vec![(vec![1], 10), (vec![2], 30)]);
    let after = stacks(&vec![(vec![1], 50), (vec![2], 30)]);
    let (normalize, reverse) = (true, false);
    let flame = Flame::compare(&before, &after, FrameWidths::Before, normalize, reverse);
    // The weights of `before` are doubled: its total is 40, that of `after` 80.
    assert_eq!(flame.frames[0].before, 80);
    let growth: Vec<i64> = flame.frames.iter().map(|frame| frame.own_growth).collect();
    assert_eq!(growth, [0, 30, -30]);
}

#[test]
fn huge_weights_saturate_in_comparisons() {
    let huge = stacks(&vec![(vec![1], u64::MAX), (vec![2], 5)]);
    let (normalize, reverse) = (true, false);
    let flame = Flame::compare(&huge, &huge, FrameWidths::After, normalize, reverse);
    assert_eq!(flame.frames[0].total, u64::MAX);
}
