//! Tests of SVG output as text.

use super::*;
use crate::Stacks;

fn options() -> SvgOptions {
    SvgOptions {
        title: "Flame Graph".to_owned(),
        subtitle: None,
        // 1,000 for the frames, and a margin of 10 on each side.
        width: Some(1020),
        min_width: 0.1,
        inverted: false,
        palette: Palette::Hot,
        unit: "samples".to_owned(),
    }
}

fn stacks() -> Stacks {
    let mut stacks = Stacks::default();
    let mut add = |names: &[(&str, FrameKind)], weight| {
        let frames: Vec<u32> = names
            .iter()
            .map(|(name, kind)| stacks.label(name, *kind))
            .collect();
        stacks.add(&frames, weight);
    };
    let user = FrameKind::User;
    add(
        &[("load", user), ("std::less<int>", FrameKind::Inlined)],
        750,
    );
    add(
        &[
            ("load", user),
            ("do_syscall_64", FrameKind::Kernel),
            ("a&b \"c\"\u{1}", user),
        ],
        249_250,
    );
    stacks
}

/// The flame graph of [`stacks`], merged from the outermost frame.
fn flame() -> Flame {
    let reverse = false;
    Flame::new(&stacks(), reverse)
}

fn drawn(flame: &Flame, options: &SvgOptions) -> String {
    let mut out = Vec::new();
    write(flame, options, &mut out).expect("writing to memory succeeds");
    String::from_utf8(out).expect("text")
}

fn frames(svg: &str) -> Vec<&str> {
    svg.lines()
        .filter(|line| line.starts_with("<g class=\"f\""))
        .collect()
}

/// Also checks the titles: weight, share and escaped characters.
#[test]
fn a_frame_is_as_wide_as_its_share() {
    let svg = drawn(&flame(), &options());
    let frames = frames(&svg);
    let count_with = |text: &str| frames.iter().filter(|frame| frame.contains(text)).count();
    assert_eq!(frames.len(), 5);
    assert_eq!(
        count_with("<title>all (250,000 samples, 100.00%)</title><rect x=\"10.00\""),
        1
    );
    assert_eq!(
        count_with("<title>std::less&lt;int&gt; [inlined] (750 samples, 0.30%)</title>"),
        1
    );
    assert_eq!(
        count_with(
            "data-w=\"249250\" data-d=\"3\"><title>a&amp;b &quot;c&quot;\u{fffd} (249,250 samples, 99.70%)"
        ),
        1
    );
    assert_eq!(
        count_with("width=\"3.00\""),
        1,
        "750 of 250,000 in 1,000 pixels"
    );
}

#[test]
fn the_root_is_below_or_above() {
    let flame = flame();
    let y = |svg: &str| {
        frames(svg)[0]
            .split(" y=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next()?.parse().ok())
    };
    let below: Option<usize> = y(&drawn(&flame, &options()));
    // There are four levels of frames: three are above the root.
    assert_eq!(below, Some(HEADER_HEIGHT + 3 * ROW));
    let inverted = SvgOptions {
        inverted: true,
        ..options()
    };
    assert_eq!(y(&drawn(&flame, &inverted)), Some(HEADER_HEIGHT));
}

#[test]
fn narrow_frames_are_left_out() {
    let narrow = SvgOptions {
        min_width: 5.0,
        ..options()
    };
    let svg = drawn(&flame(), &narrow);
    assert_eq!(frames(&svg).len(), 4);
    assert!(!svg.contains("std::less"));
}

#[test]
fn differences_show_the_previous_weight() {
    let mut before = Stacks::default();
    let load = before.label("load", FrameKind::User);
    before.add(&[load], 500_000);
    let (normalize, reverse) = (false, false);
    let widths = crate::FrameWidths::After;
    let flame = Flame::compare(&before, &stacks(), widths, normalize, reverse);
    let svg = drawn(&flame, &options());
    assert!(
        svg.contains("<title>load (250,000 samples, 100.00%; before 500,000, 100.00%)</title>"),
        "{svg}"
    );
    let load = frames(&svg)
        .into_iter()
        .find(|frame| frame.contains(">load"))
        .expect("load");
    // The weight of `load` without its children declines from 500,000 to 0.
    assert!(load.contains("fill=\"rgb(70,70,255)\""), "{load}");
}

#[test]
fn names_are_truncated_to_frame_width() {
    assert_eq!(fitting("main", 2.0 * NAME_MARGIN + 4.0 * CHARACTER), "main");
    assert_eq!(
        fitting("mainly", 2.0 * NAME_MARGIN + 4.0 * CHARACTER),
        "ma.."
    );
    assert_eq!(fitting("mainly", 10.0), "");
}
